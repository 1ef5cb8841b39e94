// scan: out[j] = the sum (product) of terms 0 ... j by the chunk scheme: the total of the chunks
// before j's chunk, plus (times) the terms of j's own chunk up to j. NUMERICS.md, section 3.
//
// A vector runs along the scanned dimension. A thread scans a vector. If vectors are few and long,
// there are three launches, which pass chunk results in scratch memory, [chunk][vector]:
// - SCAN_REDUCE: each thread reduces a chunk;
// - scan_offsets: each thread replaces each chunk result of a vector by the total of the chunks
//   before it;
// - SCAN_CHUNKS: each thread scans a chunk.
//
// Memory traffic: x once and out once; with three launches x twice. If neighbouring vectors are
// adjacent in memory, neighbouring threads read them directly (scan_columns). If the elements of a
// vector are contiguous, they are transferred in pieces of 32 through shared memory (scan_vectors).
#include "chunks.h"

enum { SCAN_VECTORS, SCAN_REDUCE, SCAN_CHUNKS }; // extra[0]; must match encode_vectors.c

template <class T, bool PRODUCT> struct scan_state { T total, acc; };
template <class T> REE_DEVICE T join(bool product, T a, T b) {
    return product ? ree_mul(a, b) : ree_add(a, b);
}

// Adds (multiplies by) one term. Returns the element to store.
template <class T, bool PRODUCT>
REE_DEVICE T scan_term(struct scan_state<T, PRODUCT> *s, bool exclusive, T x) {
    T before = join(PRODUCT, s->total, s->acc);
    s->acc = join(PRODUCT, s->acc, x);
    return ree_final(exclusive ? before : join(PRODUCT, s->total, s->acc));
}
template <class T, bool PRODUCT> REE_DEVICE void scan_turn(struct scan_state<T, PRODUCT> *s) {
    s->total = join(PRODUCT, s->total, s->acc);
    s->acc = PRODUCT ? (T)1 : (T)0;
}

// The terms of a vector that a thread processes.
struct scan_part {
    u32 vector, chunk, begin, end;
};
REE_DEVICE struct scan_part part_of(const struct ree_cuda_scan_params &p, u32 stage, u32 thread) {
    struct scan_part part = {thread, 0, 0, p.p.k};
    if (stage != SCAN_VECTORS) {
        part.chunk = thread / p.n_vectors;
        part.vector = thread % p.n_vectors;
        part.begin = part.chunk * REE_CHUNK;
        if (p.p.k - part.begin > REE_CHUNK) part.end = part.begin + REE_CHUNK;
    }
    return part;
}

template <class T, bool PRODUCT>
REE_DEVICE void walk_columns(const struct ree_cuda_header &h,
                             const struct ree_cuda_scan_params &p) {
    const u32 stage = h.extra[0];
    u32 thread = ree_thread();
    if (thread >= (stage == SCAN_VECTORS ? p.n_vectors : p.n_vectors * p.n_chunks)) return;
    struct scan_part part = part_of(p, stage, thread);
    auto x = ree_in<T>(h, 0);
    auto y = ree_out<T>(h, 1);
    u32 column, outer = ree_divide(part.vector, p.inner, &column);
    u32 start = outer * p.p.k * p.p.inner + column, step = p.p.inner;
    if (p.p.reverse) {
        start += (p.p.k - 1u) * p.p.inner;
        step = 0u - step;
    }
    struct scan_state<T, PRODUCT> s;
    s.total = s.acc = PRODUCT ? (T)1 : (T)0;
    if (stage == SCAN_CHUNKS) s.total = ree_scratch<T>(h)[thread];
    u32 at = start + part.begin * step;
    for (u32 j = part.begin; j < part.end; j++, at += step) {
        if (j > part.begin && j % REE_CHUNK == 0) scan_turn(&s);
        T v = x[at];
        T element = scan_term(&s, p.p.exclusive != 0, v);
        if (stage != SCAN_REDUCE) y[at] = element;
    }
    if (stage == SCAN_REDUCE) ree_scratch<T>(h)[thread] = s.acc;
}

#define THREADS 64u // threads per block
#define DEPTH 32u
#define STRIDE 33u

template <class T, bool PRODUCT>
REE_DEVICE void walk_vectors(const struct ree_cuda_header &h, const struct ree_cuda_scan_params &p,
                             ree_shared_t<T> tile) {
    const u32 stage = h.extra[0], k = p.p.k;
    u32 n = stage == SCAN_VECTORS ? p.n_vectors : p.n_vectors * p.n_chunks, thread = ree_thread();
    struct scan_part part = part_of(p, stage, thread < n ? thread : 0u);
    auto x = ree_in<T>(h, 0);
    auto y = ree_out<T>(h, 1);
    struct scan_state<T, PRODUCT> s;
    s.total = s.acc = PRODUCT ? (T)1 : (T)0;
    if (stage == SCAN_CHUNKS && thread < n) s.total = ree_scratch<T>(h)[thread];
    const u32 longest = stage == SCAN_VECTORS || k < REE_CHUNK ? k : REE_CHUNK;
    const u32 lane = threadIdx.x % DEPTH;
    for (u32 r0 = 0; r0 < longest; r0 += DEPTH) {
        // A warp copies one vector at a time.
        for (u32 l = threadIdx.x / DEPTH; l < THREADS; l += THREADS / DEPTH) {
            u32 other = blockIdx.x * THREADS + l;
            if (other >= n) break;
            struct scan_part of = part_of(p, stage, other);
            u32 j = of.begin + r0 + lane;
            if (j < of.end)
                tile[l * STRIDE + lane] = x[of.vector * k + (p.p.reverse ? k - 1u - j : j)];
        }
        __syncthreads();
        if (r0 > 0 && r0 % REE_CHUNK == 0) scan_turn(&s);
        if (thread < n) {
            u32 first = part.begin + r0;
            u32 m = first >= part.end ? 0 : part.end - first < DEPTH ? part.end - first : DEPTH;
            for (u32 i = 0; i < m; i++) {
                T v = tile[threadIdx.x * STRIDE + i];
                tile[threadIdx.x * STRIDE + i] = scan_term(&s, p.p.exclusive != 0, v);
            }
        }
        __syncthreads();
        for (u32 l = threadIdx.x / DEPTH; stage != SCAN_REDUCE && l < THREADS;
             l += THREADS / DEPTH) {
            u32 other = blockIdx.x * THREADS + l;
            if (other >= n) break;
            struct scan_part of = part_of(p, stage, other);
            u32 j = of.begin + r0 + lane;
            if (j < of.end)
                y[of.vector * k + (p.p.reverse ? k - 1u - j : j)] = tile[l * STRIDE + lane];
        }
        __syncthreads();
    }
    if (stage == SCAN_REDUCE && thread < n) ree_scratch<T>(h)[thread] = s.acc;
}

template <class T>
REE_DEVICE void offsets(const struct ree_cuda_header &h, const struct ree_cuda_scan_params &p) {
    u32 vector = ree_thread();
    if (vector >= p.n_vectors) return;
    auto results = ree_scratch<T>(h);
    const bool product = p.p.product != 0;
    T total = product ? (T)1 : (T)0;
    for (u32 chunk = 0; chunk < p.n_chunks; chunk++) {
        T result = results[chunk * p.n_vectors + vector];
        results[chunk * p.n_vectors + vector] = total;
        total = join(product, total, result);
    }
}

#define BY_TYPE(f, ...)                                                                            \
    if (p.p.dtype == REE_F32)                                                                      \
        f(float, __VA_ARGS__);                                                                     \
    else if (p.p.dtype == REE_F64)                                                                 \
        f(double, __VA_ARGS__);                                                                    \
    else if (p.p.dtype == REE_I32 || p.p.dtype == REE_U32)                                         \
        f(u32, __VA_ARGS__);                                                                       \
    else                                                                                           \
        f(u64, __VA_ARGS__);
#define COLUMNS(T, ...)                                                                            \
    if (p.p.product)                                                                               \
        walk_columns<T, true>(h, p);                                                               \
    else                                                                                           \
        walk_columns<T, false>(h, p)
#define IN_TILE(T, ...)                                                                            \
    if (p.p.product)                                                                               \
        walk_vectors<T, true>(h, p, (ree_shared_t<T>)tile);                                        \
    else                                                                                           \
        walk_vectors<T, false>(h, p, (ree_shared_t<T>)tile)
#define OFFSETS(T, ...) offsets<T>(h, p)

REE_KERNEL(scan_columns, struct ree_cuda_scan_params, 128){BY_TYPE(COLUMNS, )}
// Vectors of contiguous elements (inner is 1). 64 threads.
REE_KERNEL(scan_vectors, struct ree_cuda_scan_params, 64) {
    REE_SHARED(u64, tile, THREADS * STRIDE);
    BY_TYPE(IN_TILE, )
}
REE_KERNEL(scan_offsets, struct ree_cuda_scan_params, 128) {
    BY_TYPE(OFFSETS, )
}
