// struct ree_attention_params of repop.h, and code shared by the attention shaders. The scores are
// in scratch memory, (batch, n_heads, q_len, kv_len), after the copies of keys and values.
//
// Scores and values are matrix products. By default there is one product per batch and query head,
// and its rows are the queries. With COMBINED there is one product per batch and key head, and its
// rows are (head, query) for the heads that share the keys; this requires that these rows have a
// uniform stride in memory. The order of all rows of scores is the same in both cases.
#ifndef REE_GLSL_ATTENTION
#define REE_GLSL_ATTENTION

layout(constant_id = 16) const bool COMBINED = false;
layout(constant_id = 17) const uint STARTS_DTYPE = 0; // 0: no operand
layout(constant_id = 18) const uint N_KEYS_DTYPE = 0;
layout(constant_id = 19) const bool HAS_ALLOWED = false;
layout(constant_id = 20) const bool HAS_BIAS = false;
layout(constant_id = 21) const bool HAS_SINK = false;
layout(constant_id = 22) const bool HAS_SOFTCAP = false;
layout(constant_id = 23) const bool HAS_LEFT = false;
layout(constant_id = 24) const bool HAS_RIGHT = false;
layout(constant_id = 25) const uint K_DTYPE = REE_DT_F32;
layout(constant_id = 26) const uint V_DTYPE = REE_DT_F32;
// Whether attention_widen has stored keys and values as dense float32 in scratch memory.
layout(constant_id = 27) const bool K_COPY = false;
layout(constant_id = 28) const bool V_COPY = false;
layout(constant_id = 29) const bool HAS_SCALE = false; // the scale is not 1
layout(constant_id = 30) const bool ZERO_EMPTY = false;
layout(constant_id = 31) const uint PAGE_BITS = 0; // 0: no operand

const bool BOUNDED = HAS_LEFT || HAS_RIGHT;

const uint OPERAND_N_KEYS = 3u + (STARTS_DTYPE != 0u ? 1u : 0u);
const uint OPERAND_ALLOWED = OPERAND_N_KEYS + (N_KEYS_DTYPE != 0u ? 1u : 0u);
const uint OPERAND_BIAS = OPERAND_ALLOWED + (HAS_ALLOWED ? 1u : 0u);
const uint OPERAND_SINK = OPERAND_BIAS + (HAS_BIAS ? 1u : 0u);
const uint OPERAND_PAGES = OPERAND_SINK + (HAS_SINK ? 1u : 0u);
const uint OPERAND_OUT = OPERAND_PAGES + (PAGE_BITS != 0u ? 1u : 0u);
// Whether the sums of a query may leave out keys. If starts or n_keys is an operand, they do not.
const bool HAS_RANGE = BOUNDED && STARTS_DTYPE == 0u && N_KEYS_DTYPE == 0u;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint batch;
    uint n_heads, n_kv_heads;
    uint q_len, kv_len, head_dim, v_head_dim;
    uint k_dtype, v_dtype;
    int q_offset, k_offset, v_offset;
    int q_strides[4];
    int k_strides[4];
    int v_strides[4];
    int out_strides[3];
    uint scale, softcap; // bits of the float32
    int left, right;
    int start;
    uint starts_dtype, n_keys_dtype;
    uint has_allowed, has_bias, has_sink;
    int starts_offset, n_keys_offset, allowed_offset, bias_offset, sink_offset;
    int starts_stride, n_keys_stride;
    int allowed_strides[4];
    int bias_strides[4];
    int sink_strides[3];
    uint zero_empty;
    uint page_bits, pool_len;
    int pages_offset, pages_stride;
};

// The parameters and the addresses of the operands, read once, before the first branch
// (shaders/README.md).
struct Attention {
    uint batch, n_heads, n_kv_heads, q_len, kv_len, head_dim, v_head_dim;
    int q_offset, k_offset, v_offset;
    ivec4 q_strides, k_strides, v_strides;
    ivec3 out_strides;
    uint scale, softcap;
    int left, right, start;
    int starts_offset, n_keys_offset, allowed_offset, bias_offset, sink_offset;
    int starts_stride, n_keys_stride;
    ivec4 allowed_strides, bias_strides;
    ivec3 sink_strides;
    int pages_offset, pages_stride;
    uvec2 starts, n_keys, allowed, bias, sink, pages, result, scratch;
};
Attention p;

void attention_read() {
    Params from = Params(ree_params());
    p.batch = from.batch;
    p.n_heads = from.n_heads;
    p.n_kv_heads = from.n_kv_heads;
    p.q_len = from.q_len;
    p.kv_len = from.kv_len;
    p.head_dim = from.head_dim;
    p.v_head_dim = from.v_head_dim;
    p.q_offset = from.q_offset;
    p.k_offset = from.k_offset;
    p.v_offset = from.v_offset;
#define REE_READ_4(name)                                                                           \
    p.name = ivec4(from.name[0], from.name[1], from.name[2], from.name[3]);
    REE_READ_4(q_strides)
    REE_READ_4(k_strides)
    REE_READ_4(v_strides)
    p.out_strides = ivec3(from.out_strides[0], from.out_strides[1], from.out_strides[2]);
    p.scale = from.scale;
    p.softcap = from.softcap;
    p.left = from.left;
    p.right = from.right;
    p.start = from.start;
    p.starts_offset = from.starts_offset;
    p.n_keys_offset = from.n_keys_offset;
    p.allowed_offset = from.allowed_offset;
    p.bias_offset = from.bias_offset;
    p.sink_offset = from.sink_offset;
    p.starts_stride = from.starts_stride;
    p.n_keys_stride = from.n_keys_stride;
    REE_READ_4(allowed_strides)
    REE_READ_4(bias_strides)
    p.sink_strides = ivec3(from.sink_strides[0], from.sink_strides[1], from.sink_strides[2]);
#undef REE_READ_4
    p.pages_offset = from.pages_offset;
    p.pages_stride = from.pages_stride;
    p.starts = ree_block().operands[3];
    p.n_keys = ree_block().operands[OPERAND_N_KEYS];
    p.allowed = ree_block().operands[OPERAND_ALLOWED];
    p.bias = ree_block().operands[OPERAND_BIAS];
    p.sink = ree_block().operands[OPERAND_SINK];
    p.pages = ree_block().operands[OPERAND_PAGES];
    p.result = ree_block().operands[OPERAND_OUT];
    p.scratch = ree_block().scratch;
}
ReeWords attention_scratch() { return ReeWords(p.scratch); }

uint attention_k_copy() {
    return K_COPY ? p.batch * p.n_kv_heads * p.kv_len * p.head_dim : 0u;
}
uint attention_scores() {
    uint v_copy = V_COPY ? p.batch * p.n_kv_heads * p.kv_len * p.v_head_dim : 0u;
    return attention_k_copy() + v_copy;
}

struct AttentionRow {
    uint batch, head, query;
};
AttentionRow attention_row(uint product, uint row) {
    uint heads = COMBINED ? p.n_kv_heads : p.n_heads;
    AttentionRow r;
    r.batch = product / heads;
    r.head = product % heads;
    r.query = row;
    if (COMBINED) {
        r.head = r.head * (p.n_heads / p.n_kv_heads) + row / p.q_len;
        r.query = row % p.q_len;
    }
    return r;
}
uint attention_rows() {
    return COMBINED ? p.n_heads / p.n_kv_heads * p.q_len : p.q_len;
}
uint attention_products() {
    return p.batch * (COMBINED ? p.n_kv_heads : p.n_heads);
}

// Returns element `at` of starts or n_keys, clamped to +-2^30 (REE_ATTENTION_FAR).
int attention_number(const ReeWords numbers, uint dtype, uint at) {
    uint low, high;
    if (dtype == REE_DT_I64) {
        uvec2 both = ree_load64(numbers, at);
        low = both.x;
        high = both.y;
    } else {
        low = numbers.w[at];
        high = uint(int(low) >> 31);
    }
    if (high != uint(int(low) >> 31)) return int(high) < 0 ? -0x40000000 : 0x40000000;
    return clamp(int(low), -0x40000000, 0x40000000);
}

// Returns the position of a query among the keys.
int attention_position(const AttentionRow r) {
    int position = p.start + int(r.query);
    if (STARTS_DTYPE != 0u)
        position += attention_number(ReeWords(p.starts), STARTS_DTYPE,
                                     uint(p.starts_offset) + r.batch * uint(p.starts_stride));
    return position;
}

// attention_use_pages selects the page table of a batch. attention_key then returns the index of
// key j of this batch along the key dimension of k and v: with pages the index in the pool
// (repop.h, "attention"), otherwise j.
uint attention_pages_base;
void attention_use_pages(uint batch) {
    attention_pages_base = uint(p.pages_offset) + batch * uint(p.pages_stride);
}
uint attention_key(uint j) {
    uint key = j;
    if (PAGE_BITS != 0u) {
        uint page = ReeWords(p.pages).w[attention_pages_base + (j >> PAGE_BITS)];
        key = page << PAGE_BITS | (j & ((1u << PAGE_BITS) - 1u));
    }
    return key;
}

// Computes the range of keys that the sums of a query include, as ree_attention_keys of
// src/repops/repop.c does.
void attention_keys(uint query, out uint first, out uint end) {
    first = 0u;
    end = p.kv_len;
    if (!HAS_RANGE) return;
    int position = p.start + int(query), kv_len = int(p.kv_len);
    if (HAS_RIGHT && p.right < kv_len - position) {
        int last = position + p.right;
        end = last < 0 ? 0u : min((uint(last) / REE_CHUNK + 1u) * REE_CHUNK, p.kv_len);
    }
    if (HAS_LEFT && p.left < position)
        first = min(uint(position - p.left) / REE_CHUNK * REE_CHUNK, end);
}

#endif
