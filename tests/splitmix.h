// The random number generator of the tests: SplitMix64 (Steele, Lea, Flood 2014). Every 64-bit
// number is a good seed. Each draw must be a statement of its own: compilers evaluate the arguments
// of a call in different orders, which would change the numbers.
#ifndef REE_TESTS_SPLITMIX_H
#define REE_TESTS_SPLITMIX_H

#include <stdint.h>

struct splitmix {
    uint64_t state;
};

static inline uint64_t splitmix_step(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint64_t splitmix_next(struct splitmix *rng) {
    return splitmix_step(&rng->state);
}

// Returns a random number from 0 to n - 1; 0 if n is 0.
static inline uint32_t splitmix_below(struct splitmix *rng, uint32_t n) {
    return (uint32_t)((splitmix_next(rng) >> 32) * n >> 32);
}

#endif
