// Shared by the attention kernels: rows (a row is one query of one head), the keys that a row
// attends to, and scores. NUMERICS.md, "Attention".
#ifndef REE_CUDA_ATTENTION_H
#define REE_CUDA_ATTENTION_H

#include "kernel.h"

struct attention_row {
    u32 batch, head, query;
    int64_t position;
};

// Index of each optional operand, and of `out`, the result. The index of an absent operand has no
// meaning.
struct attention_operands {
    u32 starts, n_keys, allowed, bias, sink, pages, out;
};
REE_DEVICE struct attention_operands attention_operands_of(const struct ree_attention_params &p) {
    struct attention_operands at;
    u32 next = 3;
    at.starts = next;
    next += p.starts_dtype ? 1u : 0u;
    at.n_keys = next;
    next += p.n_keys_dtype ? 1u : 0u;
    at.allowed = next;
    next += p.has_allowed ? 1u : 0u;
    at.bias = next;
    next += p.has_bias ? 1u : 0u;
    at.sink = next;
    next += p.has_sink ? 1u : 0u;
    at.pages = next;
    next += p.page_bits ? 1u : 0u;
    at.out = next;
    return at;
}

// Returns the index of key j of a batch along the key dimension of k and v. With pages it is the
// index in the pool (repop.h, "attention"); otherwise it is j.
REE_DEVICE u32 attention_key(const struct ree_cuda_header &h, const struct ree_attention_params &p,
                             u32 batch, u32 j) {
    if (p.page_bits == 0) return j;
    const u32 entry = (u32)p.pages_offset + batch * (u32)p.pages_stride + (j >> p.page_bits);
    const u32 page = ree_in<u32>(h, attention_operands_of(p).pages)[entry];
    return page << p.page_bits | (j & ((1u << p.page_bits) - 1u));
}

REE_DEVICE int64_t attention_number(const struct ree_cuda_header &h, u32 operand, u32 dtype,
                                    u32 at) {
    int64_t n = (int64_t)ree_load_any(h, operand, dtype, at);
    if (n > REE_ATTENTION_FAR) return REE_ATTENTION_FAR;
    return n < -(int64_t)REE_ATTENTION_FAR ? -(int64_t)REE_ATTENTION_FAR : n;
}

// Returns row number `row` of key head `kv` = batch * n_kv_heads + key head of the batch. The rows
// of a key head are ordered by query head within the group that shares the key head, then by query.
REE_DEVICE struct attention_row attention_row_of(const struct ree_cuda_header &h,
                                                 const struct ree_attention_params &p, u32 kv,
                                                 u32 row) {
    struct attention_row r;
    u32 group = p.n_heads / p.n_kv_heads;
    r.batch = kv / p.n_kv_heads;
    r.head = kv % p.n_kv_heads * group + row / p.q_len;
    r.query = row % p.q_len;
    r.position = (int64_t)p.start + r.query;
    if (p.starts_dtype)
        r.position += attention_number(h, 3, p.starts_dtype,
                                       (u32)p.starts_offset + r.batch * (u32)p.starts_stride);
    return r;
}

REE_DEVICE bool attention_takes(const struct ree_cuda_header &h,
                                const struct ree_attention_params &p,
                                const struct attention_operands &at, const struct attention_row &r,
                                u32 j, int64_t n_keys) {
    if (p.left >= 0 && (int64_t)j < r.position - p.left) return false;
    if (p.right >= 0 && (int64_t)j > r.position + p.right) return false;
    if ((int64_t)j >= n_keys) return false;
    if (!p.has_allowed) return true;
    u32 i = (u32)p.allowed_offset + r.batch * (u32)p.allowed_strides[0] +
            r.head * (u32)p.allowed_strides[1] + r.query * (u32)p.allowed_strides[2] +
            j * (u32)p.allowed_strides[3];
    uint8_t allowed = ree_in<uint8_t>(h, at.allowed)[i];
    return allowed != 0;
}
// Computes which chunks of 256 keys the sums of a row include: chunks *first ... *end - 1, none if
// *first == *end. They contain the keys of ree_attention_keys.
REE_DEVICE void attention_chunks(const struct ree_attention_params &p,
                                 const struct attention_row &r, u32 *first, u32 *end) {
    const u32 n_chunks = (p.kv_len + REE_CHUNK - 1u) / REE_CHUNK;
    *first = 0;
    *end = n_chunks;
    if (p.starts_dtype || p.n_keys_dtype) return;
    const int64_t least = r.position - p.left, most = r.position + p.right;
    if (p.left >= 0 && least > 0) *first = (u32)(least / REE_CHUNK);
    if (p.right >= 0)
        *end = most < 0                      ? 0u
               : most / REE_CHUNK < n_chunks ? (u32)(most / REE_CHUNK) + 1u
                                             : n_chunks;
    if (*first > *end) *first = *end;
}
REE_DEVICE bool attention_has_chunk(const struct ree_attention_params &p,
                                    const struct attention_row &r, u32 c) {
    u32 first, end;
    attention_chunks(p, r, &first, &end);
    return c >= first && c < end;
}

// Returns the score of key j for row r (t in NUMERICS.md), or -inf if the row does not attend to
// the key. `sum` is the total of the products of query and key. The function adds +0 to it and
// applies scale, softcap, mask and bias.
REE_DEVICE float attention_score(const struct ree_cuda_header &h,
                                 const struct ree_attention_params &p,
                                 const struct attention_operands &at, const struct attention_row &r,
                                 u32 j, int64_t n_keys, float sum) {
    float t = ree_canon(ree_plus_zero(sum));
    if (p.scale != 1.0f) t = ree_canon(__fmul_rn(t, p.scale));
    if (p.softcap != 0.0f) {
        u32 bits = ree_op_tanh_f32(ree_bits(__fdiv_rn(t, p.softcap)));
        t = ree_canon(__fmul_rn(ree_float(bits), p.softcap));
    }
    float nothing = ree_float(REE_INF | REE_SIGN);
    if (!attention_takes(h, p, at, r, j, n_keys)) {
        t = nothing;
    } else if (p.has_bias) {
        float bias = ree_in<float>(
            h, at.bias)[(u32)p.bias_offset + r.batch * (u32)p.bias_strides[0] +
                        r.head * (u32)p.bias_strides[1] + r.query * (u32)p.bias_strides[2] +
                        j * (u32)p.bias_strides[3]];
        t = bias == nothing ? nothing : ree_canon(__fadd_rn(t, bias));
    }
    return t;
}

REE_DEVICE int64_t attention_n_keys(const struct ree_cuda_header &h,
                                    const struct ree_attention_params &p,
                                    const struct attention_operands &at, u32 batch) {
    if (!p.n_keys_dtype) return p.kv_len;
    return attention_number(h, at.n_keys, p.n_keys_dtype,
                            (u32)p.n_keys_offset + batch * (u32)p.n_keys_stride);
}

#endif
