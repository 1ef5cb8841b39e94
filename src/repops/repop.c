// Names, parameter sizes and operands of the RepOps. check.c checks dispatches, print.c prints
// them.
#include "repops/repop.h"

static const struct {
    const char *name;
    size_t params_size;
} repops[REE_N_REPOPS] = {
    [REE_REPOP_COPY] = {"copy", sizeof(struct ree_copy_params)},
    [REE_REPOP_MAP] = {"map", sizeof(struct ree_map_params)},
    [REE_REPOP_REDUCE] = {"reduce", sizeof(struct ree_reduce_params)},
    [REE_REPOP_MATMUL] = {"matmul", sizeof(struct ree_matmul_params)},
    [REE_REPOP_CONV] = {"conv", sizeof(struct ree_conv_params)},
    [REE_REPOP_POOL] = {"pool", sizeof(struct ree_pool_params)},
    [REE_REPOP_SOFTMAX] = {"softmax", sizeof(struct ree_softmax_params)},
    [REE_REPOP_NORM] = {"norm", sizeof(struct ree_norm_params)},
    [REE_REPOP_GATHER] = {"gather", sizeof(struct ree_gather_params)},
    [REE_REPOP_SCATTER] = {"scatter", sizeof(struct ree_scatter_params)},
    [REE_REPOP_TOPK] = {"topk", sizeof(struct ree_topk_params)},
    [REE_REPOP_SCAN] = {"scan", sizeof(struct ree_scan_params)},
    [REE_REPOP_RESIZE] = {"resize", sizeof(struct ree_resize_params)},
    [REE_REPOP_ATTENTION] = {"attention", sizeof(struct ree_attention_params)},
};

const char *ree_repop_name(enum ree_repop op) {
    return (unsigned)op < REE_N_REPOPS ? repops[op].name : "?";
}

uint32_t ree_matmul_n_operands(const struct ree_matmul_params *p) {
    if (!p->b_block) return 2;
    return 3 + (p->has_zero_points != 0) + (p->a_block != 0);
}

uint32_t ree_conv_n_operands(const struct ree_conv_params *p) {
    return p->has_pad_value ? 3 : 2;
}

enum ree_dtype ree_conv_sum_dtype(const struct ree_conv_params *p) {
    return p->x_dtype == REE_F32 ? REE_F32 : REE_I32;
}

void ree_attention_keys(const struct ree_attention_params *p, uint32_t row, uint32_t *out_first,
                        uint32_t *out_end) {
    *out_first = 0;
    *out_end = p->kv_len;
    if (p->starts_dtype != REE_DTYPE_NONE || p->n_keys_dtype != REE_DTYPE_NONE) return;
    int64_t position = (int64_t)p->start + row, kv_len = p->kv_len, first = 0, end = kv_len;
    if (p->right >= 0 && p->right < kv_len - position) {
        int64_t last = position + p->right;
        end = last < 0 ? 0 : (last / REE_CHUNK + 1) * REE_CHUNK;
        if (end > kv_len) end = kv_len;
    }
    if (p->left >= 0 && p->left < position) first = (position - p->left) / REE_CHUNK * REE_CHUNK;
    *out_first = (uint32_t)(first < end ? first : end);
    *out_end = (uint32_t)end;
}

struct ree_attention_operands ree_attention_operands(const struct ree_attention_params *p) {
    uint32_t next = 3;
    struct ree_attention_operands at;
    at.starts = p->starts_dtype != REE_DTYPE_NONE ? next++ : UINT32_MAX;
    at.n_keys = p->n_keys_dtype != REE_DTYPE_NONE ? next++ : UINT32_MAX;
    at.allowed = p->has_allowed ? next++ : UINT32_MAX;
    at.bias = p->has_bias ? next++ : UINT32_MAX;
    at.sink = p->has_sink ? next++ : UINT32_MAX;
    at.pages = p->page_bits ? next++ : UINT32_MAX;
    at.out = next;
    return at;
}

size_t ree_repop_params_size(enum ree_repop op) {
    return (unsigned)op < REE_N_REPOPS ? repops[op].params_size : 0;
}
