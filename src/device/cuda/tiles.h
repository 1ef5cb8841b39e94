// How a float32 product is cut for the kernels of cuda/tile.h: which tile, and whether the chunks
// of k go to different blocks.
#ifndef REE_DEVICE_CUDA_TILES_H
#define REE_DEVICE_CUDA_TILES_H

#include <stdint.h>

struct ree_cuda_limits;

// Of the results of chunks in the scratch memory.
#define REE_CUDA_MAX_PARTS_BYTES ((uint64_t)1 << 30)

enum ree_cuda_tile {
    REE_CUDA_TILE_128X128,
    REE_CUDA_TILE_128X64,
    REE_CUDA_TILE_64X64,
    REE_CUDA_TILE_32X64,
    REE_CUDA_N_TILES
};

struct ree_cuda_plan {
    enum ree_cuda_tile tile;
    uint32_t threads; // of a block
    uint32_t n_parts; // 1, or the number of chunks
    uint32_t n_stages;
    uint32_t totals_bytes, stages_bytes; // of shared memory
    uint64_t n_blocks;
};

// n_products products of (m, k) by (k, n). Choices never change bits.
struct ree_cuda_plan ree_cuda_plan_tiles(const struct ree_cuda_limits *limits, uint32_t m,
                                         uint32_t n, uint32_t k, uint64_t n_products);

#endif
