// reduce: out[o] = reduction over r, ascending, of x[offset + sum(o * outer_stride) + sum(r *
// reduce_stride)]. Sums and products of floats use the chunk scheme, NUMERICS.md, section 3. All
// other reductions (integers, which wrap around; maxima, minima and their positions) may use any
// order.
//
// Memory traffic: x once. If several threads or blocks share an output, also 4 to 12 bytes per
// chunk or segment, written and read once.
//
//   reduce_vectors   float32, contiguous terms: a thread reduces a row, or a chunk of it; the data
//                    comes in 128-byte pieces through shared memory
//   reduce_chunks    any strides: a thread reduces an output's terms, or a chunk of them;
//                    neighbouring threads have neighbouring outputs
//   reduce_join      combines the chunks' results of each output, in order
//   reduce_free      reductions in any order: a thread, a warp or a block for each output, or for
//                    each segment of its terms
//   reduce_segments  combines the results of the segments
#include "chunks.h"

// Returns the index of the first term of output o.
REE_DEVICE u32 first_term(const struct ree_cuda_reduce_params &p, u32 o) {
    u32 at = (u32)p.p.offset;
    REE_NO_UNROLL
    for (u32 d = p.p.outer_rank; d-- > 0;) {
        u32 coordinate, q = ree_divide(o, p.outer[d], &coordinate);
        at += coordinate * (u32)p.p.outer_strides[d];
        o = q;
    }
    return at;
}
// Returns the offset of term r from the first term.
REE_DEVICE u32 term_offset(const struct ree_cuda_reduce_params &p, u32 r) {
    u32 at = 0;
    REE_NO_UNROLL
    for (u32 d = p.p.reduce_rank; d-- > 0;) {
        u32 coordinate, q = ree_divide(r, p.reduce[d], &coordinate);
        at += coordinate * (u32)p.p.reduce_strides[d];
        r = q;
    }
    return at;
}

// Layout of the chunks' results in scratch memory: [chunk][output].

#define MAX_THREADS 128u // maximum number of threads per block
#define DEPTH 32u
#define STRIDE 36u // odd multiple of 16 bytes: no bank conflicts

template <u32 KIND, int WIDTH>
REE_DEVICE void walk_vectors(const struct ree_cuda_header &h,
                             const struct ree_cuda_reduce_params &p, ree_shared_t<float> tile,
                             ree_shared_t<u32> starts, ree_shared_t<u32> lengths) {
    auto x = ree_in<float>(h, 0);
    const bool split = h.extra[0] != 0; // true: a vector is a chunk; false: a row
    u32 n_vectors = split ? p.p.n_outer * p.n_chunks : p.p.n_outer;
    u32 vector = ree_thread(), o = vector, chunk = 0, length = 0;
    if (vector < n_vectors) {
        if (split) {
            o = vector / p.n_chunks;
            chunk = vector % p.n_chunks;
        }
        u32 first = chunk * REE_CHUNK, left = p.p.n_reduce - first;
        length = split && left > REE_CHUNK ? REE_CHUNK : left;
        starts[threadIdx.x] = first_term(p, o) + first;
    }
    lengths[threadIdx.x] = length;
    __syncthreads();
    const u32 longest = split && p.p.n_reduce > REE_CHUNK ? REE_CHUNK : p.p.n_reduce;
    const u32 per_vector = DEPTH / (u32)WIDTH;
    float total = ree_chunk_start<KIND, float>(), acc = total;
    for (u32 r0 = 0; r0 < longest; r0 += DEPTH) {
        for (u32 j = threadIdx.x; j < blockDim.x * per_vector; j += blockDim.x) {
            u32 l = j / per_vector, r = j % per_vector * (u32)WIDTH;
            if (r0 + r < lengths[l])
                ree_async_copy<WIDTH * 4>(tile, l * STRIDE + r, x, starts[l] + r0 + r, true);
        }
        ree_async_commit();
        ree_async_wait<0>();
        __syncthreads();
        if (r0 > 0 && r0 % REE_CHUNK == 0) {
            total = ree_chunk_join<KIND>(total, acc);
            acc = ree_chunk_start<KIND, float>();
        }
        if (r0 < length)
            acc = ree_walk(tile, threadIdx.x * STRIDE, length - r0 < DEPTH ? length - r0 : DEPTH,
                           acc, [](float a, float v) { return ree_chunk_step<KIND>(a, v); });
        __syncthreads();
    }
    if (vector >= n_vectors) return;
    if (split)
        ree_scratch<float>(h)[chunk * p.p.n_outer + o] = acc;
    else
        ree_out<float>(h, 1)[o] = ree_final(ree_chunk_join<KIND>(total, acc));
}

// extra[0]: 1: vectors are chunks, results go to scratch memory; 0: vectors are rows. extra[1]: 1:
// 16-byte reads are allowed.
REE_KERNEL(reduce_vectors, struct ree_cuda_reduce_params, 128) {
    REE_SHARED(float, tile, MAX_THREADS *STRIDE);
    REE_SHARED(u32, starts, MAX_THREADS);
    REE_SHARED(u32, lengths, MAX_THREADS);
    const bool wide = h.extra[1] != 0;
#define KIND_OF(kind)                                                                              \
    case kind:                                                                                     \
        if (wide)                                                                                  \
            walk_vectors<kind, 4>(h, p, tile, starts, lengths);                                    \
        else                                                                                       \
            walk_vectors<kind, 1>(h, p, tile, starts, lengths);                                    \
        break;
    switch (p.p.kind) {
        KIND_OF(REE_REDUCE_SUM)
        KIND_OF(REE_REDUCE_SUM_SQ)
        KIND_OF(REE_REDUCE_SUM_ABS)
        KIND_OF(REE_REDUCE_PROD)
    default: break;
    }
#undef KIND_OF
}

// Reduces terms [first, end) of the output that begins at `base`, in order, as one chunk.
template <u32 KIND, class T>
REE_DEVICE T walk_terms(const struct ree_cuda_header &h, const struct ree_cuda_reduce_params &p,
                        u32 base, u32 first, u32 end) {
    auto x = ree_in<T>(h, 0);
    const u32 last = p.p.reduce_rank - 1u, stride = (u32)p.p.reduce_strides[last];
    T acc = ree_chunk_start<KIND, T>();
    REE_NO_UNROLL
    for (u32 r = first; r < end;) { // each pass: terms along the innermost dimension
        u32 coordinate, at = base + term_offset(p, r);
        ree_divide(r, p.reduce[last], &coordinate);
        u32 n = p.reduce[last].d - coordinate < end - r ? p.reduce[last].d - coordinate : end - r;
        u32 i = 0;
        for (; i + 8u <= n; i += 8u) {
            T v[8];
            REE_UNROLL
            for (u32 e = 0; e < 8u; e++)
                v[e] = x[at + e * stride];
            REE_UNROLL
            for (u32 e = 0; e < 8u; e++)
                acc = ree_chunk_step<KIND>(acc, v[e]);
            at += 8u * stride;
        }
        REE_NO_UNROLL
        for (; i < n; i++, at += stride)
            acc = ree_chunk_step<KIND>(acc, (T)x[at]);
        r += n;
    }
    return acc;
}

template <u32 KIND, class T>
REE_DEVICE void walk_outputs(const struct ree_cuda_header &h,
                             const struct ree_cuda_reduce_params &p) {
    const bool split = h.extra[0] != 0;
    u32 n_outer = p.p.n_outer, n_reduce = p.p.n_reduce, thread = ree_thread(), o = thread,
        chunk = 0;
    if (thread >= (split ? n_outer * p.n_chunks : n_outer)) return;
    if (split) {
        o = thread % n_outer;
        chunk = thread / n_outer;
    }
    u32 base = first_term(p, o), first = chunk * REE_CHUNK;
    T total = ree_chunk_start<KIND, T>();
    for (; first < n_reduce; first += REE_CHUNK) {
        u32 end = n_reduce - first < REE_CHUNK ? n_reduce : first + REE_CHUNK;
        T acc = walk_terms<KIND, T>(h, p, base, first, end);
        if (split) {
            ree_scratch<T>(h)[chunk * n_outer + o] = acc;
            return;
        }
        total = ree_chunk_join<KIND>(total, acc);
    }
    ree_out<T>(h, 1)[o] = ree_final(total);
}
template <class T>
REE_DEVICE void walk_outputs_of(const struct ree_cuda_header &h,
                                const struct ree_cuda_reduce_params &p) {
    switch (p.p.kind) {
    case REE_REDUCE_SUM: walk_outputs<REE_REDUCE_SUM, T>(h, p); break;
    case REE_REDUCE_SUM_SQ: walk_outputs<REE_REDUCE_SUM_SQ, T>(h, p); break;
    case REE_REDUCE_SUM_ABS: walk_outputs<REE_REDUCE_SUM_ABS, T>(h, p); break;
    case REE_REDUCE_PROD: walk_outputs<REE_REDUCE_PROD, T>(h, p); break;
    default: break;
    }
}

// extra[0]: 1: one thread per chunk, results go to scratch memory; 0: one thread per output.
REE_KERNEL(reduce_chunks, struct ree_cuda_reduce_params, 128) {
    walk_outputs_of<float>(h, p);
}
REE_KERNEL(reduce_chunks_f64, struct ree_cuda_reduce_params, 128) {
    walk_outputs_of<double>(h, p);
}

template <class T>
REE_DEVICE void join_chunks(const struct ree_cuda_header &h,
                            const struct ree_cuda_reduce_params &p) {
    u32 o = ree_thread(), n_outer = p.p.n_outer;
    if (o >= n_outer) return;
    auto results = ree_scratch<T>(h);
    const bool product = p.p.kind == REE_REDUCE_PROD;
    T total = product ? (T)1 : (T)0;
    for (u32 chunk = 0; chunk < p.n_chunks; chunk++) {
        T result = results[chunk * n_outer + o];
        total = product ? ree_mul(total, result) : ree_add(total, result);
    }
    ree_out<T>(h, 1)[o] = ree_final(total);
}
REE_KERNEL(reduce_join, struct ree_cuda_reduce_params, 128) {
    if (p.p.dtype == REE_F64)
        join_chunks<double>(h, p);
    else
        join_chunks<float>(h, p);
}

// Reductions in any order. Integer sums and products of every width are the low bits of the result
// modulo 2^64. An extremum is the element with the greatest key. Keys are unsigned and have the
// order of the values; for minima they are inverted.

struct found {
    u64 value; // a sum or product, or a key
    u32 index; // number of the extremum's term; NOWHERE: no term yet
};
#define NOWHERE 0xFFFFFFFFu
#define TOP (~(u64)0) // key of NaN

enum { ADD, MUL, EXTREME };

REE_DEVICE bool is_position(const struct ree_reduce_params &p) {
    return p.kind >= REE_REDUCE_ARGMAX;
}
REE_DEVICE bool is_least(const struct ree_reduce_params &p) {
    return p.kind == REE_REDUCE_MIN || p.kind == REE_REDUCE_ARGMIN;
}

// Returns the key of element x. S is its type in memory.
template <class S> REE_DEVICE u64 key_of(const struct ree_reduce_params &p, S x) {
    u64 key;
    if constexpr (sizeof(S) == 4 && (S)0.5 != 0) {
        u32 bits = ree_bits(x);
        if (ree_is_nan(bits)) return TOP;
        if (is_position(p) && ree_is_zero(bits)) bits = 0;
        key = (bits & REE_SIGN) != 0 ? ~bits : bits | REE_SIGN;
    } else if constexpr ((S)0.5 != 0) {
        u64 bits = ree_double_bits(x);
        if (ree_f64_is_nan(bits)) return TOP;
        if (is_position(p) && ree_f64_is_zero(bits)) bits = 0;
        key = ree_f64_order_key(bits);
    } else {
        key = (u64)(int64_t)x;
        if constexpr ((S)-1 < 0) key ^= (u64)1 << 63;
    }
    return is_least(p) ? ~key : key;
}
// Returns the bits of the extremum that has this key.
template <class S> REE_DEVICE u64 value_of(const struct ree_reduce_params &p, u64 key) {
    if constexpr ((S)0.5 != 0) {
        if (key == TOP) return sizeof(S) == 4 ? REE_NAN : REE_F64_NAN;
        if (is_least(p)) key = ~key;
        if constexpr (sizeof(S) == 4) {
            u32 bits = (u32)key;
            return (bits & REE_SIGN) != 0 ? bits ^ REE_SIGN : ~bits;
        } else {
            return key >> 63 ? key ^ (u64)1 << 63 : ~key;
        }
    } else {
        if (is_least(p)) key = ~key;
        if constexpr ((S)-1 < 0) key ^= (u64)1 << 63;
        return key;
    }
}
// Returns the extremum of an empty set.
template <class S> REE_DEVICE u64 extreme_of_none(const struct ree_reduce_params &p) {
    bool least = is_least(p);
    if constexpr ((S)0.5 != 0) {
        if (sizeof(S) == 4) return least ? REE_INF : REE_INF | REE_SIGN;
        return REE_U64(least ? 0x7FF00000u : 0xFFF00000u, 0u);
    } else if constexpr ((S)-1 < 0) {
        u64 lowest = ~(u64)0 << (sizeof(S) * 8 - 1);
        return least ? ~lowest : lowest;
    } else {
        if (p.dtype == REE_BOOL) return least ? 1 : 0;
        return least ? ~(u64)0 : 0;
    }
}

template <int OP> REE_DEVICE struct found found_none() {
    struct found none = {OP == MUL ? 1u : 0u, NOWHERE};
    return none;
}
template <int OP>
REE_DEVICE void take(const struct ree_reduce_params &p, struct found *best, struct found x) {
    if constexpr (OP == ADD) best->value += x.value;
    if constexpr (OP == MUL) best->value *= x.value;
    if constexpr (OP == EXTREME) {
        // Among NaNs the first wins, also with select_last.
        bool last =
            p.select_last && !(x.value == TOP && (p.dtype == REE_F32 || p.dtype == REE_F64));
        bool takes =
            x.value > best->value ||
            (x.value == best->value && (last ? x.index > best->index : x.index < best->index));
        if (x.index != NOWHERE && (takes || best->index == NOWHERE)) *best = x;
    }
}
template <int OP, class S>
REE_DEVICE struct found found_in(const struct ree_reduce_params &p, S x, u32 r) {
    struct found one = {0, r};
    if constexpr (OP == EXTREME) {
        one.value = key_of(p, x);
    } else {
        u64 v = (u64)(int64_t)x;
        if (p.kind == REE_REDUCE_SUM_SQ) v *= v;
        if constexpr ((S)-1 < 0)
            if (p.kind == REE_REDUCE_SUM_ABS && x < 0) v = 0 - v;
        one.value = v;
    }
    return one;
}

template <int OP, class S>
REE_DEVICE void store_found(const struct ree_cuda_header &h, const struct ree_reduce_params &p,
                            u32 o, struct found best) {
    if (is_position(p)) {
        ree_out<u64>(h, 1)[o] = best.index == NOWHERE ? 0 : best.index;
        return;
    }
    u64 value = best.value;
    if constexpr (OP == EXTREME)
        value = best.index == NOWHERE ? extreme_of_none<S>(p) : value_of<S>(p, value);
    ree_store_size(h, 1, sizeof(S), o, value);
}

// Layout of the segments' results in scratch memory: values [segment][output], then as many
// indices.
REE_DEVICE void keep_found(const struct ree_cuda_header &h, u32 n, u32 at, struct found best) {
    ree_scratch<u64>(h)[at] = best.value;
    ree_scratch<u32>(h)[n * 2u + at] = best.index;
}

template <int OP>
REE_DEVICE struct found warp_found(const struct ree_reduce_params &p, struct found best) {
    REE_NO_UNROLL
    for (int by = 16; by > 0; by /= 2) {
        struct found other;
        other.value = __shfl_xor_sync(0xFFFFFFFFu, best.value, by);
        other.index = __shfl_xor_sync(0xFFFFFFFFu, best.index, by);
        take<OP>(p, &best, other);
    }
    return best;
}

template <int OP, class S>
REE_DEVICE void find(const struct ree_cuda_header &h, const struct ree_cuda_reduce_params &p,
                     ree_shared_t<u64> values, ree_shared_t<u32> indices) {
    auto x = ree_in<S>(h, 0);
    const u32 group = h.extra[0], per_segment = h.extra[1], n_outer = p.p.n_outer;
    // not ree_thread() / group, because the launch may have more than 2^32 threads
    const u32 o = blockIdx.x * (blockDim.x / group) + threadIdx.x / group;
    const u32 lane = threadIdx.x % group;
    struct found best = found_none<OP>();
    if (o < n_outer) {
        u32 base = first_term(p, o), begin = blockIdx.y * per_segment;
        u32 end = p.p.n_reduce - begin < per_segment ? p.p.n_reduce : begin + per_segment;
        const bool straight = p.p.reduce_rank == 1;
        const u32 stride = (u32)p.p.reduce_strides[0];
        u32 r = begin + lane;
        if (straight) { // four loads are in flight at a time
            for (; r < end && end - r > 3u * group; r += 4u * group) {
                S v[4];
                REE_UNROLL
                for (u32 e = 0; e < 4u; e++)
                    v[e] = x[base + (r + e * group) * stride];
                REE_UNROLL
                for (u32 e = 0; e < 4u; e++)
                    take<OP>(p.p, &best, found_in<OP, S>(p.p, v[e], r + e * group));
            }
        }
        REE_NO_UNROLL
        for (; r < end; r += group) {
            S v = x[base + (straight ? r * stride : term_offset(p, r))];
            take<OP>(p.p, &best, found_in<OP, S>(p.p, v, r));
        }
    }
    if (group > 1u) best = warp_found<OP>(p.p, best);
    if (group > 32u) { // combine the warps of the block
        if (threadIdx.x % 32u == 0) {
            values[threadIdx.x / 32u] = best.value;
            indices[threadIdx.x / 32u] = best.index;
        }
        __syncthreads();
        best = found_none<OP>();
        if (lane == 0) {
            for (u32 w = 0; w < blockDim.x / 32u; w++) {
                struct found other = {values[w], indices[w]};
                take<OP>(p.p, &best, other);
            }
        }
    }
    if (lane != 0 || o >= n_outer) return;
    if (gridDim.y > 1u)
        keep_found(h, n_outer * gridDim.y, blockIdx.y * n_outer + o, best);
    else
        store_found<OP, S>(h, p.p, o, best);
}

template <int OP, class S>
REE_DEVICE void join_found(const struct ree_cuda_header &h,
                           const struct ree_cuda_reduce_params &p) {
    u32 o = ree_thread(), n_outer = p.p.n_outer, n_segments = h.extra[0];
    if (o >= n_outer) return;
    struct found best = found_none<OP>();
    for (u32 s = 0; s < n_segments; s++) {
        struct found other;
        other.value = ree_scratch<u64>(h)[s * n_outer + o];
        other.index = ree_scratch<u32>(h)[(n_segments * 2u + s) * n_outer + o];
        take<OP>(p.p, &best, other);
    }
    store_found<OP, S>(h, p.p, o, best);
}

#define INTEGER_OF(dtype, S, f, ...)                                                               \
    case dtype:                                                                                    \
        if (p.p.kind == REE_REDUCE_PROD)                                                           \
            f<MUL, S>(__VA_ARGS__);                                                                \
        else if (p.p.kind < REE_REDUCE_PROD)                                                       \
            f<ADD, S>(__VA_ARGS__);                                                                \
        else                                                                                       \
            f<EXTREME, S>(__VA_ARGS__);                                                            \
        break;
#define BY_DTYPE(f, ...)                                                                           \
    switch (p.p.dtype) {                                                                           \
    case REE_F32: f<EXTREME, float>(__VA_ARGS__); break;                                           \
    case REE_F64:                                                                                  \
        f<EXTREME, double>(__VA_ARGS__);                                                           \
        break;                                                                                     \
        INTEGER_OF(REE_I8, int8_t, f, __VA_ARGS__)                                                 \
        INTEGER_OF(REE_I32, int32_t, f, __VA_ARGS__)                                               \
        INTEGER_OF(REE_U32, uint32_t, f, __VA_ARGS__)                                              \
        INTEGER_OF(REE_I64, int64_t, f, __VA_ARGS__)                                               \
        INTEGER_OF(REE_U64, uint64_t, f, __VA_ARGS__)                                              \
    case REE_BOOL: INTEGER_OF(REE_U8, uint8_t, f, __VA_ARGS__)                                     \
    default: break;                                                                                \
    }

// extra[0]: threads per output: 1, 32 or the whole block. extra[1]: terms per segment; blockIdx.y
// is the segment.
REE_KERNEL(reduce_free, struct ree_cuda_reduce_params, 256) {
    REE_SHARED(u64, values, 8);
    REE_SHARED(u32, indices, 8);
    BY_DTYPE(find, h, p, values, indices)
}
// extra[0]: number of segments.
REE_KERNEL(reduce_segments, struct ree_cuda_reduce_params, 256) {
    BY_DTYPE(join_found, h, p)
}
