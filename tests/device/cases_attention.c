#include "cases.h"

#include <math.h>
#include <string.h>

// Mostly numbers whose products and sums stay finite, so that the comparison covers more than NaN.
static void fill_numbers(struct rng *rng, uint32_t dtype, uint64_t n, void *out) {
    if (rng_one_in(rng, 4)) {
        case_fill(rng, (enum ree_dtype)dtype, n, out);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t r = rng_next(rng);
        if (dtype == REE_F32) {
            ((float *)out)[i] = (float)(int32_t)r * 0x1p-30f;
            continue;
        }
        uint32_t exponent = (uint32_t)(r >> 32) % 9;
        ((uint16_t *)out)[i] = dtype == REE_F16 ? (uint16_t)((r & 0x83FFu) | (8 + exponent) << 10)
                                                : (uint16_t)((r & 0x807Fu) | (120 + exponent) << 7);
    }
    if (rng_one_in(rng, 4) && dtype == REE_F32 && n > 0) {
        uint32_t at = rng_below(rng, (uint32_t)n);
        ((float *)out)[at] = rng_one_in(rng, 2) ? NAN : INFINITY;
    }
}

static void numbers(struct test_case *c, struct rng *rng, uint32_t dtype, const uint32_t *dims,
                    int32_t *strides, int32_t *offset) {
    uint64_t n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, 4, dims, strides, offset);
    void *data = case_input(c, rng, (enum ree_dtype)dtype, n);
    fill_numbers(rng, dtype, n, data);
}

static void positions(struct test_case *c, struct rng *rng, uint32_t dtype, uint32_t batch,
                      uint32_t kv_len, int32_t *stride, int32_t *offset) {
    uint64_t n = case_view(rng, CASE_VIEW_REPEATS, 1, &batch, stride, offset);
    void *data = case_input(c, rng, (enum ree_dtype)dtype, n);
    if (rng_one_in(rng, 6)) return; // any bits
    for (uint64_t i = 0; i < n; i++) {
        int32_t value = rng_between(rng, -3, (int32_t)kv_len + 3);
        if (dtype == REE_I64)
            ((int64_t *)data)[i] = value;
        else
            ((int32_t *)data)[i] = value;
    }
}

// Returns whether element i is in a run of excluded keys. Runs are up to 300 long, so that whole
// chunks, and the ends of others, are excluded. *left: elements that are left of the current run.
static bool is_in_run(struct rng *rng, uint32_t *left, bool *excluded) {
    if (*left == 0) {
        *left = 1 + rng_below(rng, rng_one_in(rng, 2) ? 300 : 20);
        *excluded = !*excluded;
    }
    --*left;
    return *excluded;
}

static void masks(struct test_case *c, struct rng *rng, struct ree_attention_params *p,
                  const uint32_t *scores) {
    uint64_t n;
    if (p->has_allowed) {
        n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, 4, scores, p->allowed_strides,
                      &p->allowed_offset);
        uint8_t *data = case_input(c, rng, REE_BOOL, n);
        uint32_t left = 0;
        bool excluded = false, in_runs = rng_one_in(rng, 2);
        for (uint64_t i = 0; in_runs && i < n; i++)
            data[i] = !is_in_run(rng, &left, &excluded);
        if (rng_one_in(rng, 4)) memset(data, (int)rng_below(rng, 2), n);
    }
    if (p->has_bias) {
        n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, 4, scores, p->bias_strides,
                      &p->bias_offset);
        float *data = case_input(c, rng, REE_F32, n);
        fill_numbers(rng, REE_F32, n, data);
        uint32_t one_in = 1 + rng_below(rng, 5), left = 0;
        bool excluded = false, in_runs = rng_one_in(rng, 2);
        for (uint64_t i = 0; i < n; i++)
            if (in_runs ? is_in_run(rng, &left, &excluded) : rng_one_in(rng, one_in))
                data[i] = -INFINITY;
    }
    if (p->has_sink) {
        n = case_view(rng, CASE_VIEW_REPEATS, 3, scores, p->sink_strides, &p->sink_offset);
        float *data = case_input(c, rng, REE_F32, n);
        fill_numbers(rng, REE_F32, n, data);
        if (rng_one_in(rng, 4))
            for (uint64_t i = 0; i < n; i++)
                data[i] = -INFINITY;
    }
}

static int32_t bound(struct rng *rng, uint32_t kv_len) {
    if (rng_one_in(rng, 2)) return REE_ATTENTION_UNBOUNDED;
    if (rng_one_in(rng, 20)) return REE_ATTENTION_FAR;
    return rng_one_in(rng, 2) ? 0 : (int32_t)rng_below(rng, kv_len + 2);
}

// Keys in pages: a random table, in which batches may share pages.
static void pages(struct test_case *c, struct rng *rng, struct ree_attention_params *p) {
    if (!p->page_bits) return;
    uint32_t page = 1u << p->page_bits, n = (p->kv_len + page - 1) / page;
    p->pages_stride = rng_one_in(rng, 6) ? 0 : (int32_t)(n + rng_below(rng, 3));
    p->pages_offset = (int32_t)rng_below(rng, 4);
    uint64_t count = (uint64_t)p->pages_offset + (p->batch - 1) * (uint64_t)p->pages_stride + n;
    int32_t *table = case_input(c, rng, REE_I32, count);
    for (uint64_t i = 0; i < count; i++)
        table[i] = (int32_t)rng_below(rng, p->pool_len / page);
}

bool case_attention(struct rng *rng, struct test_case *c) {
    static const uint32_t types[] = {REE_F32, REE_F32, REE_F16, REE_BF16};
    static const uint32_t sizes[] = {1, 2, 3, 8, 16, 17, 31, 33, 64, 80, 128};
    static const uint32_t indices[] = {REE_DTYPE_NONE, REE_DTYPE_NONE, REE_DTYPE_NONE, REE_I32,
                                       REE_I64};
    case_begin(c, REE_REPOP_ATTENTION);
    struct ree_attention_params *p = &c->dispatch.params.attention;
    p->batch = rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 3);
    p->n_kv_heads = 1 + rng_below(rng, 3);
    p->n_heads = p->n_kv_heads * (rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 9));
    p->q_len = rng_one_in(rng, 2) ? 1 : rng_below(rng, rng_one_in(rng, 4) ? 200 : 20);
    p->kv_len = case_length(rng);
    p->head_dim = rng_of(rng, sizeof sizes / sizeof *sizes, sizes);
    p->v_head_dim =
        rng_one_in(rng, 2) ? p->head_dim : rng_of(rng, sizeof sizes / sizeof *sizes, sizes);
    if (rng_one_in(rng, 20)) p->head_dim = rng_below(rng, 600); // more chunks, or none
    uint64_t terms = (uint64_t)p->batch * p->n_heads * p->q_len * p->kv_len;
    if (terms > 40000 || terms * (p->head_dim + p->v_head_dim) > 400000) return false;
    p->k_dtype = rng_of(rng, 4, types);
    p->v_dtype = rng_of(rng, 4, types);
    p->scale = rng_one_in(rng, 4) ? 1 : rng_one_in(rng, 8) ? -0.75f : 0.17677669f;
    p->softcap = rng_one_in(rng, 4) ? 1.5f : 0;
    p->left = bound(rng, p->kv_len);
    p->right = bound(rng, p->kv_len);
    p->start = rng_one_in(rng, 3) ? rng_between(rng, -20, (int32_t)p->kv_len + 20)
                                  : (int32_t)p->kv_len - (int32_t)p->q_len;
    p->starts_dtype = rng_of(rng, 5, indices);
    p->n_keys_dtype = rng_of(rng, 5, indices);
    p->has_allowed = rng_one_in(rng, 4);
    p->has_bias = rng_one_in(rng, 4);
    p->has_sink = rng_one_in(rng, 4);
    p->zero_empty = !rng_one_in(rng, 4);

    const uint32_t q[4] = {p->batch, p->n_heads, p->q_len, p->head_dim};
    uint32_t n_keys = p->kv_len, n_pools = p->batch;
    if (rng_one_in(rng, 3)) {
        p->page_bits =
            (uint32_t)rng_between(rng, REE_ATTENTION_MIN_PAGE_BITS, REE_ATTENTION_MAX_PAGE_BITS);
        n_keys = p->pool_len = (1 + rng_below(rng, 8)) << p->page_bits;
        n_pools = 1;
    }
    const uint32_t k[4] = {n_pools, p->n_kv_heads, n_keys, p->head_dim};
    const uint32_t v[4] = {n_pools, p->n_kv_heads, n_keys, p->v_head_dim};
    const uint32_t scores[4] = {p->batch, p->n_heads, p->q_len, p->kv_len};
    numbers(c, rng, REE_F32, q, p->q_strides, &p->q_offset);
    numbers(c, rng, p->k_dtype, k, p->k_strides, &p->k_offset);
    numbers(c, rng, p->v_dtype, v, p->v_strides, &p->v_offset);
    if (p->starts_dtype)
        positions(c, rng, p->starts_dtype, p->batch, p->kv_len, &p->starts_stride,
                  &p->starts_offset);
    if (p->n_keys_dtype)
        positions(c, rng, p->n_keys_dtype, p->batch, p->kv_len, &p->n_keys_stride,
                  &p->n_keys_offset);
    masks(c, rng, p, scores);
    if (p->page_bits) p->k_strides[0] = p->v_strides[0] = 0;
    pages(c, rng, p);
    bool by_token = rng_one_in(rng, 2);
    int32_t row = (int32_t)p->v_head_dim;
    p->out_strides[0] = row * (int32_t)(p->n_heads * p->q_len);
    p->out_strides[1] = by_token ? row : row * (int32_t)p->q_len;
    p->out_strides[2] = by_token ? row * (int32_t)p->n_heads : row;
    case_output(c, rng, REE_F32, (uint64_t)p->batch * p->n_heads * p->q_len * p->v_head_dim);
    return true;
}
