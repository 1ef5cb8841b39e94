// The questions to the parties of a dispute, and the checks of their answers. For dispute.c.
#ifndef REE_DISPUTE_DISPUTE_INTERNAL_H
#define REE_DISPUTE_DISPUTE_INTERNAL_H

#include "dispute/dispute.h"
#include "dispute/tree.h"

struct ree_bench;

struct ree_side {
    struct ree_bench *bench;
    struct ree_party *party;
    unsigned k;
    enum ree_ask halves; // kind of question that opens nodes of the current tree
    ree_digest header, root, steps_top, steps_root;
    struct ree_tree steps;
};

// State of the dispute.
struct ree_bench {
    const struct ree_dispute_terms *terms;
    const struct ree_trace_header *header; // of the terms
    struct ree_side sides[2];
    struct ree_strbuf *transcript;
    struct ree_dispute *out;
    struct ree_error *err;
};

// Every answer that does not lead to what the side stated before is a lie. In that case, and if a
// side does not answer, these functions fail with out->kind, liar and lie set.

// Asks for the root, header and number of steps; initialises side->steps.
enum ree_status ree_side_commit(struct ree_side *side);
// Asks for the roots within a step, allocated in the claim's arena. The tops may be NULL.
enum ree_status ree_side_step(struct ree_side *side, uint64_t step, struct ree_claim_opening *out,
                              ree_digest inputs_top, ree_digest nodes_top);
// Asks for the side's record of a node. `of` must have been opened with ree_side_step.
enum ree_status ree_side_node(struct ree_side *side, uint64_t step,
                              const struct ree_claim_opening *of, uint32_t node,
                              ree_digest **inputs, ree_digest **outputs,
                              struct ree_claim_proof *proof);
// Likewise for the digest of an input of the step.
enum ree_status ree_side_input(struct ree_side *side, uint64_t step,
                               const struct ree_claim_opening *of, uint32_t input, ree_digest out,
                               struct ree_claim_proof *proof);
// Initialises a tree under a top that was already checked. Its nodes are opened with questions of
// the kind `halves` about the disputed step.
enum ree_status ree_side_tree(struct ree_side *side, enum ree_ask halves, uint64_t n,
                              const ree_digest top, struct ree_tree *tree);
// Records a lie that the caller found.
__attribute__((format(printf, 2, 3))) enum ree_status ree_side_lied(struct ree_side *side,
                                                                    const char *format, ...);

#endif
