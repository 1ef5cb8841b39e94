// Sums of products of bytes that exceed 32 bits: the results are the exact sums mod 2^32, on every
// instruction set and for every layout.
#include "reference_products.h"
#include "run_products.h"
#include "test.h"

#include <string.h>

static long n_runs;

// Returns the lowest or highest number of the type; *byte is its encoding.
static int64_t extreme(bool is_signed, bool high, uint8_t *byte) {
    *byte = is_signed ? (high ? 0x7F : 0x80) : (high ? 0xFF : 0);
    return is_signed ? (int8_t)*byte : *byte;
}

enum fill { ALL_HIGH, ALL_LOW, RANDOM_ENDS };

static void fill(struct random_source *random, bool is_signed, enum fill kind, size_t n,
                 uint8_t *bytes, int64_t *values) {
    for (size_t i = 0; i < n; i++) {
        bool high = kind == RANDOM_ENDS ? random_below(random, 4) > 0 : kind == ALL_HIGH;
        values[i] = extreme(is_signed, high, &bytes[i]);
    }
}

// Strides of a row-major or column-major matrix.
static void lay_out(bool columns, uint32_t outer, uint32_t inner, int32_t *stride_outer,
                    int32_t *stride_inner) {
    *stride_outer = columns ? 1 : (int32_t)inner;
    *stride_inner = columns ? (int32_t)outer : 1;
}

// Checks one product. Returns the number of exact sums that do not fit into int32.
static uint32_t check_product(struct random_source *random, uint32_t m, uint32_t n, uint32_t k,
                              uint32_t types, enum fill kind, uint32_t layout) {
    bool a_signed = types & 1, b_signed = types & 2;
    size_t na = (size_t)m * k, nb = (size_t)k * n;
    uint8_t *a = malloc(na), *b = malloc(nb);
    int64_t *va = malloc(na * sizeof *va), *vb = malloc(nb * sizeof *vb);
    uint32_t *expected = malloc((size_t)m * n * sizeof *expected), n_beyond = 0;
    REQUIRE(a && b && va && vb && expected);
    fill(random, a_signed, kind, na, a, va);
    fill(random, b_signed, kind, nb, b, vb);

    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_matmul_params *p = &params.matmul;
    p->dtype = REE_I32;
    p->a_dtype = a_signed ? REE_I8 : REE_U8;
    p->b_dtype = b_signed ? REE_I8 : REE_U8;
    p->m = m;
    p->n = n;
    p->k = k;
    p->n_batch = 1;
    lay_out(layout & 1, m, k, &p->a_stride_m, &p->a_stride_k);
    lay_out(layout & 2, k, n, &p->b_stride_k, &p->b_stride_n);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (uint32_t l = 0; l < k; l++)
                sum += va[(size_t)i * (size_t)p->a_stride_m + (size_t)l * (size_t)p->a_stride_k] *
                       vb[(size_t)l * (size_t)p->b_stride_k + (size_t)j * (size_t)p->b_stride_n];
            n_beyond += sum > INT32_MAX || sum < INT32_MIN;
            expected[i * n + j] = (uint32_t)sum;
        }
    void *operands[] = {a, b};
    const char *bad = run_products(REE_REPOP_MATMUL, &params, operands, 2, expected,
                                   (size_t)m * n * sizeof *expected, &n_runs);
    CHECK_MSG(!bad, "%u x %u x %u, %s by %s, values %d, layout %u: %s", m, n, k,
              a_signed ? "int8" : "uint8", b_signed ? "int8" : "uint8", (int)kind, layout, bad);
    free(a);
    free(b);
    free(va);
    free(vb);
    free(expected);
    return n_beyond;
}

static void products(void) {
    static const uint32_t shapes[][3] = {
        {1, 1, 140000}, {1, 9, 131072}, {3, 2, 139999}, // vectors, and their edges
        {5, 17, 70001}, {2, 16, 65536}, {16, 4, 65537},
    };
    struct random_source random = {.state = 11};
    uint32_t n_beyond = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (uint32_t types = 0; types < 4; types++)
            for (enum fill kind = ALL_HIGH; kind <= RANDOM_ENDS; kind++)
                n_beyond += check_product(&random, shapes[s][0], shapes[s][1], shapes[s][2], types,
                                          kind, (types + (uint32_t)kind + (uint32_t)s) % 4);
    CHECK_MSG(n_beyond > 500, "only %u sums are beyond int32", n_beyond);
}

// One output position with many channels, and few channels with a large kernel.
static void convolutions(void) {
    static const uint32_t channels[2] = {140000, 9}, kernels[2] = {1, 128};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t types = 0; types < 4; types++) {
            bool x_signed = types & 1, w_signed = types & 2;
            uint32_t c = channels[s], side = kernels[s], m = 3, area = side * side;
            size_t nx = (size_t)c * area, nw = nx * m;
            uint8_t *x = malloc(nx), *w = malloc(nw), xb, wb;
            REQUIRE(x && w);
            int64_t product = extreme(x_signed, false, &xb) * extreme(w_signed, false, &wb);
            if (!x_signed || !w_signed)
                product = extreme(x_signed, true, &xb) * extreme(w_signed, w_signed ? 0 : 1, &wb);
            memset(x, xb, nx);
            memset(w, wb, nw);
            uint32_t expected[3];
            for (uint32_t i = 0; i < m; i++)
                expected[i] = (uint32_t)(product * (int64_t)nx);
            union ree_params params;
            memset(&params, 0, sizeof params);
            struct ree_conv_params *p = &params.conv;
            p->x_dtype = x_signed ? REE_I8 : REE_U8;
            p->w_dtype = w_signed ? REE_I8 : REE_U8;
            p->n = p->groups = 1;
            p->c = c;
            p->m = m;
            for (int i = 0; i < 3; i++) {
                p->in[i] = p->kernel[i] = i ? side : 1;
                p->out[i] = p->stride[i] = p->dilation[i] = 1;
            }
            void *operands[] = {x, w};
            const char *bad = run_products(REE_REPOP_CONV, &params, operands, 2, expected,
                                           sizeof expected, &n_runs);
            CHECK_MSG(!bad, "%u channels, kernel of %u, %s by %s: %s", c, side,
                      x_signed ? "int8" : "uint8", w_signed ? "int8" : "uint8", bad);
            free(x);
            free(w);
        }
}

int main(void) {
    products();
    convolutions();
    printf("%ld runs\n", n_runs);
    CHECK(n_runs > 0);
    return test_finish();
}
