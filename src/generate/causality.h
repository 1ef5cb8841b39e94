// Decides whether a text may be checked in one pass, with all tokens in one run like a prompt. The
// results equal those of token-by-token runs if the model is proved to be causal
// (graph/causality/prove.h).
#ifndef REE_GENERATE_CAUSALITY_H
#define REE_GENERATE_CAUSALITY_H

#include "generate/roles.h"

struct ree_causality {
    bool is_proved;
    char why_not[384]; // "" if it is proved
};

// Tries to prove that a model is causal, with the inputs that the steps of generation provide.
// Takes about as long as reading the graph. mixes_lengths: as in ree_generator_info. Fails only
// without memory.
enum ree_status ree_causality_of_model(const struct ree_model *model, const struct ree_roles *roles,
                                       bool mixes_lengths, struct ree_causality *out,
                                       struct ree_error *err);

// The size of the runs of a prompt, in tokens, with a model that has a cache and is not proved to
// be causal. What it generates may depend on that size, so it is the same in all runs.
#define REE_UNPROVED_CHUNK 512u
// Returns whether the model must be proved to be causal if runs of `chunk` tokens are to give the
// same results as runs of REE_UNPROVED_CHUNK.
static inline bool ree_chunk_needs_causality(const struct ree_roles *roles, uint32_t chunk) {
    return roles->n_kv_caches > 0 && chunk != REE_UNPROVED_CHUNK;
}

// Builds the question whether a model is causal (graph/causality/prove.h) in *out. `inputs` must
// have roles->n_inputs elements; the call fills them, and the question refers to them.
struct ree_causality_input;
struct ree_causality_question;
void ree_model_causality_question(const struct ree_model *model, const struct ree_roles *roles,
                                  bool mixes_lengths, struct ree_causality_input *inputs,
                                  struct ree_causality_question *out);

#endif
