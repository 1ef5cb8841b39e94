// Integer operations: 32 and 64 bits compared with the compiler's where C defines them, and with
// the written definition otherwise; pairs of words compared with whole words.
#include "repops/scalar/ops.h"

#include "limbs.h"
#include "numbers.h"
#include "test.h"

static uint64_t native(enum limbs_op op, uint64_t a, uint64_t b) {
    int64_t x = (int64_t)a, y = (int64_t)b;
    bool lowest = x == INT64_MIN && y == -1;
    switch (op) {
    case LIMBS_add: return a + b;
    case LIMBS_sub: return a - b;
    case LIMBS_mul: return a * b;
    case LIMBS_div_i: return y == 0 ? 0 : lowest ? a : (uint64_t)(x / y);
    case LIMBS_div_u: return b == 0 ? 0 : a / b;
    case LIMBS_fmod_i: return y == 0 || lowest ? 0 : (uint64_t)(x % y);
    case LIMBS_mod_i: {
        int64_t r = y == 0 || lowest ? 0 : x % y;
        return (uint64_t)(r != 0 && (r < 0) != (y < 0) ? r + y : r);
    }
    case LIMBS_mod_u: return b == 0 ? 0 : a % b;
    case LIMBS_pow_u:
    case LIMBS_pow_i: {
        if (op == LIMBS_pow_i && y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? a : 1) : 0;
        uint64_t r = 1;
        for (int i = 63; i >= 0; i--) {
            r *= r;
            if (b >> i & 1) r *= a;
        }
        return r;
    }
    case LIMBS_min_i: return x < y ? a : b;
    case LIMBS_max_i: return x > y ? a : b;
    case LIMBS_min_u: return a < b ? a : b;
    case LIMBS_max_u: return a > b ? a : b;
    case LIMBS_lt_i: return x < y;
    case LIMBS_le_i: return x <= y;
    case LIMBS_lt_u: return a < b;
    case LIMBS_le_u: return a <= b;
    case LIMBS_eq: return a == b;
    case LIMBS_and: return a & b;
    case LIMBS_or: return a | b;
    case LIMBS_xor: return a ^ b;
    case LIMBS_shl: return b > 63 ? 0 : a << b;
    case LIMBS_shr: return b > 63 ? 0 : a >> b;
    case LIMBS_mulh: return u64_mulh(a, b);
    case LIMBS_N_OPS: break;
    }
    return 0;
}

static uint64_t whole_words(enum limbs_op op, uint64_t a, uint64_t b) {
    switch (op) {
    case LIMBS_add: return ree_op_add_i64(a, b);
    case LIMBS_sub: return ree_op_sub_i64(a, b);
    case LIMBS_mul: return ree_op_mul_i64(a, b);
    case LIMBS_div_i: return ree_op_div_i64(a, b);
    case LIMBS_div_u: return ree_op_div_u64(a, b);
    case LIMBS_mod_i: return ree_op_mod_i64(a, b);
    case LIMBS_fmod_i: return ree_op_fmod_i64(a, b);
    case LIMBS_mod_u: return ree_op_mod_u64(a, b);
    case LIMBS_pow_i: return ree_op_pow_i64(a, b);
    case LIMBS_pow_u: return ree_op_pow_u64(a, b);
    case LIMBS_min_i: return ree_op_min_i64(a, b);
    case LIMBS_max_i: return ree_op_max_i64(a, b);
    case LIMBS_min_u: return ree_op_min_u64(a, b);
    case LIMBS_max_u: return ree_op_max_u64(a, b);
    case LIMBS_lt_i: return ree_op_lt_i64(a, b);
    case LIMBS_le_i: return ree_op_le_i64(a, b);
    case LIMBS_lt_u: return ree_op_lt_u64(a, b);
    case LIMBS_le_u: return ree_op_le_u64(a, b);
    case LIMBS_eq: return ree_op_eq_i64(a, b);
    case LIMBS_and: return ree_op_and_b64(a, b);
    case LIMBS_or: return ree_op_or_b64(a, b);
    case LIMBS_xor: return ree_op_xor_b64(a, b);
    case LIMBS_shl: return ree_op_shl_b64(a, b);
    case LIMBS_shr: return ree_op_shr_b64(a, b);
    case LIMBS_mulh: return u64_mulh(a, b);
    case LIMBS_N_OPS: break;
    }
    return 0;
}

static uint64_t native_unary(enum limbs_unary op, uint64_t a) {
    int64_t x = (int64_t)a;
    switch (op) {
    case LIMBS_neg: return 0 - a;
    case LIMBS_abs: return x < 0 ? 0 - a : a;
    case LIMBS_sign: return (uint64_t)(int64_t)((x > 0) - (x < 0));
    case LIMBS_not: return ~a;
    case LIMBS_clz: return u64_clz(a);
    case LIMBS_to_f32_i: return ree_op_i64_to_f32(a);
    case LIMBS_to_f32_u: return ree_op_u64_to_f32(a);
    case LIMBS_from_i32: return (uint64_t)(int64_t)(int32_t)a;
    case LIMBS_from_u32: return (uint32_t)a;
    case LIMBS_low: return (uint32_t)a;
    case LIMBS_from_f32_i: return ree_op_f32_to_i64((uint32_t)a);
    case LIMBS_from_f32_u: return ree_op_f32_to_u64((uint32_t)a);
    case LIMBS_N_UNARY: break;
    }
    return 0;
}

// Compares 32-bit operations with the same operations in 64 bits.
static void words(uint64_t w, uint64_t v) {
    uint32_t a = (uint32_t)w, b = (uint32_t)v;
    uint64_t sa = (uint64_t)(int64_t)(int32_t)a, sb = (uint64_t)(int64_t)(int32_t)b;
#define SAME(expression, expected)                                                                 \
    do {                                                                                           \
        uint32_t got = (expression), want = (uint32_t)(expected);                                  \
        CHECK_MSG(got == want, "%s for %08x %08x: %08x, expected %08x", #expression, a, b, got,    \
                  want);                                                                           \
    } while (0)
    SAME(ree_op_add_i32(a, b), sa + sb);
    SAME(ree_op_sub_i32(a, b), sa - sb);
    SAME(ree_op_mul_i32(a, b), sa * sb);
    SAME(ree_op_div_i32(a, b), native(LIMBS_div_i, sa, sb));
    SAME(ree_op_mod_i32(a, b), native(LIMBS_mod_i, sa, sb));
    SAME(ree_op_fmod_i32(a, b), native(LIMBS_fmod_i, sa, sb));
    SAME(ree_op_div_u32(a, b), native(LIMBS_div_u, a, b));
    SAME(ree_op_mod_u32(a, b), native(LIMBS_mod_u, a, b));
    SAME(ree_op_pow_i32(a, b), native(LIMBS_pow_i, sa, sb));
    SAME(ree_op_pow_u32(a, b), native(LIMBS_pow_u, a, b));
    SAME(ree_op_min_i32(a, b), native(LIMBS_min_i, sa, sb));
    SAME(ree_op_max_i32(a, b), native(LIMBS_max_i, sa, sb));
    SAME(ree_op_min_u32(a, b), native(LIMBS_min_u, a, b));
    SAME(ree_op_max_u32(a, b), native(LIMBS_max_u, a, b));
    SAME(ree_op_lt_i32(a, b), (int32_t)a < (int32_t)b);
    SAME(ree_op_le_i32(a, b), (int32_t)a <= (int32_t)b);
    SAME(ree_op_lt_u32(a, b), a < b);
    SAME(ree_op_le_u32(a, b), a <= b);
    SAME(ree_op_eq_i32(a, b), a == b);
    SAME(ree_op_abs_i32(a), native_unary(LIMBS_abs, sa));
    SAME(ree_op_neg_i32(a), 0 - sa);
    SAME(ree_op_sign_i32(a), native_unary(LIMBS_sign, sa));
    SAME(ree_op_shl_b32(a, b), b > 31 ? 0 : (uint64_t)a << b);
    SAME(ree_op_shr_b32(a, b), b > 31 ? 0 : a >> b);
    SAME(ree_op_wrap_i8(a), (int64_t)(int8_t)a);
    SAME(ree_op_wrap_u8(a), (uint8_t)a);
    SAME(ree_op_wrap_i16(a), (int64_t)(int16_t)a);
    SAME(ree_op_wrap_u16(a), (uint16_t)a);
    SAME(ree_op_select_b32(a, b, 7), a != 0 ? b : 7);
}

int main(void) {
    struct numbers numbers = {.state = 3};
    for (long i = 0; i < 300000; i++) {
        uint64_t a = numbers_long(&numbers), b = numbers_long(&numbers);
        if ((i & 15) == 0) b = a;
        for (int op = 0; op < LIMBS_N_OPS; op++) {
            uint64_t want = native((enum limbs_op)op, a, b);
            uint64_t whole = whole_words((enum limbs_op)op, a, b);
            uint64_t pair = limbs_op((enum limbs_op)op, a, b);
            CHECK_MSG(whole == want && pair == want,
                      "operation %d on %llx, %llx: %llx and %llx, "
                      "expected %llx",
                      op, (unsigned long long)a, (unsigned long long)b, (unsigned long long)whole,
                      (unsigned long long)pair, (unsigned long long)want);
        }
        for (int op = 0; op < LIMBS_N_UNARY; op++) {
            uint64_t want = native_unary((enum limbs_unary)op, a);
            uint64_t pair = limbs_unary((enum limbs_unary)op, a);
            CHECK_MSG(pair == want, "operation %d on %llx: %llx, expected %llx", op,
                      (unsigned long long)a, (unsigned long long)pair, (unsigned long long)want);
        }
        // The polynomials rely on this: at most two units below the true high half.
        uint64_t exact = (uint64_t)((unsigned __int128)a * b >> 64), h = u64_mulh(a, b);
        CHECK_MSG(h <= exact && exact - h <= 2, "mulh of %llx, %llx", (unsigned long long)a,
                  (unsigned long long)b);
        words(a, b);
    }
    return test_finish();
}
