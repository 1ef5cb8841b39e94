// Values that show what a kernel does wrong: sums that round at every step, ties, cancellation,
// subnormals, infinities, NaN. The same for the same arguments, on every machine.
#ifndef REE_DEVICE_SELFTEST_HARD_VALUES_H
#define REE_DEVICE_SELFTEST_HARD_VALUES_H

#include "ree.h"

// Which values come depends on the round, too. Fast code for numbers in the middle of the range
// must not hide behind the slow code that one subnormal number calls for:
//
//     round   ANY                              FINITE
//     0       full mantissas, ties,            as ANY
//             cancellation, small integers
//     1       subnormals and wide ranges, too  as in round 0
//     2       NaN and infinities, too          subnormals and wide ranges, too
enum ree_hard_role {
    REE_HARD_ANY,
    REE_HARD_FINITE,
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

#define REE_HARD_ROUNDS 3

// Fills n elements at out, which is aligned to 8 bytes. `salt` tells apart what is filled in one
// round: other salts give other values.
void ree_hard_values_fill(const struct ree_hard_values *values, uint32_t round, uint32_t salt,
                          void *out);

#endif
