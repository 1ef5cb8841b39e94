// Values that show what a kernel does wrong: sums that round at every step, ties, cancellation,
// subnormals, infinities, NaN. The same for the same arguments, on every machine.
#ifndef REE_DEVICE_SELFTEST_HARD_VALUES_H
#define REE_DEVICE_SELFTEST_HARD_VALUES_H

#include "ree.h"

// Each round has other values. A subnormal operand switches some kernels to their slow path, so
// round 0 has none:
//
//     round   ANY                              FINITE
//     0       full mantissas, ties,            as ANY
//             cancellation, small integers
//     1       subnormals and wide ranges, too  as in round 0
//     2       NaN and infinities, too          subnormals and wide ranges, too
//     3, 4    as in round 1                    as in round 2
//
// Values come in runs of one style. An operand of a single run has another style in each round:
// full mantissas, a wide range, NaN and infinities, ties, subnormals.
enum ree_hard_role {
    REE_HARD_ANY,
    REE_HARD_MASKED, // as ANY, and every fifth run is -infinity throughout; of BOOL: false
    REE_HARD_FINITE,
    REE_HARD_MODERATE, // full mantissas, magnitudes from 2^-3 to 2
    // Of vectors of `run` elements whose products become exponents. Round 3: ties; otherwise as
    // MODERATE, but for a few vectors, as they make the slow path of kernels compute their
    // neighbours, too. Of QUERY they have a wide range in round 1, NaN and infinities in round 2,
    // subnormals in round 4; of KEY subnormals in rounds 1 and 4.
    REE_HARD_QUERY,
    REE_HARD_KEY,
    REE_HARD_SPARSE, // as FINITE; rounds 2 and 4: one element of 1024 is NaN or infinite
    REE_HARD_BIAS,   // as MODERATE, and some are -infinity
    // Of blocks of weights. Round 0: mantissas of 11 bits, as those that were float16; round 2:
    // some are 0, subnormal or 2^9; otherwise as MODERATE.
    REE_HARD_SCALE,
    // Of rows of `run` elements, `high` apart, whose exponentials are added. Rounds 3 and 4: 0 once
    // in each row, elsewhere -18 to -8, so that the sum is little more than 1 and its logarithm
    // shows every bit of it. Otherwise as ANY.
    REE_HARD_PEAKED,
    REE_HARD_NEAR_ONE, // full mantissas, magnitudes near 1, so that long products stay finite
    REE_HARD_BOUNDED,  // integers from low to high
    REE_HARD_TAPS,     // as BOUNDED, and -1 as the first of some runs
    // Indices into a dimension of high + 1 elements, a prime not less than n; low is -high - 1.
    // No two indices select the same element.
    REE_HARD_DISTINCT,
};

struct ree_hard_values {
    enum ree_hard_role role;
    uint32_t dtype;    // enum ree_dtype
    uint64_t n;        // elements
    uint64_t run;      // elements of one style; then comes the next
    int64_t low, high; // of BOUNDED, TAPS and DISTINCT: inclusive; high of PEAKED: see there
};

#define REE_HARD_ROUNDS 5
#define REE_HARD_FEW_ROUNDS 3 // the first ones, where time is short

// Fills n elements at out, which is aligned to 8 bytes. `salt` tells apart what is filled in one
// round: other salts give other values.
void ree_hard_values_fill(const struct ree_hard_values *values, uint32_t round, uint32_t salt,
                          void *out);

#endif
