// Compares the elementary functions of float64 with MPFR at 600 bits, rounded once to binary64, and
// checks their special values.
#include "repops/scalar/ops.h"

#include "numbers.h"
#include "test.h"

#include <mpfr.h>

#define BITS 600

static void exact_sigmoid(mpfr_t y, mpfr_t x) {
    mpfr_neg(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}
static void exact_softplus(mpfr_t y, mpfr_t x) {
    if (mpfr_cmp_d(x, 1000) > 0) { // the result rounds to x, and e^x may overflow even in MPFR
        mpfr_set(y, x, MPFR_RNDN);
        return;
    }
    mpfr_exp(y, x, MPFR_RNDN);
    mpfr_log1p(y, y, MPFR_RNDN);
}
#define EXACT(name, mpfr_name)                                                                     \
    static void exact_##name(mpfr_t y, mpfr_t x) {                                                 \
        mpfr_name(y, x, MPFR_RNDN);                                                                \
    }
EXACT(rsqrt, mpfr_rec_sqrt)
EXACT(exp, mpfr_exp)
EXACT(expm1, mpfr_expm1)
EXACT(log, mpfr_log)
EXACT(log1p, mpfr_log1p)
EXACT(sin, mpfr_sin)
EXACT(cos, mpfr_cos)
EXACT(tan, mpfr_tan)
EXACT(asin, mpfr_asin)
EXACT(acos, mpfr_acos)
EXACT(atan, mpfr_atan)
EXACT(sinh, mpfr_sinh)
EXACT(cosh, mpfr_cosh)
EXACT(tanh, mpfr_tanh)
EXACT(asinh, mpfr_asinh)
EXACT(acosh, mpfr_acosh)
EXACT(atanh, mpfr_atanh)
EXACT(erf, mpfr_erf)

static const struct {
    const char *name;
    uint64_t (*function)(uint64_t);
    void (*exact)(mpfr_t, mpfr_t);
} functions[] = {
#define ROW(name)                                                                                  \
    { #name, ree_op_##name##_f64, exact_##name }
    ROW(rsqrt), ROW(exp),   ROW(expm1), ROW(log),  ROW(log1p),   ROW(sin),      ROW(cos),
    ROW(tan),   ROW(asin),  ROW(acos),  ROW(atan), ROW(sinh),    ROW(cosh),     ROW(tanh),
    ROW(asinh), ROW(acosh), ROW(atanh), ROW(erf),  ROW(sigmoid), ROW(softplus),
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

static const double special[] = {
    0.0,        -0.0,
    1.0,        -1.0,
    0.5,        -0.5,
    INFINITY,   -INFINITY,
    NAN,        709.75,
    709.8,      -708.4,
    -745.1,     -745.2,
    -746,       -744.4,
    36.7,       37.5,
    -37.5,      0x1p-1074,
    -0x1p-1074, 0x1p-1022,
    0x1p-27,    -0x1p-27,
    0x1p1023,   0x1.fffffffffffffp1023,
    6.1,
};

static void random_arguments(struct numbers *numbers, size_t f, mpfr_t x, mpfr_t y) {
    for (int i = 0; i < 1500; i++) {
        uint64_t w = numbers_word(numbers), kind = numbers_word(numbers);
        double v = ree_from_double_bits(w); // any bits
        if (i < (int)(sizeof special / sizeof *special))
            v = special[i];
        else if ((kind & 3) == 1)
            v = ldexp((double)(int64_t)w, -63);
        else if ((kind & 3) == 2)
            v = ldexp((double)(int64_t)w, -53);
        else if ((kind & 3) == 3)
            v = ldexp((double)(int64_t)w, -(int)(40 + (kind >> 8 & 63)));
        mpfr_set_d(x, v, MPFR_RNDN);
        functions[f].exact(y, x);
        uint64_t want = ree_double_result(mpfr_get_d(y, MPFR_RNDN));
        uint64_t got = functions[f].function(ree_double_bits(v));
        CHECK_MSG(got == want, "%s(%a) is %a, expected %a", functions[f].name, v,
                  ree_from_double_bits(got), ree_from_double_bits(want));
    }
}

static void power(struct numbers *numbers, mpfr_t x, mpfr_t y) {
    mpfr_t e;
    mpfr_init2(e, BITS);
    for (int i = 0; i < 4000; i++) {
        uint64_t w = numbers_word(numbers), kind = numbers_word(numbers);
        double a = (kind & 1) ? ree_from_double_bits(w) : ldexp((double)(w >> 11), -52);
        double b = (kind & 2) ? ldexp((double)(int64_t)kind, -55) : (double)(int8_t)(kind >> 8);
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_set_d(e, b, MPFR_RNDN);
        mpfr_pow(y, x, e, MPFR_RNDN);
        uint64_t want = ree_double_result(mpfr_get_d(y, MPFR_RNDN));
        uint64_t got = ree_op_pow_f64(ree_double_bits(a), ree_double_bits(b));
        CHECK_MSG(got == want, "pow(%a, %a) is %a, expected %a", a, b, ree_from_double_bits(got),
                  ree_from_double_bits(want));
    }
    mpfr_clear(e);
    CHECK(ree_exact_pow(NAN, 0) == 1 && ree_exact_pow(1, NAN) == 1 && isnan(ree_exact_pow(NAN, 1)));
    CHECK(ree_exact_pow(-1, INFINITY) == 1 && ree_exact_pow(0.5, -INFINITY) == INFINITY);
    CHECK(ree_exact_pow(-0.0, -3) == -INFINITY && ree_exact_pow(-0.0, -2) == INFINITY);
    CHECK(isnan(ree_exact_pow(-2, 0.5)) && ree_exact_pow(-2, 3) == -8);
    CHECK(ree_op_pow_f64(ree_double_bits(-2), ree_double_bits(0.5)) ==
          UINT64_C(0x7FF8000000000000));
}

int main(void) {
    struct numbers numbers = {.state = 7};
    mpfr_t x, y;
    mpfr_inits2(BITS, x, y, (mpfr_ptr)0);
    for (size_t f = 0; f < N_FUNCTIONS; f++)
        random_arguments(&numbers, f, x, y);
    power(&numbers, x, y);
    mpfr_clears(x, y, (mpfr_ptr)0);
    mpfr_free_cache();
    return test_finish();
}
