// The table of the elementary functions, and the oracle: the C library's function in double; if its
// error leaves the rounding in doubt, MPFR.
#include "prove.h"

#include "repops/scalar/ops.h"

#include <mpfr.h>

// Compiles a function for several instruction sets, of which the widest runs, as in the CPU
// backend. All perform the same operations, so they give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_THIS_MACHINE __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define FOR_THIS_MACHINE
#endif

#define ree_int_sqrt_f32 ree_soft_sqrt // named like the other integer forms, for FORMS
#define FORMS(name)                                                                                \
    FOR_THIS_MACHINE static void c_##name(const uint32_t *restrict x, uint32_t *restrict y) {      \
        for (int i = 0; i < PROVE_BLOCK; i++)                                                      \
            y[i] = ree_op_##name##_f32(x[i]);                                                      \
    }                                                                                              \
    FOR_THIS_MACHINE static void integer_##name(const uint32_t *restrict x,                        \
                                                uint32_t *restrict y) {                            \
        for (int i = 0; i < PROVE_BLOCK; i++)                                                      \
            y[i] = ree_int_##name##_f32(x[i]);                                                     \
    }

static double reference_rsqrt(double x) {
    return 1.0 / sqrt(x);
}
static double reference_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}
static double reference_softplus(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
#define reference_sqrt sqrt
#define reference_exp exp
#define reference_expm1 expm1
#define reference_log log
#define reference_log1p log1p
#define reference_sin sin
#define reference_cos cos
#define reference_tan tan
#define reference_asin asin
#define reference_acos acos
#define reference_atan atan
#define reference_sinh sinh
#define reference_cosh cosh
#define reference_tanh tanh
#define reference_asinh asinh
#define reference_acosh acosh
#define reference_atanh atanh
#define reference_erf erf

// Composite functions are computed at 400 bits, so that the rounding of each step does not matter:
// their exact values are no nearer to a tie than about 2^-80.
static int exact_sigmoid(mpfr_t y, mpfr_t x, mpfr_rnd_t round) {
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}
static int exact_softplus(mpfr_t y, mpfr_t x, mpfr_rnd_t round) {
    mpfr_exp(y, x, round);
    return mpfr_log1p(y, y, round);
}
#define exact_sqrt mpfr_sqrt
#define exact_rsqrt mpfr_rec_sqrt
#define exact_exp mpfr_exp
#define exact_expm1 mpfr_expm1
#define exact_log mpfr_log
#define exact_log1p mpfr_log1p
#define exact_sin mpfr_sin
#define exact_cos mpfr_cos
#define exact_tan mpfr_tan
#define exact_asin mpfr_asin
#define exact_acos mpfr_acos
#define exact_atan mpfr_atan
#define exact_sinh mpfr_sinh
#define exact_cosh mpfr_cosh
#define exact_tanh mpfr_tanh
#define exact_asinh mpfr_asinh
#define exact_acosh mpfr_acosh
#define exact_atanh mpfr_atanh
#define exact_erf mpfr_erf

// name, C form (the processor's instruction, doubles or integers), family of the integer form
#define FUNCTIONS(F)                                                                               \
    F(sqrt, SQRT, SOFT)                                                                            \
    F(rsqrt, FAST, ERF)                                                                            \
    F(exp, FAST, EXP)                                                                              \
    F(expm1, FAST, EXP)                                                                            \
    F(log, FAST_EXCEPT, LOG)                                                                       \
    F(log1p, LOG, LOG)                                                                             \
    F(sin, FAST_TRIG, TRIG)                                                                        \
    F(cos, FAST_TRIG, TRIG)                                                                        \
    F(tan, FAST_TRIG, TRIG)                                                                        \
    F(asin, ATAN, ATAN)                                                                            \
    F(acos, ATAN, ATAN)                                                                            \
    F(atan, ATAN, ATAN)                                                                            \
    F(sinh, EXP, EXP)                                                                              \
    F(cosh, EXP, EXP)                                                                              \
    F(tanh, FAST, EXP)                                                                             \
    F(asinh, LOG, LOG)                                                                             \
    F(acosh, LOG, LOG)                                                                             \
    F(atanh, LOG, LOG)                                                                             \
    F(erf, FAST, ERF)                                                                              \
    F(sigmoid, FAST_EXCEPT, EXP)                                                                   \
    F(softplus, FAST_EXCEPT, LOG)

#define DEFINE(name, c_family, integer_family) FORMS(name)
FUNCTIONS(DEFINE)

#define BODY_SQRT "native"
#define BODY_FAST "double"
#define BODY_FAST_EXCEPT "double"
#define BODY_FAST_TRIG "double"
#define BODY_EXP "integer"
#define BODY_LOG "integer"
#define BODY_ATAN "integer"
const struct prove_function prove_functions[] = {
#define ENTRY(name, c_family, integer_family)                                                      \
    {#name,                                                                                        \
     {c_##name, integer_##name},                                                                   \
     {REE_DIGEST_##c_family, REE_DIGEST_##integer_family},                                         \
     {BODY_##c_family, "integer"},                                                                 \
     reference_##name},
    FUNCTIONS(ENTRY)};
const size_t prove_n_functions = sizeof prove_functions / sizeof prove_functions[0];

#define NUMBER(name, c_family, integer_family) FUNCTION_##name,
enum { FUNCTIONS(NUMBER) };

static void call_exact(size_t function, mpfr_t y, mpfr_t x) {
    switch (function) {
#define CASE(name, c_family, integer_family)                                                       \
    case FUNCTION_##name: exact_##name(y, x, MPFR_RNDN); break;
        FUNCTIONS(CASE)
    }
}

#define EXACT_BITS 400

// Returns the correctly rounded result. *out_distance is the distance of the exact value from a
// tie, in ulps of the result.
static uint32_t settle(size_t function, uint32_t bits, double *out_distance) {
    static _Thread_local bool ready;
    static _Thread_local mpfr_t x, y, tie;
    static _Thread_local mpfr_exp_t widest, lowest;
    if (!ready) {
        mpfr_init2(x, 24);
        mpfr_init2(y, EXACT_BITS);
        mpfr_init2(tie, EXACT_BITS);
        widest = mpfr_get_emax();
        lowest = mpfr_get_emin();
        ready = true;
    }
    mpfr_set_flt(x, ree_float(bits), MPFR_RNDN);
    call_exact(function, y, x);

    // Round once, to 24 bits or, if the result is subnormal, to fewer.
    mpfr_t r;
    mpfr_init2(r, 24);
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    int ternary = mpfr_set(r, y, MPFR_RNDN);
    ternary = mpfr_check_range(r, ternary, MPFR_RNDN);
    mpfr_subnormalize(r, ternary, MPFR_RNDN);
    float result = mpfr_get_flt(r, MPFR_RNDN);
    mpfr_set_emin(lowest);
    mpfr_set_emax(widest);
    mpfr_clear(r);

    *out_distance = 1.0;
    if (isfinite(result) && result != 0.0f) {
        double f = result, unit = nextafterf(fabsf(result), INFINITY) - fabs(f);
        for (int side = -1; side <= 1; side += 2) {
            // Exact: 25 bits. (Below a power of two the tie is nearer; that does not matter here.)
            mpfr_set_d(tie, f + side * unit / 2, MPFR_RNDN);
            mpfr_sub(tie, tie, y, MPFR_RNDN);
            double distance = fabs(mpfr_get_d(tie, MPFR_RNDN)) / unit;
            if (distance < *out_distance) *out_distance = distance;
        }
    }
    return ree_result(result);
}

static void keep_hard(struct prove_counts *counts, struct prove_hard_case hard) {
    size_t i = counts->n_hard;
    if (i == PROVE_HARD) {
        if (hard.distance >= counts->hard[PROVE_HARD - 1].distance) return;
        i--;
    } else {
        counts->n_hard++;
    }
    for (; i > 0 && counts->hard[i - 1].distance > hard.distance; i--)
        counts->hard[i] = counts->hard[i - 1];
    counts->hard[i] = hard;
}

static void keep_wrong(struct prove_counts *counts, uint32_t x, uint32_t y, uint32_t expected) {
    uint64_t i = counts->mismatches++;
    if (i >= sizeof counts->wrong_x / sizeof counts->wrong_x[0]) return;
    counts->wrong_x[i] = x;
    counts->wrong_y[i] = y;
    counts->wrong_expected[i] = expected;
}

void prove_counts_add(struct prove_counts *into, const struct prove_counts *from) {
    into->inputs += from->inputs;
    into->settled_by_mpfr += from->settled_by_mpfr;
    for (size_t i = 0; i < from->n_hard; i++)
        keep_hard(into, from->hard[i]);
    uint64_t known = sizeof from->wrong_x / sizeof from->wrong_x[0];
    for (uint64_t i = 0; i < from->mismatches; i++) {
        if (i < known)
            keep_wrong(into, from->wrong_x[i], from->wrong_y[i], from->wrong_expected[i]);
        else
            into->mismatches++;
    }
}

void prove_check(size_t function, const uint32_t *x, const uint32_t *y, size_t n,
                 struct prove_counts *counts) {
    const struct prove_function *f = &prove_functions[function];
    double reference[PROVE_BLOCK];
    uint32_t low[PROVE_BLOCK], high[PROVE_BLOCK];
    for (size_t i = 0; i < n; i++)
        reference[i] = f->reference(ree_float(x[i]));
    for (size_t i = 0; i < n; i++) {
        low[i] = ree_result((float)(reference[i] * (1.0 - 0x1p-45)));
        high[i] = ree_result((float)(reference[i] * (1.0 + 0x1p-45)));
    }
    uint32_t different = 0;
    for (size_t i = 0; i < n; i++)
        different |= (low[i] ^ high[i]) | (low[i] ^ y[i]);
    counts->inputs += n;
    if (different == 0) return;
    for (size_t i = 0; i < n; i++) {
        uint32_t expected = low[i];
        if (low[i] != high[i]) {
            struct prove_hard_case hard = {.x = x[i]};
            expected = hard.y = settle(function, x[i], &hard.distance);
            counts->settled_by_mpfr++;
            keep_hard(counts, hard);
        }
        if (y[i] != expected) keep_wrong(counts, x[i], y[i], expected);
    }
}
