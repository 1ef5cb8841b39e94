// A party to a dispute. It is committed to the root of a trace, and answers questions about the
// trace with digests. Whoever asks (dispute/dispute.h) checks every answer against what the party
// stated before, so the party need not be trusted.
#ifndef REE_DISPUTE_PARTY_H
#define REE_DISPUTE_PARTY_H

#include "base/status.h"
#include "trace/trace.h"

enum ree_ask {
    REE_ASK_COMMIT, // header digest, top of the steps, root of the trace; n_steps
    // Asks for the tops (base/merkle.h) of the left and the right half of the `count` >= 2 steps
    // from `first` on.
    REE_ASK_STEPS,
    REE_ASK_STEP,   // about a step: top of its inputs, top of its nodes, the step's proof
    REE_ASK_INPUTS, // like STEPS, for the inputs of a step
    REE_ASK_NODES,  // like STEPS, for the nodes of a step
    REE_ASK_INPUT,  // about input `index` of a step: its digest, its proof
    REE_ASK_NODE, // about node `index` of a step: digests of its inputs, of its outputs, its proof
};

struct ree_query {
    enum ree_ask ask;
    uint64_t step;
    uint64_t first, count;
    uint32_t index;
};

// A party's answer: the digests that enum ree_ask lists for the question, in that order.
// base/merkle.h defines tops and proofs.
struct ree_reply {
    uint64_t n_steps; // COMMIT only
    bool is_silent;   // for the transcript: the party did not answer
    size_t n, capacity;
    ree_digest *digests;
};
void ree_reply_finish(struct ree_reply *reply);
// Appends n digests. Returns false if memory is exhausted.
bool ree_reply_add(struct ree_reply *reply, const ree_digest *digests, size_t n);

struct ree_party {
    // Answers a question: fills *out, which is zeroed. Fails if the party does not have what is
    // asked for.
    enum ree_status (*answer)(struct ree_party *party, const struct ree_query *query,
                              struct ree_reply *out, struct ree_error *err);
    // True if the party answers within the asking process. A REE_NO_MEMORY from it is then a
    // failure of the asking process. From any other party it counts as silence.
    bool is_local;
};

// Creates a party that answers from a trace. The trace must outlive it.
enum ree_status ree_party_of_trace(const struct ree_trace *trace, struct ree_party **out,
                                   struct ree_error *err);
void ree_party_of_trace_destroy(struct ree_party *party); // accepts NULL

#endif
