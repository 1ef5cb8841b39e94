// topk: the first k of n along the middle dimension of (outer, n, inner), by value, equal values by
// ascending index, NaN above everything, -0 equal to +0. NUMERICS.md, section 7.
//
// Values are mapped to unsigned keys: the smaller key comes first. The pairs (key, index) then have
// a strict order, and integer comparisons suffice.
//
// A vector runs along the middle dimension.
//   topk_select  one block per vector. Finds the k-th pair digit by digit, 8 bits at a time from
//                the top, by counting how many pairs have each digit. Then collects the pairs up to
//                the k-th and sorts them in shared memory. Memory traffic: x once per digit needed
//                (mostly two to four) and once more; later passes read from caches.
//   topk_count   for short vectors, and if k pairs do not fit. The rank of an element is the
//                number of elements before it. A thread counts them for one element, against tiles
//                of up to 256 keys in shared memory. Work: up to n * n comparisons per vector.
#include "kernel.h"

REE_DEVICE bool is_long(u32 dtype) {
    return dtype == REE_F64 || dtype == REE_I64 || dtype == REE_U64;
}
// Returns the key of element `at` of x. Keys of types of 32 bits or fewer are below 2^32.
REE_DEVICE u64 key_at(const struct ree_cuda_header &h, const struct ree_topk_params &p, u32 at) {
    u64 key = ree_load_any(h, 0, p.dtype, at);
    switch (p.dtype) {
    case REE_F32: {
        u32 bits = (u32)key;
        if (ree_is_nan(bits))
            bits = 0xFFFFFFFFu;
        else if (ree_is_zero(bits))
            bits = REE_SIGN;
        else
            bits = (bits & REE_SIGN) != 0 ? ~bits : bits | REE_SIGN;
        return p.largest ? ~bits : bits;
    }
    case REE_F64:
        key = ree_f64_is_nan(key) ? ~(u64)0 : ree_f64_order_key(ree_f64_is_zero(key) ? 0 : key);
        break;
    case REE_I64: key ^= (u64)1 << 63; break;
    case REE_U64: break;
    case REE_I8:
    case REE_I32: {
        u32 bits = (u32)key ^ REE_SIGN;
        return p.largest ? ~bits : bits;
    }
    default: {
        u32 bits = (u32)key;
        return p.largest ? ~bits : bits;
    }
    }
    return p.largest ? ~key : key;
}
REE_DEVICE void store_place(const struct ree_cuda_header &h, const struct ree_topk_params &p,
                            u32 from, u32 index, u32 to) {
    u64 value = ree_load_any(h, 0, p.dtype, from);
    if (p.dtype == REE_F32) value = ree_canon((u32)value);
    if (p.dtype == REE_F64) value = ree_f64_canon(value);
    ree_store_size(h, 1, ree_size_of(p.dtype), to, value);
    ree_out<u64>(h, 2)[to] = index;
}

// The bytes of a pair are its digits. Digit 0 is the most significant: 4 digits of the key (8 for
// 64-bit types), then 4 of the index.
REE_DEVICE u32 digit_of(u64 key, u32 index, u32 digit, u32 n_key_digits) {
    if (digit < n_key_digits) return (u32)(key >> (8u * (n_key_digits - 1u - digit))) & 255u;
    return index >> (8u * (n_key_digits + 3u - digit)) & 255u;
}
// Compares the first `digit` digits of a pair with the first digits of the k-th pair, which is
// sought. Returns -1, 0 or 1.
REE_DEVICE int compare_digits(u64 key, u32 index, u64 key_sought, u32 index_sought, u32 digit,
                              u32 n_key_digits) {
    if (digit < n_key_digits) {
        if (digit == 0) return 0;
        u32 shift = 8u * (n_key_digits - digit);
        key >>= shift;
        key_sought >>= shift;
        return key < key_sought ? -1 : key > key_sought;
    }
    if (key != key_sought) return key < key_sought ? -1 : 1;
    if (digit == n_key_digits) return 0;
    u32 shift = 8u * (n_key_digits + 4u - digit);
    if (shift > 0) {
        index >>= shift;
        index_sought >>= shift;
    }
    return index < index_sought ? -1 : index > index_sought;
}

#define MOST 2048u // pairs in shared memory; must match encode_vectors.c

// Bitonic sort of n pairs; n is a power of two.
REE_DEVICE void sort_pairs(ree_shared_t<u64> keys, ree_shared_t<u32> indices, u32 n) {
    for (u32 size = 2; size <= n; size *= 2) {
        for (u32 by = size / 2u; by > 0; by /= 2u) {
            for (u32 j = threadIdx.x; j < n / 2u; j += blockDim.x) {
                u32 a = j / by * 2u * by + j % by, b = a + by;
                u64 ka = keys[a], kb = keys[b];
                u32 ia = indices[a], ib = indices[b];
                bool after = ka > kb || (ka == kb && ia > ib), up = (a & size) == 0;
                if (after == up) {
                    keys[a] = kb, keys[b] = ka;
                    indices[a] = ib, indices[b] = ia;
                }
            }
            __syncthreads();
        }
    }
}

// Calls f(key, i) for the elements i = threadIdx.x, threadIdx.x + blockDim.x, ... of a vector.
template <class F>
REE_DEVICE void each_key(const struct ree_cuda_header &h, const struct ree_topk_params &p,
                         u32 start, F f) {
    const u32 step = blockDim.x;
    u32 i = threadIdx.x;
    for (; i < p.n && p.n - i > 3u * step; i += 4u * step) { // four loads are in flight at a time
        u64 key[4];
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            key[e] = key_at(h, p, start + (i + e * step) * p.inner);
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            f(key[e], i + e * step);
    }
    REE_NO_UNROLL
    for (; i < p.n; i += step)
        f(key_at(h, p, start + i * p.inner), i);
}

REE_KERNEL(topk_select, struct ree_cuda_topk_params, 1024) {
    REE_SHARED(u64, keys, MOST);
    REE_SHARED(u32, indices, MOST);
    REE_SHARED(u32, counts, 256);
    // [0]: the digit found; [1]: how many pairs with this digit are still to be selected; [2]: 1 if
    // these are all pairs with this digit; [3]: number of pairs collected
    REE_SHARED(u32, found, 4);
    const u32 n = p.p.n, inner = p.p.inner, k = p.p.k;
    u32 column, outer = ree_divide(blockIdx.x, p.inner, &column);
    const u32 start = outer * n * inner + column;
    const u32 n_key_digits = is_long(p.p.dtype) ? 8u : 4u;
    u64 key_sought = 0;
    u32 index_sought = 0, left = k, digit = 0;
    // Repeats until all pairs with the digits found so far are to be selected.
    for (bool all = k == n; !all && digit < n_key_digits + 4u; digit++) {
        if (threadIdx.x < 256u) counts[threadIdx.x] = 0;
        __syncthreads();
        each_key(h, p.p, start, [&](u64 key, u32 i) {
            if (compare_digits(key, i, key_sought, index_sought, digit, n_key_digits) == 0)
                atomicAdd(&counts[digit_of(key, i, digit, n_key_digits)], 1u);
        });
        __syncthreads();
        if (threadIdx.x < 32u) { // find the digit at which the count reaches `left`
            u32 mine = 0;
            for (u32 e = 0; e < 8u; e++)
                mine += counts[threadIdx.x * 8u + e];
            u32 before = mine;
            for (u32 by = 1; by < 32u; by *= 2u) {
                u32 other = __shfl_up_sync(0xFFFFFFFFu, before, by);
                if (threadIdx.x >= by) before += other;
            }
            before -= mine;
            if (before < left && left <= before + mine) {
                u32 d = threadIdx.x * 8u;
                while (before + counts[d] < left) {
                    before += counts[d];
                    d++;
                }
                found[0] = d;
                found[1] = left - before;
                found[2] = left - before == counts[d];
            }
        }
        __syncthreads();
        u32 d = found[0];
        left = found[1];
        all = found[2] != 0;
        if (digit < n_key_digits)
            key_sought |= (u64)d << (8u * (n_key_digits - 1u - digit));
        else
            index_sought |= d << (8u * (n_key_digits + 3u - digit));
        __syncthreads();
    }
    u32 n_sorted = 1;
    while (n_sorted < k)
        n_sorted *= 2;
    if (threadIdx.x == 0) found[3] = 0;
    for (u32 j = threadIdx.x; j < n_sorted; j += blockDim.x) {
        keys[j] = ~(u64)0;
        indices[j] = 0xFFFFFFFFu;
    }
    __syncthreads();
    each_key(h, p.p, start, [&](u64 key, u32 i) {
        if (compare_digits(key, i, key_sought, index_sought, digit, n_key_digits) > 0) return;
        u32 to = atomicAdd(&found[3], 1u);
        keys[to] = key;
        indices[to] = i;
    });
    __syncthreads();
    sort_pairs(keys, indices, n_sorted);
    for (u32 j = threadIdx.x; j < k; j += blockDim.x) {
        u32 i = indices[j];
        store_place(h, p.p, start + i * inner, i, (outer * k + j) * inner + column);
    }
}

#define THREADS 256u

// extra[0]: elements of a vector per block, a power of two up to 256. If it is less than 256, a
// block of 256 threads has several vectors. Neighbouring threads have neighbouring elements of a
// vector.
REE_KERNEL(topk_count, struct ree_cuda_topk_params, 256) {
    REE_SHARED(u64, keys, THREADS);
    const u32 n = p.p.n, inner = p.p.inner, k = p.p.k, width = h.extra[0];
    const u32 n_vectors = p.p.outer * inner, blocks_of_vector = (n + width - 1u) / width;
    const u32 slot = threadIdx.x / width, lane = threadIdx.x % width;
    const u32 part = blockIdx.x % blocks_of_vector;
    const u32 vector = blockIdx.x / blocks_of_vector * (THREADS / width) + slot;
    const u32 i = part * width + lane;
    u32 column, outer = ree_divide(vector, p.inner, &column);
    const u32 start = outer * n * inner + column;
    const bool has_vector = vector < n_vectors, has_own = has_vector && i < n;
    u64 own = has_own ? key_at(h, p.p, start + i * inner) : 0;
    u32 place = has_own ? 0u : k;
    for (u32 first = 0; first < n; first += width) {
        if (has_vector && first + lane < n)
            keys[threadIdx.x] = key_at(h, p.p, start + (first + lane) * inner);
        __syncthreads();
        if (place < k) {
            u32 m = n - first < width ? n - first : width;
            for (u32 j = 0; j < m; j++) {
                u64 key = keys[slot * width + j];
                // Among equal values, smaller indices come first.
                if (key < own || (key == own && first + j < i)) place++;
            }
        }
        if (!__syncthreads_or(place < k)) break;
    }
    if (place < k) store_place(h, p.p, start + i * inner, i, (outer * k + place) * inner + column);
}
