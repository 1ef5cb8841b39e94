// Disputes about trainings: each step of a training is a step of its trace. These rules say what
// the inputs of a step must be, for parties that have receipts of the same training:
//
//     rule     input                          must be
//     cache    a state                        the output of the previous step with its next value;
//                                             in the first step of a training its initial value
//     samples  an input of the batch          the samples that the order gives this step
//     draw     random.seed, random.step       the seed, the number of the step
//     default  any other input                its default value
#ifndef REE_DISPUTE_TRAINING_RULES_H
#define REE_DISPUTE_TRAINING_RULES_H

#include "dispute/claim.h"
#include "dispute/rules.h"
#include "dispute/training_points.h"

// Checks that the receipt of party k, which must not be NULL, is signed with the party's key, if
// there is one, and has a trace. Fails with REE_INVALID if not.
enum ree_status ree_training_terms_check_key(const struct ree_training_terms *terms, unsigned k,
                                             struct ree_error *err);
// Checks both receipts without the model: their signatures and keys, and that they are of one
// training with traces: step, samples, order, seed and first step. Fails with REE_INVALID if not.
enum ree_status ree_training_terms_check(const struct ree_training_terms *terms,
                                         struct ree_error *err);
// Compares the receipt of side k alone with the model, with the samples if they are available, and,
// unless `trace` is NULL, with this trace if it has the receipt's root. `lie` receives the first
// contradiction; "": there is none. Fails with REE_INVALID if the receipt is altered or has another
// key.
enum ree_status ree_training_terms_lie(const struct ree_training_terms *terms, unsigned k,
                                       const struct ree_opened *model,
                                       const struct ree_trace *trace, char lie[REE_TRAINING_LIE],
                                       struct ree_error *err);
// Returns the number of steps that the receipt of side k states.
uint64_t ree_training_terms_n_steps(const struct ree_training_terms *terms, unsigned k);
// Returns the operation set that both receipts state, if they state the same one.
const char *ree_training_terms_operation_set(const struct ree_training_terms *terms);
bool ree_training_terms_has_root(const struct ree_training_terms *terms, unsigned k,
                                 const ree_digest root);
// Checks that both sides of a claim are these receipts' traces. Fails with REE_INVALID if not.
enum ree_status ree_training_terms_bind(const struct ree_training_terms *terms,
                                        const struct ree_claim *claim, struct ree_error *err);
// Replaces the rules of the inputs by those above. Fails with REE_INVALID if the model is not the
// receipts' training step, or if the dataset is not theirs.
enum ree_status ree_training_rules_make(const struct ree_training_terms *terms,
                                        const struct ree_opened *model, struct ree_rules *inout,
                                        struct ree_error *err);
// Computes the digest that an input with the rule SAMPLES, DRAW or DEFAULT must have in a step of
// the trace. Fails with REE_NOT_FOUND if this requires the samples, which are not available.
enum ree_status ree_training_input(const struct ree_training_terms *terms,
                                   const struct ree_opened *model, const struct ree_rule *rule,
                                   uint64_t step, uint32_t input, ree_digest out,
                                   struct ree_error *err);

#endif
