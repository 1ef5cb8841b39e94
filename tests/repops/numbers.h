// Random float32 and 64-bit numbers for tests of arithmetic. Numbers that reveal errors
// (subnormals, powers of two and their neighbours, infinities, NaN, zeros of both signs) are mixed
// with ordinary ones. The same initial state gives the same sequence.
#ifndef REE_TESTS_REPOPS_NUMBERS_H
#define REE_TESTS_REPOPS_NUMBERS_H

#include "splitmix.h"

#include <stdint.h>

struct numbers {
    uint64_t state;
};

static inline uint64_t numbers_word(struct numbers *n) {
    return splitmix_step(&n->state);
}

static inline uint32_t numbers_float(struct numbers *n) {
    static const uint32_t special[] = {0x00000000, 0x3F800000, 0x7F800000, 0x7FC00001,
                                       0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x00000001};
    uint64_t w = numbers_word(n);
    uint32_t r = (uint32_t)w, kind = (uint32_t)(w >> 32) & 15, more = (uint32_t)(w >> 40);
    uint32_t sign = r & 0x80000000;
    switch (kind) {
    case 0: return r & 0x807FFFFF; // subnormal
    case 1: return sign | special[more & 7];
    case 2: return sign | (more & 255) << 23;                           // power of two
    case 3: return sign | (((more & 255) << 23) - 1 - (more >> 8 & 3)); // just below a power of two
    case 4: return sign | (more & 7); // zero and the smallest subnormals
    case 5: return sign | (150 + (more & 7)) << 23 | (r & 0x7FFFFF);
    case 6:
    case 7:
    case 8: return (r & 0x807FFFFF) | (120 + (more & 15)) << 23; // near 1
    default: return r;
    }
}

static inline uint64_t numbers_long(struct numbers *n) {
    uint64_t w = numbers_word(n), kind = numbers_word(n);
    switch (kind & 7) {
    case 0: return w >> (kind >> 8 & 63);
    case 1: return ~(w >> (kind >> 8 & 63));
    case 2: return UINT64_C(1) << (w & 63);
    case 3: return (UINT64_C(1) << (w & 63)) - 1;
    case 4: return w & 15;
    case 5: return -(w & 15);
    default: return w;
    }
}

#endif
