// Operand values for self-tests that expose errors of kernels: sums that round at every step, ties,
// cancellation, subnormals, infinities, NaN. The same arguments give the same values on every
// machine.
#ifndef REE_DEVICE_SELFTEST_HARD_VALUES_H
#define REE_DEVICE_SELFTEST_HARD_VALUES_H

#include "ree.h"

// The role of an operand in its RepOp decides which values it gets. A self-test runs several rounds
// with different values. Subnormals switch some kernels to their slow path, so round 0 has none:
//
//     round   ANY                              FINITE
//     0       full mantissas, ties,            as ANY
//             cancellation, small integers
//     1       subnormals and wide ranges, too  as in round 0
//     2       NaN and infinities, too          subnormals and wide ranges, too
//     3, 4    as in round 1                    as in round 2
//
// The operand is divided into runs of consecutive elements. The values of a run have one of the
// styles in the table. An operand of role ANY that is a single run has these styles in rounds 0 to
// 4: full mantissas, a wide range, NaN and infinities, ties, subnormals.
enum ree_hard_role {
    REE_HARD_ANY,
    REE_HARD_MASKED, // as ANY, but every fifth run is all -infinity (BOOL: all false)
    REE_HARD_FINITE,
    REE_HARD_MODERATE, // full mantissas, magnitudes from 2^-3 to 2
    // Queries and keys of attention, whose dot products become exponents: vectors of `run`
    // elements. Round 3: ties. All other rounds: as MODERATE, except in a few vectors (only a few,
    // because they also make kernels use the slow path for neighbouring vectors). In those vectors
    // QUERY has a wide range in round 1, NaN and infinities in round 2, and subnormals in round 4.
    // KEY has subnormals in rounds 1 and 4.
    REE_HARD_QUERY,
    REE_HARD_KEY,
    REE_HARD_SPARSE, // as FINITE; in rounds 2 and 4 about 1 in 1024 is NaN or infinite
    REE_HARD_BIAS,   // as MODERATE, but some elements are -infinity
    // Scales of blockwise weights. Round 0: mantissas of 11 bits, as if converted from float16.
    // Round 2: some are 0, subnormal or 2^9. Otherwise as MODERATE.
    REE_HARD_SCALE,
    // Rows whose exponentials are summed: `run` elements, each `high` elements after the previous
    // one. Rounds 3 and 4: one element of each row is 0, the others are from -18 to -8. The sum of
    // their exponentials is little more than 1, so its logarithm shows every bit of the sum. Other
    // rounds: as ANY.
    REE_HARD_PEAKED,
    REE_HARD_NEAR_ONE, // full mantissas, magnitudes near 1, so that long products stay finite
    REE_HARD_BOUNDED,  // integers from low to high
    REE_HARD_TAPS,     // as BOUNDED, but the first element of some runs is -1
    // Indices into a dimension of high + 1 elements; high + 1 must be a prime and at least n; low
    // is -high - 1. All indices select different elements.
    REE_HARD_DISTINCT,
};

struct ree_hard_values {
    enum ree_hard_role role;
    uint32_t dtype;    // enum ree_dtype
    uint64_t n;        // number of elements
    uint64_t run;      // length of a run: consecutive elements whose values have one style
    int64_t low, high; // inclusive bounds of BOUNDED, TAPS, DISTINCT; PEAKED uses `high`
};

#define REE_HARD_ROUNDS 5
#define REE_HARD_FEW_ROUNDS 3 // number of rounds, from round 0 on, if time is short

// Fills values->n elements at out, which must be 8-byte aligned. Callers pass a different `salt`
// for each operand of a round, so that equal operands get different values. A smaller n
// gives the first n of the same values.
void ree_hard_values_fill(const struct ree_hard_values *values, uint32_t round, uint32_t salt,
                          void *out);

#endif
