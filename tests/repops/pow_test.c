// pow: special values, ties that only exact arithmetic recognises, and random and hard arguments
// compared with MPFR. Two arguments have too many values for an exhaustive test.
#include "repops/scalar/ops.h"

#include "limbs.h"
#include "numbers.h"
#include "test.h"

#include <mpfr.h>

static void check(float x, float y, uint32_t want) {
    uint32_t got = ree_op_pow_f32(ree_bits(x), ree_bits(y));
    CHECK_MSG(got == want, "pow(%a, %a) = %08x, expected %08x", (double)x, (double)y, got, want);
    got = ree_int_pow_f32(ree_bits(x), ree_bits(y));
    CHECK_MSG(got == want, "integer pow(%a, %a) = %08x, expected %08x", (double)x, (double)y, got,
              want);
}

static void special(void) {
    const uint32_t one = REE_ONE, inf = REE_INF, minf = REE_INF | REE_SIGN, minus = REE_SIGN;
    check(NAN, 0, one);
    check(1, NAN, one);
    check(NAN, 1, REE_NAN);
    check(2, NAN, REE_NAN);
    check(-1, INFINITY, one);
    check(-1, -INFINITY, one);
    check(0.5f, INFINITY, 0);
    check(0.5f, -INFINITY, inf);
    check(-2, INFINITY, inf);
    check(-2, -INFINITY, 0);
    check(0, -1, inf);
    check(-0.0f, -1, minf);
    check(-0.0f, -2, inf);
    check(-0.0f, 3, minus);
    check(-0.0f, 0.5f, 0);
    check(-0.0f, -0x1p24f, inf);
    check(-INFINITY, 3, minf);
    check(INFINITY, 3, inf);
    check(NAN, 3, REE_NAN);
    check(-INFINITY, -3, minus);
    check(-INFINITY, 0.5f, inf);
    check(INFINITY, -0x1p-149f, 0);
    check(-8, 1.0f / 3, REE_NAN);
    check(-1, 0x1.FFFFFEp23f, one | minus);
    check(-2, 3, ree_bits(-8));
    check(2, 0.5f, 0x3FB504F3);
    check(-3, 2, ree_bits(9));
}

// Results exactly between two floats round to even. Also tests results one step to either side.
static void ties(void) {
    check(2, -150, 0); // half of the smallest number
    check(2, -149, 1);
    check(0x1.8p-75f, 2, 1);            // 1.125 of the smallest number
    check(4097, 2, ree_bits(16785408)); // 16785409 is a tie, rounds to even
    check(0x1.8p-74f, 2, 4);            // 4.5 of the smallest number: a tie
    // (2^12 + 1)^2 has 25 bits and ends in 1, and so do the odd squares after it.
    for (int i = 4097; i < 5793; i += 2) {
        double square = (double)i * i;
        check((float)i, 2, ree_bits((float)square));
        check(-(float)i, 2, ree_bits((float)square));
        check((float)square == square ? (float)square : 4, 0.5f,
              ree_bits((float)square == square ? (float)i : 2));
    }
    for (int i = 3; i < 293; i += 2) { // cubes of up to 25 bits
        double cube = (double)i * i * i;
        check((float)i, 3, ree_bits((float)cube));
        check(-(float)i, 3, ree_bits(-(float)cube));
    }
    for (int i = 3; i < 30; i++)
        check((float)i, 5, ree_bits((float)((double)i * i * i * i * i)));
}

// The exponents that have special code, with all exponents of the base and both signs.
static void short_ways(void) {
    static const float exponents[] = {1, 2, 3, -1, 0.5f, -0.5f};
    for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
        uint32_t y = ree_bits(exponents[e]), x = 0;
        for (uint32_t i = 0; i < 1u << 19; i++, x += 0x9E3779B1) {
            uint32_t c = ree_op_pow_f32(x, y), integer = ree_int_pow_f32(x, y);
            CHECK_MSG(c == integer, "pow(%08x, %08x) = %08x in C, %08x in integers", x, y, c,
                      integer);
        }
        for (uint32_t i = 0; i < 1u << 16; i++) { // bases of few bits: ties and exact results
            uint32_t base = (i << 16 | i << 31) ^ (i & 0x7000) << 1;
            uint32_t c = ree_op_pow_f32(base, y), integer = ree_int_pow_f32(base, y);
            CHECK_MSG(c == integer, "pow(%08x, %08x) = %08x in C, %08x in integers", base, y, c,
                      integer);
        }
    }
}

static void pairs_of_words(void) {
    struct numbers numbers = {.state = 4};
    for (int i = 0; i < 20000; i++) {
        uint32_t x = numbers_float(&numbers), y = numbers_float(&numbers);
        if (i & 1) x &= 0x7FFFFFFF;
        if ((i & 7) == 0) y = ree_bits((float)(i % 61) / 2);
        uint32_t whole = ree_int_pow_f32(x, y), pair = limbs_pow(x, y);
        CHECK_MSG(whole == pair, "pow(%08x, %08x) = %08x, in pairs of words %08x", x, y, whole,
                  pair);
        CHECK_MSG(whole == ree_op_pow_f32(x, y), "pow(%08x, %08x) differs between the forms", x, y);
    }
}

static uint32_t exact(uint32_t x, uint32_t y) {
    mpfr_t a, b, r;
    mpfr_inits2(24, a, b, r, (mpfr_ptr)0);
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_set_flt(a, ree_float(x), MPFR_RNDN);
    mpfr_set_flt(b, ree_float(y), MPFR_RNDN);
    int ternary = mpfr_pow(r, a, b, MPFR_RNDN);
    ternary = mpfr_check_range(r, ternary, MPFR_RNDN);
    mpfr_subnormalize(r, ternary, MPFR_RNDN);
    uint32_t bits = ree_result(mpfr_get_flt(r, MPFR_RNDN));
    mpfr_clears(a, b, r, (mpfr_ptr)0);
    return bits;
}

static void against_mpfr(long n) {
    struct numbers numbers = {.state = 5};
    for (long i = 0; i < n; i++) {
        uint32_t x = numbers_float(&numbers), y = numbers_float(&numbers);
        uint32_t more = (uint32_t)numbers_word(&numbers);
        switch (i & 7) {
        case 0: break;
        case 1: // results over the whole range
            x &= 0x7FFFFFFF;
            y = ree_bits((float)((more % 300000) * 1e-3 - 150) / log2f(ree_float(x)));
            break;
        case 2: // few bits, small half-integers: ties and exact results
            x = ree_bits(ldexpf((float)(more & 4095), (int)(more >> 12 & 31) - 16));
            y = ree_bits((float)((int)(more >> 20 & 31) - 10) / 2);
            break;
        case 3: // next to 1, large exponents
            x = REE_ONE + (more & 1023) - 512;
            y = (y & 0x807FFFFF) | (127 + (more >> 10) % 31) << 23;
            break;
        case 4: // powers of two
            x = ree_bits(ldexpf(1, (int)(more % 270) - 140));
            y = ree_bits((float)((int)(more >> 10 & 4095) - 2048) / 8);
            break;
        case 5: // near underflow
            x &= 0x7FFFFFFF;
            y = ree_bits((float)(-149.6 + (more & 1023) * 1e-3) / log2f(ree_float(x)));
            break;
        case 6:
            x = (x & 0x807FFFFF) | (100 + more % 54) << 23;
            y = ree_bits((float)(2 + (more >> 8 & 3)));
            break;
        case 7: // negative bases, integral exponents
            x |= REE_SIGN;
            y = ree_bits((float)((int)(more & 255) - 128));
            break;
        }
        uint32_t want = exact(x, y), c = ree_op_pow_f32(x, y), integer = ree_int_pow_f32(x, y);
        CHECK_MSG(c == want && integer == want,
                  "pow(%08x, %08x) = %08x in C, %08x in integers, "
                  "expected %08x",
                  x, y, c, integer, want);
    }
}

int main(void) {
    special();
    ties();
    short_ways();
    pairs_of_words();
    against_mpfr(400000);
    return test_finish();
}
