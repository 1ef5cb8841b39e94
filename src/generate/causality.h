// Decides whether a text may be checked in one pass, with all tokens in one run like a prompt. The
// results equal those of token-by-token runs if the model is proved to be causal
// (graph/causality/prove.h).
#ifndef REE_GENERATE_CAUSALITY_H
#define REE_GENERATE_CAUSALITY_H

#include "generate/roles.h"

// Tries to prove that a model is causal, with the inputs that the steps of generation provide. If
// it is not proved, returns false and the reason in out_reason (`size` bytes). Takes about as long
// as reading the graph. mixes_lengths: as in ree_generator_info.
bool ree_model_is_causal(const struct ree_model *model, const struct ree_roles *roles,
                         bool mixes_lengths, char *out_reason, size_t size);

// The size of the runs of a prompt, in tokens, with a model that has a cache and is not proved to
// be causal. What it generates may depend on that size, so it is the same in all runs.
#define REE_UNPROVED_CHUNK 512u
// Returns whether runs of `chunk` tokens instead of REE_UNPROVED_CHUNK give the same results. Where
// it returns false, out_reason is as above.
bool ree_model_may_chunk(const struct ree_model *model, const struct ree_roles *roles,
                         bool mixes_lengths, uint32_t chunk, char *out_reason, size_t size);

// Builds the question whether a model is causal (graph/causality/prove.h) in *out. `inputs` must
// have roles->n_inputs elements; the call fills them, and the question refers to them.
struct ree_causality_input;
struct ree_causality_question;
void ree_model_causality_question(const struct ree_model *model, const struct ree_roles *roles,
                                  bool mixes_lengths, struct ree_causality_input *inputs,
                                  struct ree_causality_question *out);

#endif
