// conv: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride + k*dilation - pad] *
// w[g*M + i, c, k]), where x is 0 outside its bounds, by the chunk scheme of NUMERICS.md section 3.
// Transposed: x is read at the position p that satisfies p*stride + k*dilation - pad = o.
// src/repops/repop.h explains the symbols.
//
// One matrix product per image b and group g, with the tiles of tile.h. A is the weights, (M, C*K),
// where K is the number of kernel positions. B is the image: the element for term l = (c, k) and
// position o is gathered from x when its slice is copied. A table in scratch memory (conv_table)
// gives the location of term l relative to a position. For each copied element a thread reads one
// entry of 16 bytes, the same entry in all threads of a warp. This takes about 12 instructions per
// element, which is then used in as many fma as the tile has rows (32 to 128). Kernels of size 1
// with stride 1 and without padding need no table. Transposed: conv_turn first reorders the weights
// to (M, C*K).
//
// conv_direct: one thread per output, for groups with fewer than 4 output channels (depthwise).
// Loads limit its speed: two per fma.
#include "finish.h"
#include "tile.h"

REE_DEVICE u32 conv_n_taps(const struct ree_conv_params &p) {
    return p.kernel[0] * p.kernel[1] * p.kernel[2];
}
REE_DEVICE u32 conv_n_in(const struct ree_conv_params &p) {
    return p.in[0] * p.in[1] * p.in[2];
}
REE_DEVICE u32 conv_n_out(const struct ree_conv_params &p) {
    return p.out[0] * p.out[1] * p.out[2];
}
REE_DEVICE u32 conv_n_factors(const struct ree_conv_params &p) {
    return p.has_pad_value ? 3u : 2u;
}
REE_DEVICE u32 conv_n_outputs(const struct ree_conv_params &p) {
    return p.n * p.groups * p.m * conv_n_out(p);
}
// Returns the index in scratch memory, in words, where the table begins: after the reordered
// weights.
REE_DEVICE u32 conv_table_at(const struct ree_conv_params &p) {
    return p.transposed ? (p.groups * p.m * p.c * conv_n_taps(p) + 3u) / 4u * 4u : 0u;
}

// Returns the coordinate along one axis, relative to x's first element, that tap 0 reads for output
// coordinate o. Transposed: the coordinate times the stride.
REE_DEVICE int conv_origin(const struct ree_conv_params &p, int axis, u32 o) {
    return p.transposed ? (int)o + p.pad[axis] : (int)(o * p.stride[axis]) - p.pad[axis];
}
// Sets *at to the coordinate of x that a tap reads along one axis. origin: as conv_origin returns
// it. distance: from tap 0 to the tap. Returns false if the tap reads no element, because the
// coordinate is outside x or (transposed) not a whole number of strides.
REE_DEVICE bool conv_coordinate(const struct ree_conv_params &p, int axis, int origin, int distance,
                                u32 *at) {
    if (!p.transposed) {
        *at = (u32)(origin + distance);
        return *at < p.in[axis];
    }
    int scaled = origin - distance, stride = (int)p.stride[axis];
    if (scaled < 0 || scaled % stride != 0) return false;
    *at = (u32)(scaled / stride);
    return *at < p.in[axis];
}

// Writes entry l of the table: the offset in x of the channel's plane, in elements, and the tap's
// distance from tap 0 along each axis.
REE_KERNEL(conv_table, struct ree_cuda_conv_params, 128) {
    const u32 l = ree_thread(), n_taps = conv_n_taps(p.p);
    if (l >= p.p.c * n_taps) return;
    u32 c = l / n_taps, k = l % n_taps;
    u32 kz = k / p.p.kernel[2] / p.p.kernel[1], ky = k / p.p.kernel[2] % p.p.kernel[1];
    ree_store(ree_scratch<int>(h), conv_table_at(p.p) + l * 4u,
              make_int4((int)(c * conv_n_in(p.p)), (int)(kz * p.p.dilation[0]),
                        (int)(ky * p.p.dilation[1]), (int)(k % p.p.kernel[2] * p.p.dilation[2])));
}

// Reorders the weights from (groups, C, M, K) to (groups, M, C, K).
REE_KERNEL(conv_turn, struct ree_cuda_conv_params, 256) {
    const u32 i = ree_thread(), n_taps = conv_n_taps(p.p), C = p.p.c, M = p.p.m;
    if (i >= p.p.groups * C * M * n_taps) return;
    u32 k = i % n_taps, c = i / n_taps % C, m = i / n_taps / C % M, g = i / n_taps / C / M;
    ree_scratch<float>(h)[i] = ree_in<float>(h, 1)[((g * C + c) * M + m) * n_taps + k];
}

// The loader of B (see tile.h): each thread copies a few terms of one position.
template <int ROWS, int PITCH, int THREADS> struct conv_image {
    static constexpr int copies = ROWS * TILE_K / THREADS;
    static constexpr u32 k_step = THREADS / ROWS;
    const struct ree_conv_params *p;
    ree_in_t<float> x;
    ree_in_t<int> table;
    // Index in x of the image's group; index in `table` of the next term's entry; index where the
    // terms end.
    u32 base, at_term, end;
    int origin[3];

    REE_DEVICE_MEMBER void begin(const struct ree_cuda_header &h, const struct ree_conv_params &p_,
                                 u32 base_, u32 first, u32 k_begin, u32 k_end_, u32 thread) {
        p = &p_;
        x = ree_in<float>(h, 0);
        table = ree_scratch<int>(h);
        const u32 table_at = conv_table_at(p_), o = first + thread % ROWS;
        base = base_;
        at_term = table_at + (k_begin + thread / ROWS) * 4u;
        // 0: a position past the last one has no terms
        end = o < conv_n_out(p_) ? table_at + k_end_ * 4u : 0u;
        origin[0] = conv_origin(p_, 0, o / p_.out[2] / p_.out[1]);
        origin[1] = conv_origin(p_, 1, o / p_.out[2] % p_.out[1]);
        origin[2] = conv_origin(p_, 2, o % p_.out[2]);
    }
    REE_DEVICE_MEMBER void start(ree_shared_t<float> shared, u32 at) {
        // cheaper to recompute than to keep in a register
        const u32 place = threadIdx.x / ROWS * PITCH + threadIdx.x % ROWS;
        REE_UNROLL
        for (int i = 0; i < copies; i++) {
            u32 term_at = at_term + (u32)i * k_step * 4u, z = 0, y = 0, xx = 0, from = 0;
            bool valid = term_at < end;
            if (valid) {
                int4 term = ree_load<int4>(table, term_at);
                valid = conv_coordinate(*p, 0, origin[0], term.y, &z) &&
                        conv_coordinate(*p, 1, origin[1], term.z, &y) &&
                        conv_coordinate(*p, 2, origin[2], term.w, &xx);
                from = base + (u32)term.x + (z * p->in[1] + y) * p->in[2] + xx;
            }
            ree_async_copy<4>(shared, at + place + (u32)i * k_step * PITCH, x, valid ? from : 0u,
                              valid);
        }
        at_term += TILE_K * 4u;
    }
    REE_DEVICE_MEMBER void finish(ree_shared_t<float>, u32) {}
};

template <class Shape, bool POINTS>
REE_DEVICE void conv_tile(const struct ree_cuda_header &h,
                          const struct ree_cuda_conv_params &params, ree_shared_t<float> shared,
                          ree_shared_t<u32> slots) {
    const struct ree_conv_params &p = params.p;
    const u32 n_parts = h.extra[REE_CUDA_PRODUCT_N_PARTS];
    const u32 n_out = conv_n_out(p), n_terms = p.c * conv_n_taps(p);
    u32 tiles_m = (p.m + Shape::rows - 1u) / Shape::rows;
    u32 tiles_n = (n_out + Shape::columns - 1u) / Shape::columns, tiles = tiles_m * tiles_n;
    u32 product = blockIdx.x / tiles, part = product % n_parts, tile_i, tile_j;
    tile_place(blockIdx.x % tiles, tiles_m, tiles_n, &tile_i, &tile_j);
    product /= n_parts;
    const u32 group = product % p.groups;
    u32 k_begin = n_parts > 1u ? part * REE_CHUNK : 0u, k_end = n_terms;
    if (n_parts > 1u && k_end - k_begin > REE_CHUNK) k_end = k_begin + REE_CHUNK;

    tile_strided<Shape::rows, Shape::a_pitch, Shape::threads> a;
    ree_in_t<float> weights = ree_in<float>(h, 1);
    if (p.transposed) weights = ree_scratch<float>(h);
    a.begin(weights, group * p.m * n_terms, n_terms, 1, tile_i * Shape::rows, p.m, k_begin, k_end,
            threadIdx.x);
    const u32 image = product * p.c * conv_n_in(p);
    const u32 n_slices = (k_end - k_begin + TILE_K - 1u) / TILE_K;
    const u32 n_stages = h.extra[REE_CUDA_PRODUCT_N_STAGES];
    if constexpr (POINTS) {
        tile_strided<Shape::columns, Shape::b_pitch, Shape::threads> b;
        b.begin(ree_in<float>(h, 0), image, 1, n_out, tile_j * Shape::columns, n_out, k_begin,
                k_end, threadIdx.x);
        tile_run<Shape>(a, b, n_slices, n_stages, shared);
    } else {
        conv_image<Shape::columns, Shape::b_pitch, Shape::threads> b;
        b.begin(h, p, image, tile_j * Shape::columns, k_begin, k_end, threadIdx.x);
        tile_run<Shape>(a, b, n_slices, n_stages, shared);
    }

    __syncthreads(); // the memory of the stages is reused for the epilogue's slots
    const u32 i0 = tile_i * Shape::rows, j0 = tile_j * Shape::columns;
    const u32 first = product * p.m * n_out;
    bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    u32 scratch_at = h.extra[REE_CUDA_PRODUCT_PARTS_AT] + part * conv_n_outputs(p);
    tile_results<Shape>(shared, [&](u32 row, u32 column, float4 total) {
        u32 i = i0 + row, j = j0 + column;
        if (i >= p.m || j >= n_out) return;
        product_finish(h, params, conv_n_factors(p), to_scratch, scratch_at, first + i * n_out + j,
                       n_out - j < 4u ? n_out - j : 4u, total, slots, threadIdx.x, Shape::threads);
    });
}

#define CONV_TILE(name, rows, columns, n_threads, blocks, points)                                  \
    REE_KERNEL_BLOCKS(conv_##name##_##rows##x##columns, struct ree_cuda_conv_params, n_threads,    \
                      blocks) {                                                                    \
        REE_SHARED_DYNAMIC(float, shared);                                                         \
        conv_tile<tile_##rows##x##columns, points>(                                                \
            h, p, shared, (ree_shared_t<u32>)(shared + (u32)tile_##rows##x##columns::totals));     \
    }
CONV_TILE(points, 128, 128, 256, 2, true)
CONV_TILE(points, 128, 64, 256, 2, true)
CONV_TILE(points, 64, 64, 128, 4, true)
CONV_TILE(points, 32, 64, 128, 4, true)
CONV_TILE(taps, 128, 128, 256, 2, false)
CONV_TILE(taps, 128, 64, 256, 2, false)
CONV_TILE(taps, 64, 64, 128, 4, false)
CONV_TILE(taps, 32, 64, 128, 4, false)

REE_KERNEL(conv_finish, struct ree_cuda_conv_params, 128) {
    REE_SHARED_DYNAMIC(u32, slots);
    finish_words(h, p, conv_n_factors(p.p), conv_n_outputs(p.p), p.p.x_dtype != REE_F32, slots);
}
REE_KERNEL(conv_finish_any, struct ree_cuda_conv_params, 128) {
    REE_SHARED_DYNAMIC(u64, slots);
    finish_any(h, p, conv_n_factors(p.p), conv_n_outputs(p.p), p.p.x_dtype != REE_F32, slots);
}

// One thread per output. For integers, positions outside x have the pad value, or 0 if there is
// none.
template <bool INTEGER>
REE_DEVICE void conv_output(const struct ree_cuda_header &h,
                            const struct ree_cuda_conv_params &params) {
    const struct ree_conv_params &p = params.p;
    const u32 n_out = conv_n_out(p), n_taps = conv_n_taps(p), n_in = conv_n_in(p);
    const u32 output = ree_thread();
    if (output >= conv_n_outputs(p)) return;
    u32 o = output % n_out, channel = output / n_out % (p.groups * p.m);
    u32 image = output / n_out / (p.groups * p.m), g = channel / p.m, i = channel % p.m;
    u32 x_at = (image * p.groups + g) * p.c * n_in;
    u32 w_at = p.transposed ? (g * p.c * p.m + i) * n_taps : channel * p.c * n_taps;
    u32 w_step = p.transposed ? p.m * n_taps : n_taps; // from one input channel to the next
    int oz = conv_origin(p, 0, o / p.out[2] / p.out[1]);
    int oy = conv_origin(p, 1, o / p.out[2] % p.out[1]), ox = conv_origin(p, 2, o % p.out[2]);
    float acc = 0.0f, total = 0.0f;
    u32 sum = 0, pad = 0, l = 0;
    if (INTEGER && p.has_pad_value) pad = (u32)ree_load_any(h, 2, p.x_dtype, 0);
    for (u32 c = 0; c < p.c; c++, x_at += n_in, w_at += w_step) {
        u32 k = 0;
        for (u32 kz = 0; kz < p.kernel[0]; kz++) {
            u32 z = 0, y = 0, x = 0;
            bool in_z = conv_coordinate(p, 0, oz, (int)(kz * p.dilation[0]), &z);
            for (u32 ky = 0; ky < p.kernel[1]; ky++) {
                bool in_y = conv_coordinate(p, 1, oy, (int)(ky * p.dilation[1]), &y) && in_z;
                for (u32 kx = 0; kx < p.kernel[2]; kx++, k++) {
                    bool in = conv_coordinate(p, 2, ox, (int)(kx * p.dilation[2]), &x) && in_y;
                    u32 from = x_at + (z * p.in[1] + y) * p.in[2] + x;
                    if constexpr (INTEGER) {
                        u32 a = in ? (u32)ree_load_any(h, 0, p.x_dtype, from) : pad;
                        sum += a * (u32)ree_load_any(h, 1, p.w_dtype, w_at + k);
                    } else {
                        float a = 0.0f, w = ree_in<float>(h, 1)[w_at + k];
                        if (in) a = ree_in<float>(h, 0)[from];
                        acc = __fmaf_rn(a, w, acc);
                        if (++l == REE_CHUNK) {
                            total = __fadd_rn(total, acc);
                            acc = 0.0f;
                            l = 0;
                        }
                    }
                }
            }
        }
    }
    bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    if (!INTEGER) sum = __float_as_uint(__fadd_rn(total, acc));
    if (to_scratch)
        ree_scratch<u32>(h)[h.extra[REE_CUDA_PRODUCT_PARTS_AT] + output] = sum;
    else
        ree_out<u32>(h, conv_n_factors(p))[output] =
            INTEGER ? sum : __float_as_uint(ree_canon(ree_plus_zero(ree_float(sum))));
}

REE_KERNEL(conv_direct, struct ree_cuda_conv_params, 128) {
    conv_output<false>(h, p);
}
REE_KERNEL(conv_words, struct ree_cuda_conv_params, 128) {
    conv_output<true>(h, p);
}
