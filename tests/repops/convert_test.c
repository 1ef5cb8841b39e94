// Comparisons, rounding and conversions computed in integers, compared with the compiler's; float16
// for all bit patterns.
#include "repops/repop.h"
#include "repops/scalar/ops.h"

#include "numbers.h"
#include "test.h"

static double of(uint32_t bits) {
    return ree_float(bits);
}

static void float16(void) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint32_t m = h & 1023, e = h >> 10 & 31, got = ree_op_f16_to_f32(h);
        double want = e == 0 ? m * 0x1p-24 : (1024 + m) * 0x1p-25 * pow(2, (double)e);
        if (e == 31) want = m != 0 ? NAN : INFINITY;
        if (h & 0x8000) want = -want;
        CHECK_MSG(got == ree_result((float)want), "f16_to_f32(%04x) = %08x", h, got);
        uint32_t back = ree_op_f32_to_f16(got);
        CHECK_MSG(back == (e == 31 && m != 0 ? 0x7E00 : h), "f16 %04x comes back as %04x", h, back);
        // The tie above h, and its neighbours.
        if (e == 31 || (h & 0x8000)) continue;
        uint32_t next = e == 30 && m == 1023 ? 0x47800000 : ree_op_f16_to_f32(h + 1);
        uint32_t tie = ree_bits((float)((of(got) + of(next)) / 2));
        CHECK_MSG(ree_op_f32_to_f16(tie - 1) == h, "just below the tie above %04x", h);
        CHECK_MSG(ree_op_f32_to_f16(tie) == h + (h & 1), "the tie above %04x", h);
        CHECK_MSG(ree_op_f32_to_f16(tie + 1) == h + 1, "just above the tie above %04x", h);
        CHECK_MSG(ree_op_f32_to_f16((tie + 1) | REE_SIGN) == ((h + 1) | 0x8000), "negative %04x",
                  h);
    }
    CHECK(ree_op_f32_to_f16(0x7F800001) == 0x7E00);
    CHECK(ree_op_f32_to_f16(0x7F7FFFFF) == 0x7C00);
    CHECK(ree_op_f32_to_f16(1) == 0 && ree_op_f32_to_f16(REE_SIGN | 1) == 0x8000);
}

static void bfloat16(void) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        bool nan = (h & 0x7FFF) > 0x7F80;
        CHECK_MSG(ree_op_bf16_to_f32(h) == (nan ? REE_NAN : h << 16), "bf16_to_f32(%04x)", h);
        CHECK_MSG(ree_op_f32_to_bf16(h << 16) == (nan ? 0x7FC0 : h), "f32_to_bf16(%04x0000)", h);
        if ((h & 0x7FFF) >= 0x7F80) continue;
        CHECK_MSG(ree_op_f32_to_bf16(h << 16 | 0x7FFF) == h, "below the tie above %04x", h);
        CHECK_MSG(ree_op_f32_to_bf16(h << 16 | 0x8000) == h + (h & 1), "tie above %04x", h);
        CHECK_MSG(ree_op_f32_to_bf16(h << 16 | 0x8001) == h + 1, "above the tie above %04x", h);
    }
    CHECK(ree_op_f32_to_bf16(0xFFFFFFFF) == 0x7FC0);
}

#define SAME(expression, expected)                                                                 \
    do {                                                                                           \
        uint64_t got = (expression), want = (expected);                                            \
        CHECK_MSG(got == want, "%s for %08x %08x: %llx, expected %llx", #expression, a, b,         \
                  (unsigned long long)got, (unsigned long long)want);                              \
    } while (0)

// Converts by definition, in doubles: saturating; NaN gives 0.
static uint64_t clamp_to(double x, double low, double high, uint64_t at_low, uint64_t at_high,
                         bool is_signed) {
    if (x != x) return 0;
    if (x <= low) return at_low;
    if (x >= high) return at_high;
    return is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static void floats(long n) {
    struct numbers numbers = {.state = 2};
    for (long i = 0; i < n; i++) {
        uint32_t a = numbers_float(&numbers), b = numbers_float(&numbers);
        if ((i & 7) == 0) b = a;
        if ((i & 7) == 1) b = a ^ REE_SIGN;
        double x = of(a), y = of(b);
        SAME(ree_op_lt_f32(a, b), x < y);
        SAME(ree_op_le_f32(a, b), x <= y);
        SAME(ree_op_eq_f32(a, b), x == y);
        SAME(ree_op_isnan_f32(a), x != x);
        SAME(ree_soft_floor(a), ree_op_floor_f32(a));
        SAME(ree_soft_ceil(a), ree_op_ceil_f32(a));
        SAME(ree_soft_trunc(a), ree_op_trunc_f32(a));
        SAME(ree_soft_round(a), ree_op_round_f32(a));
        SAME(ree_op_fmod_f32(a, b), ree_result((float)fmod(x, y)));
        SAME(ree_op_f32_to_i32(a),
             (uint32_t)clamp_to(x, -0x1p31, 0x1p31, 0x80000000, 0x7FFFFFFF, true));
        SAME(ree_op_f32_to_u32(a), clamp_to(x, 0, 0x1p32, 0, 0xFFFFFFFF, false));
        SAME(ree_op_f32_to_i64(a),
             clamp_to(x, -0x1p63, 0x1p63, UINT64_C(1) << 63, INT64_MAX, true));
        SAME(ree_op_f32_to_u64(a), clamp_to(x, 0, 0x1p64, 0, UINT64_MAX, false));
        SAME(ree_soft_f32_to_i64(a), ree_op_f32_to_i64(a));
        SAME(ree_soft_f32_to_u64(a), ree_op_f32_to_u64(a));
        SAME(ree_soft_i32_to_f32(a), ree_op_i32_to_f32(a));
        SAME(ree_soft_u32_to_f32(a), ree_op_u32_to_f32(a));
        uint64_t d = numbers_long(&numbers);
        SAME(ree_soft_i64_to_f32(d), ree_op_i64_to_f32(d));
        SAME(ree_soft_u64_to_f32(d), ree_op_u64_to_f32(d));
        // Python's mod, derived from C's: the quotient is floored.
        double r = fmod(x, y);
        double m = r == 0 ? copysign(0, y) : ((r < 0) != (y < 0) ? (double)(float)(r + y) : r);
        SAME(ree_op_mod_f32(a, b), ree_result((float)m));
    }
}

// The conversions without branches and those in integers, for floats from all over the range: one
// out of 257, and every one with REE_TEST_EXHAUSTIVE=1.
static void without_branches(void) {
    const uint32_t stride = getenv("REE_TEST_EXHAUSTIVE") ? 1 : 257, b = 0;
    for (uint64_t x = 0; x <= UINT32_MAX; x += stride) {
        uint32_t a = (uint32_t)x;
        SAME(ree_op_f32_to_i32(a), ree_soft_f32_to_i32(a));
        SAME(ree_op_f32_to_u32(a), ree_soft_f32_to_u32(a));
        SAME(ree_op_f32_to_f16(a), ree_soft_f32_to_f16(a));
        SAME(ree_op_f32_to_f64(a), ree_f32_to_f64(a));
    }
    for (uint32_t a = 0; a < 0x10000; a++)
        SAME(ree_op_f16_to_f32(a), ree_soft_f16_to_f32(a));
}

static void special(void) {
    const uint32_t a = 0, b = 0, zero = 0, minus = REE_SIGN, nan = 0x7F800001;
    SAME(ree_op_min_f32(zero, minus), minus);
    SAME(ree_op_min_f32(minus, zero), minus);
    SAME(ree_op_max_f32(zero, minus), zero);
    SAME(ree_op_max_f32(minus, zero), zero);
    SAME(ree_op_min_f32(nan, zero), REE_NAN);
    SAME(ree_op_max_f32(zero, nan), REE_NAN);
    SAME(ree_op_max_f32(REE_INF | REE_SIGN, 0xFF7FFFFF), 0xFF7FFFFF);
    SAME(ree_op_neg_f32(nan), REE_NAN);
    SAME(ree_op_abs_f32(0xFFFFFFFF), REE_NAN);
    SAME(ree_op_sign_f32(minus), 0);
    SAME(ree_op_sign_f32(0x80000001), 0xBF800000);
    SAME(ree_op_sign_f32(nan), REE_NAN);
    SAME(ree_op_round_f32(0x3F000000), 0);          // 0.5
    SAME(ree_op_round_f32(0xBF000000), REE_SIGN);   // -0.5
    SAME(ree_op_round_f32(0x40200000), 0x40000000); // 2.5
    SAME(ree_op_round_f32(0x40600000), 0x40800000); // 3.5
    SAME(ree_op_ceil_f32(0xBF000000), REE_SIGN);
    SAME(ree_op_floor_f32(1), 0);
    SAME(ree_op_floor_f32(0x80000001), 0xBF800000);
    SAME(ree_op_fmod_f32(0x40A00000, 0xC0400000), 0x40000000); // 5, -3: 2
    SAME(ree_op_mod_f32(0x40A00000, 0xC0400000), 0xBF800000);  // 5, -3: -1
    SAME(ree_op_mod_f32(0xBF800000, REE_INF), REE_INF);        // as in Python
    SAME(ree_op_mod_f32(0x3F800000, REE_INF), 0x3F800000);
    SAME(ree_op_fmod_f32(REE_INF, 0x3F800000), REE_NAN);
    SAME(ree_op_fmod_f32(0x3F800000, 0), REE_NAN);
}

// Every operation of the table has its scalar function; otherwise this does not compile.
static void complete(void) {
    long n = 0;
#define MAP_OP(name, n_args, result, a, b, c)                                                      \
    (void)ree_op_##name;                                                                           \
    n++;
#include "repops/map_ops.def"
    CHECK(n + 2 == REE_N_MAP_OPS); // plus two constants
}

int main(void) {
    complete();
    float16();
    bfloat16();
    special();
    floats(1000000);
    without_branches();
    return test_finish();
}
