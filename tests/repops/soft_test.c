// float32 arithmetic in integers equals the processor's on 10^7 hard pairs and triples.
#include "repops/scalar/ops.h"

#include "numbers.h"
#include "test.h"

// Evaluates the expression once; a failed check prints the operands.
#define SAME(expression, expected)                                                                 \
    do {                                                                                           \
        uint32_t got = (expression), want = (expected);                                            \
        CHECK_MSG(got == want, "%s for %08x %08x %08x: %08x, expected %08x", #expression, a, b, c, \
                  got, want);                                                                      \
    } while (0)

static void pairs(long n) {
    struct numbers numbers = {.state = 1};
    for (long i = 0; i < n; i++) {
        uint32_t a = numbers_float(&numbers), b = numbers_float(&numbers);
        uint32_t c = numbers_float(&numbers);
        // Almost total cancellation.
        if ((i & 7) == 0) b = (a ^ 0x80000000) + (uint32_t)(i >> 3 & 3);
        SAME(ree_soft_add(a, b), ree_op_add_f32(a, b));
        SAME(ree_soft_sub(a, b), ree_op_sub_f32(a, b));
        SAME(ree_soft_mul(a, b), ree_op_mul_f32(a, b));
        SAME(ree_soft_div(a, b), ree_op_div_f32(a, b));
        SAME(ree_soft_sqrt(a), ree_op_sqrt_f32(a));
        // The result is the product's rounding error.
        if ((i & 7) == 1) c = ree_op_mul_f32(a, b) ^ 0x80000000;
        if ((i & 7) == 2) c = (ree_op_mul_f32(a, b) ^ 0x80000000) + (uint32_t)(i >> 3 & 1);
        SAME(ree_soft_fma(a, b, c), ree_op_fma_f32(a, b, c));
    }
}

// What the standard requires for NaN, infinity and zero, independently of this processor.
static void special(void) {
    const uint32_t inf = REE_INF, nan = 0xFFC12345, one = REE_ONE, minus = REE_SIGN;
    const uint32_t a = 0, b = 0, c = 0;
    SAME(ree_soft_add(inf, inf | minus), REE_NAN);
    SAME(ree_soft_add(nan, one), REE_NAN);
    SAME(ree_soft_add(minus, minus), minus);
    SAME(ree_soft_add(minus, 0), 0);
    SAME(ree_soft_sub(one, one), 0);
    SAME(ree_soft_mul(inf, 0), REE_NAN);
    SAME(ree_soft_mul(inf, one | minus), inf | minus);
    SAME(ree_soft_mul(1, 0x3F000000), 0); // half the smallest number: a tie, rounds to even
    SAME(ree_soft_mul(3, 0x3F000000), 2);
    SAME(ree_soft_mul(0x7F7FFFFF, 0x40000000), inf);
    SAME(ree_soft_div(one, 0), inf);
    SAME(ree_soft_div(one | minus, 0), inf | minus);
    SAME(ree_soft_div(0, 0), REE_NAN);
    SAME(ree_soft_div(inf, inf), REE_NAN);
    SAME(ree_soft_sqrt(minus), minus);
    SAME(ree_soft_sqrt(one | minus), REE_NAN);
    SAME(ree_soft_sqrt(1), 0x1A3504F3); // 2^-74.5
    SAME(ree_soft_fma(inf, 0, one), REE_NAN);
    SAME(ree_soft_fma(inf, one, inf | minus), REE_NAN);
    SAME(ree_soft_fma(one, minus, 0), 0);
    SAME(ree_soft_fma(one, minus, minus), minus);
    SAME(ree_soft_fma(0x3F800001, 0x3F7FFFFF, 0xBF800000),
         0x337FFFFE); // 1.0000001 * 0.99999994 - 1
}

int main(void) {
    special();
    pairs(10000000);
    return test_finish();
}
