// conv on the CPU gives the definition's bytes for every shape, instruction set and number of
// threads, and writes nothing outside its output.
#include "reference_products.h"
#include "run_products.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long n_runs;

// n, groups, c, m, in, kernel, out, stride, dilation, pad, transposed
// clang-format off
#define SHAPE(...) {__VA_ARGS__, REE_F32, REE_F32, 0, 0, {0}}
// clang-format on

// Sets `out` to the number of output positions that fit with this padding at the end.
static bool set_output(struct ree_conv_params *p, int axis, int32_t pad_end) {
    int64_t span = (int64_t)(p->kernel[axis] - 1) * p->dilation[axis] + 1, out;
    if (p->transposed)
        out = (int64_t)(p->in[axis] - 1) * p->stride[axis] + span - p->pad[axis] - pad_end;
    else
        out = (p->in[axis] + (int64_t)p->pad[axis] + pad_end - span) / p->stride[axis] + 1;
    if (!p->transposed && p->in[axis] + (int64_t)p->pad[axis] + pad_end < span) return false;
    if (out < 1 || out > 400) return false;
    p->out[axis] = (uint32_t)out;
    return true;
}

static void describe(const struct ree_conv_params *p, const char *what, const char *bad) {
    CHECK_MSG(!bad,
              "%s n %u groups %u c %u m %u in %u %u %u kernel %u %u %u stride %u %u %u dilation %u "
              "%u %u pad %d %d %d out %u %u %u, %s: %s",
              p->transposed ? "transposed" : "conv", p->n, p->groups, p->c, p->m, p->in[0],
              p->in[1], p->in[2], p->kernel[0], p->kernel[1], p->kernel[2], p->stride[0],
              p->stride[1], p->stride[2], p->dilation[0], p->dilation[1], p->dilation[2], p->pad[0],
              p->pad[1], p->pad[2], p->out[0], p->out[1], p->out[2], what, bad);
}

// Number of elements of x, w and the output.
struct sizes {
    uint32_t x, w, out;
};

static struct sizes sizes_of(const struct ree_conv_params *p) {
    return (struct sizes){
        .x = p->n * p->groups * p->c * p->in[0] * p->in[1] * p->in[2],
        .w = p->groups * p->m * p->c * p->kernel[0] * p->kernel[1] * p->kernel[2],
        .out = p->n * p->groups * p->m * p->out[0] * p->out[1] * p->out[2],
    };
}

static void check_case(struct random_source *random, const struct ree_conv_params *p,
                       enum random_floats kind) {
    static const char *const kinds[] = {"uniform", "wide", "special"};
    struct sizes n = sizes_of(p);
    float *x = malloc(n.x * sizeof *x + 1), *w = malloc(n.w * sizeof *w + 1);
    float *expected = malloc(n.out * sizeof *expected + 1);
    REQUIRE(x && w && expected);
    random_fill(random, kind, x, n.x);
    random_fill(random, kind, w, n.w);
    reference_conv_f32(p, x, w, expected);
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.conv = *p;
    describe(p, kinds[kind],
             run_products(REE_REPOP_CONV, &params, (void *[]){x, w}, 2, expected,
                          n.out * sizeof(float), &n_runs));
    free(x);
    free(w);
    free(expected);
}

// Fills with bytes of any value, or only with the extremes of the signed and unsigned ranges, which
// reveal an instruction that saturates.
static void fill_bytes(struct random_source *random, bool extremes, uint8_t *out, uint32_t n) {
    static const uint32_t ends[] = {0, 255, 127, 128};
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)(extremes ? random_of(random, ends, 4) : random_u32(random));
}

// Runs the same shape with bytes, in each combination of signed and unsigned.
static void check_bytes(struct random_source *random, const struct ree_conv_params *shape) {
    struct sizes n = sizes_of(shape);
    // Exact sizes, so that a sanitizer sees reads outside.
    uint8_t *x = malloc(n.x), *w = malloc(n.w);
    int32_t *expected = malloc(n.out * sizeof *expected);
    REQUIRE(x && w && expected);
    for (int types = 0; types < 4; types++) {
        union ree_params params;
        memset(&params, 0, sizeof params);
        struct ree_conv_params *p = &params.conv;
        *p = *shape;
        p->x_dtype = types & 1 ? REE_I8 : REE_U8;
        p->w_dtype = types & 2 ? REE_I8 : REE_U8;
        p->has_pad_value = random_below(random, 4) != 0;
        bool extremes = random_below(random, 3) == 0;
        uint8_t pad;
        fill_bytes(random, extremes, x, n.x);
        fill_bytes(random, extremes, w, n.w);
        fill_bytes(random, extremes, &pad, 1);
        reference_conv_bytes(p, x, w, p->has_pad_value ? pad : 0, expected);
        char what[40];
        snprintf(what, sizeof what, "%s by %s, pad %d", types & 1 ? "int8" : "uint8",
                 types & 2 ? "int8" : "uint8", p->has_pad_value ? pad : -1);
        describe(p, what,
                 run_products(REE_REPOP_CONV, &params, (void *[]){x, w, &pad},
                              p->has_pad_value ? 3 : 2, expected, n.out * sizeof(float), &n_runs));
    }
    free(x);
    free(w);
    free(expected);
}

static uint64_t work(const struct ree_conv_params *p) {
    uint64_t n = (uint64_t)p->n * p->groups * p->m * p->c;
    for (int i = 0; i < 3; i++)
        n *= (uint64_t)p->out[i] * p->kernel[i];
    return n;
}

static bool random_case(struct random_source *random, bool transposed, struct ree_conv_params *p) {
    static const uint32_t counts[] = {1, 1, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 25, 33};
    uint32_t n_counts = sizeof counts / sizeof *counts;
    *p = (struct ree_conv_params){.transposed = transposed, .n = 1 + random_below(random, 3)};
    p->x_dtype = p->w_dtype = REE_F32;
    p->groups = random_below(random, 3) ? 1 : 1 + random_below(random, 8);
    p->c = random_of(random, counts, n_counts);
    p->m = random_of(random, counts, n_counts);
    uint32_t rank = 1 + random_below(random, 3);
    for (uint32_t i = 0; i < 3; i++) {
        p->in[i] = p->kernel[i] = p->out[i] = p->stride[i] = p->dilation[i] = 1;
        if (i < 3 - rank) continue;
        p->in[i] = 1 + random_below(random, rank == 1 ? 150 : rank == 2 ? 30 : 9);
        p->kernel[i] = 1 + random_below(random, random_below(random, 3) ? 3 : 7);
        p->stride[i] = 1 + random_below(random, random_below(random, 2) ? 1 : 4);
        p->dilation[i] = 1 + random_below(random, random_below(random, 3) ? 1 : 3);
        bool padded = random_below(random, 3) != 0;
        p->pad[i] = padded ? (int32_t)random_below(random, 5) : 0;
        if (random_below(random, 12) == 0) p->pad[i] = -1; // a crop
        if (!set_output(p, (int)i, padded ? (int32_t)random_below(random, 4) : 0)) return false;
    }
    return work(p) <= 400000;
}

// Depthwise shapes as in models and slightly beyond: kernels and strides that have special code,
// and their neighbours.
static bool random_depthwise(struct random_source *random, struct ree_conv_params *p) {
    static const uint32_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 14, 15, 16, 17, 28, 31, 32, 33, 40, 67};
    uint32_t n_sizes = sizeof sizes / sizeof *sizes;
    static const uint32_t kernels[] = {3, 3, 3, 5, 5, 2, 7};
    *p = (struct ree_conv_params){.n = 1 + random_below(random, 2), .c = 1};
    p->x_dtype = p->w_dtype = REE_F32;
    p->groups = 1 + random_below(random, 7);
    p->m = 1 + (random_below(random, 4) == 0 ? random_below(random, 3) : 0);
    p->in[0] = p->kernel[0] = p->out[0] = p->stride[0] = p->dilation[0] = 1;
    uint32_t kernel = random_of(random, kernels, 7), stride = 1 + random_below(random, 2);
    for (int i = 1; i < 3; i++) {
        p->in[i] = random_of(random, sizes, n_sizes);
        p->kernel[i] = random_below(random, 8) ? kernel : 1 + random_below(random, 5);
        p->stride[i] = random_below(random, 8) ? stride : 1 + random_below(random, 3);
        p->dilation[i] = random_below(random, 8) ? 1 : 2;
        p->pad[i] = (int32_t)random_below(random, kernel + 2);
        if (random_below(random, 12) == 0) p->pad[i]--;
        // The output may reach beyond the input, or cover only part of it.
        if (!set_output(p, i, (int32_t)random_below(random, 9) - 2)) return false;
    }
    return work(p) <= 100000;
}

static void check_random(bool transposed, int n_cases) {
    struct random_source random = {transposed ? 2 : 1};
    for (int i = 0; i < n_cases; i++) {
        struct ree_conv_params p;
        while (!random_case(&random, transposed, &p)) {
        }
        check_case(&random, &p, (enum random_floats)(i % RANDOM_N_FLOATS));
        if (!transposed && i % 8 == 0) check_bytes(&random, &p);
    }
}

static void check_random_depthwise(int n_cases) {
    struct random_source random = {5};
    for (int i = 0; i < n_cases; i++) {
        struct ree_conv_params p;
        while (!random_depthwise(&random, &p)) {
        }
        check_case(&random, &p, (enum random_floats)(i % RANDOM_N_FLOATS));
        if (i % 3 == 0) check_bytes(&random, &p);
    }
}

// Shapes of real models, and the limits of the layout.
static void check_chosen(void) {
    static const struct ree_conv_params cases[] = {
        // 3x3 over more than one chunk, several tasks.
        SHAPE(1, 1, 64, 64, {1, 20, 21}, {1, 3, 3}, {1, 20, 21}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1},
              0),
        // 1x1: the input is read in place, except with strides.
        SHAPE(2, 1, 300, 40, {1, 7, 9}, {1, 1, 1}, {1, 7, 9}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0),
        SHAPE(2, 2, 8, 16, {1, 14, 14}, {1, 1, 1}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, 0),
        // Depthwise, and with a multiplier.
        SHAPE(2, 40, 1, 1, {1, 30, 70}, {1, 3, 3}, {1, 15, 35}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, 0),
        SHAPE(1, 9, 1, 2, {1, 12, 80}, {1, 5, 5}, {1, 12, 80}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, 0),
        // A kernel of more than one chunk, with one channel.
        SHAPE(1, 3, 1, 1, {1, 40, 40}, {1, 17, 17}, {1, 24, 24}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0},
              0),
        // One output position: strides have no effect.
        SHAPE(1, 1, 20, 30, {1, 6, 6}, {1, 6, 6}, {1, 1, 1}, {1, 3, 90}, {1, 1, 1}, {0, 0, 0}, 0),
        // A dilation and padding that no layout fits.
        SHAPE(1, 1, 2, 5, {1, 3, 4}, {1, 2, 2}, {1, 2, 3}, {1, 1, 1}, {1, 60000, 50000},
              {0, 59999, 49999}, 0),
        // More phases than are stored.
        SHAPE(1, 1, 1, 4, {1, 1, 500}, {1, 1, 80}, {1, 1, 3}, {1, 1, 97}, {1, 1, 3}, {0, 0, 0}, 0),
        // Upsampling by 2 as decoders do it.
        SHAPE(1, 1, 16, 8, {1, 9, 10}, {1, 4, 4}, {1, 18, 20}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, 1),
        SHAPE(1, 12, 1, 1, {1, 9, 10}, {1, 3, 3}, {1, 17, 19}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, 1),
        // More channels of bytes than a chunk of words holds, and not a multiple of the word size.
        SHAPE(1, 1, 1030, 13, {1, 3, 5}, {1, 1, 1}, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0),
        SHAPE(1, 1, 2051, 3, {1, 1, 5}, {1, 1, 1}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0),
        // An image's three channels, whose taps are folded into words; and a case with many phases.
        SHAPE(1, 1, 3, 16, {1, 30, 33}, {1, 7, 7}, {1, 15, 17}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}, 0),
        SHAPE(2, 3, 5, 7, {4, 9, 11}, {2, 3, 3}, {3, 5, 6}, {2, 2, 2}, {2, 2, 3}, {2, 2, 3}, 0),
        // Depthwise planes taller than one band of rows.
        SHAPE(1, 3, 1, 1, {1, 150, 37}, {1, 3, 3}, {1, 75, 19}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, 0),
        SHAPE(1, 2, 1, 3, {1, 80, 90}, {1, 5, 5}, {1, 80, 90}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, 0),
        // A kernel larger than its input.
        SHAPE(1, 4, 1, 1, {1, 2, 2}, {1, 5, 5}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 3, 2}, 0),
    };
    struct random_source random = {3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = 0; kind < RANDOM_N_FLOATS; kind++)
            check_case(&random, &cases[i], (enum random_floats)kind);
        if (!cases[i].transposed) check_bytes(&random, &cases[i]);
    }
}

// Sums beyond 32 bits wrap; they do not saturate.
static void check_wrapping(void) {
    enum { C = 140000, WIDTH = 3 };
    uint8_t *x = malloc(C * WIDTH), *w = malloc(5 * C);
    REQUIRE(x && w);
    for (int types = 0; types < 4; types++)
        for (uint32_t m = 1; m <= 5; m += 4) {
            bool x_signed = types & 1, w_signed = types & 2;
            union ree_params params;
            memset(&params, 0, sizeof params);
            params.conv =
                (struct ree_conv_params)SHAPE(1, 1, C, m, {1, 1, WIDTH}, {1, 1, 1}, {1, 1, WIDTH},
                                              {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0);
            params.conv.x_dtype = x_signed ? REE_I8 : REE_U8;
            params.conv.w_dtype = w_signed ? REE_I8 : REE_U8;
            memset(x, x_signed ? 0x80 : 0xFF, C * WIDTH);
            memset(w, w_signed ? 0x80 : 0xFF, m * C);
            int64_t sum = (int64_t)C * (x_signed ? -128 : 255) * (w_signed ? -128 : 255);
            uint32_t expected[5 * WIDTH];
            for (uint32_t i = 0; i < m * WIDTH; i++)
                expected[i] = (uint32_t)(uint64_t)sum;
            const char *bad = run_products(REE_REPOP_CONV, &params, (void *[]){x, w}, 2, expected,
                                           sizeof(float) * m * WIDTH, &n_runs);
            CHECK_MSG(!bad, "wrapping, types %d, m %u: %s", types, m, bad);
        }
    free(x);
    free(w);
}

// The padding's zeros are multiplied: an infinite weight at a padded position gives NaN.
static void check_infinite_weight(void) {
    float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, w[3 * 5] = {0};
    for (int i = 0; i < 5; i++)
        w[3 * i] = INFINITY;
    for (uint32_t m = 1; m <= 5; m += 4) {
        union ree_params params;
        memset(&params, 0, sizeof params);
        params.conv = (struct ree_conv_params)SHAPE(1, 1, 1, m, {1, 1, 8}, {1, 1, 3}, {1, 1, 8},
                                                    {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, 0);
        uint32_t expected[40];
        for (uint32_t i = 0; i < 8 * m; i++)
            expected[i] = i % 8 == 0 ? 0x7FC00000u : 0x7F800000u;
        const char *bad = run_products(REE_REPOP_CONV, &params, (void *[]){x, w}, 2, expected,
                                       sizeof(float) * 8 * m, &n_runs);
        CHECK_MSG(!bad, "infinite weight, m %u: %s", m, bad);
    }
}

// Epilogues receive the finished sum and may change the element size.
static void check_epilogues(void) {
    static const struct ree_conv_params cases[] = {
        SHAPE(2, 1, 3, 20, {1, 9, 33}, {1, 3, 3}, {1, 9, 33}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, 0),
        SHAPE(2, 6, 1, 1, {1, 9, 33}, {1, 3, 3}, {1, 9, 33}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, 0),
        SHAPE(1, 1, 2, 5, {1, 3, 4}, {1, 2, 2}, {1, 2, 3}, {1, 1, 1}, {1, 60000, 50000},
              {0, 59999, 49999}, 0),
    };
    struct random_source random = {4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        union ree_params params;
        memset(&params, 0, sizeof params);
        struct ree_conv_params *p = &params.conv;
        *p = cases[i];
        float x[4096], w[4096], bias[64];
        static float sums[2 * 20 * 9 * 33];
        static union {
            float f32[2 * 20 * 9 * 33];
            uint8_t bytes[2 * 20 * 9 * 33];
            int64_t i64[2 * 20 * 9 * 33];
        } expected;
        random_fill(&random, RANDOM_UNIFORM, x, 4096);
        random_fill(&random, RANDOM_UNIFORM, w, 4096);
        random_fill(&random, RANDOM_UNIFORM, bias, 64);
        reference_conv_f32(p, x, w, sums);
        uint32_t plane = p->out[0] * p->out[1] * p->out[2], m = p->groups * p->m;
        uint32_t n = p->n * m * plane;
        p->has_epilogue = 1;
        for (int kind = 0; kind < 3; kind++) {
            // acc + bias, acc < bias as bool, and trunc(acc) as int64.
            struct ree_expr *expr = &p->epilogue;
            *expr = (struct ree_expr){.rank = 5, .n_elements = n, .n_operands = 1, .n_instrs = 1};
            const uint32_t dims[5] = {p->n, m, p->out[0], p->out[1], p->out[2]};
            memcpy(expr->dims, dims, sizeof dims);
            expr->operands[0] =
                (struct ree_expr_operand){REE_EXPR_TENSOR, REE_F32, 0, {0, 1, 0, 0, 0}};
            expr->instrs[0] = (struct ree_expr_instr){kind == 0   ? REE_MAP_add_f32
                                                      : kind == 1 ? REE_MAP_lt_f32
                                                                  : REE_MAP_f32_to_i64,
                                                      {0, 1, 0},
                                                      {0, 0}};
            expr->out_dtype = kind == 0 ? REE_F32 : kind == 1 ? REE_BOOL : REE_I64;
            for (uint32_t e = 0; e < n; e++) {
                float b = bias[e / plane % m];
                if (kind == 0) expected.f32[e] = sums[e] + b;
                if (kind == 1) expected.bytes[e] = sums[e] < b;
                if (kind == 2) expected.i64[e] = (int64_t)sums[e];
            }
            const char *bad =
                run_products(REE_REPOP_CONV, &params, (void *[]){x, w, bias}, 3, &expected,
                             ree_dtype_size((enum ree_dtype)expr->out_dtype) * n, &n_runs);
            CHECK_MSG(!bad, "epilogue %d, case %zu: %s", kind, i, bad);
        }
    }
}

// Optional argument: divisor of the numbers of random cases, for an emulated processor.
int main(int argc, char **argv) {
    int divisor = argc > 1 ? atoi(argv[1]) : TEST_SANITIZED ? 4 : 1;
    check_infinite_weight();
    check_wrapping();
    check_epilogues();
    check_chosen();
    check_random(false, 500 / divisor);
    check_random(true, 250 / divisor);
    check_random_depthwise(160 / divisor);
    printf("%ld runs\n", n_runs);
    return test_finish();
}
