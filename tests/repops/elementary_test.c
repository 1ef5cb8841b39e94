// Each elementary function: the recorded hard cases and exceptions in every form, and the forms
// compared with each other on 2^22 spread arguments (pairs of words: 2^18). ree-prove proves that
// the C form is correct everywhere.
#include "repops/scalar/ops.h"

#include "limbs.h"
#include "test.h"

struct function {
    const char *name;
    uint32_t (*c)(uint32_t);
    uint32_t (*integer)(uint32_t);
    enum limbs_function limbs;
};

#define FUNCTIONS(F)                                                                               \
    F(rsqrt)                                                                                       \
    F(exp)                                                                                         \
    F(expm1)                                                                                       \
    F(log)                                                                                         \
    F(log1p) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh)         \
        F(acosh) F(atanh) F(erf) F(sigmoid) F(softplus)
#define ENTRY(name) {#name, ree_op_##name##_f32, ree_int_##name##_f32, LIMBS_##name},
static const struct function functions[] = {FUNCTIONS(ENTRY)};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static void check(const struct function *f, uint32_t x, uint32_t want) {
    uint32_t c = f->c(x), integer = f->integer(x), limbs = limbs_elementary(f->limbs, x);
    CHECK_MSG(c == want && integer == want && limbs == want,
              "%s(%08x) is %08x in C, %08x in integers, %08x in pairs of words; expected %08x",
              f->name, x, c, integer, limbs, want);
}

static void spread(const struct function *f) {
    // Multiples of 2^32 divided by the golden ratio are spread evenly over all arguments.
    uint32_t x = 0;
    for (uint32_t i = 0; i < 1u << 22; i++, x += 0x9E3779B1) {
        uint32_t c = f->c(x), integer = f->integer(x);
        CHECK_MSG(c == integer, "%s(%08x) is %08x in C, %08x in integers", f->name, x, c, integer);
        if (i % 16 != 0) continue;
        uint32_t limbs = limbs_elementary(f->limbs, x);
        CHECK_MSG(limbs == c, "%s(%08x) is %08x in pairs of words, expected %08x", f->name, x,
                  limbs, c);
    }
}

// Values that follow directly from the definition.
static void special(void) {
    const uint32_t inf = REE_INF, minf = REE_INF | REE_SIGN, one = REE_ONE, zero = 0;
    const uint32_t mzero = REE_SIGN, mone = REE_ONE | REE_SIGN, nan = REE_NAN;
    const uint32_t half_pi = 0x3FC90FDB, pi = 0x40490FDB;
    static const struct {
        enum limbs_function f;
        uint32_t x, y;
    } rows[] = {
        {LIMBS_rsqrt, zero, inf},
        {LIMBS_rsqrt, mzero, minf},
        {LIMBS_rsqrt, inf, zero},
        {LIMBS_rsqrt, mone, nan},
        {LIMBS_rsqrt, 0x40800000, 0x3F000000},
        {LIMBS_exp, zero, one},
        {LIMBS_exp, inf, inf},
        {LIMBS_exp, minf, zero},
        {LIMBS_exp, one, 0x402DF854},
        {LIMBS_exp, 0x42B17218, inf},
        {LIMBS_exp, 0xC2CFF1B5, zero},
        {LIMBS_exp, 0xC2CFF1B4, 1},
        {LIMBS_expm1, mzero, mzero},
        {LIMBS_expm1, minf, mone},
        {LIMBS_expm1, 1, 1},
        {LIMBS_log, zero, minf},
        {LIMBS_log, mzero, minf},
        {LIMBS_log, one, zero},
        {LIMBS_log, mone, nan},
        {LIMBS_log, inf, inf},
        {LIMBS_log, minf, nan},
        {LIMBS_log1p, mone, minf},
        {LIMBS_log1p, mzero, mzero},
        {LIMBS_log1p, 0xC0000000, nan},
        {LIMBS_sin, mzero, mzero},
        {LIMBS_sin, inf, nan},
        {LIMBS_cos, minf, nan},
        {LIMBS_cos, zero, one},
        {LIMBS_tan, mzero, mzero},
        {LIMBS_tan, inf, nan},
        {LIMBS_asin, one, half_pi},
        {LIMBS_asin, 0x3F800001, nan},
        {LIMBS_acos, one, zero},
        {LIMBS_acos, mone, pi},
        {LIMBS_acos, mzero, half_pi},
        {LIMBS_acos, inf, nan},
        {LIMBS_atan, inf, half_pi},
        {LIMBS_atan, minf, half_pi | mzero},
        {LIMBS_atan, mzero, mzero},
        {LIMBS_sinh, minf, minf},
        {LIMBS_sinh, mzero, mzero},
        {LIMBS_cosh, minf, inf},
        {LIMBS_cosh, zero, one},
        {LIMBS_tanh, inf, one},
        {LIMBS_tanh, minf, mone},
        {LIMBS_tanh, mzero, mzero},
        {LIMBS_asinh, minf, minf},
        {LIMBS_asinh, mzero, mzero},
        {LIMBS_acosh, one, zero},
        {LIMBS_acosh, inf, inf},
        {LIMBS_acosh, zero, nan},
        {LIMBS_acosh, minf, nan},
        {LIMBS_atanh, one, inf},
        {LIMBS_atanh, mone, minf},
        {LIMBS_atanh, 0x3F800001, nan},
        {LIMBS_erf, inf, one},
        {LIMBS_erf, minf, mone},
        {LIMBS_erf, mzero, mzero},
        {LIMBS_sigmoid, zero, 0x3F000000},
        {LIMBS_sigmoid, inf, one},
        {LIMBS_sigmoid, minf, zero},
        {LIMBS_softplus, zero, 0x3F317218},
        {LIMBS_softplus, inf, inf},
        {LIMBS_softplus, minf, zero},
        // 1/2 + x/4 is a tie; the cubic term decides and rounds towards 1/2.
        {LIMBS_sigmoid, 0x34C00000, 0x3F000001},
        {LIMBS_sigmoid, 0x34000000, 0x3F000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&functions[rows[i].f], rows[i].x, rows[i].y);
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        check(&functions[i], 0x7F800001, nan);
        check(&functions[i], 0xFFFFFFFF, nan);
    }
}

static void hard_cases(void) {
    static const struct {
        enum limbs_function f;
        uint32_t x, y;
    } rows[] = {
#define REE_HARD_CASE(name, argument, result) {LIMBS_##name, argument, result},
#include "repops/scalar/hard_cases.inc"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&functions[rows[i].f], rows[i].x, rows[i].y);
}

// The arguments that ops.h treats as exceptions: includes exceptions.h once more, with each of its
// lines as a check.
static const struct function *named(const char *name) {
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    return NULL;
}
#undef REE_SCALAR_EXCEPTIONS_H
#undef REE_EXCEPT
#define REE_EXCEPT(x, argument, result, r)                                                         \
    (check(named(excepted), argument, result), n_excepted++, (void)(x), r)
#define ree_except_log listed_log
#define ree_except_sigmoid listed_sigmoid
#define ree_except_softplus listed_softplus
static const char *excepted;
static int n_excepted;
#include "repops/scalar/exceptions.h"

static void exceptions(void) {
#define LISTED(name)                                                                               \
    excepted = #name;                                                                              \
    (void)listed_##name(0, 0);
    LISTED(log)
    LISTED(sigmoid)
    LISTED(softplus)
    CHECK(n_excepted >= 7);
}

int main(void) {
    special();
    exceptions();
    hard_cases();
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        spread(&functions[i]);
    return test_finish();
}
