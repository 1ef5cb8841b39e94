#version 460
// scan: out[j] = the sum (product) of terms 0 ... j by the chunk scheme: the total of the chunks
// before j's chunk, plus (times) the terms of j's own chunk up to j. NUMERICS.md section 3.
//
// A vector runs along the scanned dimension. STAGE 0: each thread scans a vector. Few and long
// vectors take three steps, which pass chunk results of two words in scratch memory,
// [n_vectors][n_chunks]:
// - STAGE 1: each thread reduces a chunk;
// - STAGE 2: each thread replaces each chunk result of a vector by the total of the chunks before
//   it;
// - STAGE 3: each thread scans a chunk.
//
// Compiled with DOUBLE, the shader scans float64, emulated in integers.
#include "ree.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint DTYPE = 1;
layout(constant_id = 17) const bool PRODUCT = false;
layout(constant_id = 18) const bool EXCLUSIVE = false;
layout(constant_id = 19) const bool REVERSE = false;
layout(constant_id = 20) const uint STAGE = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint product;
    uint dtype;
    uint outer, k, inner;
    uint exclusive, reverse;
};

const bool IS_FLOAT = DTYPE == REE_DT_F32;
const bool IS_WIDE = DTYPE == REE_DT_I64 || DTYPE == REE_DT_U64;

#ifdef DOUBLE
uvec2 nothing() { return uvec2(0u, PRODUCT ? 0x3FF00000u : 0u); }
uvec2 join(uvec2 a, uvec2 b) {
    return PRODUCT ? ree_f64_soft_mul(a, b) : ree_f64_soft_add(a, b);
}
#else
uvec2 nothing() { return uvec2(!PRODUCT ? 0u : IS_FLOAT ? REE_ONE : 1u, 0u); }

uvec2 join(uvec2 a, uvec2 b) {
    if (IS_FLOAT) return uvec2(PRODUCT ? ree_mul(a.x, b.x) : ree_add(a.x, b.x), 0u);
    if (IS_WIDE) return PRODUCT ? u64_mul(a, b) : u64_add(a, b);
    return uvec2(PRODUCT ? a.x * b.x : a.x + b.x, 0u);
}
#endif

void store(uint at, uvec2 value) {
    if (IS_FLOAT) value.x = ree_canon(value.x);
#ifdef DOUBLE
    value = ree_f64_canon(value);
#endif
    ree_store(ree_operand(1), DTYPE, at, value);
}

void main() {
    Params p = Params(ree_params());
    uint k = p.k, inner = p.inner, n_chunks = (k + REE_CHUNK - 1u) / REE_CHUNK;
    uint thread = ree_thread(), n_vectors = p.outer * inner;
    bool by_chunks = STAGE == 1u || STAGE == 3u;
    if (thread >= (by_chunks ? n_vectors * n_chunks : n_vectors)) return;
    // Neighbouring threads have neighbouring columns.
    uint vector = thread % n_vectors, chunk = thread / n_vectors;
    ReeWords results = ree_scratch();
    if (STAGE == 2u) {
        uvec2 total = nothing();
        for (uint c = 0u; c < n_chunks; c++) {
            uvec2 result = ree_load64(results, vector * n_chunks + c);
            ree_store64(results, vector * n_chunks + c, total);
            total = join(total, result);
        }
        return;
    }
    uint start = vector / inner * k * inner + vector % inner, step = inner;
    if (REVERSE) {
        start += (k - 1u) * inner;
        step = ~inner + 1u; // backwards
    }
    // Sums: the scheme's last step, + 0, is not needed, because total and acc are never -0.
    uvec2 total = nothing(), acc = nothing();
    if (STAGE == 3u) total = ree_load64(results, vector * n_chunks + chunk);
    uint begin = by_chunks ? chunk * REE_CHUNK : 0u;
    uint end = by_chunks ? min(k, begin + REE_CHUNK) : k;
    for (uint j = begin; j < end; j++) {
        uint at = start + j * step;
        if (j > begin && j % REE_CHUNK == 0u) {
            total = join(total, acc);
            acc = nothing();
        }
        uvec2 x = ree_load(ree_operand(0), DTYPE, at);
        if (STAGE != 1u && EXCLUSIVE) store(at, join(total, acc));
        acc = join(acc, x);
        if (STAGE != 1u && !EXCLUSIVE) store(at, join(total, acc));
    }
    if (STAGE == 1u) ree_store64(results, vector * n_chunks + chunk, acc);
}
