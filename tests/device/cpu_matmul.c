// matmul on the CPU gives the definition's bytes for every shape, layout, instruction set and
// number of threads, and writes nothing outside its output.
#include "cases.h"
#include "reference_products.h"
#include "run_products.h"
#include "test.h"

#include <string.h>

static long n_runs;

static uint32_t extent(uint32_t n, int32_t stride) {
    return n ? (n - 1) * (uint32_t)stride : 0;
}

// Chooses strides for an (outer, inner) matrix: row-major, column-major, with gaps, or repeating.
static void choose_layout(struct random_source *random, uint32_t outer, uint32_t inner,
                          int32_t *stride_outer, int32_t *stride_inner) {
    int32_t gap = random_below(random, 3) == 0 ? (int32_t)random_below(random, 5) : 0;
    switch (random_below(random, 8)) {
    default: // row-major
        *stride_inner = 1;
        *stride_outer = (int32_t)inner + gap;
        break;
    case 3:
    case 4:
    case 5: // column-major
        *stride_outer = 1;
        *stride_inner = (int32_t)outer + gap;
        break;
    case 6: // no adjacent elements
        *stride_inner = 2;
        *stride_outer = 2 * (int32_t)inner + 1 + gap;
        break;
    case 7: // the same row repeated
        *stride_inner = 1;
        *stride_outer = 0;
        break;
    }
}

static void check_case(struct random_source *random, const struct ree_matmul_params *p,
                       uint32_t a_size, uint32_t b_size, enum random_floats kind) {
    float *a = malloc((a_size ? a_size : 1) * sizeof *a);
    float *b = malloc((b_size ? b_size : 1) * sizeof *b);
    size_t nbytes = (size_t)p->n_batch * p->m * p->n * sizeof(float);
    float *expected = malloc(nbytes ? nbytes : 1);
    REQUIRE(a && b && expected);
    random_fill(random, kind, a, a_size);
    random_fill(random, kind, b, b_size);
    reference_matmul_f32(p, a, b, expected);
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.matmul = *p;
    void *operands[] = {a, b};
    const char *bad =
        run_products(REE_REPOP_MATMUL, &params, operands, 2, expected, nbytes, &n_runs);
    CHECK_MSG(!bad, "%u x (%u x %u x %u), strides a %d %d b %d %d, values %d: %s", p->n_batch, p->m,
              p->n, p->k, p->a_stride_m, p->a_stride_k, p->b_stride_k, p->b_stride_n, (int)kind,
              bad);
    free(a);
    free(b);
    free(expected);
}

// Runs random layouts, offsets and batches of the given sizes.
static void check_sizes(struct random_source *random, uint32_t m, uint32_t n, uint32_t k,
                        enum random_floats kind) {
    struct ree_matmul_params p = {.dtype = REE_F32,
                                  .a_dtype = REE_F32,
                                  .b_dtype = REE_F32,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .n_batch = 1};
    choose_layout(random, m, k, &p.a_stride_m, &p.a_stride_k);
    choose_layout(random, k, n, &p.b_stride_k, &p.b_stride_n);
    p.a_offset = (int32_t)random_below(random, 4);
    p.b_offset = (int32_t)random_below(random, 4);
    uint32_t a_size = extent(m, p.a_stride_m) + extent(k, p.a_stride_k) + 1;
    uint32_t b_size = extent(k, p.b_stride_k) + extent(n, p.b_stride_n) + 1;
    p.batch_rank = (uint64_t)m * n * k < 100000 ? random_below(random, 4) : 0;
    for (uint32_t d = p.batch_rank; d-- > 0;) {
        p.batch_dims[d] = 1 + random_below(random, 3);
        p.n_batch *= p.batch_dims[d];
        bool a_repeats = random_below(random, 3) == 0, b_repeats = random_below(random, 2) == 0;
        p.a_batch_strides[d] = a_repeats ? 0 : (int32_t)a_size;
        p.b_batch_strides[d] = b_repeats ? 0 : (int32_t)b_size;
        // Sometimes makes a batch dimension continue the rows, so that it may be folded into them.
        if (!a_repeats && p.a_stride_m > p.a_stride_k && d + 1 == p.batch_rank)
            p.a_batch_strides[d] = p.a_stride_m * (int32_t)m;
        a_size += extent(p.batch_dims[d], p.a_batch_strides[d]);
        b_size += extent(p.batch_dims[d], p.b_batch_strides[d]);
    }
    check_case(random, &p, a_size + (uint32_t)p.a_offset, b_size + (uint32_t)p.b_offset, kind);
}

static void check_random_sizes(int n_cases) {
    static const uint32_t sides[] = {1,  1,  2,  3,  4,  5,   6,   7,   8,   9,   10,  11, 12,
                                     13, 15, 16, 17, 23, 24,  25,  31,  32,  33,  47,  48, 49,
                                     63, 64, 65, 95, 97, 128, 130, 191, 193, 260, 513, 530};
    static const uint32_t depths[] = {1,   2,   3,   4,   7,   8,    15,   16,
                                      17,  31,  33,  64,  100, 255,  256,  257,
                                      300, 511, 512, 513, 700, 1024, 1025, 1100};
    struct random_source random = {1};
    for (int i = 0; i < n_cases; i++) {
        uint32_t m, n, k;
        do {
            m = random_of(&random, sides, sizeof sides / sizeof *sides);
            n = random_of(&random, sides, sizeof sides / sizeof *sides);
            k = random_of(&random, depths, sizeof depths / sizeof *depths);
        } while ((uint64_t)m * n * k > 600000);
        check_sizes(&random, m, n, k, (enum random_floats)(i % RANDOM_N_FLOATS));
    }
}

// All heights, and many widths, around the tile sizes of every instruction set.
static void check_tile_edges(void) {
    struct random_source random = {2};
    for (uint32_t m = 9; m <= 29; m++)
        for (uint32_t n = 9; n <= 70; n += 1 + random_below(&random, 5))
            check_sizes(&random, m, n, 5, RANDOM_UNIFORM);
}

// Sizes of more than one block of packed rows, columns and terms.
static void check_large(uint32_t divisor) {
    static const uint32_t sizes[][3] = {{4130, 20, 1040}, {20, 8300, 1030}, {9, 600, 4200}};
    struct random_source random = {3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2] / divisor;
        struct ree_matmul_params p = {
            .dtype = REE_F32,
            .a_dtype = REE_F32,
            .b_dtype = REE_F32,
            .m = m,
            .n = n,
            .k = k,
            .a_stride_m = (int32_t)k,
            .a_stride_k = 1,
            .b_stride_k = (int32_t)n,
            .b_stride_n = 1,
            .n_batch = 1,
        };
        check_case(&random, &p, m * k, k * n, RANDOM_UNIFORM);
    }
}

static void check_empty(void) {
    struct random_source random = {4};
    static const uint32_t sizes[][3] = {{0, 3, 4}, {3, 0, 4}, {5, 7, 0}, {1, 1, 0}, {40, 50, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_sizes(&random, sizes[i][0], sizes[i][1], sizes[i][2], RANDOM_UNIFORM);
}

// Sums that are -0 before the last step: the result is +0, whichever chunk gave the -0.
static void check_negative_zero(void) {
    for (uint32_t k = 1; k <= 513; k += 256) {
        float a[513], b[513], expected[20 * 20] = {0};
        for (uint32_t l = 0; l < k; l++) {
            a[l] = -0x1p-100f; // the product underflows: fma rounds it to -0
            b[l] = l % REE_CHUNK == 0 ? 0x1p-100f : 0.0f;
        }
        struct ree_matmul_params p = {.dtype = REE_F32,
                                      .a_dtype = REE_F32,
                                      .b_dtype = REE_F32,
                                      .m = 20,
                                      .n = 20,
                                      .k = k,
                                      .n_batch = 1};
        p.a_stride_k = p.b_stride_k = 1;
        union ree_params params;
        memset(&params, 0, sizeof params);
        for (uint32_t m = 1; m <= 20; m += 19) {
            p.m = m;
            params.matmul = p;
            const char *bad = run_products(REE_REPOP_MATMUL, &params, (void *[]){a, b}, 2, expected,
                                           sizeof(float) * m * 20, &n_runs);
            CHECK_MSG(!bad, "-0, k = %u: %s", k, bad);
        }
    }
}

// The same with bfloat16 weights packed as panels. With 70 columns, the last panel is partial for
// every panel width, and the last chunk has one term.
static void check_negative_zero_narrow(void) {
    enum { N = 70, K = 513 };
    static float a[K], expected[N];
    static uint16_t b[K * N]; // bfloat16, (K, N)
    for (uint32_t l = 0; l < K; l++) {
        a[l] = -0x1p-100f;
        for (uint32_t j = 0; j < N; j++)
            b[l * N + j] = l % REE_CHUNK == 0 ? 0x0D80 : 0; // 2^-100
    }
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.matmul = (struct ree_matmul_params){.dtype = REE_F32,
                                               .a_dtype = REE_F32,
                                               .b_dtype = REE_BF16,
                                               .m = 1,
                                               .n = N,
                                               .k = K,
                                               .a_stride_m = K,
                                               .a_stride_k = 1,
                                               .b_stride_k = N,
                                               .b_stride_n = 1,
                                               .n_batch = 1};
    const char *bad = run_products(REE_REPOP_MATMUL, &params, (void *[]){a, b}, 2, expected,
                                   sizeof expected, &n_runs);
    CHECK_MSG(!bad, "-0, bfloat16: %s", bad);
}

// Epilogues receive the finished sum and may change the element size.
static void check_epilogues(void) {
    struct random_source random = {5};
    static const uint32_t sizes[][3] = {{1, 70, 300}, {70, 1, 20},    {3, 33, 16},   {17, 40, 513},
                                        {64, 64, 9},  {200, 600, 30}, {30, 1100, 4}, {20, 12, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        uint32_t a_size = m * k + 1, b_size = k * n + 1;
        float *a = malloc(a_size * sizeof *a), *b = malloc(b_size * sizeof *b);
        float *bias = malloc(n * sizeof *bias), *sums = malloc(sizeof *sums * m * n);
        void *expected = malloc((size_t)m * n * 8);
        REQUIRE(a && b && bias && sums && expected);
        random_fill(&random, RANDOM_UNIFORM, a, a_size);
        random_fill(&random, RANDOM_UNIFORM, b, b_size);
        random_fill(&random, RANDOM_UNIFORM, bias, n);
        union ree_params params;
        memset(&params, 0, sizeof params);
        struct ree_matmul_params *p = &params.matmul;
        *p = dense_products(m, n, k);
        reference_matmul_f32(p, a, b, sums);
        p->has_epilogue = 1;
        for (int kind = 0; kind < 3; kind++) {
            // acc + bias, acc < bias as bool, and trunc(acc) as int64.
            struct ree_expr *expr = &p->epilogue;
            *expr = (struct ree_expr){.rank = 2, .dims = {m, n}, .n_elements = m * n};
            expr->n_operands = 1;
            expr->operands[0] = (struct ree_expr_operand){REE_EXPR_TENSOR, REE_F32, 0, {0, 1, 0}};
            expr->n_instrs = 1;
            expr->instrs[0] = (struct ree_expr_instr){kind == 0   ? REE_MAP_add_f32
                                                      : kind == 1 ? REE_MAP_lt_f32
                                                                  : REE_MAP_f32_to_i64,
                                                      {0, 1, 0},
                                                      {0, 0}};
            expr->out_dtype = kind == 0 ? REE_F32 : kind == 1 ? REE_BOOL : REE_I64;
            for (uint32_t e = 0; e < m * n; e++) {
                if (kind == 0) ((float *)expected)[e] = sums[e] + bias[e % n];
                if (kind == 1) ((uint8_t *)expected)[e] = sums[e] < bias[e % n];
                if (kind == 2) ((int64_t *)expected)[e] = (int64_t)sums[e];
            }
            const char *bad =
                run_products(REE_REPOP_MATMUL, &params, (void *[]){a, b, bias}, 3, expected,
                             ree_dtype_size((enum ree_dtype)expr->out_dtype) * m * n, &n_runs);
            CHECK_MSG(!bad, "epilogue %d, %u x %u x %u: %s", kind, m, n, k, bad);
        }
        free(a);
        free(b);
        free(bias);
        free(sums);
        free(expected);
    }
}

static void check_integers(void) {
    struct random_source random = {6};
    for (int i = 0; i < 60; i++) {
        bool wide = i % 2;
        uint32_t m = 1 + random_below(&random, 20), n = 1 + random_below(&random, 40);
        uint32_t k = random_below(&random, 30);
        union {
            uint64_t wide[20 * 30];
            uint32_t words[2 * 20 * 30];
        } a;
        union {
            uint64_t wide[30 * 40];
            uint32_t words[2 * 30 * 40];
        } b;
        union {
            uint64_t wide[20 * 40];
            uint32_t words[2 * 20 * 40];
        } expected;
        union ree_params params;
        memset(&params, 0, sizeof params);
        params.matmul = (struct ree_matmul_params){
            .dtype = wide ? REE_I64 : REE_I32,
            .a_dtype = wide ? REE_I64 : REE_I32,
            .b_dtype = wide ? REE_I64 : REE_I32,
            .m = m,
            .n = n,
            .k = k,
            .a_stride_m = (int32_t)k,
            .a_stride_k = 1,
            .b_stride_k = i % 3 ? (int32_t)n : 1,
            .b_stride_n = i % 3 ? 1 : (int32_t)k,
            .n_batch = 1,
        };
        for (size_t e = 0; e < sizeof a / 4; e++)
            a.words[e] = random_u32(&random);
        for (size_t e = 0; e < sizeof b / 4; e++)
            b.words[e] = random_u32(&random);
        for (uint32_t r = 0; r < m; r++)
            for (uint32_t c = 0; c < n; c++) {
                uint64_t sum = 0;
                for (uint32_t l = 0; l < k; l++) {
                    uint32_t at_a = r * k + l, at_b = i % 3 ? l * n + c : c * k + l;
                    sum += wide ? a.wide[at_a] * b.wide[at_b]
                                : (uint64_t)a.words[at_a] * b.words[at_b];
                }
                if (wide)
                    expected.wide[r * n + c] = sum;
                else
                    expected.words[r * n + c] = (uint32_t)sum;
            }
        const char *bad = run_products(REE_REPOP_MATMUL, &params, (void *[]){&a, &b}, 2, &expected,
                                       (size_t)(wide ? 8 : 4) * m * n, &n_runs);
        CHECK_MSG(!bad, "%s %u x %u x %u: %s", wide ? "int64" : "int32", m, n, k, bad);
    }
}

// Optional argument: divisor of the number and size of some cases, for an emulated processor.
int main(int argc, char **argv) {
    int divisor = argc > 1 ? atoi(argv[1]) : TEST_SANITIZED ? 4 : 1;
    check_empty();
    check_negative_zero();
    check_negative_zero_narrow();
    check_integers();
    check_epilogues();
    check_tile_edges();
    check_random_sizes(700 / divisor);
    check_large((uint32_t)divisor);
    printf("%ld runs\n", n_runs);
    return test_finish();
}
