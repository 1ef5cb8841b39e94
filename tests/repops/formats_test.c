// The 8-bit and 4-bit formats, float64 operations without arithmetic, and all conversions between
// them, compared with a model that consists only of the value of each encoding and a search for the
// nearest one.
#include "repops/repop.h"
#include "repops/scalar/ops.h"

#include "numbers.h"
#include "test.h"

struct format {
    const char *name;
    uint32_t word; // format word of scalar/narrow.h
    int exponent_bits, fraction_bits, bias;
    bool has_inf, fnuz;
    int n_nan; // the highest n_nan codes of each sign are NaN
};
static const struct format formats[] = {
    {"e4m3fn", REE_NARROW_F8E4M3FN, 4, 3, 7, false, false, 1},
    {"e4m3fnuz", REE_NARROW_F8E4M3FNUZ, 4, 3, 8, false, true, 0},
    {"e5m2", REE_NARROW_F8E5M2, 5, 2, 15, true, false, 3},
    {"e5m2fnuz", REE_NARROW_F8E5M2FNUZ, 5, 2, 16, false, true, 0},
    {"e2m1", REE_NARROW_F4E2M1, 2, 1, 1, false, false, 0},
};
#define N_FORMATS (sizeof formats / sizeof *formats)

static int n_codes(const struct format *f) { // number of codes per sign
    return 1 << (f->exponent_bits + f->fraction_bits);
}

// Returns the number that a code without its sign represents.
static double value_of(const struct format *f, int code) {
    int exponent = code >> f->fraction_bits, fraction = code & ((1 << f->fraction_bits) - 1);
    int last = n_codes(f) - 1;
    if (code > last - f->n_nan) return NAN;
    if (f->has_inf && code == last - f->n_nan) return INFINITY;
    int unit = 1 << f->fraction_bits;
    if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->fraction_bits);
    return ldexp(unit + fraction, exponent - f->bias - f->fraction_bits);
}

static int largest_code(const struct format *f) {
    int code = n_codes(f) - 1;
    while (!isfinite(value_of(f, code)))
        code--;
    return code;
}

static uint32_t nan_of(const struct format *f) {
    if (f->fnuz) return 0x80;
    if (f->n_nan == 0) return 8; // float4e2m1: NaN converts to -0
    return f->has_inf ? 0x7E : 0x7F;
}

// Returns the nearest code; ties go to the even one. Beyond the largest number the grid is treated
// as continuing.
static uint32_t nearest(const struct format *f, double x, bool saturate) {
    if (isnan(x)) return nan_of(f);
    uint32_t sign = signbit(x) ? (uint32_t)n_codes(f) : 0;
    double a = fabs(x);
    int largest = largest_code(f), code = 0;
    double top = value_of(f, largest);
    double beyond = top + (top - value_of(f, largest - 1));
    // The tie above the largest number goes to the even neighbour.
    bool over = a > (top + beyond) / 2 || (a == (top + beyond) / 2 && (largest & 1));
    if (over) {
        if (saturate) return sign | (uint32_t)largest;
        return f->has_inf ? sign | (uint32_t)(largest + 1) : nan_of(f);
    }
    while (code < largest && value_of(f, code + 1) <= a)
        code++;
    if (code < largest) {
        double below = a - value_of(f, code), above = value_of(f, code + 1) - a;
        if (above < below || (above == below && (code & 1))) code++;
    }
    if (code == 0 && f->fnuz) return 0;
    return sign | (uint32_t)code;
}

static void check_narrow(const struct format *f, double x, uint32_t from_f32, const char *how) {
    for (int saturate = 0; saturate < 2; saturate++) {
        if (f->n_nan == 0 && !f->fnuz && !saturate) continue; // float4e2m1 always saturates
        uint32_t word = saturate ? f->word | REE_NARROW_SATURATE : f->word;
        uint32_t got = ree_op_f32_to_narrow(from_f32, word), want = nearest(f, x, saturate);
        CHECK_MSG(got == want, "%s of %a (%s)%s: %02x, expected %02x", f->name, x, how,
                  saturate ? " saturating" : "", got, want);
    }
}

static uint64_t step(uint64_t bits, int by) {
    return bits + (uint64_t)(int64_t)by;
}

// Checks x and the neighbouring float64 numbers through rounding to odd; float32 numbers also
// directly.
static void check_round(const struct format *f, double x) {
    for (int by = -2; by <= 2; by++)
        for (int negative = 0; negative < 2; negative++) {
            uint64_t bits = step(ree_double_bits(x), by) | (uint64_t)negative << 63;
            double y = ree_from_double_bits(bits);
            check_narrow(f, y, ree_op_f64_to_f32_odd(bits), "from float64");
            uint32_t single = ree_bits((float)x) + (uint32_t)by;
            if (isinf((float)x) || (by < 0 && (float)x == 0)) continue;
            single |= (uint32_t)negative << 31;
            check_narrow(f, (double)ree_float(single), single, "from float32");
        }
}

static void narrow_formats(void) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        const struct format *f = &formats[i];
        int largest = largest_code(f);
        // Every encoding converts exactly, and back.
        for (int code = 0; code < 2 * n_codes(f); code++) {
            int magnitude = code & (n_codes(f) - 1);
            double x = value_of(f, magnitude);
            if (code >= n_codes(f)) x = -x;
            if (f->fnuz && code == n_codes(f)) x = NAN;
            uint32_t got = ree_op_narrow_to_f32((uint32_t)code, f->word);
            CHECK_MSG(got == ree_result((float)x), "%s %02x is %08x, expected %a", f->name, code,
                      got, x);
            uint32_t back = ree_op_f32_to_narrow(got, f->word);
            CHECK_MSG(back == (isnan(x) ? nan_of(f) : (uint32_t)code), "%s %02x comes back as %02x",
                      f->name, code, back);
        }
        // Every number, every tie, and their neighbours.
        for (int code = 0; code < largest; code++) {
            double x = value_of(f, code), y = value_of(f, code + 1);
            if (code) check_round(f, x);
            check_round(f, (x + y) / 2);
        }
        double top = value_of(f, largest), step_size = top - value_of(f, largest - 1);
        for (int k = 0; k <= 8; k++)
            check_round(f, top + step_size * k / 4);
        check_round(f, 0x1p31);
        check_round(f, 0x1p127);
        check_narrow(f, INFINITY, REE_INF, "infinity");
        check_narrow(f, -INFINITY, REE_INF | REE_SIGN, "infinity");
        check_narrow(f, NAN, 0x7F800001, "NaN");
        check_narrow(f, -0.0, REE_SIGN, "zero");
        // A sample of all 2^32 floats, with a step that changes the low bits.
        for (uint64_t x = 0; x < UINT64_C(1) << 32; x += 2039)
            check_narrow(f, (double)ree_float((uint32_t)x), (uint32_t)x, "float32");
    }
}

// float8e8m0 by its definition: a power of two, or NaN.
static uint32_t e8m0_of(double x, uint32_t mode) {
    bool saturate = mode & REE_E8M0_SATURATE;
    if (isnan(x) || x < 0) return 0xFF;
    if (x < 0x1p-127) return saturate ? 0 : 0xFF;
    if (x > 0x1p127) return saturate ? 0xFE : 0xFF;
    int code = 0;
    while (ldexp(1, code - 127) < x)
        code++; // the smallest power of two >= x
    double above = ldexp(1, code - 127), below = above / 2;
    if (above == x) return (uint32_t)code;
    bool up =
        (mode & 3) == REE_E8M0_UP || ((mode & 3) == REE_E8M0_NEAREST && x - below >= above - x);
    return (uint32_t)(up ? code : code - 1);
}

static void e8m0(void) {
    for (uint32_t code = 0; code < 255; code++)
        CHECK((double)ree_float(ree_op_e8m0_to_f32(code)) == ldexp(1, (int)code - 127));
    CHECK(ree_op_e8m0_to_f32(255) == REE_NAN);
    for (uint32_t mode = 0; mode < 8; mode++) {
        if ((mode & 3) == 3) continue;
        for (int e = -130; e <= 128; e++)
            for (int k = 0; k < 8; k++)
                for (int by = -1; by <= 1; by++) {
                    uint64_t bits = step(ree_double_bits(ldexp(1 + k / 8.0, e)), by);
                    double x = ree_from_double_bits(bits);
                    uint32_t got = ree_op_f32_to_e8m0(ree_op_f64_to_f32_odd(bits), mode);
                    CHECK_MSG(got == e8m0_of(x, mode), "e8m0 of %a, mode %u: %02x", x, mode, got);
                }
        for (uint64_t x = 0; x < UINT64_C(1) << 32; x += 65521) {
            double v = (double)ree_float((uint32_t)x);
            uint32_t got = ree_op_f32_to_e8m0((uint32_t)x, mode);
            CHECK_MSG(got == e8m0_of(v, mode), "e8m0 of %a, mode %u: %02x", v, mode, got);
        }
        CHECK(ree_op_f32_to_e8m0(REE_SIGN, mode) == (mode & REE_E8M0_SATURATE ? 0 : 0xFF));
        CHECK(ree_op_f32_to_e8m0(REE_INF, mode) == (mode & REE_E8M0_SATURATE ? 0xFE : 0xFF));
    }
}

// float64 and integers to float16 and bfloat16: rounded to odd and then to nearest, compared with
// the nearest number found with exact numbers. value(h): the number of a float16 or bfloat16 with
// magnitude code h.
static uint32_t nearest_half(double x, double (*value)(uint32_t), uint32_t inf) {
    uint32_t low = 0, high = inf; // value(low) <= |x| < value(high); infinity counts as 2^(emax+1)
    double a = fabs(x);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (value(middle) <= a)
            low = middle;
        else
            high = middle;
    }
    double below = a - value(low), above = value(high) - a;
    uint32_t code = above < below || (above == below && (low & 1)) ? high : low;
    return code | (signbit(x) ? 0x8000u : 0);
}
static double f16_value(uint32_t h) {
    return h >> 10 ? ldexp(1024 + (h & 1023), (int)(h >> 10) - 25) : ldexp(h, -24);
}
static double bf16_value(uint32_t h) {
    return h >> 7 ? ldexp(128 + (h & 127), (int)(h >> 7) - 134) : ldexp(h, -133);
}

static void halves_of(double x, uint32_t odd, const char *how) {
    uint32_t f16 = nearest_half(x, f16_value, 0x7C00), bf16 = nearest_half(x, bf16_value, 0x7F80);
    CHECK_MSG(ree_op_f32_to_f16(odd) == f16, "float16 of %a (%s): %04x, expected %04x", x, how,
              ree_op_f32_to_f16(odd), f16);
    CHECK_MSG(ree_op_f32_to_bf16(odd) == bf16, "bfloat16 of %a (%s): %04x, expected %04x", x, how,
              ree_op_f32_to_bf16(odd), bf16);
}

static void halves(void) {
    for (uint32_t h = 0; h < 0x7F80; h++) {
        double (*values[2])(uint32_t) = {f16_value, bf16_value};
        for (int k = 0; k < 2; k++) {
            if (k == 0 && h >= 0x7C00) continue;
            double tie = (values[k](h) + values[k](h + 1)) / 2;
            for (int by = -1; by <= 1; by++) {
                uint64_t bits = step(ree_double_bits(tie), by);
                halves_of(ree_from_double_bits(bits), ree_op_f64_to_f32_odd(bits), "float64");
            }
        }
    }
    CHECK(ree_op_f32_to_f16(ree_op_f64_to_f32_odd(UINT64_C(0x7FEFFFFFFFFFFFFF))) == 0x7C00);
    CHECK(ree_op_f32_to_bf16(ree_op_f64_to_f32_odd(UINT64_C(0xFFF0000000000000))) == 0xFF80);
    CHECK(ree_op_f32_to_bf16(ree_op_f64_to_f32_odd(1)) == 0);
    // Integers of up to 53 bits are exact doubles.
    struct numbers numbers = {.state = 3};
    for (long i = 0; i < 300000; i++) {
        int64_t n = (int64_t)numbers_long(&numbers) >> 11;
        halves_of((double)n, ree_op_i64_to_f32_odd((uint64_t)n), "int64");
        if (n >= 0) halves_of((double)n, ree_op_u64_to_f32_odd((uint64_t)n), "uint64");
    }
    // One above a tie of bfloat16; float32 cannot distinguish the two.
    CHECK(ree_op_f32_to_bf16(ree_op_i64_to_f32_odd(0x40400001)) == 0x4E81);
    CHECK(ree_op_f32_to_bf16(ree_op_u64_to_f32_odd(UINT64_C(0x8080000000000001))) == 0x5F01);
}

static uint64_t random_double(struct numbers *numbers) {
    uint64_t w = numbers_word(numbers), kind = numbers_word(numbers);
    uint64_t sign = w & UINT64_C(1) << 63, fraction = w & ((UINT64_C(1) << 52) - 1);
    switch (kind & 7) {
    case 0: return sign | fraction >> (kind >> 8 & 63);     // subnormal, zero
    case 1: return sign | UINT64_C(0x7FF) << 52;            // infinity
    case 2: return sign | UINT64_C(0x7FF) << 52 | fraction; // NaN
    case 3: return sign | (1023 + (kind >> 8 & 63)) << 52 | fraction >> (kind >> 16 & 63) << 4;
    case 4: return sign | (1010 + (kind >> 8 & 127)) << 52 | fraction;
    case 5: return sign | (870 + (kind >> 8 & 255)) << 52 | fraction; // float32's range
    case 6: return ree_double_bits((double)ree_float((uint32_t)w));
    default: return w;
    }
}

#define SAME(expression, expected)                                                                 \
    do {                                                                                           \
        uint64_t got = (expression), want = (expected);                                            \
        CHECK_MSG(got == want, "%s for %016llx %016llx: %llx, expected %llx", #expression,         \
                  (unsigned long long)a, (unsigned long long)b, (unsigned long long)got,           \
                  (unsigned long long)want);                                                       \
    } while (0)

static uint64_t clamp_to(double x, double low, double high, uint64_t at_low, uint64_t at_high) {
    if (x != x) return 0;
    if (x <= low) return at_low;
    if (x >= high) return at_high;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

// Compares the integer forms with the processor's.
static void float64(void) {
    struct numbers numbers = {.state = 5};
    for (long i = 0; i < 1000000; i++) {
        uint64_t a = random_double(&numbers), b = random_double(&numbers);
        if ((i & 7) == 0) b = a;
        if ((i & 7) == 1) b = a ^ UINT64_C(1) << 63;
        double x = ree_from_double_bits(a), y = ree_from_double_bits(b);
        SAME(ree_op_lt_f64(a, b), x < y);
        SAME(ree_op_le_f64(a, b), x <= y);
        SAME(ree_op_eq_f64(a, b), x == y);
        SAME(ree_op_isnan_f64(a), x != x);
        SAME(ree_op_isposinf_f64(a), x == INFINITY);
        SAME(ree_op_isneginf_f64(a), x == -INFINITY);
        SAME(ree_op_floor_f64(a), ree_double_result(floor(x)));
        SAME(ree_op_ceil_f64(a), ree_double_result(ceil(x)));
        SAME(ree_op_trunc_f64(a), ree_double_result(trunc(x)));
        SAME(ree_op_round_f64(a), ree_double_result(rint(x)));
        SAME(ree_op_neg_f64(a), ree_double_result(-x));
        SAME(ree_op_abs_f64(a), ree_double_result(fabs(x)));
        SAME(ree_op_sign_f64(a), ree_double_result(x != x ? x : (x > 0) - (x < 0)));
        SAME(ree_op_f64_to_f32(a), ree_result((float)x));
        SAME(ree_f64_to_f32(a), ree_op_f64_to_f32(a));
        SAME(ree_f64_to_i32(a), ree_op_f64_to_i32(a));
        SAME(ree_f64_to_u32(a), ree_op_f64_to_u32(a));
        SAME(ree_f64_to_i64(a), ree_op_f64_to_i64(a));
        SAME(ree_f64_to_u64(a), ree_op_f64_to_u64(a));
        SAME(ree_i64_to_f64(a), ree_op_i64_to_f64(a));
        SAME(ree_u64_to_f64(a), ree_op_u64_to_f64(a));
        SAME(ree_op_f32_to_f64((uint32_t)a), ree_double_result((double)ree_float((uint32_t)a)));
        SAME(ree_op_f64_to_i32(a), (uint32_t)clamp_to(x, -0x1p31, 0x1p31, 0x80000000, INT32_MAX));
        SAME(ree_op_f64_to_u32(a), clamp_to(x, 0, 0x1p32, 0, UINT32_MAX));
        SAME(ree_op_f64_to_i64(a), clamp_to(x, -0x1p63, 0x1p63, UINT64_C(1) << 63, INT64_MAX));
        SAME(ree_op_f64_to_u64(a), clamp_to(x, 0, 0x1p64, 0, UINT64_MAX));
        uint64_t n = numbers_long(&numbers);
        SAME(ree_op_i64_to_f64(n), ree_double_bits((double)(int64_t)n));
        SAME(ree_op_u64_to_f64(n), ree_double_bits((double)n));
        // Rounding to odd by its definition: exact, or the odd neighbour.
        uint32_t odd = ree_op_f64_to_f32_odd(a);
        double z = (double)ree_float(odd);
        if (isfinite(x) && z != x) {
            double unit = ilogb(x) < -126 ? 0x1p-149 : ldexp(1, ilogb(x) - 23);
            bool beside = fabs(x) > 0x1.fffffep127 ? fabs(z) == 0x1.fffffep127
                                                   : fabs(z - x) <= unit && (double)(float)x != x;
            CHECK_MSG((odd & 1) && beside, "%a rounds to odd as %a", x, z);
        }
        uint64_t low = ree_op_min_f64(a, b), high = ree_op_max_f64(a, b);
        bool nan = x != x || y != y;
        bool less = x < y || (x == y && signbit(x) && !signbit(y));
        SAME(low, nan ? UINT64_C(0x7FF8000000000000) : less ? a : b);
        SAME(high, nan ? UINT64_C(0x7FF8000000000000) : less ? b : a);
        double r = fmod(x, y);
        double m = r == 0 ? copysign(0, y) : ((r < 0) != (y < 0) ? r + y : r);
        SAME(ree_op_mod_f64(a, b), ree_double_result(m));
    }
}

int main(void) {
    narrow_formats();
    e8m0();
    halves();
    float64();
    return test_finish();
}
