// Compares a result with an expected output from another implementation. Types, shapes, integers,
// bools, strings and one-byte floats must be equal (a NaN equals any NaN); wider floats may differ
// within a tolerance.
//
// Tolerance: |got - want| <= 1e-7 + 1e-3 |want| + 2^-24 L, where L is the largest finite |want| of
// the tensor. The first two terms are those of ONNX's own test runner. The last one is for sums
// that cancel: their rounding errors are relative to the terms, not to the result. The tolerance is
// this wide because NumPy or PyTorch computed the expected outputs: they add in another order, and
// their elementary functions are not correctly rounded.
#ifndef REE_TESTS_MODELS_COMPARE_H
#define REE_TESTS_MODELS_COMPARE_H

#include "ree.h"

#define COMPARE_RELATIVE 1e-3
#define COMPARE_ABSOLUTE 1e-7
#define COMPARE_LARGEST 0x1p-24

// Returns whether `got` equals `want` within the tolerance. If not, writes the reason, with the
// first element that differs, to `reason` (`size` bytes).
bool compare_with_oracle(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size);
// Like compare_with_oracle, without tolerance: the bytes must be equal. For results of ree on two
// devices.
bool compare_bytes(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                   size_t size);

#endif
