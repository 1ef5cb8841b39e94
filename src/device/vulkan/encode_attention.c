// The encoder of attention: scores, softmax and values. Each is a step over all queries, with the
// scores in the scratch memory. If the products do not convert narrow keys or values, a step for
// each converts them first.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#define FEW_QUERIES 8

struct layout {
    bool combined; // one product for all heads that share keys
    bool k_copy, v_copy;
    uint32_t rows;       // rows per product
    uint64_t n_products; // n_products * rows equals the queries of all heads
};

static struct layout make_layout(const struct ree_vk_encoding *out) {
    const struct ree_attention_params *p = &out->params.attention;
    struct layout l = {0};
    uint32_t group = p->n_heads / p->n_kv_heads;
    bool has_uniform_stride =
        p->q_len == 1 || p->q_strides[1] == (int64_t)p->q_len * p->q_strides[2];
    // Heads with many queries get a product each. The rows of a tile are then neighbouring queries
    // of one head, whose ranges of keys are almost equal.
    l.combined = group > 1 && has_uniform_stride && p->q_len <= FEW_QUERIES;
    l.rows = l.combined ? group * p->q_len : p->q_len;
    l.n_products = (uint64_t)p->batch * (l.combined ? p->n_kv_heads : p->n_heads);
    bool direct = out->forms.of[REE_VK_FMA] == REE_VK_NATIVE;
    l.k_copy = p->k_dtype != REE_F32 && !direct;
    l.v_copy = p->v_dtype != REE_F32 && !direct;
    return l;
}

static void add_constants(struct ree_vk_step *step, const struct ree_attention_params *p,
                          const struct layout *l) {
    const uint32_t constants[] = {
        l->combined,   p->starts_dtype, p->n_keys_dtype,    p->has_allowed,
        p->has_bias,   p->has_sink,     p->softcap != 0,    p->left >= 0,
        p->right >= 0, p->k_dtype,      p->v_dtype,         l->k_copy,
        l->v_copy,     p->scale != 1,   p->zero_empty != 0, p->page_bits,
    };
    for (uint32_t i = 0; i < sizeof constants / sizeof *constants; i++)
        ree_vk_add_spec(step, constants[i]);
}

static void add_widening(struct ree_vk_encoding *out, const struct ree_attention_params *p,
                         const struct layout *l, bool is_v) {
    uint64_t n = (uint64_t)p->batch * p->n_kv_heads * p->kv_len;
    n *= is_v ? p->v_head_dim : p->head_dim;
    if (n == 0) return;
    struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_ATTENTION_WIDEN, 64, n);
    add_constants(step, p, l);
    ree_vk_add_spec(step, is_v);
    out->scratch_bytes += n * 4;
}

// Adds one of the two products. narrow: the product's modules convert its second operand when they
// read it.
static struct ree_vk_step *add_product(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                       const struct ree_attention_params *p, const struct layout *l,
                                       uint32_t first_module, uint32_t n, uint32_t k,
                                       bool can_split, uint64_t store_loops, bool narrow) {
    const uint32_t narrow_modules[2] = {
        REE_VK_SHADER_ATTENTION_SCORES_1_NARROW - REE_VK_SHADER_ATTENTION_SCORES_1_NATIVE,
        REE_VK_SHADER_ATTENTION_SCORES_N_NARROW - REE_VK_SHADER_ATTENTION_SCORES_1_NATIVE};
    struct ree_vk_step *step = ree_vk_add_tiles(vk, out, first_module, l->rows, n, k, can_split,
                                                l->n_products, store_loops);
    if (narrow) step->shader = first_module + narrow_modules[step->shader != first_module];
    add_constants(step, p, l);
    ree_vk_add_tile_spec(vk, step);
    return step;
}

static void add_values(const struct ree_vk *vk, struct ree_vk_encoding *out,
                       const struct ree_attention_params *p, const struct layout *l) {
    bool narrow = p->v_dtype != REE_F32 && !l->v_copy;
    // If queries have different ranges of keys, the sum is repeated for a NaN result, over the keys
    // of its query only.
    bool has_range = (p->left >= 0 || p->right >= 0) && p->starts_dtype == REE_DTYPE_NONE &&
                     p->n_keys_dtype == REE_DTYPE_NONE;
    struct ree_vk_step *step =
        add_product(vk, out, p, l, REE_VK_SHADER_ATTENTION_VALUES_1_NATIVE, p->v_head_dim,
                    p->kv_len, true, has_range ? ree_vk_loop(p->kv_len, 0, 0) : 0, narrow);
    uint64_t n_chunks = ((uint64_t)p->kv_len + REE_CHUNK - 1) / REE_CHUNK;
    if (n_chunks < 2) return;
    bool few = step->n_groups < vk->thresholds.enough_groups;
    if (few || ree_vk_must_split(vk, out))
        ree_vk_split_chunks(out, l->n_products * l->rows * p->v_head_dim, n_chunks);
}

enum ree_status ree_vk_encode_attention(const struct ree_vk *vk,
                                        const struct ree_dispatch *dispatch,
                                        struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    const struct ree_attention_params *p = &out->params.attention;
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return REE_OK;
    struct layout l = make_layout(out);
    uint64_t n_rows = l.n_products * l.rows;
    if (l.k_copy) add_widening(out, p, &l, false);
    if (l.v_copy) add_widening(out, p, &l, true);
    if (p->kv_len > 0) {
        bool group, narrow = p->k_dtype != REE_F32 && !l.k_copy;
        add_product(vk, out, p, &l, REE_VK_SHADER_ATTENTION_SCORES_1_NATIVE, p->kv_len, p->head_dim,
                    false, 0, narrow);
        struct ree_vk_step *step =
            ree_vk_add_rows(vk, out, ree_vk_variant(out, REE_VK_SHADER_ATTENTION_SOFTMAX), n_rows,
                            p->kv_len, &group);
        add_constants(step, p, &l);
        ree_vk_add_spec(step, group);
        out->scratch_bytes += n_rows * p->kv_len * 4;
    }
    add_values(vk, out, p, &l);
    return REE_OK;
}
