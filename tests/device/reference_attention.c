// One query after another, as defined in NUMERICS.md, "Attention".
#include "reference.h"
#include "repops/scalar/ops.h"

#include <math.h>
#include <stdlib.h>

struct query {
    const struct ree_attention_params *p;
    void *const *operands;
    struct ree_attention_operands at;
    uint32_t batch, head, number;
    int64_t position;
};

static float load(uint32_t dtype, const void *data, int64_t i) {
    uint32_t bits = (uint32_t)reference_load((enum ree_dtype)dtype, data, i);
    if (dtype == REE_F16) bits = ree_soft_f16_to_f32(bits);
    if (dtype == REE_BF16) bits = ree_op_bf16_to_f32(bits);
    return ree_float(bits);
}

static int64_t view(int32_t offset, const int32_t *strides, uint32_t a, uint32_t b, uint32_t c,
                    uint32_t d) {
    return offset + (int64_t)a * strides[0] + (int64_t)b * strides[1] + (int64_t)c * strides[2] +
           (int64_t)d * strides[3];
}

static int64_t read_number(const struct query *q, uint32_t operand, uint32_t dtype, int32_t offset,
                           int32_t stride) {
    const void *data = q->operands[operand];
    int64_t i = offset + (int64_t)q->batch * stride;
    int64_t n = dtype == REE_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
    if (n > REE_ATTENTION_FAR) n = REE_ATTENTION_FAR;
    return n < -REE_ATTENTION_FAR ? -REE_ATTENTION_FAR : n;
}

static bool takes_part(const struct query *q, uint32_t j) {
    const struct ree_attention_params *p = q->p;
    if (p->left >= 0 && j < q->position - p->left) return false;
    if (p->right >= 0 && j > q->position + p->right) return false;
    if (p->n_keys_dtype &&
        j >= read_number(q, q->at.n_keys, p->n_keys_dtype, p->n_keys_offset, p->n_keys_stride))
        return false;
    if (p->has_allowed &&
        !((const uint8_t *)q->operands[q->at.allowed])[view(p->allowed_offset, p->allowed_strides,
                                                            q->batch, q->head, q->number, j)])
        return false;
    return true;
}

// Returns whether the sums include the chunk of key j.
static bool in_sums(const struct query *q, uint32_t j) {
    const struct ree_attention_params *p = q->p;
    int64_t first = j / REE_CHUNK * REE_CHUNK, last = first + REE_CHUNK - 1;
    if (p->starts_dtype || p->n_keys_dtype) return true;
    return (p->left < 0 || last >= q->position - p->left) &&
           (p->right < 0 || first <= q->position + p->right);
}

// Returns where key j is in the pool of pages, or j without pages.
static uint32_t key_at(const struct query *q, uint32_t j) {
    const struct ree_attention_params *p = q->p;
    if (!p->page_bits) return j;
    const int32_t *pages = q->operands[q->at.pages];
    int64_t entry = p->pages_offset + (int64_t)q->batch * p->pages_stride + (j >> p->page_bits);
    return (uint32_t)pages[entry] * (1u << p->page_bits) + j % (1u << p->page_bits);
}

static uint32_t score(const struct query *q, uint32_t j) {
    const struct ree_attention_params *p = q->p;
    uint32_t group = p->n_heads / p->n_kv_heads, nothing = ree_bits(-INFINITY);
    struct reference_sum dot;
    reference_sum_begin(&dot, false);
    for (uint32_t d = 0; d < p->head_dim; d++)
        reference_sum_fma(
            &dot,
            load(REE_F32, q->operands[0],
                 view(p->q_offset, p->q_strides, q->batch, q->head, q->number, d)),
            load(p->k_dtype, q->operands[1],
                 view(p->k_offset, p->k_strides, q->batch, q->head / group, key_at(q, j), d)));
    uint32_t t = reference_sum_end(dot);
    if (p->scale != 1) t = ree_op_mul_f32(t, ree_bits(p->scale));
    if (p->softcap != 0)
        t = ree_op_mul_f32(ree_op_tanh_f32(ree_op_div_f32(t, ree_bits(p->softcap))),
                           ree_bits(p->softcap));
    if (!takes_part(q, j)) return nothing;
    if (!p->has_bias) return t;
    uint32_t bias = (uint32_t)reference_load(
        REE_F32, q->operands[q->at.bias],
        view(p->bias_offset, p->bias_strides, q->batch, q->head, q->number, j));
    return bias == nothing ? nothing : ree_op_add_f32(t, bias);
}

// Replaces the scores in w by weights.
static void weigh(const struct query *q, uint32_t *w) {
    const struct ree_attention_params *p = q->p;
    uint32_t nothing = ree_bits(-INFINITY), max = nothing, sink = 0;
    for (uint32_t j = 0; j < p->kv_len; j++)
        max = ree_op_max_f32(max, w[j]);
    if (p->has_sink) {
        const int32_t *s = p->sink_strides;
        int64_t at = p->sink_offset + (int64_t)q->batch * s[0] + (int64_t)q->head * s[1] +
                     (int64_t)q->number * s[2];
        sink = (uint32_t)reference_load(REE_F32, q->operands[q->at.sink], at);
        max = ree_op_max_f32(max, sink);
    }
    bool empty = p->zero_empty && max == nothing;
    if (empty) max = 0;
    struct reference_sum sum;
    reference_sum_begin(&sum, false);
    for (uint32_t j = 0; j < p->kv_len; j++) {
        w[j] = ree_op_exp_f32(ree_op_sub_f32(w[j], max));
        reference_sum_add(&sum, ree_float(w[j]));
    }
    uint32_t z = reference_sum_end(sum);
    if (p->has_sink) z = ree_op_add_f32(z, ree_op_exp_f32(ree_op_sub_f32(sink, max)));
    if (empty) z = ree_bits(1);
    for (uint32_t j = 0; j < p->kv_len; j++)
        w[j] = ree_op_div_f32(w[j], z);
}

static void attend(const struct query *q, uint32_t *w) {
    const struct ree_attention_params *p = q->p;
    uint32_t group = p->n_heads / p->n_kv_heads;
    for (uint32_t j = 0; j < p->kv_len; j++)
        w[j] = score(q, j);
    weigh(q, w);
    uint32_t *out = q->operands[q->at.out];
    out += q->batch * (int64_t)p->out_strides[0] + q->head * (int64_t)p->out_strides[1] +
           q->number * (int64_t)p->out_strides[2];
    for (uint32_t i = 0; i < p->v_head_dim; i++) {
        // The sums skip the chunks before the first and after the last included chunk: they have no
        // terms.
        struct reference_sum dot;
        reference_sum_begin(&dot, false);
        for (uint32_t j = 0; j < p->kv_len; j++)
            if (in_sums(q, j))
                reference_sum_fma(&dot, ree_float(w[j]),
                                  load(p->v_dtype, q->operands[2],
                                       view(p->v_offset, p->v_strides, q->batch, q->head / group,
                                            key_at(q, j), i)));
        out[i] = reference_sum_end(dot);
    }
}

void reference_attention(const struct ree_attention_params *p, void *const *operands) {
    struct query q = {.p = p, .operands = operands, .at = ree_attention_operands(p)};
    uint32_t *w = malloc((p->kv_len + 1) * sizeof *w);
    if (!w) abort();
    for (q.batch = 0; q.batch < p->batch; q.batch++)
        for (q.head = 0; q.head < p->n_heads; q.head++)
            for (q.number = 0; q.number < p->q_len; q.number++) {
                q.position = (int64_t)p->start + q.number;
                if (p->starts_dtype)
                    q.position += read_number(&q, q.at.starts, p->starts_dtype, p->starts_offset,
                                              p->starts_stride);
                attend(&q, w);
            }
    free(w);
}
