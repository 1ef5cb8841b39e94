#version 460
// reduce: out[o] = reduction over r, ascending, of x[offset + sum(o * outer_stride) + sum(r *
// reduce_stride)]. float32 sums and products use the chunk scheme, NUMERICS.md section 3; integers
// wrap around.
//
// STAGE 0: each thread reduces one output. Few outputs with many terms take two steps:
// - STAGE 1: each thread reduces one chunk of 256 terms to a partial result (value, index and
//   count, 4 words) in scratch memory, [n_outer][n_chunks];
// - STAGE 2: each thread combines the partial results of one output in ascending order.
//
// Compiled with DOUBLE, the shader reduces float64, emulated in integers.
#include "ree.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint KIND = 0;
layout(constant_id = 17) const uint DTYPE = 1;
layout(constant_id = 18) const uint STAGE = 0;
layout(constant_id = 19) const bool SELECT_LAST = false;
layout(constant_id = 20) const uint OUTER_RANK = 0;
layout(constant_id = 21) const uint REDUCE_RANK = 1;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint kind;
    uint dtype;
    uint select_last;
    int offset;
    uint n_outer;
    uint n_reduce;
    uint outer_rank, reduce_rank;
    uint outer_dims[REE_MAX_RANK];
    int outer_strides[REE_MAX_RANK];
    uint reduce_dims[REE_MAX_RANK];
    int reduce_strides[REE_MAX_RANK];
};

#define SUM 0u
#define SUM_SQ 1u
#define SUM_ABS 2u
#define PROD 3u
#define MAX 4u
#define MIN 5u
#define ARGMAX 6u
#define ARGMIN 7u

const bool IS_FLOAT = DTYPE == REE_DT_F32;
const bool IS_WIDE = DTYPE == REE_DT_I64 || DTYPE == REE_DT_U64;
#define DOUBLE_MINUS uvec2(0u, REE_SIGN) // -0
const bool IS_SIGNED = DTYPE == REE_DT_I8 || DTYPE == REE_DT_I32 || DTYPE == REE_DT_I64;
const bool IS_ARG = KIND >= ARGMAX;
const bool IS_MAX = KIND == MAX || KIND == ARGMAX;

struct Partial {
    uvec2 value;
    uint index; // index of the value, for ARGMAX and ARGMIN
    uint n;     // terms so far
};

// Returns the value before the first term. It is also the result of no terms: 0, 1, or the maximum
// or minimum of an empty set.
uvec2 start() {
#ifdef DOUBLE
    if (KIND == PROD) return uvec2(0u, 0x3FF00000u);
    if (KIND == MAX || KIND == MIN) return uvec2(0u, IS_MAX ? 0xFFF00000u : 0x7FF00000u);
    return uvec2(0u);
#endif
    if (KIND == PROD) return uvec2(IS_FLOAT ? REE_ONE : 1u, 0u);
    if (KIND != MAX && KIND != MIN) return uvec2(0u);
    switch (DTYPE) {
    case REE_DT_F32: return uvec2(IS_MAX ? REE_INF | REE_SIGN : REE_INF, 0u);
    case REE_DT_I8: return uvec2(IS_MAX ? 0xFFFFFF80u : 0x7Fu, 0u);
    case REE_DT_U8: return uvec2(IS_MAX ? 0u : 0xFFu, 0u);
    case REE_DT_BOOL: return uvec2(IS_MAX ? 0u : 1u, 0u);
    case REE_DT_I32: return uvec2(IS_MAX ? 0x80000000u : 0x7FFFFFFFu, 0u);
    case REE_DT_I64:
        return uvec2(IS_MAX ? 0u : 0xFFFFFFFFu, IS_MAX ? 0x80000000u : 0x7FFFFFFFu);
    default: return uvec2(IS_MAX ? 0u : 0xFFFFFFFFu);
    }
}

bool less(uvec2 a, uvec2 b) {
#ifdef DOUBLE
    return ree_f64_lt(a, b) != 0u;
#endif
    if (IS_FLOAT) return ree_soft_lt(a.x, b.x) != 0u;
    if (IS_WIDE) return IS_SIGNED ? u64_slt(a, b) : u64_lt(a, b);
    return IS_SIGNED ? int(a.x) < int(b.x) : a.x < b.x;
}
bool is_nan(uvec2 x) {
#ifdef DOUBLE
    return ree_f64_is_nan(x);
#endif
    return IS_FLOAT && ree_is_nan(x.x);
}
// Returns whether x is a better extremum than y. A NaN is better than every number, and nothing is
// better than a NaN.
bool better(uvec2 x, uvec2 y) {
    if (is_nan(y)) return false;
    if (is_nan(x)) return true;
    return IS_MAX ? less(y, x) : less(x, y);
}

// Combines two partial values of sums, products and extrema; r is the later one.
uvec2 combine(uvec2 acc, uvec2 r) {
#ifdef DOUBLE
    if (KIND == PROD) return ree_f64_soft_mul(acc, r);
    if (KIND == MAX) return ree_f64_max(acc, r);
    if (KIND == MIN) return ree_f64_min(acc, r);
    return ree_f64_soft_add(acc, r);
#endif
    if (IS_FLOAT) {
        if (KIND == PROD) return uvec2(ree_mul(acc.x, r.x), 0u);
        if (KIND == MAX) return uvec2(ree_soft_max(acc.x, r.x), 0u);
        if (KIND == MIN) return uvec2(ree_soft_min(acc.x, r.x), 0u);
        return uvec2(ree_add(acc.x, r.x), 0u);
    }
    if (KIND == PROD) return IS_WIDE ? u64_mul(acc, r) : uvec2(acc.x * r.x, 0u);
    if (KIND == MAX || KIND == MIN) return less(acc, r) == IS_MAX ? r : acc;
    return IS_WIDE ? u64_add(acc, r) : uvec2(acc.x + r.x, 0u);
}

void take_arg(inout Partial p, uvec2 value, uint index) {
    bool takes = p.n == 0u || better(value, p.value);
    if (SELECT_LAST && !takes)
        takes = !better(p.value, value) && !is_nan(p.value);
    if (takes) {
        p.value = value;
        p.index = index;
    }
}

// Adds one term to a chunk.
void add_term(inout Partial p, uvec2 x, uint r) {
    if (IS_ARG) {
        take_arg(p, x, r);
    } else if (KIND == SUM_SQ) {
#ifdef DOUBLE
        p.value = ree_f64_soft_fma(x, x, p.value);
#else
        if (IS_FLOAT)
            p.value.x = ree_fma(x.x, x.x, p.value.x);
        else
            p.value = combine(p.value, IS_WIDE ? u64_mul(x, x) : uvec2(x.x * x.x, 0u));
#endif
    } else {
        if (KIND == SUM_ABS) {
#ifdef DOUBLE
            x.y &= ~REE_SIGN;
#endif
            if (IS_FLOAT) x.x &= ~REE_SIGN;
            else if (IS_WIDE && IS_SIGNED) x = ree_op_abs_i64(x);
            else if (IS_SIGNED) x.x = ree_op_abs_i32(x.x);
        }
        p.value = combine(p.value, x);
    }
    p.n++;
}

// Adds a chunk's result to the result of the earlier chunks.
void add_chunk(inout Partial p, const Partial chunk) {
    if (p.n == 0u)
        p = chunk;
    else if (IS_ARG)
        take_arg(p, chunk.value, chunk.index);
    else
        p.value = combine(p.value, chunk.value);
    p.n += chunk.n;
}

void finish(uint o, Partial p) {
    ReeWords result = ree_operand(1);
    if (IS_ARG) {
        ree_store64(result, o, uvec2(p.index, 0u));
        return;
    }
#ifdef DOUBLE
    if (KIND <= SUM_ABS && p.value == DOUBLE_MINUS) p.value = uvec2(0u); // + 0: -0 becomes +0
    p.value = ree_f64_canon(p.value);
#endif
    if (IS_FLOAT && KIND <= SUM_ABS && p.value.x == REE_SIGN) p.value.x = 0u; // + 0: -0 becomes +0
    if (IS_FLOAT) p.value.x = ree_canon(p.value.x);
    ree_store(result, DTYPE, o, p.value);
}

Partial reduce_chunk(Params p, uint base, uint r0, uint r1) {
    ReeWords x = ree_operand(0);
    Partial acc = Partial(start(), 0u, 0u);
    uint c[REE_MAX_RANK];
    uint rest = r0, at = base;
    [[unroll]] for (uint d = REDUCE_RANK; d-- > 0u;) {
        c[d] = rest % p.reduce_dims[d];
        rest /= p.reduce_dims[d];
        at += c[d] * uint(p.reduce_strides[d]);
    }
    for (uint r = r0; r < r1; r++) {
        add_term(acc, ree_load(x, DTYPE, at), r);
        bool carry = true;
        [[unroll]] for (uint d = REDUCE_RANK; d-- > 0u;) {
            if (!carry) continue;
            at += uint(p.reduce_strides[d]);
            carry = ++c[d] == p.reduce_dims[d];
            if (carry) {
                at -= c[d] * uint(p.reduce_strides[d]);
                c[d] = 0u;
            }
        }
    }
    return acc;
}

void main() {
    Params p = Params(ree_params());
    uint n_reduce = p.n_reduce, n_chunks = (n_reduce + REE_CHUNK - 1u) / REE_CHUNK;
    uint thread = ree_thread();
    uint o = STAGE == 1u ? thread / max(n_chunks, 1u) : thread;
    if (o >= p.n_outer) return;
    Partial total = Partial(start(), 0u, 0u);
    if (STAGE == 2u) {
        ReeWords scratch = ree_scratch();
        for (uint chunk = 0u; chunk < n_chunks; chunk++) {
            uint at = (o * n_chunks + chunk) * 4u;
            add_chunk(total, Partial(uvec2(scratch.w[at], scratch.w[at + 1u]), scratch.w[at + 2u],
                                     scratch.w[at + 3u]));
        }
        finish(o, total);
        return;
    }
    uint base = uint(p.offset), rest = o;
    [[unroll]] for (uint d = OUTER_RANK; d-- > 0u;) {
        base += rest % p.outer_dims[d] * uint(p.outer_strides[d]);
        rest /= p.outer_dims[d];
    }
    if (STAGE == 1u) {
        uint r0 = thread % n_chunks * REE_CHUNK;
        Partial chunk = reduce_chunk(p, base, r0, min(r0 + REE_CHUNK, n_reduce));
        ReeWords scratch = ree_scratch();
        scratch.w[thread * 4u] = chunk.value.x;
        scratch.w[thread * 4u + 1u] = chunk.value.y;
        scratch.w[thread * 4u + 2u] = chunk.index;
        scratch.w[thread * 4u + 3u] = chunk.n;
        return;
    }
    for (uint r0 = 0u; r0 < n_reduce; r0 += REE_CHUNK)
        add_chunk(total, reduce_chunk(p, base, r0, min(r0 + REE_CHUNK, n_reduce)));
    finish(o, total);
}
