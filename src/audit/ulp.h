// How far two tensors of one type and shape are apart, element by element.
//
// The distance of two floats is counted in ulps: how many representable numbers one has to step to
// get from one to the other, infinity being the one behind the largest, and both zeros the same.
// Integers have their difference alone.
#ifndef REE_AUDIT_ULP_H
#define REE_AUDIT_ULP_H

#include "ree.h"

// Of differing elements: 1, 2-3, 4-7, ..., 2^63 and above. In 0 are those with equal values but
// other bits: +0 and -0.
#define REE_ULP_BUCKETS 65

struct ree_ulp {
    uint64_t n, n_differ; // elements; those with other bits
    bool is_float;        // what follows counts differing elements
    uint64_t histogram[REE_ULP_BUCKETS];
    uint64_t n_sign;  // of other signs, zeros and NaNs aside; in the histogram, too
    uint64_t n_nan;   // one of the two is a NaN; not in the histogram
    uint64_t max_ulp; // not of NaNs; 0 of integers
    // Of the numbers, infinite where one of two is an infinity, a NaN or divided by zero.
    double max_abs, max_rel; // |a - b|; |a - b| / max(|a|, |b|)
    // The element that is farthest: a NaN on one side, then the most ulps (of integers, the
    // largest difference), the first of several. Where n_differ.
    uint64_t worst;
    double worst_a, worst_b;
    uint64_t worst_ulp;
};

// The tensors are dense and have the same type, rank and dims. Adds to what *out holds (zeroed at
// the beginning); `worst` counts elements of this call from out->n, as it was, on.
void ree_ulp_add(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out);
// The bucket of a distance, and its first and last one.
uint32_t ree_ulp_bucket(uint64_t ulp);
void ree_ulp_range(uint32_t bucket, uint64_t *out_first, uint64_t *out_last);

#endif
