#version 460
// pool: over the window of each output position, in row-major order: max x; chunk-sum(x) / count;
// chunk-dot(x, x). NUMERICS.md sections 2, 3 and 7.
//
// A thread computes one output; for bytes, the four outputs of a word. Positions outside the input
// are terms of +0, which change no accumulator: they are skipped, but counted as terms of a chunk.
#include "ree.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint KIND = 0;
layout(constant_id = 17) const uint DTYPE = 1;
layout(constant_id = 18) const bool HAS_INDICES = false;
layout(constant_id = 19) const bool COLUMN_MAJOR = false; // how indices count within a plane
layout(constant_id = 20) const bool COUNT_PAD = false;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint kind;
    uint dtype;
    uint planes;
    uint in_dims[3], kernel[3], out_dims[3];
    uint stride[3], dilation[3];
    int pad_begin[3], pad_end[3];
    uint count_include_pad;
    uint has_indices;
    uint storage_order;
};

#define MAX 0u
#define AVG 1u
#define SUM_SQ 2u
#define NOWHERE 0xFFFFFFFFu

const bool IS_FLOAT = DTYPE == REE_DT_F32;

struct Window {
    uint acc, total; // acc: current chunk, or the maximum for MAX; total: earlier chunks
    uint chunk;      // index of the current chunk
    uint place;      // index of the maximum in its plane
};

void add_term(inout Window w, uint term, uint x) {
    if (term / REE_CHUNK != w.chunk) {
        w.total = ree_add(w.total, w.acc);
        w.acc = 0u;
        w.chunk = term / REE_CHUNK;
    }
    w.acc = KIND == SUM_SQ ? ree_fma(x, x, w.acc) : ree_add(w.acc, x);
}

void take_max(inout Window w, uint x, uint place) {
    bool better;
    if (IS_FLOAT) {
        better = !ree_is_nan(w.acc) && (ree_is_nan(x) || ree_soft_lt(w.acc, x) != 0u);
        w.acc = ree_soft_max(w.acc, x);
    } else {
        better = int(w.acc) < int(x);
        if (better) w.acc = x;
    }
    if (better || w.place == NOWHERE) w.place = place;
}

// Returns the number of window positions along one axis with coordinates in [low, high). The window
// begins at `start`.
uint count(int start, uint kernel, uint dilation, int low, int high) {
    uint from = low <= start ? 0u : (uint(low - start) + dilation - 1u) / dilation;
    uint to = high <= start ? 0u : (uint(high - start) + dilation - 1u) / dilation;
    to = min(to, kernel);
    return to > from ? to - from : 0u;
}

Window pool(Params p, uint o, uint plane_start) {
    ReeWords x = ree_operand(0);
    uint o2 = o % p.out_dims[2], o1 = o / p.out_dims[2] % p.out_dims[1];
    uint o0 = o / p.out_dims[2] / p.out_dims[1];
    int start0 = int(o0 * p.stride[0]) - p.pad_begin[0];
    int start1 = int(o1 * p.stride[1]) - p.pad_begin[1];
    int start2 = int(o2 * p.stride[2]) - p.pad_begin[2];
    uint d0 = p.in_dims[0], d1 = p.in_dims[1], d2 = p.in_dims[2];
    uint n0 = p.kernel[0], n1 = p.kernel[1], n2 = p.kernel[2];
    uint dilation2 = p.dilation[2];
    uint lowest = IS_FLOAT ? REE_INF | REE_SIGN : DTYPE == REE_DT_I8 ? 0xFFFFFF80u : 0u;
    Window w = Window(KIND == MAX ? lowest : 0u, 0u, 0u, NOWHERE);
    for (uint k0 = 0u; k0 < n0; k0++) {
        // a negative coordinate becomes a large uint
        uint i0 = uint(start0) + k0 * p.dilation[0];
        if (i0 >= d0) continue;
        for (uint k1 = 0u; k1 < n1; k1++) {
            uint i1 = uint(start1) + k1 * p.dilation[1];
            if (i1 >= d1) continue;
            uint row = (i0 * d1 + i1) * d2, i2 = uint(start2);
            for (uint k2 = 0u; k2 < n2; k2++, i2 += dilation2) {
                if (i2 >= d2) continue;
                uint value = ree_load(x, DTYPE, plane_start + row + i2).x;
                if (KIND == MAX)
                    take_max(w, value, COLUMN_MAJOR ? (i2 * d1 + i1) * d0 + i0 : row + i2);
                else
                    add_term(w, (k0 * n1 + k1) * n2 + k2, value);
            }
        }
    }
    if (KIND == MAX) return w;
    // The final + 0 of a sum needs no step: acc and total are never -0.
    if (w.chunk > 0u) w.acc = ree_add(w.total, w.acc);
    if (KIND == AVG) {
        int b0 = COUNT_PAD ? -p.pad_begin[0] : 0, e0 = int(d0) + (COUNT_PAD ? p.pad_end[0] : 0);
        int b1 = COUNT_PAD ? -p.pad_begin[1] : 0, e1 = int(d1) + (COUNT_PAD ? p.pad_end[1] : 0);
        int b2 = COUNT_PAD ? -p.pad_begin[2] : 0, e2 = int(d2) + (COUNT_PAD ? p.pad_end[2] : 0);
        uint n = count(start0, n0, p.dilation[0], b0, e0) *
                 count(start1, n1, p.dilation[1], b1, e1) *
                 count(start2, n2, dilation2, b2, e2);
        w.acc = ree_div(w.acc, ree_op_u32_to_f32(n));
    }
    return w;
}

void main() {
    Params p = Params(ree_params());
    const uint per_thread = IS_FLOAT ? 1u : 4u;
    uint n_plane = p.out_dims[0] * p.out_dims[1] * p.out_dims[2], n = p.planes * n_plane;
    uint n_in = p.in_dims[0] * p.in_dims[1] * p.in_dims[2];
    uint first = ree_thread() * per_thread, word = 0u;
    if (first >= n) return;
    for (uint e = 0u; e < per_thread && first + e < n; e++) {
        uint o = first + e, plane_start = o / n_plane * n_in;
        Window w = pool(p, o % n_plane, plane_start);
        if (HAS_INDICES) ree_store64(ree_operand(2), o, uvec2(plane_start + w.place, 0u));
        word |= IS_FLOAT ? ree_canon(w.acc) : (w.acc & 0xFFu) << (e * 8u);
    }
    ree_operand(1).w[first / per_thread] = word;
}
