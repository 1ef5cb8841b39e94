// A dispute about a run. Two parties are committed to different roots. Each is asked for digests
// until the first node that differs is found. The search first bisects the tree of steps to find
// the first step that differs, and then the inputs and nodes of that step in the same way. Each
// answer must hash to what the party stated before, so a party that invents an answer is named at
// once. A party that does not answer is also named. A dispute takes O(log steps + log nodes)
// messages of a few digests, and one more message per party for each input of the node.
//
// The inputs of a step follow from the previous step, from the model and from the receipts
// (audit/rules.h). With these rules every dispute ends with a claim (audit/claim.h) that a referee
// can decide, or with the name of a party.
//
// The idea is from "Verde: Verification via Refereed Delegation for Machine Learning Programs"
// (2025).
#ifndef REE_AUDIT_DISPUTE_H
#define REE_AUDIT_DISPUTE_H

#include "audit/claim.h"
#include "audit/party.h"
#include "audit/rules.h"

enum ree_dispute_kind {
    REE_DISPUTE_SAME,      // the same root
    REE_DISPUTE_OTHER_RUN, // the headers differ, and it is not known which is the model's; or both
                           // have the same header, and it is not the model's
    REE_DISPUTE_INPUT,     // the first that differs is an input of the model
    REE_DISPUTE_NODE,      // ... a node
    REE_DISPUTE_LENGTH,    // equal as far as both go, or not as long as the receipt says
    REE_DISPUTE_LIED,      // a party contradicted what it is committed to
    REE_DISPUTE_SILENT,    // a party did not answer
    REE_DISPUTE_HEADER,    // a header is not the model's
    REE_DISPUTE_TOKEN,     // the last token that the receipts share
};

// LIED and SILENT rest on the word of whoever asked: the answers are not signed, so that the record
// proves nothing to others. All other kinds that name a party rest on a claim, which anyone can
// check against the roots.
struct ree_dispute {
    enum ree_dispute_kind kind;
    uint64_t n_steps[2]; // as the parties say
    uint64_t step;       // of INPUT, NODE and TOKEN; of LENGTH those that both have
    uint32_t input, node;
    // Of NODE; with rules also of INPUT, HEADER, TOKEN and LENGTH. NULL: there is none.
    struct ree_claim *claim;
    unsigned liar; // of LIED and SILENT: 0 is A
    char lie[160]; // what was wrong
    // Questions and answers together; bytes of their JSON.
    uint64_t n_messages, n_bytes;
};

// What the parties are held to.
struct ree_dispute_terms {
    const struct ree_trace_header *header; // that both traces should have
    bool is_model;                         // it was made from the model
    const struct ree_rules *rules;         // NULL: not known
    const struct ree_told *runs[2];        // of both receipts, of the same run; NULL: not known
};

// `transcript` (may be NULL) receives every message: JSON lines. Fails only if memory is exhausted.
enum ree_status ree_dispute(const struct ree_dispute_terms *terms,
                            struct ree_party *const parties[2], struct ree_strbuf *transcript,
                            struct ree_dispute *out, struct ree_error *err);
// Of a claim that takes tokens that party k keeps to itself (audit/referee.h: is_withheld): names
// it as one that does not answer. The claim is gone then.
enum ree_status ree_dispute_withheld(struct ree_dispute *dispute, unsigned k,
                                     struct ree_strbuf *transcript, struct ree_error *err);
void ree_dispute_finish(struct ree_dispute *dispute);

// A message as a line of JSON: the question to a party ("A", "B"), or, where `reply` is not NULL,
// its answer.
enum ree_status ree_message_encode(const char *party, const struct ree_query *query,
                                   const struct ree_reply *reply, struct ree_strbuf *out,
                                   struct ree_error *err);
// The last line of the transcript of a dispute of the kind LIED or SILENT: who is named, and that
// the transcript is no proof of it.
enum ree_status ree_message_encode_name(const char *party, const struct ree_dispute *dispute,
                                        struct ree_strbuf *out, struct ree_error *err);

#endif
