// Makes small inputs for an arbitrary model from the types and shapes that it declares. The same
// seed gives the same inputs.
#ifndef REE_TESTS_FUZZ_RUN_INPUTS_H
#define REE_TESTS_FUZZ_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n;
    struct ree_tensor *tensors;
};

// Makes the model's inputs; about half of the optional ones are left out. Release them with
// run_inputs_finish. Returns false if the model has too many inputs, an input would be too large,
// its type has no values, or memory ran out; *out then needs no release.
bool run_inputs_make(const struct ree_model *model, uint32_t seed, struct run_inputs *out);
void run_inputs_finish(struct run_inputs *inputs);

#endif
