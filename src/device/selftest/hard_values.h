// Values that show what a kernel does wrong: sums that round at every step, ties, cancellation,
// subnormals, infinities, NaN. The same for the same arguments, on every machine.
#ifndef REE_DEVICE_SELFTEST_HARD_VALUES_H
#define REE_DEVICE_SELFTEST_HARD_VALUES_H

#include "ree.h"

enum ree_hard_role {
    REE_HARD_ANY,      // every style of value, NaN and infinities in their turn
    REE_HARD_FINITE,   // the same without NaN and infinities
    REE_HARD_MODERATE, // full mantissas, magnitudes from 2^-4 to 1
    REE_HARD_NEAR_ONE, // full mantissas, magnitudes near 1, so that long products stay finite
    REE_HARD_BOUNDED,  // integers from low to high
};

struct ree_hard_values {
    enum ree_hard_role role;
    uint32_t dtype;    // enum ree_dtype
    uint64_t n;        // elements
    uint64_t run;      // elements of one style; then comes the next
    int64_t low, high; // of REE_HARD_BOUNDED, inclusive
};

// Fills n elements at out, which is aligned to 8 bytes. Other seeds give other values, and begin
// with another style.
void ree_hard_values_fill(const struct ree_hard_values *values, uint32_t seed, void *out);

#endif
