// copy: dst[dst_offset + sum(i * dst_stride)] = src[src_offset + sum(i * src_stride)],
// src/repops/repop.h.
//
// copy_runs: one thread per element, in row-major order.
// copy_words: src and dst are contiguous and consist of whole words.
// copy_tiles: src and dst have stride 1 in different dimensions. Tiles of 32 x 32 elements of 4
// bytes are transposed through shared memory, so that both sides access whole cache lines.
#include "kernel.h"

template <class T>
REE_DEVICE void copy_one(const struct ree_cuda_header &h, const struct ree_cuda_copy_params &p,
                         u32 i) {
    u32 from = (u32)p.src_offset, to = (u32)p.dst_offset, rest = i;
    for (u32 d = p.rank; d-- > 0;) {
        u32 coordinate, q = ree_divide(rest, p.dims[d], &coordinate);
        from += coordinate * (u32)p.src_strides[d];
        to += coordinate * (u32)p.dst_strides[d];
        rest = q;
    }
    ree_out<T>(h, 1)[to] = ree_in<T>(h, 0)[from];
}

REE_KERNEL(copy_runs, struct ree_cuda_copy_params, 256) {
    u32 i = ree_thread();
    if (i >= p.n_elements) return;
    if (p.elem_size == 4)
        copy_one<uint32_t>(h, p, i);
    else if (p.elem_size == 1)
        copy_one<uint8_t>(h, p, i);
    else if (p.elem_size == 8)
        copy_one<uint64_t>(h, p, i);
    else
        copy_one<uint16_t>(h, p, i);
}

// For contiguous src and dst of whole words: copies 16 bytes at a time if both addresses allow it.
// extra[0]: number of words.
REE_KERNEL(copy_words, struct ree_cuda_copy_params, 256) {
    auto src = ree_in<u32>(h, 0);
    auto dst = ree_out<u32>(h, 1);
    u32 first = ree_thread() * 4u, n = h.extra[0];
    if (first >= n) return;
    // An offset in words fits in 32 bits; an offset in bytes may not.
    u32 from = (u32)((u64)(u32)p.src_offset * p.elem_size / 4u) + first;
    u32 to = (u32)((u64)(u32)p.dst_offset * p.elem_size / 4u) + first;
    if (n - first >= 4u && ree_aligned(src, from, 16) && ree_aligned(dst, to, 16)) {
        ree_store(dst, to, ree_load<uint4>(src, from));
        return;
    }
    for (u32 j = 0; j < 4u && j < n - first; j++)
        dst[to + j] = src[from + j];
}

#define TILE 32u

// extra[0]: the dimension in which src has stride 1; dst has stride 1 in the last dimension.
// blockIdx.y enumerates the other dimensions. 256 threads.
REE_KERNEL(copy_tiles, struct ree_cuda_copy_params, 256) {
    REE_SHARED(u32, tile, 32 * 33);
    const u32 across = h.extra[0], last = p.rank - 1u;
    u32 n_rows = p.dims[across].d, n_columns = p.dims[last].d;
    u32 tiles_wide = (n_columns + TILE - 1u) / TILE;
    u32 row0 = blockIdx.x / tiles_wide * TILE, column0 = blockIdx.x % tiles_wide * TILE;
    u32 from = (u32)p.src_offset, to = (u32)p.dst_offset, rest = blockIdx.y;
    for (u32 d = last; d-- > 0;) {
        if (d == across) continue;
        u32 coordinate, q = ree_divide(rest, p.dims[d], &coordinate);
        from += coordinate * (u32)p.src_strides[d];
        to += coordinate * (u32)p.dst_strides[d];
        rest = q;
    }
    u32 lane = threadIdx.x % TILE;
    // A column of the tile is contiguous in src.
    for (u32 j = threadIdx.x / TILE; j < TILE; j += 8u) {
        u32 row = row0 + lane, column = column0 + j;
        if (row < n_rows && column < n_columns)
            tile[j * 33u + lane] =
                ree_in<u32>(h, 0)[from + row + column * (u32)p.src_strides[last]];
    }
    __syncthreads();
    for (u32 j = threadIdx.x / TILE; j < TILE; j += 8u) {
        u32 row = row0 + j, column = column0 + lane;
        if (row < n_rows && column < n_columns)
            ree_out<u32>(h, 1)[to + row * (u32)p.dst_strides[across] + column] =
                tile[lane * 33u + j];
    }
}
