// Measures the difference of two tensors of the same type and shape, element by element.
//
// The distance of two floats is in ulps: the number of steps from one to the other over the
// representable numbers. Infinity is the number after the largest finite one, and both zeros are
// the same number. Integers only have their difference.
#ifndef REE_DISPUTE_ULP_H
#define REE_DISPUTE_ULP_H

#include "ree.h"

// Buckets of distances of differing elements: 1, 2-3, 4-7, ..., 2^63 and above. Bucket 0 has
// elements with equal values but different bits: +0 and -0.
#define REE_ULP_BUCKETS 65

struct ree_ulp {
    uint64_t n, n_differ; // number of elements; those whose bits differ
    // True for floats. The fields below only count elements that differ.
    bool is_float;
    uint64_t histogram[REE_ULP_BUCKETS];
    uint64_t n_sign;  // opposite signs, not counting zeros and NaNs; also in the histogram
    uint64_t n_nan;   // at least one of the two is a NaN; not in the histogram
    uint64_t max_ulp; // NaNs excluded; 0 for integers
    // Over the numbers. Infinite for an infinity, a NaN or a division by zero.
    double max_abs, max_rel; // |a - b|; |a - b| / max(|a|, |b|)
    // Index of the worst element, valid if n_differ > 0: one with a NaN if there is any, else the
    // one with the largest distance (for integers, the largest difference); the first one if
    // several are equal.
    uint64_t worst;
    double worst_a, worst_b;
    uint64_t worst_ulp;
};

// Both tensors must be dense and have the same type, rank and dims. Adds to *out, which must be
// zeroed before the first call. `worst` counts elements over all calls: those of this call start at
// the previous out->n.
void ree_ulp_add(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out);
// The bucket of a distance; the smallest and the largest distance of a bucket.
uint32_t ree_ulp_bucket(uint64_t ulp);
void ree_ulp_range(uint32_t bucket, uint64_t *out_first, uint64_t *out_last);

#endif
