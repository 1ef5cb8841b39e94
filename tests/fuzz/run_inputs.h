// Inputs for a model that nobody has seen: made from the declared types and shapes, small, and the
// same for the same seed.
#ifndef REE_TESTS_FUZZ_RUN_INPUTS_H
#define REE_TESTS_FUZZ_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n;
    struct ree_tensor *tensors;
};

// False: an input would be too big, or of a type without values; nothing is to be released then.
bool run_inputs_make(const struct ree_model *model, uint32_t seed, struct run_inputs *out);
void run_inputs_finish(struct run_inputs *inputs);

#endif
