// Twins of products keep what selects kernels: numbers of rows, columns and terms.
#include "device/selftest/twin_products.h"

#include "base/dtype.h"
#include "device/selftest/twin_views.h"
#include "repops/dispatch.h"

// Returns a number of rows or columns. Tiles are 32, 64 or 128 wide. The result is less than one
// tile, some whole tiles, or some tiles and a part.
static uint32_t tiled(const struct ree_twin_size *size, uint32_t base, uint32_t n) {
    if (size->alignment && !size->small) base = n < 64 ? 32 : n % 128 == 0 ? 256 : 144;
    return ree_twin_length(size, base, n, 16);
}
static uint32_t shrink_rows(const struct ree_twin_shrinking *s, uint32_t rows) {
    return rows < s->size->few_rows ? rows : tiled(s->size, s->size->rows, rows);
}
static uint32_t shrink_columns(const struct ree_twin_shrinking *s, uint32_t columns) {
    if (ree_twin_grows_ones(s->size)) return s->size->columns;
    return columns <= s->size->columns ? columns : tiled(s->size, s->size->columns, columns);
}

// Returns the length of a sum over n terms.
static uint32_t sum_length(const struct ree_twin_shrinking *s, uint64_t n) {
    if (s->size->alignment) return n < 64 ? (uint32_t)n : ree_twin_sum_length(s->size, (uint32_t)n);
    return s->size->one_chunk && n <= REE_CHUNK ? REE_CHUNK - 6 : s->size->length;
}

static uint32_t rounded_up(uint32_t n, uint32_t unit) {
    return (n + unit - 1) / unit * unit;
}

bool ree_twin_shrink_matmul(struct ree_twin_shrinking *s) {
    struct ree_matmul_params *p = &s->dispatch->params.matmul;
    uint32_t rank = p->batch_rank, from[REE_MAX_RANK], to[REE_MAX_RANK];
    if (p->m == 0 || p->n == 0 || p->n_batch == 0) return false;
    for (uint32_t d = 0; d < rank; d++) {
        from[d] = p->batch_dims[d];
        to[d] = from[d] > 1 ? 2 : 1;
        if (s->size->alignment) to[d] = ree_twin_short_length(s->size, from[d]);
    }
    uint32_t m = shrink_rows(s, p->m), n = shrink_columns(s, p->n);
    uint32_t k = ree_twin_at_most(p->k, s->size->length);
    if (p->k > 1 || (p->k == 1 && ree_twin_grows_ones(s->size))) k = sum_length(s, p->k);
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
    ree_twin_add(s, REE_HARD_ANY, p->a_dtype, k == 0 ? 0 : n_a, k);
    if (p->b_block) {
        uint64_t n_blocks = (uint64_t)n * ((k + p->b_block - 1) / p->b_block);
        ree_twin_add(s, REE_HARD_ANY, REE_U8, n_blocks * p->b_block * p->b_bits / 8, 1);
        ree_twin_add(s, REE_HARD_SCALE, REE_F32, n_blocks, 1);
        if (p->has_zero_points)
            ree_twin_add_bounded(s, REE_U8, n_blocks, 0, (INT64_C(1) << p->b_bits) - 1);
        if (p->a_block) { // one style per row, so that all scales of a row can be subnormal
            const uint32_t n_a_blocks = (k + p->a_block - 1) / p->a_block;
            ree_twin_add(s, REE_HARD_ANY, REE_F32, (uint64_t)m * n_a_blocks, n_a_blocks);
        }
    } else {
        ree_twin_add(s, REE_HARD_FINITE, p->b_dtype, k == 0 ? 0 : n_b, k);
    }
    from[rank] = ends[0], to[rank] = new_ends[0];
    from[rank + 1] = ends[2], to[rank + 1] = new_ends[2];
    if (p->has_epilogue) ree_twin_shrink_expr(s, &p->epilogue, to);
    for (uint32_t d = 0; d < rank; d++) {
        p->batch_dims[d] = to[d];
        p->a_batch_strides[d] = a[d];
        p->b_batch_strides[d] = p->b_block ? 0 : b[d];
    }
    p->m = m, p->n = n, p->k = k;
    p->a_stride_m = a[rank], p->a_stride_k = a[rank + 1];
    p->b_stride_k = p->b_block ? 0 : b[rank], p->b_stride_n = p->b_block ? 0 : b[rank + 1];
    p->n_batch = (uint32_t)ree_twin_product(rank, p->batch_dims);
    ree_twin_add_output(s, p->has_epilogue ? p->epilogue.out_dtype : p->dtype,
                        (uint64_t)p->n_batch * m * n);
    return true;
}

// Chooses the dimensions of a plane's outputs. The outputs of a plane are the columns of the
// product.
static void conv_outputs(const struct ree_twin_shrinking *s, const uint32_t from[3],
                         uint32_t to[3]) {
    static const uint32_t free[3] = {2, 5, 5};
    // By dimension, and by the remainder of the dispatch's length modulo 4: a length with the same
    // greatest common divisor with 4. It decides whether kernels load 16 bytes at once.
    static const uint32_t aligned[3][4] = {{4, 3, 2, 3}, {4, 5, 6, 5}, {4, 5, 6, 5}};
    for (uint32_t d = 0; d < 3; d++)
        to[d] = from[d] == 1 ? 1 : s->size->alignment ? aligned[d][from[d] % 4] : free[d];
    if (s->size->alignment) {
        if (from[2] > 1) to[2] = ree_twin_length(s->size, s->size->small ? 16 : 32, from[2], 4);
    } else if (ree_twin_grows_ones(s->size)) { // more than one tile
        uint32_t d = ree_twin_long_dim(3, from);
        to[d] = s->size->columns / (to[0] * to[1] * to[2] / to[d]) + 1;
    }
}

// A twin's sum is long because it has many channels, so its kernel can be small. If it must have
// one channel, the kernel stays long.
static void conv_kernel(const struct ree_twin_shrinking *s, struct ree_conv_params *p,
                        uint32_t n_terms) {
    uint32_t longest = 0, others = 1;
    for (uint32_t d = 1; d < 3; d++)
        if (p->kernel[d] > p->kernel[longest]) longest = d;
    for (uint32_t d = 0; d < 3; d++) {
        p->kernel[d] = ree_twin_at_most(p->kernel[d], 3);
        if (d != longest) others *= p->kernel[d];
    }
    if (s->size->alignment && p->c == 1 && n_terms > others * p->kernel[longest])
        p->kernel[longest] = (n_terms + others - 1) / others;
}

bool ree_twin_shrink_conv(struct ree_twin_shrinking *s) {
    struct ree_conv_params *p = &s->dispatch->params.conv;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2], n_kernel = 1, n_in = 1, out[3];
    if (p->n == 0 || p->groups == 0 || p->m == 0 || n_out == 0 || p->c == 0) return false;
    uint32_t n_terms = sum_length(s, (uint64_t)p->c * p->kernel[0] * p->kernel[1] * p->kernel[2]);
    p->n = ree_twin_at_most(p->n, 2);
    p->groups = ree_twin_at_most(p->groups, 2);
    p->m = shrink_rows(s, p->m);
    conv_outputs(s, p->out, out);
    conv_kernel(s, p, n_terms);
    for (uint32_t d = 0; d < 3; d++) {
        bool pointwise = p->kernel[d] == 1 && p->pad[d] == 0;
        bool inside = (p->out[d] - 1) * p->stride[d] < p->in[d];
        p->stride[d] = ree_twin_at_most(p->stride[d], 2);
        p->dilation[d] = ree_twin_at_most(p->dilation[d], 2);
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
    if (p->c > 1 || ree_twin_grows_ones(s->size)) p->c = n_terms / n_kernel + (n_terms > REE_CHUNK);
    if (p->c == 0) p->c = 2;
    uint64_t n_x = (uint64_t)p->n * p->groups * p->c * n_in;
    uint64_t n_w = (uint64_t)p->groups * p->m * p->c * n_kernel;
    ree_twin_add(s, REE_HARD_ANY, p->x_dtype, n_x, (uint64_t)p->c * n_in);
    ree_twin_add(s, REE_HARD_FINITE, p->w_dtype, n_w, (uint64_t)p->c * n_kernel);
    if (p->has_pad_value) ree_twin_add(s, REE_HARD_ANY, p->x_dtype, 1, 1);
    const uint32_t to[5] = {p->n, p->groups * p->m, p->out[0], p->out[1], p->out[2]};
    if (p->has_epilogue) ree_twin_shrink_expr(s, &p->epilogue, to);
    ree_twin_add_output(s, p->has_epilogue ? p->epilogue.out_dtype : ree_conv_sum_dtype(p),
                        ree_twin_product(5, to));
    return true;
}

// The queries of a head are the rows of a product. If the dispatch has enough rows to select the
// kernels for many rows, the twin has more rows than one thread computes.
//
// If heads share keys and have few queries, the encoder combines the queries of these heads into
// one product, provided that the queries of neighbouring heads are adjacent. Single queries are
// always adjacent. Returns the number of queries by which to interpret the strides of q: 2 if the
// dispatch has 1 and the twin has several.
static uint32_t shrink_queries(const struct ree_twin_shrinking *s,
                               const struct ree_attention_params *old,
                               struct ree_attention_params *p) {
    const uint32_t group = old->n_heads / old->n_kv_heads;
    const bool adjoin =
        old->q_len == 1 || old->q_strides[1] == (int64_t)old->q_len * old->q_strides[2];
    const bool combined = group > 1 && adjoin && old->q_len <= s->size->few_queries;
    const uint32_t rows = combined ? group * old->q_len : old->q_len;
    uint32_t n_alone = s->size->rows; // queries per head if heads are not combined
    if (group > 1 && adjoin && n_alone <= s->size->few_queries) n_alone = s->size->few_queries + 1;
    p->q_len = rows < s->size->few_rows ? old->q_len : combined ? 7 : n_alone;
    p->n_heads = p->n_kv_heads * ree_twin_at_most(group, combined ? 3 : 2);
    if (old->q_len > 1 || p->q_len == 1 || !combined) return old->q_len;
    p->q_strides[2] = old->q_strides[1] ? old->q_strides[1] : 1;
    p->q_strides[1] = 2 * p->q_strides[2];
    return 2;
}

bool ree_twin_shrink_attention(struct ree_twin_shrinking *s) {
    struct ree_attention_params *p = &s->dispatch->params.attention;
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return false;
    uint32_t group = p->n_heads / p->n_kv_heads, q_len = p->q_len;
    const struct ree_attention_params old = *p;
    uint32_t n_queries = q_len;
    p->batch = ree_twin_at_most(p->batch, 2);
    p->n_kv_heads = ree_twin_at_most(p->n_kv_heads, 2);
    p->n_heads = p->n_kv_heads * ree_twin_at_most(group, s->size->alignment ? 2 : 8);
    p->q_len = q_len <= s->size->few_queries ? q_len : s->size->few_queries + 3;
    if (ree_twin_grows_ones(s->size)) n_queries = shrink_queries(s, &old, p);
    if (s->size->alignment && !s->size->small && q_len >= 64) p->q_len = 98;
    if (s->size->one_chunk && p->kv_len <= REE_CHUNK)
        p->kv_len = REE_CHUNK - 6;
    else
        p->kv_len = s->size->keys ? s->size->keys : ree_twin_shrink_row(s, p->kv_len) / 2;
    if (p->head_dim != 1 || ree_twin_grows_ones(s->size))
        p->head_dim = s->size->one_chunk && p->head_dim <= REE_CHUNK ? 250 : 260;
    if (p->v_head_dim != 1 || ree_twin_grows_ones(s->size)) p->v_head_dim = s->size->columns;
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
    ree_twin_add(s, REE_HARD_QUERY, REE_F32,
                 ree_twin_view(s->size, 4, q0, q1, p->q_strides, &p->q_offset), p->head_dim);
    ree_twin_add(s, REE_HARD_KEY, p->k_dtype,
                 ree_twin_view(s->size, 4, k0, k1, p->k_strides, &p->k_offset), p->head_dim);
    ree_twin_add(s, REE_HARD_SPARSE, p->v_dtype,
                 ree_twin_view(s->size, 4, v0, v1, p->v_strides, &p->v_offset), 1000);
    // Scores of full mantissas over 260 terms spread over a few units, so that many keys count. The
    // queries get positions at which a window on either side leaves them many keys, if the
    // positions in the dispatch do: with a single key the weight would be 1 for any score. The last
    // queries of a long prompt have more than one chunk of keys.
    const uint32_t before = p->kv_len > p->q_len ? p->kv_len - p->q_len : 0;
    const int64_t end = (int64_t)old.start + old.q_len;
    if (old.start != 0 || end > REE_CHUNK || ree_twin_grows_ones(s->size))
        p->start = (int32_t)(end < old.kv_len ? before / 2 : before);
    if (p->starts_dtype != REE_DTYPE_NONE) p->start = old.start != 0;
    const uint32_t half = p->kv_len / 2; // lower bound of n_keys
    if (p->n_keys_dtype != REE_DTYPE_NONE && p->start + (int64_t)p->q_len > half)
        p->start = half > p->q_len ? (int32_t)(half - p->q_len) : 0;
    if (p->left >= 0) p->left = (int32_t)ree_twin_at_most((uint32_t)p->left, p->kv_len / 2);
    if (p->right >= 0) p->right = (int32_t)ree_twin_at_most((uint32_t)p->right, p->kv_len / 2);
    if (p->starts_dtype != REE_DTYPE_NONE) {
        uint64_t n =
            ree_twin_view(s->size, 1, &old.batch, &p->batch, &p->starts_stride, &p->starts_offset);
        ree_twin_add_bounded(s, p->starts_dtype, n, 0, before);
    }
    if (p->n_keys_dtype != REE_DTYPE_NONE) {
        uint64_t n =
            ree_twin_view(s->size, 1, &old.batch, &p->batch, &p->n_keys_stride, &p->n_keys_offset);
        ree_twin_add_bounded(s, p->n_keys_dtype, n, half, p->kv_len);
    }
    if (p->has_allowed)
        ree_twin_add(
            s, REE_HARD_MASKED, REE_BOOL,
            ree_twin_view(s->size, 4, scores0, scores1, p->allowed_strides, &p->allowed_offset),
            p->kv_len);
    if (p->has_bias)
        ree_twin_add(s, REE_HARD_BIAS, REE_F32,
                     ree_twin_view(s->size, 4, scores0, scores1, p->bias_strides, &p->bias_offset),
                     1);
    if (p->has_sink)
        ree_twin_add(s, REE_HARD_MODERATE, REE_F32,
                     ree_twin_view(s->size, 3, scores0, scores1, p->sink_strides, &p->sink_offset),
                     1);
    if (p->page_bits) {
        p->pages_offset = 0;
        p->pages_stride = (int32_t)n_pages;
        ree_twin_add_bounded(s, REE_I32, (uint64_t)p->batch * n_pages, 0, n_pages);
    }
    // The values of a query are adjacent. If a single value becomes several, the strides are scaled
    // as if there had been two values.
    const bool widens = old.v_head_dim == 1 && p->v_head_dim > 1;
    uint32_t out_from[4] = {out0[0], out0[1], out0[2], widens ? 2 : out0[3]};
    int32_t strides[4] = {p->out_strides[0], p->out_strides[1], p->out_strides[2], 1};
    for (uint32_t d = 0; d < 3 && widens; d++)
        strides[d] *= 2;
    ree_twin_add_output(s, REE_F32, ree_twin_view(s->size, 4, out_from, out1, strides, NULL));
    for (uint32_t d = 0; d < 3; d++)
        p->out_strides[d] = strides[d];
    return true;
}
