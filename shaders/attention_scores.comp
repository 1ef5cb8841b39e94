#version 460
// attention, first step: the scores t of NUMERICS.md, "Attention": chunk-dot(q, k), then scale,
// softcap and bias; -inf if the key does not take part. Scores go to scratch memory.
//
// Keys are float32, or attention_widen has stored them as float32 in scratch memory. Compiled with
// NARROW, the shader widens them to float32 when it reads them.
#include "ree.glsl"
#include "primitives.glsl"
#include "attention.glsl"
#ifdef NARROW
#include "factor.glsl"
#endif

#define TileColumn uint
#define TileStep uint

ReeWords q_words, k_words;
uint q_base, k_base, q_row, q_element, k_row, k_element, tile_product;

TileColumn tile_column(uint j) { return k_base + (K_COPY ? j : attention_key(j)) * k_row; }
TileStep tile_step(uint k) { return k * k_element; }
void tile_next(inout TileStep s) { s += k_element; }
float tile_a(uint i, uint k) {
    return uintBitsToFloat(q_words.w[q_base + i * q_row + k * q_element]);
}
float tile_b(TileStep s, TileColumn c) {
#ifdef NARROW
    return uintBitsToFloat(factor_load(k_words, K_DTYPE, s + c));
#else
    return uintBitsToFloat(k_words.w[s + c]);
#endif
}

// Returns whether key j takes part in row r, by its position, by n_keys and by the mask `allowed`.
bool takes_part(const AttentionRow r, uint j) {
    if (BOUNDED) {
        int distance = int(j) - attention_position(r);
        if (HAS_RIGHT && distance > p.right) return false;
        if (HAS_LEFT && distance < -p.left) return false;
    }
    if (N_KEYS_DTYPE != 0u) {
        uint at = uint(p.n_keys_offset) + r.batch * uint(p.n_keys_stride);
        if (int(j) >= attention_number(ReeWords(p.n_keys), N_KEYS_DTYPE, at)) return false;
    }
    if (HAS_ALLOWED) {
        uint at = uint(p.allowed_offset) + r.batch * uint(p.allowed_strides[0]) +
                  r.head * uint(p.allowed_strides[1]) + r.query * uint(p.allowed_strides[2]) +
                  j * uint(p.allowed_strides[3]);
        if (ree_load8(ReeWords(p.allowed), at) == 0u) return false;
    }
    return true;
}

void store_score(uint i, uint j, uint t) {
    uint row = tile_product * attention_rows() + i;
    attention_scratch().w[attention_scores() + row * p.kv_len + j] = t;
}

void tile_store(uint i, uint j, uint bits) {
    AttentionRow r = attention_row(tile_product, i);
    uint t = HAS_SCALE ? ree_mul(bits, p.scale) : bits;
    if (HAS_SOFTCAP) t = ree_mul(ree_op_tanh_f32(ree_div(t, p.softcap)), p.softcap);
    if (HAS_BIAS) {
        uint at = uint(p.bias_offset) + r.batch * uint(p.bias_strides[0]) +
                  r.head * uint(p.bias_strides[1]) + r.query * uint(p.bias_strides[2]) +
                  j * uint(p.bias_strides[3]);
        uint bias = ReeWords(p.bias).w[at];
        t = bias == (REE_INF | REE_SIGN) ? bias : ree_add(t, bias);
    }
    if (!takes_part(r, j)) t = REE_INF | REE_SIGN;
    store_score(i, j, t);
}
void tile_store_chunk(uint i, uint j, uint bits) { tile_store(i, j, bits); }

#include "tile.glsl"

// Returns true if positions exclude every key of [j0, j1) from every row of [i0, i1). Then all
// scores of this tile are -inf.
bool out_of_sight(uint i0, uint i1, uint j0, uint j1) {
    if (!BOUNDED) return false;
    AttentionRow low = attention_row(tile_product, i0), high = low;
    low.query = COMBINED ? 0u : i0;
    high.query = COMBINED ? p.q_len - 1u : i1 - 1u;
    if (HAS_RIGHT && int(j0) - attention_position(high) > p.right) return true;
    return HAS_LEFT && int(j1) - 1 - attention_position(low) < -p.left;
}

void main() {
    attention_read();
    uint m = attention_rows(), n = p.kv_len;
    uint lanes = gl_WorkGroupSize.x, width = TILE_COLUMNS * lanes;
    uint tiles_j = (n + width - 1u) / width, tiles_i = (m + TM - 1u) / TM, group = ree_group();
    uint tile_j = group % tiles_j, tile_i = group / tiles_j % tiles_i;
    tile_product = group / (tiles_j * tiles_i);
    if (tile_product >= attention_products()) return;
    AttentionRow r = attention_row(tile_product, 0u);
    uint kv_head = r.head / (p.n_heads / p.n_kv_heads), i0 = tile_i * TM;
    q_words = ree_operand(0);
    q_base = uint(p.q_offset) + r.batch * uint(p.q_strides[0]) + r.head * uint(p.q_strides[1]);
    q_row = uint(COMBINED && p.q_len == 1u ? p.q_strides[1] : p.q_strides[2]);
    q_element = uint(p.q_strides[3]);
    uvec2 address = ree_block().operands[1];
    if (K_COPY) {
        address = p.scratch;
        k_base = (r.batch * p.n_kv_heads + kv_head) * p.kv_len * p.head_dim;
        k_row = p.head_dim;
        k_element = 1u;
    } else {
        k_base = uint(p.k_offset) + r.batch * uint(p.k_strides[0]) + kv_head * uint(p.k_strides[1]);
        k_row = uint(p.k_strides[2]);
        k_element = uint(p.k_strides[3]);
    }
    k_words = ReeWords(address);
    attention_use_pages(r.batch);
    uint j0 = tile_j * width, j1 = min(j0 + width, n), i1 = min(i0 + TM, m);
    if (out_of_sight(i0, i1, j0, j1)) {
        for (uint i = i0; i < i1; i++)
            for (uint j = j0 + ree_local(); j < j1; j += lanes)
                store_score(i, j, REE_INF | REE_SIGN);
        return;
    }
    tile_run(i0, j0 + ree_local(), lanes, m, n, 0u, p.head_dim);
}
