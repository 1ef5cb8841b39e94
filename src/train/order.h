// The order in which a training takes its samples (NUMERICS.md, "Order of samples").
#ifndef REE_TRAIN_ORDER_H
#define REE_TRAIN_ORDER_H

#include <stdint.h>

// Fills `order` with the n samples in the order of epoch number `epoch`, from 0: a permutation of 0
// to n - 1 that depends on n, seed and epoch only. n and epoch must be below 2^32 - 1.
void ree_order_shuffle(uint32_t *order, uint64_t n, uint64_t seed, uint64_t epoch);

#endif
