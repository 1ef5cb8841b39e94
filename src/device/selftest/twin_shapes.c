// Shrinks the parameters of each RepOp to those of its twin. Every dimension gets its own length. A
// dimension of size 1 stays if an encoder would drop or merge it, or if ree_twin_size requires it.
#include "device/selftest/twin_shapes.h"

#include "base/dtype.h"
#include "device/selftest/twin_views.h"
#include "repops/dispatch.h"

#include <string.h>

struct shrinking {
    struct ree_dispatch *dispatch;
    const struct ree_twin_size *size;
    struct ree_twin_operand *operands;
    uint32_t n_operands;
};

static void add(struct shrinking *s, enum ree_hard_role role, uint32_t dtype, uint64_t n,
                uint64_t run) {
    s->operands[s->n_operands++].values =
        (struct ree_hard_values){.role = role, .dtype = dtype, .n = n, .run = run};
}
static void add_bounded(struct shrinking *s, uint32_t dtype, uint64_t n, int64_t low,
                        int64_t high) {
    add(s, REE_HARD_BOUNDED, dtype, n, 1);
    s->operands[s->n_operands - 1].values.low = low;
    s->operands[s->n_operands - 1].values.high = high;
}
// The initial contents of an output must not matter, so they are not zero.
static void add_output(struct shrinking *s, uint32_t dtype, uint64_t n) {
    add_bounded(s, dtype, n, 0, dtype == REE_BOOL ? 1 : 100);
    s->operands[s->n_operands - 1].is_written = true;
}

static uint64_t product(uint32_t rank, const uint32_t *dims) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= dims[d];
    return n;
}

static uint32_t at_most(uint32_t value, uint32_t limit) {
    return value < limit ? value : limit;
}

// Returns whether sizes of 1 that select no code become larger.
static bool grows_ones(const struct ree_twin_size *size) {
    return !size->alignment && !size->keeps_ones;
}

// Changes an expression to the new dimensions and adds its operands after the existing ones.
static void shrink_expr(struct shrinking *s, struct ree_expr *expr, const uint32_t *to) {
    for (uint32_t i = 0; i < expr->n_operands; i++) {
        struct ree_expr_operand *o = &expr->operands[i];
        bool tensor = o->kind == REE_EXPR_TENSOR;
        uint64_t n = ree_twin_view(s->size, expr->rank, expr->dims, to, o->strides,
                                   tensor ? &o->offset : NULL);
        if (tensor) add(s, REE_HARD_ANY, o->dtype, n, 1);
    }
    for (uint32_t d = 0; d < expr->rank; d++)
        expr->dims[d] = to[d];
    expr->n_elements = (uint32_t)product(expr->rank, to);
}

// Chooses the dimensions of a copy's twin. Backends copy in tiles if two dimensions have 16 or more
// elements, one of them adjacent in the source, and the last one adjacent in the result. The twin
// keeps this property.
static void shrink_copied_dims(const struct ree_twin_size *size, const struct ree_copy_params *p,
                               uint32_t *to) {
    const uint32_t last = ree_twin_long_dim(p->rank, p->dims);
    bool turned = false;
    ree_twin_dims(size, p->rank, p->dims, size->elements, to);
    if (p->n_elements == 1) memcpy(to, p->dims, p->rank * sizeof *to);
    for (uint32_t d = 0; d < last && !turned; d++)
        turned = p->src_strides[d] == 1 && p->dims[d] >= 16;
    if (p->dims[last] < 16) to[last] = p->dims[last];
    for (uint32_t d = 0; d <= last && turned; d++)
        if (p->dims[d] >= 16 && (d == last || p->src_strides[d] == 1))
            to[d] = ree_twin_length(size, 64, p->dims[d], 16);
}

static bool shrink_copy(struct shrinking *s) {
    struct ree_copy_params *p = &s->dispatch->params.copy;
    static const uint32_t dtypes[] = {[1] = REE_U8, [2] = REE_U16, [4] = REE_U32, [8] = REE_U64};
    uint32_t to[REE_MAX_RANK];
    int32_t *sets[] = {p->src_strides, p->dst_strides};
    if (p->n_elements == 0) return false;
    if (s->size->alignment) {
        p->rank = ree_twin_merge_dims(p->rank, p->dims, 2, sets);
        shrink_copied_dims(s->size, p, to);
    } else {
        ree_twin_dims(s->size, p->rank, p->dims, s->size->elements, to);
    }
    uint64_t n_src = ree_twin_view(s->size, p->rank, p->dims, to, p->src_strides, &p->src_offset);
    // Keep the position of the first byte within a word, which matters to backends that write
    // words.
    int32_t within_word =
        p->elem_size < 4 && !s->size->alignment ? p->dst_offset % (int32_t)(4 / p->elem_size) : 0;
    uint64_t n_dst = ree_twin_view(s->size, p->rank, p->dims, to, p->dst_strides, &p->dst_offset);
    p->dst_offset += within_word;
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = to[d];
    p->n_elements = (uint32_t)product(p->rank, to);
    add(s, REE_HARD_ANY, dtypes[p->elem_size], n_src, 1);
    add_output(s, dtypes[p->elem_size], n_dst + (uint32_t)within_word);
    return true;
}

static bool shrink_map(struct shrinking *s) {
    struct ree_expr *expr = &s->dispatch->params.map.expr;
    uint32_t to[REE_MAX_RANK];
    if (expr->n_elements == 0) return false;
    if (s->size->alignment) ree_twin_merge_expr(expr);
    // One element, merged: its operands' strides are 0, so more elements would all be equal.
    if (s->size->alignment && expr->n_elements == 1)
        to[0] = 1;
    else
        ree_twin_dims(s->size, expr->rank, expr->dims, s->size->elements, to);
    shrink_expr(s, expr, to);
    add_output(s, expr->out_dtype, expr->n_elements);
    return true;
}

static void merge_reduce(struct ree_reduce_params *p) {
    int32_t *outer[] = {p->outer_strides}, *reduce[] = {p->reduce_strides};
    if (p->n_outer > 1) p->outer_rank = ree_twin_merge_dims(p->outer_rank, p->outer_dims, 1, outer);
    if (p->n_reduce > 1)
        p->reduce_rank = ree_twin_merge_dims(p->reduce_rank, p->reduce_dims, 1, reduce);
}

// Returns the number of terms per output. The number of threads that share them depends on it.
static uint32_t like_reduction(const struct ree_twin_size *size, uint32_t like) {
    static const uint32_t classes[] = {8192, 2048, 1024};
    if (size->alignment == 0) return size->length;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (like >= classes[i])
            return ree_twin_length(size, classes[i] + 64, like, size->alignment);
    return ree_twin_sum_length(size, like);
}

static bool shrink_reduce(struct shrinking *s) {
    struct ree_reduce_params *p = &s->dispatch->params.reduce;
    if (s->size->alignment) merge_reduce(p);
    uint32_t from[REE_TWIN_MAX_VIEW], to[REE_TWIN_MAX_VIEW], rank = p->outer_rank + p->reduce_rank;
    int32_t strides[REE_TWIN_MAX_VIEW];
    if (p->n_outer == 0) return false;
    for (uint32_t d = 0; d < rank; d++) {
        bool outer = d < p->outer_rank;
        from[d] = outer ? p->outer_dims[d] : p->reduce_dims[d - p->outer_rank];
        strides[d] = outer ? p->outer_strides[d] : p->reduce_strides[d - p->outer_rank];
    }
    // Keep the reduced dimensions if there are few terms, or if there are more than two such
    // dimensions: with other sizes, the number of terms could be in another class of
    // like_reduction.
    const bool few =
        s->size->alignment && (p->n_reduce < 33 || (p->reduce_rank > 2 && p->n_reduce < 8192));
    if (p->outer_rank)
        ree_twin_dims(s->size, p->outer_rank, from,
                      s->size->alignment && p->n_outer >= 32 ? 48 : 12, to);
    if (s->size->alignment && p->n_outer < 32) memcpy(to, from, p->outer_rank * sizeof *to);
    if (p->n_reduce == 0 || few)
        memcpy(to + p->outer_rank, p->reduce_dims, p->reduce_rank * sizeof *to);
    else if (p->reduce_rank)
        ree_twin_dims(s->size, p->reduce_rank, from + p->outer_rank,
                      like_reduction(s->size, p->n_reduce), to + p->outer_rank);
    uint64_t n = p->n_reduce ? ree_twin_view(s->size, rank, from, to, strides, &p->offset) : 0;
    for (uint32_t d = 0; d < rank; d++) {
        bool outer = d < p->outer_rank;
        (outer ? p->outer_dims : p->reduce_dims)[outer ? d : d - p->outer_rank] = to[d];
        (outer ? p->outer_strides : p->reduce_strides)[outer ? d : d - p->outer_rank] = strides[d];
    }
    p->n_outer = (uint32_t)product(p->outer_rank, p->outer_dims);
    p->n_reduce = (uint32_t)product(p->reduce_rank, p->reduce_dims);
    bool index = p->kind == REE_REDUCE_ARGMAX || p->kind == REE_REDUCE_ARGMIN;
    add(s, p->kind == REE_REDUCE_PROD ? REE_HARD_NEAR_ONE : REE_HARD_ANY, p->dtype, n, p->n_reduce);
    add_output(s, index ? REE_I64 : p->dtype, p->n_outer);
    return true;
}

// Returns a number of rows or columns. Tiles are 32, 64 or 128 wide. The result is less than one
// tile, some whole tiles, or some tiles and a part.
static uint32_t tiled(const struct ree_twin_size *size, uint32_t base, uint32_t n) {
    if (size->alignment && !size->small) base = n < 64 ? 32 : n % 128 == 0 ? 256 : 144;
    return ree_twin_length(size, base, n, 16);
}
static uint32_t shrink_rows(const struct shrinking *s, uint32_t rows) {
    return rows < s->size->few_rows ? rows : tiled(s->size, s->size->rows, rows);
}
static uint32_t shrink_columns(const struct shrinking *s, uint32_t columns) {
    if (grows_ones(s->size)) return s->size->columns;
    return columns <= s->size->columns ? columns : tiled(s->size, s->size->columns, columns);
}

// Returns the length of a sum over n terms.
static uint32_t sum_length(const struct shrinking *s, uint64_t n) {
    if (s->size->alignment) return n < 64 ? (uint32_t)n : ree_twin_sum_length(s->size, (uint32_t)n);
    return s->size->one_chunk && n <= REE_CHUNK ? REE_CHUNK - 6 : s->size->length;
}

static uint32_t rounded_up(uint32_t n, uint32_t unit) {
    return (n + unit - 1) / unit * unit;
}

static bool shrink_matmul(struct shrinking *s) {
    struct ree_matmul_params *p = &s->dispatch->params.matmul;
    uint32_t rank = p->batch_rank, from[REE_MAX_RANK], to[REE_MAX_RANK];
    if (p->m == 0 || p->n == 0 || p->n_batch == 0) return false;
    for (uint32_t d = 0; d < rank; d++) {
        from[d] = p->batch_dims[d];
        to[d] = from[d] > 1 ? 2 : 1;
        if (s->size->alignment) to[d] = ree_twin_short_length(s->size, from[d]);
    }
    uint32_t m = shrink_rows(s, p->m), n = shrink_columns(s, p->n);
    uint32_t k = at_most(p->k, s->size->length);
    if (p->k > 1 || (p->k == 1 && grows_ones(s->size))) k = sum_length(s, p->k);
    if (p->b_block && p->k > 0 && s->size->alignment) { // keeps the distance from whole blocks
        uint32_t unit = p->a_block > p->b_block ? p->a_block : p->b_block;
        const uint32_t all = rounded_up(p->k, unit), four = 4 * unit;
        k = rounded_up(ree_twin_sum_length(s->size, all), all % four == 0 ? four : unit) -
            (all - p->k);
    }
    int32_t a[REE_MAX_RANK], b[REE_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        a[d] = p->a_batch_strides[d];
        b[d] = p->b_batch_strides[d];
    }
    a[rank] = p->a_stride_m, a[rank + 1] = p->a_stride_k;
    b[rank] = p->b_stride_k, b[rank + 1] = p->b_stride_n;
    const uint32_t ends[3] = {p->m, p->k, p->n}, new_ends[3] = {m, k, n};
    from[rank] = ends[0], from[rank + 1] = ends[1];
    to[rank] = new_ends[0], to[rank + 1] = new_ends[1];
    uint64_t n_a = ree_twin_view(s->size, rank + 2, from, to, a, &p->a_offset), n_b = 0;
    from[rank] = ends[1], from[rank + 1] = ends[2];
    to[rank] = new_ends[1], to[rank + 1] = new_ends[2];
    if (!p->b_block) n_b = ree_twin_view(s->size, rank + 2, from, to, b, &p->b_offset);
    add(s, REE_HARD_ANY, p->a_dtype, k == 0 ? 0 : n_a, k);
    if (p->b_block) {
        uint64_t n_blocks = (uint64_t)n * ((k + p->b_block - 1) / p->b_block);
        add(s, REE_HARD_ANY, REE_U8, n_blocks * p->b_block * p->b_bits / 8, 1);
        add(s, REE_HARD_SCALE, REE_F32, n_blocks, 1);
        if (p->has_zero_points) add_bounded(s, REE_U8, n_blocks, 0, (INT64_C(1) << p->b_bits) - 1);
        if (p->a_block) { // one style per row, so that all scales of a row can be subnormal
            const uint32_t n_a_blocks = (k + p->a_block - 1) / p->a_block;
            add(s, REE_HARD_ANY, REE_F32, (uint64_t)m * n_a_blocks, n_a_blocks);
        }
    } else {
        add(s, REE_HARD_FINITE, p->b_dtype, k == 0 ? 0 : n_b, k);
    }
    from[rank] = ends[0], to[rank] = new_ends[0];
    from[rank + 1] = ends[2], to[rank + 1] = new_ends[2];
    if (p->has_epilogue) shrink_expr(s, &p->epilogue, to);
    for (uint32_t d = 0; d < rank; d++) {
        p->batch_dims[d] = to[d];
        p->a_batch_strides[d] = a[d];
        p->b_batch_strides[d] = p->b_block ? 0 : b[d];
    }
    p->m = m, p->n = n, p->k = k;
    p->a_stride_m = a[rank], p->a_stride_k = a[rank + 1];
    p->b_stride_k = p->b_block ? 0 : b[rank], p->b_stride_n = p->b_block ? 0 : b[rank + 1];
    p->n_batch = (uint32_t)product(rank, p->batch_dims);
    add_output(s, p->has_epilogue ? p->epilogue.out_dtype : p->dtype, (uint64_t)p->n_batch * m * n);
    return true;
}

// Chooses the dimensions of a plane's outputs. The outputs of a plane are the columns of the
// product.
static void conv_outputs(const struct shrinking *s, const uint32_t from[3], uint32_t to[3]) {
    static const uint32_t free[3] = {2, 5, 5};
    // By dimension, and by the remainder of the dispatch's length modulo 4: a length with the same
    // greatest common divisor with 4. It decides whether kernels load 16 bytes at once.
    static const uint32_t aligned[3][4] = {{4, 3, 2, 3}, {4, 5, 6, 5}, {4, 5, 6, 5}};
    for (uint32_t d = 0; d < 3; d++)
        to[d] = from[d] == 1 ? 1 : s->size->alignment ? aligned[d][from[d] % 4] : free[d];
    if (s->size->alignment) {
        if (from[2] > 1) to[2] = ree_twin_length(s->size, s->size->small ? 16 : 32, from[2], 4);
    } else if (grows_ones(s->size)) { // more than one tile
        uint32_t d = ree_twin_long_dim(3, from);
        to[d] = s->size->columns / (to[0] * to[1] * to[2] / to[d]) + 1;
    }
}

// A twin's sum is long because it has many channels, so its kernel can be small. If it must have
// one channel, the kernel stays long.
static void conv_kernel(const struct shrinking *s, struct ree_conv_params *p, uint32_t n_terms) {
    uint32_t longest = 0, others = 1;
    for (uint32_t d = 1; d < 3; d++)
        if (p->kernel[d] > p->kernel[longest]) longest = d;
    for (uint32_t d = 0; d < 3; d++) {
        p->kernel[d] = at_most(p->kernel[d], 3);
        if (d != longest) others *= p->kernel[d];
    }
    if (s->size->alignment && p->c == 1 && n_terms > others * p->kernel[longest])
        p->kernel[longest] = (n_terms + others - 1) / others;
}

static bool shrink_conv(struct shrinking *s) {
    struct ree_conv_params *p = &s->dispatch->params.conv;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2], n_kernel = 1, n_in = 1, out[3];
    if (p->n == 0 || p->groups == 0 || p->m == 0 || n_out == 0 || p->c == 0) return false;
    uint32_t n_terms = sum_length(s, (uint64_t)p->c * p->kernel[0] * p->kernel[1] * p->kernel[2]);
    p->n = at_most(p->n, 2);
    p->groups = at_most(p->groups, 2);
    p->m = shrink_rows(s, p->m);
    conv_outputs(s, p->out, out);
    conv_kernel(s, p, n_terms);
    for (uint32_t d = 0; d < 3; d++) {
        bool pointwise = p->kernel[d] == 1 && p->pad[d] == 0;
        bool inside = (p->out[d] - 1) * p->stride[d] < p->in[d];
        p->stride[d] = at_most(p->stride[d], 2);
        p->dilation[d] = at_most(p->dilation[d], 2);
        if (p->pad[d] > 1) p->pad[d] = 1;
        p->out[d] = out[d];
        uint32_t reach = p->kernel[d] * p->dilation[d];
        if (p->transposed)
            p->in[d] = p->out[d] / p->stride[d] + 1;
        else if (pointwise && !inside && p->out[d] > 1)
            p->in[d] = (p->out[d] - 1) * p->stride[d];
        else if (pointwise && inside)
            p->in[d] = (p->out[d] - 1) * p->stride[d] + 1;
        else
            p->in[d] = (p->out[d] - 1) * p->stride[d] + reach;
        n_kernel *= p->kernel[d];
        n_in *= p->in[d];
    }
    if (p->c > 1 || grows_ones(s->size)) p->c = n_terms / n_kernel + (n_terms > REE_CHUNK);
    if (p->c == 0) p->c = 2;
    uint64_t n_x = (uint64_t)p->n * p->groups * p->c * n_in;
    uint64_t n_w = (uint64_t)p->groups * p->m * p->c * n_kernel;
    add(s, REE_HARD_ANY, p->x_dtype, n_x, (uint64_t)p->c * n_in);
    add(s, REE_HARD_FINITE, p->w_dtype, n_w, (uint64_t)p->c * n_kernel);
    if (p->has_pad_value) add(s, REE_HARD_ANY, p->x_dtype, 1, 1);
    const uint32_t to[5] = {p->n, p->groups * p->m, p->out[0], p->out[1], p->out[2]};
    if (p->has_epilogue) shrink_expr(s, &p->epilogue, to);
    add_output(s, p->has_epilogue ? p->epilogue.out_dtype : ree_conv_sum_dtype(p), product(5, to));
    return true;
}

static bool shrink_pool(struct shrinking *s) {
    struct ree_pool_params *p = &s->dispatch->params.pool;
    if (p->planes == 0 || p->out[0] * p->out[1] * p->out[2] == 0) return false;
    p->planes = 7;
    uint64_t n_in = 1, n_out = 1;
    for (uint32_t d = 0; d < 3; d++) {
        // 17 * 17 terms: more than a chunk
        p->kernel[d] = d == 0 ? 1 : 17;
        p->stride[d] = at_most(p->stride[d], 2);
        p->dilation[d] = at_most(p->dilation[d], 2);
        p->pad_begin[d] = p->pad_end[d] = d == 0 ? 0 : 1;
        p->out[d] = d == 0 ? 1 : 3;
        p->in[d] = (p->out[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1 -
                   (d == 0 ? 0 : 2);
        n_in *= p->in[d];
        n_out *= p->out[d];
    }
    add(s, REE_HARD_ANY, p->dtype, p->planes * n_in, n_in);
    add_output(s, p->dtype, p->planes * n_out);
    if (p->has_indices) add_output(s, REE_I64, p->planes * n_out);
    return true;
}

static uint32_t row_length(const struct shrinking *s, uint32_t n) {
    if (s->size->alignment) return ree_twin_row_length(s->size, n);
    if (grows_ones(s->size)) return s->size->long_length;
    return n >= s->size->long_from ? s->size->long_length : s->size->length;
}

static bool shrink_softmax(struct shrinking *s) {
    struct ree_softmax_params *p = &s->dispatch->params.softmax;
    if (p->outer == 0 || p->inner == 0 || p->k == 0) return false;
    // LogSoftmax hides errors in the last bits of most sums, so the twin has many rows.
    p->outer = p->inner != 1 ? 7 : s->size->alignment || p->log ? 40 : 12;
    p->inner = p->inner == 1 ? 1 : 6;
    p->k = row_length(s, p->k);
    if (p->k > 65536) p->outer = 1;
    if (p->k > 65536 && p->inner > 1) p->inner = 2;
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    add(s,
        p->zero_empty ? REE_HARD_MASKED
        : p->log      ? REE_HARD_PEAKED
                      : REE_HARD_ANY,
        REE_F32, n, p->k);
    s->operands[s->n_operands - 1].values.high = p->inner;
    add_output(s, REE_F32, n);
    return true;
}

static bool shrink_norm(struct shrinking *s) {
    struct ree_norm_params *p = &s->dispatch->params.norm;
    if (p->rows == 0 || p->cols == 0) return false;
    p->rows = 7;
    p->cols = row_length(s, p->cols);
    if (p->cols > 65536) p->rows = 2;
    p->scale_row_div = p->scale_row_div > 1 ? 2 : 1;
    p->scale_row_mod = p->scale_row_mod > 1 ? 3 : 1;
    p->scale_col_stride = p->scale_col_stride ? 1 : 0;
    p->scale_row_stride = p->scale_row_stride ? p->cols : 0;
    uint64_t n = (uint64_t)p->rows * p->cols, n_scale = 3 * (uint64_t)p->cols;
    add(s, REE_HARD_ANY, REE_F32, n, p->cols);
    if (p->has_scale) add(s, REE_HARD_MODERATE, REE_F32, n_scale, 1);
    if (p->has_bias) add(s, REE_HARD_FINITE, REE_F32, n_scale, 100);
    add_output(s, REE_F32, n);
    return true;
}

static uint32_t next_prime(uint64_t n) {
    uint32_t prime = n < 2 ? 2 : (uint32_t)n;
    for (uint32_t d = 2; d * d <= prime;)
        d = prime % d == 0 ? (prime++, 2) : d + 1;
    return prime;
}

// Shared by gather and scatter: shrinks the views of the data and of the indices over the
// dimensions and the components. Returns the number of data elements. *n_index: number of index
// elements. *range: exclusive bound of the indices of all components. distinct: the indices will be
// REE_HARD_DISTINCT.
static uint64_t shrink_indexed(const struct ree_twin_size *size, uint32_t rank,
                               const uint32_t *dims, const uint32_t *to, int32_t *data_strides,
                               int32_t *data_offset, int32_t *index_strides, uint32_t n_components,
                               int32_t *component_stride, uint32_t *sizes,
                               int32_t *component_strides, bool distinct, uint64_t *n_index,
                               uint32_t *range) {
    uint32_t from_all[REE_TWIN_MAX_VIEW] = {0}, to_all[REE_TWIN_MAX_VIEW] = {0};
    int32_t data[REE_TWIN_MAX_VIEW], index[REE_MAX_RANK + 1];
    for (uint32_t d = 0; d < rank; d++) {
        from_all[d] = dims[d];
        to_all[d] = to[d];
        index[d] = index_strides[d];
    }
    index[rank] = *component_stride;
    from_all[rank] = to_all[rank] = n_components;
    *n_index = ree_twin_view(size, rank + 1, from_all, to_all, index, NULL);
    for (uint32_t d = 0; d < rank; d++)
        index_strides[d] = index[d];
    *component_stride = index[rank];

    *range = 11;
    for (uint32_t j = 0; j < n_components; j++)
        if (sizes[j] < *range) *range = sizes[j] ? sizes[j] : 1;
    if (distinct) *range = next_prime(*n_index);
    for (uint32_t d = 0; d < rank + n_components; d++) {
        bool component = d >= rank;
        from_all[d] = component ? sizes[d - rank] : dims[d];
        to_all[d] = component ? *range : to[d];
        data[d] = component ? component_strides[d - rank] : data_strides[d];
    }
    uint64_t n = ree_twin_view(size, rank + n_components, from_all, to_all, data, data_offset);
    for (uint32_t d = 0; d < rank + n_components; d++) {
        bool component = d >= rank;
        if (component) sizes[d - rank] = *range;
        (component ? component_strides : data_strides)[component ? d - rank : d] = data[d];
    }
    return n;
}

// Returns false if the twin must keep a dimension of size 0, which has no valid index.
static bool has_indices(const struct shrinking *s, uint32_t n_components, const uint32_t *sizes) {
    for (uint32_t j = 0; j < n_components && s->size->alignment; j++)
        if (sizes[j] == 0) return false;
    return true;
}

static bool shrink_gather(struct shrinking *s) {
    struct ree_gather_params *p = &s->dispatch->params.gather;
    static const uint32_t dtypes[] = {[1] = REE_U8, [2] = REE_U16, [4] = REE_U32, [8] = REE_U64};
    uint32_t to[REE_MAX_RANK], range;
    uint64_t n_index;
    if (p->n_elements == 0 || !has_indices(s, p->n_components, p->component_sizes)) return false;
    if (s->size->alignment && p->n_elements > 1) {
        int32_t *sets[] = {p->data_strides, p->index_strides};
        p->rank = ree_twin_merge_dims(p->rank, p->dims, 2, sets);
    }
    ree_twin_dims(s->size, p->rank, p->dims, s->size->elements, to);
    uint64_t n = shrink_indexed(s->size, p->rank, p->dims, to, p->data_strides, &p->data_offset,
                                p->index_strides, p->n_components, &p->component_stride,
                                p->component_sizes, p->component_strides, false, &n_index, &range);
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = to[d];
    p->n_elements = (uint32_t)product(p->rank, to);
    add(s, REE_HARD_ANY, dtypes[p->elem_size], n, 1);
    add_bounded(s, p->index_dtype, n_index, -(int64_t)range, (int64_t)range - 1);
    add_output(s, dtypes[p->elem_size], p->n_elements);
    return true;
}

static bool shrink_scatter(struct shrinking *s) {
    struct ree_scatter_params *p = &s->dispatch->params.scatter;
    uint32_t to[REE_MAX_RANK], range, n_vector_dims = p->rank - p->n_step_dims;
    uint64_t n_index;
    if (p->n_vectors == 0 || p->n_steps == 0) return false;
    if (!has_indices(s, p->n_components, p->component_sizes)) return false;
    for (uint32_t d = 0; d < p->rank; d++)
        to[d] = p->dims[d] > 1 ? 3 : 1;
    // Vectors must not share a target. If only the indices keep their targets apart, no two indices
    // may be equal.
    bool distinct = false;
    for (uint32_t d = 0; d < n_vector_dims; d++)
        distinct = distinct || (p->dims[d] > 1 && p->data_strides[d] == 0);
    // Backends have different code for few and for many steps.
    uint64_t n_steps = product(p->n_step_dims, to + n_vector_dims);
    for (uint32_t d = n_vector_dims; d < p->rank; d++) {
        if (p->n_steps <= 4) to[d] = p->dims[d];
        if (p->n_steps > 4 && p->dims[d] > 1 && n_steps < 9) {
            to[d] = 12;
            n_steps *= 4;
        }
    }
    int32_t update_offset = 0;
    uint64_t n_updates =
        ree_twin_view(s->size, p->rank, p->dims, to, p->update_strides, &update_offset);
    if (update_offset != 0) return false;
    int32_t data_offset = 0;
    uint64_t n =
        shrink_indexed(s->size, p->rank, p->dims, to, p->data_strides, &data_offset,
                       p->index_strides, p->n_components, &p->component_stride, p->component_sizes,
                       p->component_strides, distinct, &n_index, &range);
    if (data_offset != 0) return false;
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = to[d];
    p->n_vectors = (uint32_t)product(n_vector_dims, to);
    p->n_steps = (uint32_t)product(p->n_step_dims, to + n_vector_dims);
    enum ree_hard_role role = p->kind == REE_SCATTER_MUL ? REE_HARD_NEAR_ONE : REE_HARD_ANY;
    add(s, role, p->dtype, n, 40);
    s->operands[0].is_written = true;
    add_bounded(s, p->index_dtype, n_index, -(int64_t)range, (int64_t)range - 1);
    if (distinct) s->operands[1].values.role = REE_HARD_DISTINCT;
    add(s, role, p->dtype, n_updates, 40);
    return true;
}

static bool shrink_topk(struct shrinking *s) {
    struct ree_topk_params *p = &s->dispatch->params.topk;
    if (p->outer == 0 || p->n == 0 || p->inner == 0 || p->k == 0) return false;
    // n decides whether the kernel selects, and with how many threads. k decides how it sorts, and
    // whether it takes all elements.
    const bool selects = s->size->alignment && p->n > 128, most = selects && p->k > 2048;
    const bool all = selects && p->k == p->n, many = selects && p->k > 64;
    const uint32_t n = p->n;
    p->inner = p->inner == 1 ? 1 : 3;
    p->n = most ? 2200 : !selects ? 70 : n > 4096 ? 4400 : n > 768 ? 1100 : 300;
    p->outer = p->n > 2000 ? 2 : 7;
    p->k = p->k == 1 && !grows_ones(s->size) ? 1
           : most                            ? 2100
           : many                            ? at_most(p->n, 1100) - 10
                                             : 20;
    if (all) p->k = p->n;
    uint64_t n_out = (uint64_t)p->outer * p->k * p->inner;
    add(s, REE_HARD_ANY, p->dtype, (uint64_t)p->outer * p->n * p->inner, p->n);
    add_output(s, p->dtype, n_out);
    add_output(s, REE_I64, n_out);
    return true;
}

static bool shrink_scan(struct shrinking *s) {
    struct ree_scan_params *p = &s->dispatch->params.scan;
    if (p->outer == 0 || p->k == 0 || p->inner == 0) return false;
    p->outer = 7;
    p->inner = p->inner == 1 ? 1 : 3;
    p->k = s->size->alignment ? ree_twin_sum_length(s->size, p->k) : s->size->length;
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    add(s, p->product ? REE_HARD_NEAR_ONE : REE_HARD_ANY, p->dtype, n, p->k);
    add_output(s, p->dtype, n);
    return true;
}

static bool shrink_resize(struct shrinking *s) {
    struct ree_resize_params *p = &s->dispatch->params.resize;
    if (p->outer == 0 || p->k_out == 0 || p->inner == 0) return false;
    p->outer = 2;
    p->inner = p->inner == 1 ? 1 : 3;
    p->k_in = 40;
    p->k_out = 7;
    if (p->taps > 0) p->taps = 300;
    uint64_t n_taps = (uint64_t)p->k_out * p->taps;
    uint64_t n_in = (uint64_t)p->outer * p->k_in * p->inner;
    add(s, REE_HARD_ANY, REE_F32, n_in, (n_in + 1) / 2);
    add_bounded(s, REE_I32, n_taps, 0, p->k_in - 1);
    s->operands[1].values.role = REE_HARD_TAPS;
    s->operands[1].values.run = p->taps;
    add(s, REE_HARD_FINITE, REE_F32, n_taps, p->taps);
    add_output(s, REE_F32, (uint64_t)p->outer * p->k_out * p->inner);
    return true;
}

// The queries of a head are the rows of a product. If the dispatch has enough rows to select the
// kernels for many rows, the twin has more rows than one thread computes.
//
// If heads share keys and have few queries, the encoder combines the queries of these heads into
// one product, provided that the queries of neighbouring heads are adjacent. Single queries are
// always adjacent. Returns the number of queries by which to interpret the strides of q: 2 if the
// dispatch has 1 and the twin has several.
static uint32_t shrink_queries(const struct shrinking *s, const struct ree_attention_params *old,
                               struct ree_attention_params *p) {
    const uint32_t group = old->n_heads / old->n_kv_heads;
    const bool adjoin =
        old->q_len == 1 || old->q_strides[1] == (int64_t)old->q_len * old->q_strides[2];
    const bool combined = group > 1 && adjoin && old->q_len <= s->size->few_queries;
    const uint32_t rows = combined ? group * old->q_len : old->q_len;
    uint32_t n_alone = s->size->rows; // queries per head if heads are not combined
    if (group > 1 && adjoin && n_alone <= s->size->few_queries) n_alone = s->size->few_queries + 1;
    p->q_len = rows < s->size->few_rows ? old->q_len : combined ? 7 : n_alone;
    p->n_heads = p->n_kv_heads * at_most(group, combined ? 3 : 2);
    if (old->q_len > 1 || p->q_len == 1 || !combined) return old->q_len;
    p->q_strides[2] = old->q_strides[1] ? old->q_strides[1] : 1;
    p->q_strides[1] = 2 * p->q_strides[2];
    return 2;
}

static bool shrink_attention(struct shrinking *s) {
    struct ree_attention_params *p = &s->dispatch->params.attention;
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return false;
    uint32_t group = p->n_heads / p->n_kv_heads, q_len = p->q_len;
    const struct ree_attention_params old = *p;
    uint32_t n_queries = q_len;
    p->batch = at_most(p->batch, 2);
    p->n_kv_heads = at_most(p->n_kv_heads, 2);
    p->n_heads = p->n_kv_heads * at_most(group, s->size->alignment ? 2 : 8);
    p->q_len = q_len <= s->size->few_queries ? q_len : s->size->few_queries + 3;
    if (grows_ones(s->size)) n_queries = shrink_queries(s, &old, p);
    if (s->size->alignment && !s->size->small && q_len >= 64) p->q_len = 98;
    if (s->size->one_chunk && p->kv_len <= REE_CHUNK)
        p->kv_len = REE_CHUNK - 6;
    else
        p->kv_len = s->size->keys ? s->size->keys : row_length(s, p->kv_len) / 2;
    if (p->head_dim != 1 || grows_ones(s->size))
        p->head_dim = s->size->one_chunk && p->head_dim <= REE_CHUNK ? 250 : 260;
    if (p->v_head_dim != 1 || grows_ones(s->size)) p->v_head_dim = s->size->columns;
    if (s->size->alignment) {
        p->kv_len = old.kv_len <= REE_CHUNK ? 200 : 520;
        if (old.head_dim > 1)
            p->head_dim = ree_twin_length(s->size, old.head_dim <= REE_CHUNK - 32 ? 64 : 320,
                                          old.head_dim, 16);
        if (old.v_head_dim > 1)
            p->v_head_dim =
                ree_twin_length(s->size, old.v_head_dim < 64 ? 16 : 64, old.v_head_dim, 16);
    }
    if (old.kv_len == 0) p->kv_len = 0;
    if (old.head_dim == 0) p->head_dim = 0;
    const uint32_t q0[4] = {old.batch, old.n_heads, n_queries, old.head_dim};
    const uint32_t q1[4] = {p->batch, p->n_heads, p->q_len, p->head_dim};
    const uint32_t page = 1u << p->page_bits, n_pages = (p->kv_len + page - 1) / page;
    uint32_t old_keys = old.kv_len, n_keys = p->kv_len;
    if (p->page_bits) {
        old_keys = old.pool_len;
        n_keys = p->pool_len = (n_pages + 1) * page;
    }
    const uint32_t k0[4] = {old.batch, old.n_kv_heads, old_keys, old.head_dim};
    const uint32_t k1[4] = {p->batch, p->n_kv_heads, n_keys, p->head_dim};
    const uint32_t v0[4] = {old.batch, old.n_kv_heads, old_keys, old.v_head_dim};
    const uint32_t v1[4] = {p->batch, p->n_kv_heads, n_keys, p->v_head_dim};
    const uint32_t scores0[4] = {old.batch, old.n_heads, old.q_len, old.kv_len};
    const uint32_t scores1[4] = {p->batch, p->n_heads, p->q_len, p->kv_len};
    const uint32_t out0[4] = {old.batch, old.n_heads, old.q_len, old.v_head_dim};
    const uint32_t out1[4] = {p->batch, p->n_heads, p->q_len, p->v_head_dim};
    add(s, REE_HARD_QUERY, REE_F32, ree_twin_view(s->size, 4, q0, q1, p->q_strides, &p->q_offset),
        p->head_dim);
    add(s, REE_HARD_KEY, p->k_dtype, ree_twin_view(s->size, 4, k0, k1, p->k_strides, &p->k_offset),
        p->head_dim);
    add(s, REE_HARD_SPARSE, p->v_dtype,
        ree_twin_view(s->size, 4, v0, v1, p->v_strides, &p->v_offset), 1000);
    // Scores of full mantissas over 260 terms spread over a few units, so that many keys count. The
    // queries get positions at which a window on either side leaves them many keys, if the
    // positions in the dispatch do: with a single key the weight would be 1 for any score. The last
    // queries of a long prompt have more than one chunk of keys.
    const uint32_t before = p->kv_len > p->q_len ? p->kv_len - p->q_len : 0;
    const int64_t end = (int64_t)old.start + old.q_len;
    if (old.start != 0 || end > REE_CHUNK || grows_ones(s->size))
        p->start = (int32_t)(end < old.kv_len ? before / 2 : before);
    if (p->starts_dtype != REE_DTYPE_NONE) p->start = old.start != 0;
    const uint32_t half = p->kv_len / 2; // lower bound of n_keys
    if (p->n_keys_dtype != REE_DTYPE_NONE && p->start + (int64_t)p->q_len > half)
        p->start = half > p->q_len ? (int32_t)(half - p->q_len) : 0;
    if (p->left >= 0) p->left = (int32_t)at_most((uint32_t)p->left, p->kv_len / 2);
    if (p->right >= 0) p->right = (int32_t)at_most((uint32_t)p->right, p->kv_len / 2);
    if (p->starts_dtype != REE_DTYPE_NONE) {
        uint64_t n =
            ree_twin_view(s->size, 1, &old.batch, &p->batch, &p->starts_stride, &p->starts_offset);
        add_bounded(s, p->starts_dtype, n, 0, before);
    }
    if (p->n_keys_dtype != REE_DTYPE_NONE) {
        uint64_t n =
            ree_twin_view(s->size, 1, &old.batch, &p->batch, &p->n_keys_stride, &p->n_keys_offset);
        add_bounded(s, p->n_keys_dtype, n, half, p->kv_len);
    }
    if (p->has_allowed)
        add(s, REE_HARD_MASKED, REE_BOOL,
            ree_twin_view(s->size, 4, scores0, scores1, p->allowed_strides, &p->allowed_offset),
            p->kv_len);
    if (p->has_bias)
        add(s, REE_HARD_BIAS, REE_F32,
            ree_twin_view(s->size, 4, scores0, scores1, p->bias_strides, &p->bias_offset), 1);
    if (p->has_sink)
        add(s, REE_HARD_MODERATE, REE_F32,
            ree_twin_view(s->size, 3, scores0, scores1, p->sink_strides, &p->sink_offset), 1);
    if (p->page_bits) {
        p->pages_offset = 0;
        p->pages_stride = (int32_t)n_pages;
        add_bounded(s, REE_I32, (uint64_t)p->batch * n_pages, 0, n_pages);
    }
    // The values of a query are adjacent. If a single value becomes several, the strides are scaled
    // as if there had been two values.
    const bool widens = old.v_head_dim == 1 && p->v_head_dim > 1;
    uint32_t out_from[4] = {out0[0], out0[1], out0[2], widens ? 2 : out0[3]};
    int32_t strides[4] = {p->out_strides[0], p->out_strides[1], p->out_strides[2], 1};
    for (uint32_t d = 0; d < 3 && widens; d++)
        strides[d] *= 2;
    add_output(s, REE_F32, ree_twin_view(s->size, 4, out_from, out1, strides, NULL));
    for (uint32_t d = 0; d < 3; d++)
        p->out_strides[d] = strides[d];
    return true;
}

uint32_t ree_twin_shrink(struct ree_dispatch *dispatch, const struct ree_twin_size *size,
                         struct ree_twin_operand operands[REE_MAX_OPERANDS]) {
    static bool (*const shrink[REE_N_REPOPS])(struct shrinking * s) = {
        [REE_REPOP_COPY] = shrink_copy,       [REE_REPOP_MAP] = shrink_map,
        [REE_REPOP_REDUCE] = shrink_reduce,   [REE_REPOP_MATMUL] = shrink_matmul,
        [REE_REPOP_CONV] = shrink_conv,       [REE_REPOP_POOL] = shrink_pool,
        [REE_REPOP_SOFTMAX] = shrink_softmax, [REE_REPOP_NORM] = shrink_norm,
        [REE_REPOP_GATHER] = shrink_gather,   [REE_REPOP_SCATTER] = shrink_scatter,
        [REE_REPOP_TOPK] = shrink_topk,       [REE_REPOP_SCAN] = shrink_scan,
        [REE_REPOP_RESIZE] = shrink_resize,   [REE_REPOP_ATTENTION] = shrink_attention,
    };
    struct shrinking s = {.dispatch = dispatch, .size = size, .operands = operands};
    return shrink[dispatch->op](&s) ? s.n_operands : 0;
}
