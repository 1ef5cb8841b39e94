// Compares a result with what somebody else computed: type and shape exactly, integers and bools
// exactly, floats within a tolerance.
//
// Tolerance: |got - want| <= 1e-7 + 1e-3 |want|, that of ONNX's own test runner, + 2^-24 of the
// largest |want|: a sum that cancels leaves half a unit in the last place of its terms, where
// another order leaves 0. The expected outputs were computed by NumPy or PyTorch, whose sums run in
// another order and whose elementary functions are not correctly rounded, so they are oracles to a
// few digits, not to the bit.
#ifndef REE_TESTS_MODELS_COMPARE_H
#define REE_TESTS_MODELS_COMPARE_H

#include "ree.h"

#define COMPARE_RELATIVE 1e-3
#define COMPARE_ABSOLUTE 1e-7
#define COMPARE_LARGEST 0x1p-24

// False with a reason, which names the first element that differs.
bool compare_with_oracle(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size);
// The same bytes, for results of ree on two devices.
bool compare_bytes(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                   size_t size);

#endif
