// Inputs for an arbitrary model, made from the declared types and shapes: small, and the same for
// the same seed.
#ifndef REE_TESTS_FUZZ_RUN_INPUTS_H
#define REE_TESTS_FUZZ_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n;
    struct ree_tensor *tensors;
};

// Returns false if an input would be too large or its type has no values; then *out needs no
// release.
bool run_inputs_make(const struct ree_model *model, uint32_t seed, struct run_inputs *out);
void run_inputs_finish(struct run_inputs *inputs);

#endif
