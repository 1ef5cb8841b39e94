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
    enum ree_ask halves; // the kind of question that asks for halves of the current tree
    ree_digest header, root, steps_top, steps_root;
    struct ree_tree steps;
};

// State of a dispute in progress.
struct ree_bench {
    const struct ree_dispute_terms *terms;
    const struct ree_trace_header *header; // terms->header
    struct ree_side sides[2];
    struct ree_strbuf *transcript;
    struct ree_dispute *out;
    struct ree_error *err;
};

// The functions below ask a side. An answer that does not hash to what the side stated before is a
// lie. After a lie, and if the side does not answer, they fail and set kind, liar and lie of the
// dispute's result.

// Asks for the root, the header's digest and the number of steps, and initialises side->steps.
enum ree_status ree_side_commit(struct ree_side *side);
// Asks for what the side states about a step. Sets step_proof, inputs_root and nodes_root of *out;
// the proof is allocated in the claim's arena. inputs_top and nodes_top receive the tops of the
// trees of inputs and nodes; they may be NULL.
enum ree_status ree_side_step(struct ree_side *side, uint64_t step, struct ree_claim_opening *out,
                              ree_digest inputs_top, ree_digest nodes_top);
// Asks for the digests of a node's inputs and outputs, and for its proof; they are allocated in the
// claim's arena. `of` must be the result of ree_side_step for this step.
enum ree_status ree_side_node(struct ree_side *side, uint64_t step,
                              const struct ree_claim_opening *of, uint32_t node,
                              ree_digest **inputs, ree_digest **outputs,
                              struct ree_claim_proof *proof);
// Asks for the digest of an input of a step, and for its proof, which is allocated in the claim's
// arena. `of` must be the result of ree_side_step for this step.
enum ree_status ree_side_input(struct ree_side *side, uint64_t step,
                               const struct ree_claim_opening *of, uint32_t input, ree_digest out,
                               struct ree_claim_proof *proof);
// Initialises a tree with n leaves under a top that was already checked. Its nodes are opened by
// questions of the kind `halves` about the disputed step.
enum ree_status ree_side_tree(struct ree_side *side, enum ree_ask halves, uint64_t n,
                              const ree_digest top, struct ree_tree *tree);
// Creates the claim and fills in what every claim has: the header that both parties should have,
// and what each party is committed to.
enum ree_status ree_bench_begin_claim(struct ree_bench *bench, enum ree_claim_kind kind,
                                      uint64_t step);
// Finds the node that computes a value, among the nodes with an index below `before`. Returns
// UINT32_MAX if none does.
uint32_t ree_maker_of(const struct ree_trace_header *header, uint32_t value, uint32_t before);
// dispute_tensors.c: compares each receipt with its own trace: a run of tensors is one step, and
// its trace must have the digests that the receipt states. Fails if the receipts state different
// inputs and neither party contradicts itself.
enum ree_status ree_bench_check_tensors(struct ree_bench *bench);

// Records a lie of the side that the caller found: sets kind, liar and lie of the dispute's result,
// and fails. format: what was wrong.
__attribute__((format(printf, 2, 3))) enum ree_status ree_side_lied(struct ree_side *side,
                                                                    const char *format, ...);

#endif
