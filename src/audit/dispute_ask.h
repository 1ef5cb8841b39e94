// What the sides of a dispute are asked, and how their answers are checked. For dispute.c.
#ifndef REE_AUDIT_DISPUTE_ASK_H
#define REE_AUDIT_DISPUTE_ASK_H

#include "audit/dispute.h"
#include "audit/tree.h"

struct ree_bench;

struct ree_side {
    struct ree_bench *bench;
    struct ree_party *party;
    unsigned k;
    enum ree_ask halves; // what opening a tree asks for
    ree_digest header, root, steps_top, steps_root;
    struct ree_tree steps;
};

// Where the two stand.
struct ree_bench {
    const struct ree_dispute_terms *terms;
    const struct ree_trace_header *header; // of the terms
    struct ree_side sides[2];
    struct ree_strbuf *transcript;
    struct ree_dispute *out;
    struct ree_error *err;
};

// Every answer that does not lead to what the side said before is a lie: these fail then, with
// out->kind, liar and lie set. They do so, too, for a side that does not answer.

// The root, header and number of steps; makes side->steps.
enum ree_status ree_side_commit(struct ree_side *side);
// The roots within a step, into the claim's arena. The tops may be NULL.
enum ree_status ree_side_step(struct ree_side *side, uint64_t step, struct ree_claim_opening *out,
                              ree_digest inputs_top, ree_digest nodes_top);
// What the side says of a node of a step that is open.
enum ree_status ree_side_node(struct ree_side *side, uint64_t step,
                              const struct ree_claim_opening *of, uint32_t node,
                              ree_digest **inputs, ree_digest **outputs,
                              struct ree_claim_proof *proof);
enum ree_status ree_side_input(struct ree_side *side, uint64_t step,
                               const struct ree_claim_opening *of, uint32_t input, ree_digest out,
                               struct ree_claim_proof *proof);
// A tree under a top that was checked; opening its nodes asks for `halves`, of the disputed step.
enum ree_status ree_side_tree(struct ree_side *side, enum ree_ask halves, uint64_t n,
                              const ree_digest top, struct ree_tree *tree);
// A lie that is found elsewhere.
__attribute__((format(printf, 2, 3))) enum ree_status ree_side_lied(struct ree_side *side,
                                                                    const char *format, ...);

#endif
