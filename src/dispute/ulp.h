// Measures the difference of two tensors of the same type and shape, element by element.
//
// The distance of two floats is in ulps: the number of steps from one to the other over the
// representable numbers. Infinity is the number after the largest finite one, and both zeros are
// the same number. For integers only the absolute and the relative difference are measured.
#ifndef REE_DISPUTE_ULP_H
#define REE_DISPUTE_ULP_H

#include "ree.h"

// Adds the differences of two tensors to *out, which must be zeroed before the first call. The
// tensors must be dense and have the same type, rank and dims. Elements are numbered over all
// calls: out->worst may be an element of this call, whose first element has the previous value of
// out->n.
void ree_ulp_add(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out);
// Returns the histogram bucket of a distance in ulps: 0 for 0, k for 2^(k-1) to 2^k - 1.
uint32_t ree_ulp_bucket(uint64_t ulp);

#endif
