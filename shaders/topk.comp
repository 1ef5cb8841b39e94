#version 460
// topk: the first k of n along the middle dimension of (outer, n, inner), by value, equal values by
// ascending index, NaN above everything, -0 equal to +0. NUMERICS.md section 7.
//
// The rank of an element is the number of elements before it. A thread counts them for one element
// and stops at k, so most threads stop early if k is small.
//
// Some drivers end loops after a number of iterations. A middle dimension that is too long for such
// a driver is divided into N_PARTS parts. In stage 1 each thread counts one part for one element
// and writes the number to scratch memory. In stage 2 each thread adds the numbers of its element.
#include "ree.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint DTYPE = 1;
layout(constant_id = 17) const bool LARGEST = true;
layout(constant_id = 18) const uint STAGE = 0; // 0: everything in one step

const uint N_PARTS = 16u; // must match encode_vectors.c

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint dtype;
    uint outer, n, inner, k;
    uint largest;
};

const bool IS_WIDE = DTYPE == REE_DT_I64 || DTYPE == REE_DT_U64 || DTYPE == REE_DT_F64;
const bool IS_SIGNED = DTYPE == REE_DT_I8 || DTYPE == REE_DT_I32 || DTYPE == REE_DT_I64;

// Returns an unsigned key that orders the values; the first value has the least key.
uvec2 key(uint at) {
    uvec2 x = ree_load(ree_operand(0), DTYPE, at);
    if (DTYPE == REE_DT_F32) {
        if (ree_is_nan(x.x)) x.x = 0xFFFFFFFFu;
        else if (ree_is_zero(x.x)) x.x = REE_SIGN;
        else x.x = (x.x & REE_SIGN) != 0u ? ~x.x : x.x | REE_SIGN;
    } else if (DTYPE == REE_DT_F64) {
        if (ree_f64_is_nan(x)) x = uvec2(0xFFFFFFFFu);
        else x = ree_f64_order_key(ree_f64_is_zero(x) ? uvec2(0u) : x);
    } else if (IS_SIGNED) {
        if (IS_WIDE) x.y ^= 0x80000000u;
        else x.x ^= 0x80000000u;
    }
    return LARGEST ? ~x : x;
}
bool less(uvec2 a, uvec2 b) { return IS_WIDE ? u64_lt(a, b) : a.x < b.x; }

// Returns whether element j, stored at `at`, comes before element i, whose key is `own`. Among
// equal values, smaller indices come first.
bool is_before(uint j, uint at, uint i, uvec2 own) {
    uvec2 other = key(at);
    return j < i ? !less(own, other) : less(other, own);
}

void main() {
    Params p = Params(ree_params());
    uint n = p.n, inner = p.inner, k = p.k, total = p.outer * n * inner;
    uint thread = ree_thread() % total, part = ree_thread() / total;
    if (part >= (STAGE == 1u ? N_PARTS : 1u)) return;
    uint i = thread / inner % n, outer = thread / inner / n, column = thread % inner;
    uint place = 0u;
    if (STAGE == 2u) {
        for (uint q = 0u; q < N_PARTS; q++)
            place += ree_scratch().w[q * total + thread];
    } else {
        uint length = STAGE == 1u ? (n + N_PARTS - 1u) / N_PARTS : n;
        uint first = part * length, end = min(first + length, n);
        uint at = outer * n * inner + column + first * inner;
        uvec2 own = key(thread);
        for (uint j = first; j < end && place < k; j++, at += inner)
            place += is_before(j, at, i, own) ? 1u : 0u;
    }
    if (STAGE == 1u) {
        ree_scratch().w[part * total + thread] = place;
        return;
    }
    if (place >= k) return;
    uint to = (outer * k + place) * inner + column;
    uvec2 value = ree_load(ree_operand(0), DTYPE, thread);
    if (DTYPE == REE_DT_F32) value.x = ree_canon(value.x);
    if (DTYPE == REE_DT_F64) value = ree_f64_canon(value);
    ree_store(ree_operand(1), DTYPE, to, value);
    ree_store64(ree_operand(2), to, uvec2(i, 0u));
}
