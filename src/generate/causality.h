// Whether a text may be checked in one pass: the model over all tokens at once, as over a prompt.
// That is the same as token by token if the model is proved to be causal (graph/causality/prove.h).
#ifndef REE_GENERATE_CAUSALITY_H
#define REE_GENERATE_CAUSALITY_H

#include "generate/generator.h"

// Proves it for the graph that the generator runs and for what its steps give to the inputs. False:
// it is not proved, and `out_reason` says why. Takes about as long as reading the graph.
bool ree_generator_is_causal(const struct ree_generator *generator, char *out_reason, size_t size);

// The same for a model with the roles of its ports. mixes_lengths: as ree_generator_info has it.
bool ree_model_is_causal(const struct ree_model *model, const struct ree_roles *roles,
                         bool mixes_lengths, char *out_reason, size_t size);

// The question that is asked of a model with the roles of its ports. `inputs` has
// roles->n_inputs elements, and the question refers to them.
struct ree_causality_input;
struct ree_causality_question;
void ree_model_causality_question(const struct ree_model *model, const struct ree_roles *roles,
                                  bool mixes_lengths, struct ree_causality_input *inputs,
                                  struct ree_causality_question *out);

#endif
