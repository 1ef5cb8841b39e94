// MPFR rounds its own functions correctly to any precision. MPFR lacks sigmoid and softplus: they
// are enclosed at a precision that grows until the enclosure rounds to one number (Ziv's strategy).
#include "repops/elementary64.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

_Static_assert(DBL_MANT_DIG == 53, "double is binary64");

// MPFR caches constants and numbers per thread and frees them only on request. Computing threads
// come and go (an OpenMP team shrinks), so each thread that used MPFR frees its cache when it ends.
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static pthread_key_t cache_key;
static bool has_cache_key;

static void free_cache(void *unused) {
    (void)unused;
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
}

static void make_cache_key(void) {
    has_cache_key = pthread_key_create(&cache_key, free_cache) == 0;
}

static void free_cache_at_thread_exit(void) {
    static _Thread_local bool registered;
    if (registered) return;
    registered = true;
    pthread_once(&cache_once, make_cache_key);
    // Any value but NULL triggers the destructor. Without a key the thread's cache is leaked.
    if (has_cache_key) pthread_setspecific(cache_key, &cache_once);
}

// The exponent range of MPFR, which is per thread. It is set to binary64's range while a function
// runs.
struct range {
    mpfr_exp_t low, high;
};

static struct range enter(void) {
    free_cache_at_thread_exit();
    struct range before = {mpfr_get_emin(), mpfr_get_emax()};
    // MPFR's significands are in [1/2, 1), so the smallest subnormal number, 2^-1074, has the
    // exponent -1073.
    mpfr_set_emin(-1073);
    mpfr_set_emax(1024);
    return before;
}

static void leave(struct range before) {
    mpfr_set_emin(before.low);
    mpfr_set_emax(before.high);
}

// Returns y as a double. y was rounded to 53 bits with the ternary value `inexact`. A subnormal
// result is rounded again; `inexact` prevents a double-rounding error.
static double to_double(mpfr_t y, int inexact) {
    mpfr_subnormalize(y, inexact, MPFR_RNDN);
    return mpfr_get_d(y, MPFR_RNDN);
}

typedef int function(mpfr_t y, const mpfr_t x, mpfr_rnd_t rounding);

static double apply(function *f, double x) {
    if (isnan(x)) return x;
    struct range before = enter();
    MPFR_DECL_INIT(argument, 53);
    MPFR_DECL_INIT(result, 53);
    mpfr_set_d(argument, x, MPFR_RNDN);
    int inexact = f(result, argument, MPFR_RNDN);
    double y = to_double(result, inexact);
    leave(before);
    return y;
}

#define DEFINE(name, mpfr_name)                                                                    \
    double ree_exact_##name(double x) {                                                            \
        return apply(mpfr_name, x);                                                                \
    }
DEFINE(exp, mpfr_exp)
DEFINE(expm1, mpfr_expm1)
DEFINE(log, mpfr_log)
DEFINE(log1p, mpfr_log1p)
DEFINE(sin, mpfr_sin)
DEFINE(cos, mpfr_cos)
DEFINE(tan, mpfr_tan)
DEFINE(asin, mpfr_asin)
DEFINE(acos, mpfr_acos)
DEFINE(atan, mpfr_atan)
DEFINE(sinh, mpfr_sinh)
DEFINE(cosh, mpfr_cosh)
DEFINE(tanh, mpfr_tanh)
DEFINE(asinh, mpfr_asinh)
DEFINE(acosh, mpfr_acosh)
DEFINE(atanh, mpfr_atanh)
DEFINE(erf, mpfr_erf)

DEFINE(rsqrt, mpfr_rec_sqrt)

double ree_exact_pow(double x, double y) {
    struct range before = enter();
    MPFR_DECL_INIT(base, 53);
    MPFR_DECL_INIT(exponent, 53);
    MPFR_DECL_INIT(power, 53);
    mpfr_set_d(base, x, MPFR_RNDN);
    mpfr_set_d(exponent, y, MPFR_RNDN);
    int inexact = mpfr_pow(power, base, exponent, MPFR_RNDN);
    double result = to_double(power, inexact);
    leave(before);
    return result;
}

// Sets y = sigmoid(x) with a relative error below 2^(4 - precision of y).
static void enclose_sigmoid(mpfr_t y, double x) {
    mpfr_set_d(y, -x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}

// Sets y = softplus(x) with the same error bound: log1p is well conditioned for positive arguments.
static void enclose_softplus(mpfr_t y, double x) {
    mpfr_set_d(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_log1p(y, y, MPFR_RNDN);
}

// Returns the value that `f` encloses, rounded once to binary64. The exponent range is not
// restricted while the enclosure is computed: e^x may be far below binary64's smallest number. The
// callers handle the only arguments whose value is exactly representable or a tie. No other double
// has a value so close to a tie that it needs more than the last precision.
static double enclose(void (*f)(mpfr_t y, double x), double x) {
    double y = NAN;
    free_cache_at_thread_exit();
    for (mpfr_prec_t precision = 128; precision <= 4096; precision *= 2) {
        mpfr_t wide = {{0}}; // MemorySanitizer does not see writes by libraries
        mpfr_init2(wide, precision);
        f(wide, x);
        // Bits of the result's significand: 53, or fewer if the result is subnormal.
        mpfr_exp_t exponent = mpfr_get_exp(wide);
        mpfr_prec_t bits = exponent >= -1021 ? 53 : exponent < -1073 ? 1 : 53 - (-1021 - exponent);
        bool decided = mpfr_can_round(wide, precision - 4, MPFR_RNDN, MPFR_RNDZ, bits + 1);
        y = mpfr_get_d(wide, MPFR_RNDN);
        mpfr_clear(wide);
        if (decided) break;
    }
    return y;
}

double ree_exact_sigmoid(double x) {
    if (isnan(x)) return x;
    if (x == 0) return 0.5;
    if (x < -800) return 0; // the value is below half of the smallest subnormal number
    if (x > 40) return 1;   // the value is within a quarter of an ulp of 1
    return enclose(enclose_sigmoid, x);
}

double ree_exact_softplus(double x) {
    if (isnan(x)) return x;
    if (x < -800) return 0;
    if (x > 800) return x; // e^-x is negligible compared with x
    return enclose(enclose_softplus, x);
}

const void *ree_elementary64_library(void) {
    return (const void *)(uintptr_t)&mpfr_exp;
}
