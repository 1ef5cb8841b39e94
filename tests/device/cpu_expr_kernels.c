// Loops over arrays of the CPU's map operations that compilers vectorise give, on every instruction
// set, the bits of the same functions in integers: conversions, functions with exceptions, and
// powers with one exponent for the whole array.
#include "device/cpu/cpu_internal.h"
#include "device/cpu/expr.h"
#include "repops/scalar/elementary.h"
#include "repops/scalar/f64.h"
#include "repops/scalar/ops_shared.h"

#include "repops/numbers.h"
#include "test.h"

enum { N = 50021 }; // a prime: the last vector is not full

static uint32_t floats[N], results[N];
static uint64_t longs[N], wide[N];

// The arguments for which results of double arithmetic are corrected (exceptions.h, fast_trig.h).
static const uint32_t exceptions[] = {0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x65D890D3,
                                      0x6F31A8EC, 0xBA928601, 0x39EA41D0, 0x46199998,
                                      0xC6199998, 0x5922AA80, 0x5F18B878, 0x6115CB11};

static void fill(void) {
    struct numbers numbers = {.state = 11};
    const uint32_t n_exceptions = sizeof exceptions / sizeof *exceptions;
    for (uint32_t i = 0; i < N; i++) {
        floats[i] = i < n_exceptions ? exceptions[i] : numbers_float(&numbers);
        longs[i] = numbers_long(&numbers);
        // Doubles from 2^28 to 2^67: on both sides of what integers of 32 and 64 bits hold.
        if (i % 4 == 0)
            longs[i] = (longs[i] & UINT64_C(0x800FFFFFFFFFFFFF)) | (uint64_t)(1051 + i / 4 % 40)
                                                                       << 52;
    }
}

static void run(enum ree_cpu_isa isa, enum ree_map_op op, const void *a, const void *b, void *out) {
    ree_cpu_expr_kernels(isa)->ops[op](N, a, b, NULL, out);
}

#define SAME(isa, name, argument, got, want)                                                       \
    CHECK_MSG((uint64_t)(got) == (uint64_t)(want), "%s, %s of %llx: %llx, expected %llx",          \
              ree_cpu_isa_name(isa), #name, (unsigned long long)(argument),                        \
              (unsigned long long)(got), (unsigned long long)(want))
#define COMPARE(isa, name, in, out, definition)                                                    \
    do {                                                                                           \
        run(isa, REE_MAP_##name, in, NULL, out);                                                   \
        for (uint32_t i = 0; i < N; i++)                                                           \
            SAME(isa, name, in[i], out[i], definition(in[i]));                                     \
    } while (0)

static void conversions(enum ree_cpu_isa isa) {
    COMPARE(isa, f32_to_i32, floats, results, ree_soft_f32_to_i32);
    COMPARE(isa, f32_to_u32, floats, results, ree_soft_f32_to_u32);
    COMPARE(isa, f32_to_i64, floats, wide, ree_soft_f32_to_i64);
    COMPARE(isa, f32_to_u64, floats, wide, ree_soft_f32_to_u64);
    COMPARE(isa, f32_to_f16, floats, results, ree_soft_f32_to_f16);
    COMPARE(isa, f32_to_f64, floats, wide, ree_f32_to_f64);
    COMPARE(isa, f64_to_f32, longs, results, ree_f64_to_f32);
    COMPARE(isa, f64_to_i32, longs, results, ree_f64_to_i32);
    COMPARE(isa, f64_to_u32, longs, results, ree_f64_to_u32);
    COMPARE(isa, f64_to_i64, longs, wide, ree_f64_to_i64);
    COMPARE(isa, f64_to_u64, longs, wide, ree_f64_to_u64);
    COMPARE(isa, i64_to_f64, longs, wide, ree_i64_to_f64);
    COMPARE(isa, u64_to_f64, longs, wide, ree_u64_to_f64);
    static uint32_t halves[N];
    for (uint32_t i = 0; i < N; i++)
        halves[i] = i * 65536 / N; // with N < 65536, most of them
    COMPARE(isa, f16_to_f32, halves, results, ree_soft_f16_to_f32);
}

static void functions(enum ree_cpu_isa isa) {
    COMPARE(isa, log_f32, floats, results, ree_int_log_f32);
    COMPARE(isa, sin_f32, floats, results, ree_int_sin_f32);
    COMPARE(isa, cos_f32, floats, results, ree_int_cos_f32);
    COMPARE(isa, sigmoid_f32, floats, results, ree_int_sigmoid_f32);
    COMPARE(isa, softplus_f32, floats, results, ree_int_softplus_f32);
}

static void powers(enum ree_cpu_isa isa) {
    // 2, 3, 1/2, -1/2, 1, -1, 0, 3/2; then different ones
    static const uint32_t constants[] = {0x40000000, 0x40400000, 0x3F000000, 0xBF000000,
                                         0x3F800000, 0xBF800000, 0x00000000, 0x3FC00000};
    const uint32_t n_constants = sizeof constants / sizeof *constants;
    static uint32_t exponents[N];
    for (uint32_t c = 0; c <= n_constants; c++) {
        for (uint32_t i = 0; i < N; i++)
            exponents[i] = constants[c < n_constants ? c : i * 7 / N];
        run(isa, REE_MAP_pow_f32, floats, exponents, results);
        for (uint32_t i = 0; i < N; i++)
            SAME(isa, pow_f32, floats[i], results[i], ree_int_pow_f32(floats[i], exponents[i]));
    }
}

int main(void) {
    fill();
    for (int isa = 0; isa < REE_N_CPU_ISAS; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        conversions((enum ree_cpu_isa)isa);
        functions((enum ree_cpu_isa)isa);
        powers((enum ree_cpu_isa)isa);
    }
    return test_finish();
}
