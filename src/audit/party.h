// A party to a dispute: it has committed itself to the root of a trace, and answers questions about
// what is below it with digests alone. Whoever asks (audit/dispute.h) checks every answer against
// what was said before, so that a party need not be trusted.
#ifndef REE_AUDIT_PARTY_H
#define REE_AUDIT_PARTY_H

#include "base/status.h"
#include "receipt/trace.h"

enum ree_ask {
    REE_ASK_COMMIT, // header's digest, top of the steps, root of the trace; n_steps
    REE_ASK_STEPS,  // of `count` steps from `first` on, at least 2: tops of the left and right half
    REE_ASK_STEP,   // of a step: top of its inputs, top of its nodes, the step's proof
    REE_ASK_INPUTS, // within a step, like STEPS
    REE_ASK_NODES,  // likewise
    REE_ASK_INPUT,  // `index` of a step: its digest, its proof
    REE_ASK_NODE,   // `index` of a step: digests of its inputs, of its outputs, its proof
};

struct ree_query {
    enum ree_ask ask;
    uint64_t step;
    uint64_t first, count;
    uint32_t index;
};

// What tops and proofs are: receipt/merkle.h.
struct ree_reply {
    uint64_t n_steps; // of COMMIT
    bool is_silent;   // for the transcript: the party did not answer
    size_t n, capacity;
    ree_digest *digests;
};
void ree_reply_finish(struct ree_reply *reply);
// Appends; false: out of memory.
bool ree_reply_add(struct ree_reply *reply, const ree_digest *digests, size_t n);

struct ree_party {
    // Fills an empty reply. Fails where it does not have what is asked for.
    enum ree_status (*answer)(struct ree_party *party, const struct ree_query *query,
                              struct ree_reply *out, struct ree_error *err);
    // It answers within the asking process. Its REE_NO_MEMORY is then the asker's own failure; of
    // any other party it counts as silence.
    bool is_local;
};

// A party that tells what is in a trace, which outlives it.
enum ree_status ree_party_of_trace(const struct ree_trace *trace, struct ree_party **out,
                                   struct ree_error *err);
void ree_party_of_trace_destroy(struct ree_party *party); // accepts NULL

#endif
