// The permutation of Fisher and Yates, as Durstenfeld wrote it (Communications of the ACM 7, 1964):
// for i = n - 1 ... 1, swaps order[i] with order[j], j drawn from 0 ... i.
#include "train/order.h"

#include "ree.h"
#include "repops/scalar/ops.h"
#include "repops/scalar/philox.h"

// Draws from 0 ... i: 64 bits r of Philox, j = floor(r * (i + 1) / 2^64).
static uint64_t draw(uint64_t i, uint64_t seed, uint64_t epoch) {
    // The second word of the counter is never 0, so these numbers are not those that the random
    // operators of a step draw.
    uint64_t r = ree_op_philox_b64((epoch + 1) << 32 | i, seed);
    return (uint64_t)(((unsigned __int128)r * (i + 1)) >> 64);
}

void ree_order_shuffle(uint32_t *order, uint64_t n, uint64_t seed, uint64_t epoch) {
    for (uint64_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (uint64_t i = n; i-- > 1;) {
        uint64_t j = draw(i, seed, epoch);
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
