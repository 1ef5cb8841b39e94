// Measures the difference of two tensors of the same type and shape, element by element.
//
// The distance of two floats is in ulps: the number of steps from one to the other over the
// representable numbers. Infinity is the number after the largest finite one, and both zeros are
// the same number. Integers only have their difference.
#ifndef REE_DISPUTE_ULP_H
#define REE_DISPUTE_ULP_H

#include "ree.h"

// Both tensors must be dense and have the same type, rank and dims. Adds to *out, which must be
// zeroed before the first call. `worst` counts elements over all calls: those of this call start at
// the previous out->n.
void ree_ulp_add(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out);
uint32_t ree_ulp_bucket(uint64_t ulp); // the bucket of a distance

#endif
