// Compares a result with an expected output from another implementation: type and shape exactly,
// integers and bools exactly, floats within a tolerance.
//
// Tolerance: |got - want| <= 1e-7 + 1e-3 |want|, as in ONNX's own test runner, plus 2^-24 of the
// largest |want|: a sum that cancels leaves half a unit in the last place of its terms, but 0 in
// another order. NumPy or PyTorch computed the expected outputs. Their sums run in another order
// and their elementary functions are not correctly rounded, so they are oracles to a few digits,
// not to the bit.
#ifndef REE_TESTS_MODELS_COMPARE_H
#define REE_TESTS_MODELS_COMPARE_H

#include "ree.h"

#define COMPARE_RELATIVE 1e-3
#define COMPARE_ABSOLUTE 1e-7
#define COMPARE_LARGEST 0x1p-24

// Returns false with a reason, which names the first element that differs.
bool compare_with_oracle(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size);
// Compares the bytes exactly, for results of ree on two devices.
bool compare_bytes(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                   size_t size);

#endif
