// The twins of all RepOps. Those of products are in twin_products.c, those of gather and scatter in
// twin_index.c, all others here.
#include "device/selftest/twin_shapes.h"

#include "base/dtype.h"
#include "device/selftest/twin_index.h"
#include "device/selftest/twin_products.h"
#include "device/selftest/twin_views.h"
#include "repops/dispatch.h"

#include <string.h>

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

static bool shrink_copy(struct ree_twin_shrinking *s) {
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
    p->n_elements = (uint32_t)ree_twin_product(p->rank, to);
    ree_twin_add(s, REE_HARD_ANY, dtypes[p->elem_size], n_src, 1);
    ree_twin_add_output(s, dtypes[p->elem_size], n_dst + (uint32_t)within_word);
    return true;
}

static bool shrink_map(struct ree_twin_shrinking *s) {
    struct ree_expr *expr = &s->dispatch->params.map.expr;
    uint32_t to[REE_MAX_RANK];
    if (expr->n_elements == 0) return false;
    if (s->size->alignment) ree_twin_merge_expr(expr);
    // One element, merged: its operands' strides are 0, so more elements would all be equal.
    if (s->size->alignment && expr->n_elements == 1)
        to[0] = 1;
    else
        ree_twin_dims(s->size, expr->rank, expr->dims, s->size->elements, to);
    ree_twin_shrink_expr(s, expr, to);
    ree_twin_add_output(s, expr->out_dtype, expr->n_elements);
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

static bool shrink_reduce(struct ree_twin_shrinking *s) {
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
    p->n_outer = (uint32_t)ree_twin_product(p->outer_rank, p->outer_dims);
    p->n_reduce = (uint32_t)ree_twin_product(p->reduce_rank, p->reduce_dims);
    bool index = p->kind == REE_REDUCE_ARGMAX || p->kind == REE_REDUCE_ARGMIN;
    ree_twin_add(s, p->kind == REE_REDUCE_PROD ? REE_HARD_NEAR_ONE : REE_HARD_ANY, p->dtype, n,
                 p->n_reduce);
    ree_twin_add_output(s, index ? REE_I64 : p->dtype, p->n_outer);
    return true;
}

static bool shrink_pool(struct ree_twin_shrinking *s) {
    struct ree_pool_params *p = &s->dispatch->params.pool;
    if (p->planes == 0 || p->out[0] * p->out[1] * p->out[2] == 0) return false;
    p->planes = 7;
    uint64_t n_in = 1, n_out = 1;
    for (uint32_t d = 0; d < 3; d++) {
        // 17 * 17 terms: more than a chunk
        p->kernel[d] = d == 0 ? 1 : 17;
        p->stride[d] = ree_twin_at_most(p->stride[d], 2);
        p->dilation[d] = ree_twin_at_most(p->dilation[d], 2);
        p->pad_begin[d] = p->pad_end[d] = d == 0 ? 0 : 1;
        p->out[d] = d == 0 ? 1 : 3;
        p->in[d] = (p->out[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1 -
                   (d == 0 ? 0 : 2);
        n_in *= p->in[d];
        n_out *= p->out[d];
    }
    ree_twin_add(s, REE_HARD_ANY, p->dtype, p->planes * n_in, n_in);
    ree_twin_add_output(s, p->dtype, p->planes * n_out);
    if (p->has_indices) ree_twin_add_output(s, REE_I64, p->planes * n_out);
    return true;
}

static bool shrink_softmax(struct ree_twin_shrinking *s) {
    struct ree_softmax_params *p = &s->dispatch->params.softmax;
    if (p->outer == 0 || p->inner == 0 || p->k == 0) return false;
    // LogSoftmax hides errors in the last bits of most sums, so the twin has many rows.
    p->outer = p->inner != 1 ? 7 : s->size->alignment || p->log ? 40 : 12;
    p->inner = p->inner == 1 ? 1 : 6;
    p->k = ree_twin_shrink_row(s, p->k);
    if (p->k > 65536) p->outer = 1;
    if (p->k > 65536 && p->inner > 1) p->inner = 2;
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    ree_twin_add(s,
                 p->zero_empty ? REE_HARD_MASKED
                 : p->log      ? REE_HARD_PEAKED
                               : REE_HARD_ANY,
                 REE_F32, n, p->k);
    s->operands[s->n_operands - 1].values.high = p->inner;
    ree_twin_add_output(s, REE_F32, n);
    return true;
}

static bool shrink_norm(struct ree_twin_shrinking *s) {
    struct ree_norm_params *p = &s->dispatch->params.norm;
    if (p->rows == 0 || p->cols == 0) return false;
    p->rows = 7;
    p->cols = ree_twin_shrink_row(s, p->cols);
    if (p->cols > 65536) p->rows = 2;
    p->scale_row_div = p->scale_row_div > 1 ? 2 : 1;
    p->scale_row_mod = p->scale_row_mod > 1 ? 3 : 1;
    p->scale_col_stride = p->scale_col_stride ? 1 : 0;
    p->scale_row_stride = p->scale_row_stride ? p->cols : 0;
    uint64_t n = (uint64_t)p->rows * p->cols, n_scale = 3 * (uint64_t)p->cols;
    ree_twin_add(s, REE_HARD_ANY, REE_F32, n, p->cols);
    if (p->has_scale) ree_twin_add(s, REE_HARD_MODERATE, REE_F32, n_scale, 1);
    if (p->has_bias) ree_twin_add(s, REE_HARD_FINITE, REE_F32, n_scale, 100);
    ree_twin_add_output(s, REE_F32, n);
    return true;
}

static bool shrink_topk(struct ree_twin_shrinking *s) {
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
    p->k = p->k == 1 && !ree_twin_grows_ones(s->size) ? 1
           : most                                     ? 2100
           : many                                     ? ree_twin_at_most(p->n, 1100) - 10
                                                      : 20;
    if (all) p->k = p->n;
    uint64_t n_out = (uint64_t)p->outer * p->k * p->inner;
    ree_twin_add(s, REE_HARD_ANY, p->dtype, (uint64_t)p->outer * p->n * p->inner, p->n);
    ree_twin_add_output(s, p->dtype, n_out);
    ree_twin_add_output(s, REE_I64, n_out);
    return true;
}

static bool shrink_scan(struct ree_twin_shrinking *s) {
    struct ree_scan_params *p = &s->dispatch->params.scan;
    if (p->outer == 0 || p->k == 0 || p->inner == 0) return false;
    p->outer = 7;
    p->inner = p->inner == 1 ? 1 : 3;
    p->k = s->size->alignment ? ree_twin_sum_length(s->size, p->k) : s->size->length;
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    ree_twin_add(s, p->product ? REE_HARD_NEAR_ONE : REE_HARD_ANY, p->dtype, n, p->k);
    ree_twin_add_output(s, p->dtype, n);
    return true;
}

static bool shrink_resize(struct ree_twin_shrinking *s) {
    struct ree_resize_params *p = &s->dispatch->params.resize;
    if (p->outer == 0 || p->k_out == 0 || p->inner == 0) return false;
    p->outer = 2;
    p->inner = p->inner == 1 ? 1 : 3;
    p->k_in = 40;
    p->k_out = 7;
    if (p->taps > 0) p->taps = 300;
    uint64_t n_taps = (uint64_t)p->k_out * p->taps;
    uint64_t n_in = (uint64_t)p->outer * p->k_in * p->inner;
    ree_twin_add(s, REE_HARD_ANY, REE_F32, n_in, (n_in + 1) / 2);
    ree_twin_add_bounded(s, REE_I32, n_taps, 0, p->k_in - 1);
    s->operands[1].values.role = REE_HARD_TAPS;
    s->operands[1].values.run = p->taps;
    ree_twin_add(s, REE_HARD_FINITE, REE_F32, n_taps, p->taps);
    ree_twin_add_output(s, REE_F32, (uint64_t)p->outer * p->k_out * p->inner);
    return true;
}

uint32_t ree_twin_shrink(struct ree_dispatch *dispatch, const struct ree_twin_size *size,
                         struct ree_twin_operand operands[REE_MAX_OPERANDS]) {
    static bool (*const shrink[REE_N_REPOPS])(struct ree_twin_shrinking * s) = {
        [REE_REPOP_COPY] = shrink_copy,
        [REE_REPOP_MAP] = shrink_map,
        [REE_REPOP_REDUCE] = shrink_reduce,
        [REE_REPOP_MATMUL] = ree_twin_shrink_matmul,
        [REE_REPOP_CONV] = ree_twin_shrink_conv,
        [REE_REPOP_POOL] = shrink_pool,
        [REE_REPOP_SOFTMAX] = shrink_softmax,
        [REE_REPOP_NORM] = shrink_norm,
        [REE_REPOP_GATHER] = ree_twin_shrink_gather,
        [REE_REPOP_SCATTER] = ree_twin_shrink_scatter,
        [REE_REPOP_TOPK] = shrink_topk,
        [REE_REPOP_SCAN] = shrink_scan,
        [REE_REPOP_RESIZE] = shrink_resize,
        [REE_REPOP_ATTENTION] = ree_twin_shrink_attention,
    };
    struct ree_twin_shrinking s = {.dispatch = dispatch, .size = size, .operands = operands};
    return shrink[dispatch->op](&s) ? s.n_operands : 0;
}
