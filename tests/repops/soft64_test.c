// float64 arithmetic in integers equals the processor's on 4 * 10^6 hard triples, with 64-bit words
// and with pairs of 32-bit words as in shaders.
#include "repops/scalar/ops.h"
#include "repops/scalar/soft64.h"

#include "limbs.h"
#include "numbers.h"
#include "test.h"

#define SAME(expression, expected)                                                                 \
    do {                                                                                           \
        uint64_t got = (expression), want = (expected);                                            \
        CHECK_MSG(got == want, "%s for %016llx %016llx %016llx: %016llx, expected %016llx",        \
                  #expression, (unsigned long long)a, (unsigned long long)b,                       \
                  (unsigned long long)c, (unsigned long long)got, (unsigned long long)want);       \
    } while (0)

// Like numbers_float, in float64.
static uint64_t number(struct numbers *n) {
    static const uint64_t special[] = {0,
                                       UINT64_C(0x3FF0000000000000),
                                       UINT64_C(0x7FF0000000000000),
                                       UINT64_C(0x7FF8000000000001),
                                       UINT64_C(0x7FEFFFFFFFFFFFFF),
                                       UINT64_C(0x0010000000000000),
                                       UINT64_C(0x000FFFFFFFFFFFFF),
                                       1};
    uint64_t r = numbers_word(n), w = numbers_word(n), kind = w & 15, more = w >> 8;
    uint64_t sign = r & UINT64_C(1) << 63, fraction = r & UINT64_C(0x000FFFFFFFFFFFFF);
    switch (kind) {
    case 0: return sign | fraction >> (more & 31); // subnormal
    case 1: return sign | special[more & 7];
    case 2: return sign | (more & 2047) << 52;                            // power of two
    case 3: return sign | (((more & 2047) << 52) - 1 - (more >> 11 & 3)); // just below 2^n
    case 4: return sign | (more & 7);
    case 5: return sign | fraction >> 26 << 26 | (1020 + (more & 7)) << 52; // few bits
    case 6:
    case 7:
    case 8: return sign | fraction | (1016 + (more & 15)) << 52; // near 1
    default: return r;
    }
}

static void triples(long n) {
    struct numbers numbers = {.state = 1};
    const uint64_t minus = UINT64_C(1) << 63;
    for (long i = 0; i < n; i++) {
        uint64_t a = number(&numbers), b = number(&numbers), c = number(&numbers);
        if ((i & 7) == 0) b = (a ^ minus) + (uint64_t)(i >> 3 & 3); // almost total cancellation
        if ((i & 7) == 1) c = ree_op_mul_f64(a, b) ^ minus;         // gives the rounding error
        if ((i & 7) == 2) c = (ree_op_mul_f64(a, b) ^ minus) + (uint64_t)(i >> 3 & 1);
        // A quotient near half an ulp above a number, and a root near a tie.
        if ((i & 7) == 3) a = ree_op_mul_f64(b, c) + (uint64_t)(i >> 3 & 1);
        SAME(ree_f64_soft_add(a, b), ree_op_add_f64(a, b));
        SAME(ree_f64_soft_sub(a, b), ree_op_sub_f64(a, b));
        SAME(ree_f64_soft_mul(a, b), ree_op_mul_f64(a, b));
        SAME(ree_f64_soft_div(a, b), ree_op_div_f64(a, b));
        SAME(ree_f64_soft_sqrt(a), ree_op_sqrt_f64(a));
        SAME(ree_f64_soft_fma(a, b, c), ree_op_fma_f64(a, b, c));
        if (i % 4 != 0) continue;
        SAME(limbs_f64(LIMBS_f64_add, a, b, c), ree_op_add_f64(a, b));
        SAME(limbs_f64(LIMBS_f64_mul, a, b, c), ree_op_mul_f64(a, b));
        SAME(limbs_f64(LIMBS_f64_div, a, b, c), ree_op_div_f64(a, b));
        SAME(limbs_f64(LIMBS_f64_sqrt, a, b, c), ree_op_sqrt_f64(a));
        SAME(limbs_f64(LIMBS_f64_fma, a, b, c), ree_op_fma_f64(a, b, c));
    }
}

int main(void) {
    triples(4000000);
    return test_finish();
}
