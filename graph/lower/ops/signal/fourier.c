// The discrete Fourier transform as products with tables. A length up to DIRECT is one product.
// Other lengths are split into two factors, each transformed separately, with a rotation of every
// element in between (Cooley and Tukey 1965). A prime length becomes a convolution, computed with
// transforms of a power of two (Bluestein 1970). NUMERICS.md has the steps.
#include "graph/lower/ops/signal/fourier.h"

#include "graph/lower/ops/signal/real.h"
#include "graph/lower/ops/spatial/spatial.h"

#include <string.h>

#define DIRECT 256

// Makes the n factors of the transform, as pairs of real and imaginary part: for m = 0 ... n-1 and
// t = 2 pi m / n, factor m is cos t - i sin t, or cos t + i sin t with `inverse`. NULL when memory
// is exhausted.
static double *unit_roots(struct ree_lower *lower, int64_t n, bool inverse) {
    double *table = ree_arena_alloc_array(lower->arena, (size_t)n, 2 * sizeof *table);
    for (int64_t m = 0; table && m < n; m++) {
        double s;
        ree_real_turn(m, n, &table[2 * m], &s);
        table[2 * m + 1] = inverse ? s : -s;
    }
    return table;
}

// Makes a tensor of the signal's type from a table: unchanged, or with each number rounded to
// binary32.
static enum ree_status literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                               const int64_t *dims, const double *table, struct ree_view **out) {
    if (dtype == REE_F64) return ree_lower_literal(lower, dtype, rank, dims, table, out);
    int64_t count;
    float *rounded = NULL;
    if (ree_count_elements(rank, dims, &count))
        rounded = ree_arena_alloc_array(lower->arena, (size_t)count, sizeof *rounded);
    if (!rounded) return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < count; i++)
        rounded[i] = (float)table[i];
    return ree_lower_literal(lower, dtype, rank, dims, rounded, out);
}

// Multiplies x (..., 1 or 2) by t (..., 2), complex, broadcast. For a real x, both parts are plain
// products; otherwise
//
//     re = fma(xr, tr, xi * -ti)    im = fma(xr, ti, xi * tr)
static enum ree_status multiply(struct ree_lower *lower, struct ree_view *x, struct ree_view *t,
                                struct ree_view **out) {
    uint32_t last = x->rank - 1, rank;
    struct ree_view *re, *im, *turned, *both[2] = {x, t};
    int64_t dims[REE_MAX_RANK], strides[REE_MAX_RANK] = {0};
    struct ree_expr_builder b;
    REE_TRY(ree_lower_broadcast_dims(lower, 2, both, &rank, dims));
    ree_expr_init(&b, lower, rank, dims);
    REE_TRY(ree_lower_slice(lower, x, last, 0, 1, 1, &re));
    if (x->dims[last] == 1) {
        int value =
            ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, re), ree_expr_tensor(&b, t));
        return ree_lower_map(&b, value, REE_F32, out);
    }
    REE_TRY(ree_lower_slice(lower, x, last, 1, 1, 1, &im));
    REE_TRY(ree_lower_slice(lower, t, t->rank - 1, 1, -1, 2, &turned));
    strides[last] = 1;
    int part = ree_expr_iota(&b, REE_I32, 0, strides), other = ree_expr_tensor(&b, turned);
    int negative = ree_expr_op1(&b, REE_MAP_neg_f32, other);
    other = ree_expr_select(&b, x->dtype, part, other, negative);
    other = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, im), other);
    int value =
        ree_expr_op3(&b, REE_MAP_fma_f32, ree_expr_tensor(&b, re), ree_expr_tensor(&b, t), other);
    return ree_lower_map(&b, value, REE_F32, out);
}

// Cuts x (rows, samples, parts) to n samples, or pads it with zeros.
static enum ree_status fit(struct ree_lower *lower, struct ree_view *x, int64_t n,
                           struct ree_view **out) {
    int64_t none[REE_MAX_RANK] = {0}, after[REE_MAX_RANK] = {0};
    if (x->dims[1] >= n) return ree_lower_slice(lower, x, 1, 0, 1, n, out);
    after[1] = n - x->dims[1];
    return ree_spatial_border(lower, x, none, after, out);
}

// Transforms with one product, whose terms are numbered by (sample, part). Zero samples after the
// end are omitted, which does not change any sum.
static enum ree_status direct(struct ree_lower *lower, struct ree_view *x, int64_t n, bool inverse,
                              int64_t n_out, struct ree_view **out) {
    int64_t rows = x->dims[0], parts = x->dims[2];
    int64_t samples = x->dims[1] < n ? x->dims[1] : n, k = samples * parts;
    const double *roots = unit_roots(lower, n, inverse);
    double *table = ree_arena_alloc_array(lower->arena, (size_t)(k * n_out), 2 * sizeof *table);
    if (!roots || !table) return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < samples; i++)
        for (int64_t j = 0; j < n_out; j++) {
            const double *factor = roots + 2 * (i * j % n);
            double *of_real = table + (i * parts * n_out + j) * 2;
            of_real[0] = factor[0];
            of_real[1] = factor[1];
            if (parts == 1) continue;
            double *of_imaginary = of_real + 2 * n_out;
            of_imaginary[0] = -factor[1];
            of_imaginary[1] = factor[0];
        }
    struct ree_view *factors;
    REE_TRY(literal(lower, x->dtype, 2, (int64_t[]){k, 2 * n_out}, table, &factors));
    REE_TRY(ree_lower_slice(lower, x, 1, 0, 1, samples, &x));
    REE_TRY(ree_lower_reshape(lower, x, 2, (int64_t[]){rows, k}, &x));
    REE_TRY(ree_lower_matmul(lower, x, factors, out));
    return ree_lower_reshape(lower, *out, 3, (int64_t[]){rows, n_out, 2}, out);
}

// Transforms n = n1 * n2 numbers, with input index n2 * a + b and output index c + n1 * d:
// transforms over a for each b, then multiplies each (b, c) by factor b * c of `turns`, then
// transforms over b for each c.
static enum ree_status split(struct ree_lower *lower, struct ree_view *x, int64_t n, int64_t n1,
                             bool inverse, struct ree_view **out) {
    int64_t rows = x->dims[0], parts = x->dims[2], n2 = n / n1;
    const double *roots = unit_roots(lower, n, inverse);
    double *table = ree_arena_alloc_array(lower->arena, (size_t)n, 2 * sizeof *table);
    if (!roots || !table) return ree_lower_no_memory(lower);
    for (int64_t c = 0; c < n1; c++)
        for (int64_t b = 0; b < n2; b++)
            memcpy(table + (c * n2 + b) * 2, roots + 2 * (b * c % n), 2 * sizeof *table);
    struct ree_view *factors, *t;
    uint32_t swap[4] = {0, 2, 1, 3};
    REE_TRY(literal(lower, x->dtype, 3, (int64_t[]){n1, n2, 2}, table, &factors));
    REE_TRY(fit(lower, x, n, &t));
    REE_TRY(ree_lower_reshape(lower, t, 4, (int64_t[]){rows, n1, n2, parts}, &t));
    REE_TRY(ree_lower_transpose(lower, t, swap, &t));
    REE_TRY(ree_lower_reshape(lower, t, 3, (int64_t[]){rows * n2, n1, parts}, &t));
    REE_TRY(ree_fourier(lower, t, n1, inverse, n1, &t));
    REE_TRY(ree_lower_reshape(lower, t, 4, (int64_t[]){rows, n2, n1, 2}, &t));
    REE_TRY(ree_lower_transpose(lower, t, swap, &t));
    REE_TRY(multiply(lower, t, factors, &t));
    REE_TRY(ree_lower_reshape(lower, t, 3, (int64_t[]){rows * n1, n2, 2}, &t));
    REE_TRY(ree_fourier(lower, t, n2, inverse, n2, &t));
    REE_TRY(ree_lower_reshape(lower, t, 4, (int64_t[]){rows, n1, n2, 2}, &t));
    REE_TRY(ree_lower_transpose(lower, t, swap, &t));
    return ree_lower_reshape(lower, t, 3, (int64_t[]){rows, n, 2}, out);
}

// Transforms any length n. c(j) is the chirp, factor j^2 of `turns` for length 2 n. Result k is
//
//     c(k) * (the sum over j of (x(j) * c(j)) * conj(c(k - j)))
//
// The sum is a convolution, computed with the cyclic length m >= 2n - 1.
static enum ree_status convolve(struct ree_lower *lower, struct ree_view *x, int64_t n,
                                bool inverse, struct ree_view **out) {
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    const double *roots = unit_roots(lower, 2 * n, inverse);
    double *chirp = ree_arena_alloc_array(lower->arena, (size_t)n, 2 * sizeof *chirp);
    double *filter = ree_arena_alloc_array(lower->arena, (size_t)m, 2 * sizeof *filter);
    if (!roots || !chirp || !filter) return ree_lower_no_memory(lower);
    for (int64_t j = 0; j < n; j++) {
        const double *factor = roots + 2 * (j * j % (2 * n));
        memcpy(chirp + 2 * j, factor, 2 * sizeof *chirp);
        for (int end = 0; end < 2; end++) {
            int64_t at = end ? (m - j) % m : j;
            filter[2 * at] = factor[0];
            filter[2 * at + 1] = -factor[1];
        }
    }
    struct ree_view *chirps, *filters, *t;
    REE_TRY(literal(lower, x->dtype, 2, (int64_t[]){n, 2}, chirp, &chirps));
    REE_TRY(literal(lower, x->dtype, 3, (int64_t[]){1, m, 2}, filter, &filters));
    REE_TRY(ree_fourier(lower, filters, m, false, m, &filters));
    REE_TRY(fit(lower, x, n, &t));
    REE_TRY(multiply(lower, t, chirps, &t));
    REE_TRY(ree_fourier(lower, t, m, false, m, &t));
    REE_TRY(multiply(lower, t, filters, &t));
    REE_TRY(ree_fourier(lower, t, m, true, n, &t));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, t->rank, t->dims);
    int value = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, t),
                             ree_expr_f32(&b, 1 / (float)m)); // exact: m is a power of two
    REE_TRY(ree_lower_map(&b, value, REE_F32, &t));
    return multiply(lower, t, chirps, out);
}

// Returns the largest divisor of n whose square is at most n.
static int64_t lower_factor(int64_t n) {
    int64_t factor = 1;
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0) factor = d;
    return factor;
}

enum ree_status ree_fourier(struct ree_lower *lower, struct ree_view *x, int64_t n, bool inverse,
                            int64_t n_out, struct ree_view **out) {
    if (n <= DIRECT) return direct(lower, x, n, inverse, n_out, out);
    int64_t n1 = lower_factor(n);
    if (n1 > 1)
        REE_TRY(split(lower, x, n, n1, inverse, out));
    else
        REE_TRY(convolve(lower, x, n, inverse, out));
    return ree_lower_slice(lower, *out, 1, 0, 1, n_out, out);
}
