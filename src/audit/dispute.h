// A dispute about a run: two parties that are committed to different roots are asked, step by step,
// for digests until the first node is found in which they differ. First which step: down the tree
// of steps, into the first half that differs; then, within the step, inputs and nodes, likewise.
// What either says has to hash to what it said before, so a party that makes things up is named at
// once. It takes O(log steps + log nodes) messages of a few digests, and as many more as the node
// has inputs.
//
// "Verde: Verification via Refereed Delegation for Machine Learning Programs" (2025) describes the
// idea.
#ifndef REE_AUDIT_DISPUTE_H
#define REE_AUDIT_DISPUTE_H

#include "audit/claim.h"
#include "audit/party.h"

enum ree_dispute_kind {
    REE_DISPUTE_SAME,      // the same root
    REE_DISPUTE_OTHER_RUN, // the headers differ
    REE_DISPUTE_INPUT,     // the first that differs is an input of the model
    REE_DISPUTE_NODE,      // ... a node: there is a claim
    REE_DISPUTE_LENGTH,    // equal as far as both go
    REE_DISPUTE_LIED,      // a party contradicted what it is committed to
};

struct ree_dispute {
    enum ree_dispute_kind kind;
    uint64_t n_steps[2]; // as the parties say
    uint64_t step;       // of INPUT and NODE; of LENGTH those that both have
    uint32_t input, node;
    struct ree_claim *claim; // of NODE
    unsigned liar;           // of LIED: 0 is A
    char lie[160];           // what was wrong
    // Questions and answers together; bytes of their JSON.
    uint64_t n_messages, n_bytes;
};

// `header` is what the parties should have; where it is not theirs, OTHER_RUN. `transcript` (may be
// NULL) receives every message: JSON lines. Fails where a party fails to answer or memory is
// exhausted, naming it.
enum ree_status ree_dispute(const struct ree_trace_header *header,
                            struct ree_party *const parties[2], struct ree_strbuf *transcript,
                            struct ree_dispute *out, struct ree_error *err);
void ree_dispute_finish(struct ree_dispute *dispute);

// A message as a line of JSON: the question to a party ("A", "B"), or, where `reply` is not NULL,
// its answer.
enum ree_status ree_message_encode(const char *party, const struct ree_query *query,
                                   const struct ree_reply *reply, struct ree_strbuf *out,
                                   struct ree_error *err);

#endif
