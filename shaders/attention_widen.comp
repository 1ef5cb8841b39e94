#version 460
// attention, before the first step: converts narrow keys or values to dense float32 in scratch
// memory, (batch, n_kv_heads, kv_len, size). The values follow the keys.
#include "ree.glsl"
#include "primitives.glsl"
#include "attention.glsl"
#include "factor.glsl"

layout(constant_id = 32) const bool IS_V = false;

void main() {
    attention_read();
    uint index = ree_thread(), size = IS_V ? p.v_head_dim : p.head_dim;
    if (index >= p.batch * p.n_kv_heads * p.kv_len * size) return;
    uint element = index % size, row = index / size;
    uint key = row % p.kv_len, head = row / p.kv_len;
    uint batch = head / p.n_kv_heads;
    head %= p.n_kv_heads;
    attention_use_pages(batch);
    key = attention_key(key);
    uint at, value;
    if (IS_V) {
        at = uint(p.v_offset) + batch * uint(p.v_strides[0]) + head * uint(p.v_strides[1]) +
             key * uint(p.v_strides[2]) + element * uint(p.v_strides[3]);
        value = factor_load(ree_operand(2), V_DTYPE, at);
        index += attention_k_copy();
    } else {
        at = uint(p.k_offset) + batch * uint(p.k_strides[0]) + head * uint(p.k_strides[1]) +
             key * uint(p.k_strides[2]) + element * uint(p.k_strides[3]);
        value = factor_load(ree_operand(1), K_DTYPE, at);
    }
    attention_scratch().w[index] = value;
}
