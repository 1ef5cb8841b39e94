// Tiling of a float32 product for the kernels of cuda/tile.h: which tile, and whether different
// blocks compute the chunks of k.
#ifndef REE_DEVICE_CUDA_TILES_H
#define REE_DEVICE_CUDA_TILES_H

#include <stdbool.h>
#include <stdint.h>

// Maximum size of the chunks' results in the scratch memory.
#define REE_CUDA_MAX_PARTS_BYTES ((uint64_t)1 << 30)

enum ree_cuda_tile {
    REE_CUDA_TILE_128X128,
    REE_CUDA_TILE_128X64,
    REE_CUDA_TILE_64X64,
    REE_CUDA_TILE_32X64,
    REE_CUDA_N_TILES
};

// Device properties by which encoders choose kernels. The choice never changes bits. Tests change
// these values. Self-tests do too, so that a twin runs the kernels that the larger dispatch runs.
struct ree_cuda_limits {
    uint32_t n_multiprocessors; // 0: every dispatch counts as large enough for all
    uint32_t max_shared;        // maximum shared bytes of a block (opt-in)
    uint32_t shared_per_multiprocessor;
    // Float products use `tile`, and one block per chunk if `splits`.
    bool forces_plan;
    bool splits;
    enum ree_cuda_tile tile;
};

struct ree_cuda_plan {
    enum ree_cuda_tile tile;
    uint32_t threads; // threads per block
    uint32_t n_parts; // 1, or the number of chunks
    uint32_t n_stages;
    uint32_t totals_bytes, stages_bytes; // bytes of shared memory
    uint64_t n_blocks;
};

// Plans n_products products of (m, k) by (k, n). The choice never changes bits.
struct ree_cuda_plan ree_cuda_plan_tiles(const struct ree_cuda_limits *limits, uint32_t m,
                                         uint32_t n, uint32_t k, uint64_t n_products);

#endif
