#include "cases.h"

// Any view of a tensor with some dimensions reduced, one of them of an edge-case length.
static uint32_t reduce_any(struct rng *rng, uint32_t *dims, int32_t *strides, int32_t *offset,
                           uint32_t *mask, uint64_t *n) {
    uint32_t rank = case_dims(rng, 4, 200, dims), long_one = rng_below(rng, rank);
    *mask = rng_below(rng, 1u << rank);
    if (*mask & 1u << long_one && dims[long_one] > 0) {
        uint64_t others = case_count(rank, dims) / dims[long_one];
        uint32_t length = case_length(rng);
        if (others * length <= 60000) dims[long_one] = length;
    }
    *n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, rank, dims, strides, offset);
    return rank;
}

// A dense tensor, reduced along the inner, outer or middle dimensions, or along the first and the
// last of three. The sums mostly have more terms than a chunk.
static uint32_t reduce_long(struct rng *rng, uint32_t *dims, int32_t *strides, int32_t *offset,
                            uint32_t *mask, uint64_t *n) {
    static const uint32_t masks[] = {2 + 4, 1 + 2, 2, 1 + 4, 4, 1, 1 + 2 + 4};
    *mask = rng_of(rng, sizeof masks / sizeof *masks, masks);
    uint64_t terms = 1;
    for (uint32_t d = 0; d < 3; d++) {
        if (!(*mask & 1u << d)) {
            dims[d] = 1 + rng_below(rng, rng_one_in(rng, 2) ? 40 : 6);
        } else if (*mask >> (d + 1) == 0) { // the last reduced one
            dims[d] = (uint32_t)((200 + rng_below(rng, rng_one_in(rng, 4) ? 9000 : 1000)) / terms);
        } else {
            dims[d] = 1 + rng_below(rng, 20);
        }
        if (*mask & 1u << d) terms *= dims[d];
    }
    case_dense_strides(3, dims, strides);
    *offset = 0;
    *n = case_count(3, dims);
    return 3;
}

bool case_reduce(struct rng *rng, struct test_case *c) {
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_F32, REE_F32, REE_F32, REE_I32,
                                      REE_U32, REE_I64, REE_U64, REE_I8,  REE_U8,  REE_BOOL};
    case_begin(c, REE_REPOP_REDUCE);
    struct ree_reduce_params *p = &c->dispatch.params.reduce;
    p->dtype = rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    if (rng_one_in(rng, 6)) p->dtype = REE_F64;
    p->kind = rng_below(rng, REE_REDUCE_ARGMIN + 1);
    if (p->dtype == REE_BOOL && p->kind != REE_REDUCE_MIN) p->kind = REE_REDUCE_MAX;
    p->select_last = rng_one_in(rng, 2);

    uint32_t dims[REE_MAX_RANK], mask;
    int32_t strides[REE_MAX_RANK];
    uint64_t n;
    uint32_t rank =
        (rng_one_in(rng, 3) ? reduce_any : reduce_long)(rng, dims, strides, &p->offset, &mask, &n);
    if (n > 120000) return false;
    p->n_outer = p->n_reduce = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (mask & 1u << d) {
            p->reduce_dims[p->reduce_rank] = dims[d];
            p->reduce_strides[p->reduce_rank++] = strides[d];
            p->n_reduce *= dims[d];
        } else {
            p->outer_dims[p->outer_rank] = dims[d];
            p->outer_strides[p->outer_rank++] = strides[d];
            p->n_outer *= dims[d];
        }
    }
    bool position = p->kind == REE_REDUCE_ARGMAX || p->kind == REE_REDUCE_ARGMIN;
    if (position && p->n_reduce == 0) return false; // no position exists
    case_input(c, rng, (enum ree_dtype)p->dtype, n);
    case_output(c, rng, position ? REE_I64 : (enum ree_dtype)p->dtype, p->n_outer);
    return true;
}

// Chooses (outer, k, inner), with k an edge-case length.
static void vector_dims(struct rng *rng, uint32_t *outer, uint32_t *k, uint32_t *inner) {
    *k = case_length(rng);
    uint32_t budget = 30000 / (*k + 1) + 1;
    *inner = rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, budget < 70 ? budget : 70);
    budget = budget / *inner + 1;
    *outer = rng_one_in(rng, 40) ? 0 : 1 + rng_below(rng, budget < 40 ? budget : 40);
}

// Makes some vectors end in -inf or contain only -inf; the other values are any bits, or, half of
// the time, small numbers, so that the maximum is finite.
static void empty_vectors(struct rng *rng, const struct ree_softmax_params *p, uint32_t *x) {
    bool tame = rng_one_in(rng, 2);
    uint32_t most = rng_below(rng, p->k + 1); // maximum number of values before the -inf tail
    for (uint64_t vector = 0; vector < (uint64_t)p->outer * p->inner; vector++) {
        uint64_t base = vector / p->inner * p->k * p->inner + vector % p->inner;
        uint32_t used = rng_one_in(rng, 4) ? 0 : rng_below(rng, most + 1);
        for (uint32_t i = 0; i < p->k; i++) {
            uint32_t *at = &x[base + (uint64_t)i * p->inner];
            if (i >= used)
                *at = 0xFF800000u;
            else if (tame)
                *at = (*at & 0x807FFFFFu) | 0x3F800000u;
        }
    }
}

bool case_softmax(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_SOFTMAX);
    struct ree_softmax_params *p = &c->dispatch.params.softmax;
    p->log = rng_one_in(rng, 2);
    vector_dims(rng, &p->outer, &p->k, &p->inner);
    p->zero_empty = rng_one_in(rng, 2);
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    uint32_t *x = case_input(c, rng, REE_F32, n);
    if (rng_one_in(rng, 2)) empty_vectors(rng, p, x);
    case_output(c, rng, REE_F32, n);
    return true;
}

bool case_norm(struct rng *rng, struct test_case *c) {
    static const float epsilons[] = {1e-5f, 0.0f, 1e-12f, 0.5f};
    case_begin(c, REE_REPOP_NORM);
    struct ree_norm_params *p = &c->dispatch.params.norm;
    uint32_t one;
    vector_dims(rng, &p->rows, &p->cols, &one);
    p->rms = rng_one_in(rng, 2);
    p->epsilon = epsilons[rng_below(rng, 4)];
    p->has_scale = !rng_one_in(rng, 4);
    p->has_bias = rng_one_in(rng, 2);
    uint32_t n_affine = 1;
    p->scale_row_div = 1 + rng_below(rng, 3);
    p->scale_row_mod = 1 + rng_below(rng, 5);
    switch (rng_below(rng, 3)) {
    case 0: // along the columns
        p->scale_row_mod = 1;
        p->scale_col_stride = 1;
        n_affine = p->cols;
        break;
    case 1: // one scale for each row of a period
        p->scale_row_stride = 1;
        n_affine = p->scale_row_mod;
        break;
    default: // both
        p->scale_col_stride = 1 + rng_below(rng, 2);
        p->scale_row_stride = p->cols * p->scale_col_stride;
        n_affine = p->scale_row_mod * p->scale_row_stride;
    }
    uint64_t n = (uint64_t)p->rows * p->cols;
    case_input(c, rng, REE_F32, n);
    if (p->has_scale) case_input(c, rng, REE_F32, n_affine);
    if (p->has_bias) case_input(c, rng, REE_F32, n_affine);
    case_output(c, rng, REE_F32, n);
    return true;
}

bool case_scan(struct rng *rng, struct test_case *c) {
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_F32, REE_I32,
                                      REE_U32, REE_I64, REE_U64};
    case_begin(c, REE_REPOP_SCAN);
    struct ree_scan_params *p = &c->dispatch.params.scan;
    p->dtype = rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    if (rng_one_in(rng, 5)) p->dtype = REE_F64;
    p->product = rng_one_in(rng, 3);
    p->exclusive = rng_one_in(rng, 2);
    p->reverse = rng_one_in(rng, 2);
    vector_dims(rng, &p->outer, &p->k, &p->inner);
    uint64_t n = (uint64_t)p->outer * p->k * p->inner;
    case_input(c, rng, (enum ree_dtype)p->dtype, n);
    case_output(c, rng, (enum ree_dtype)p->dtype, n);
    return true;
}
