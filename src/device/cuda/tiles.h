// Tiling of a float32 product for the kernels of cuda/tile.h: which tile, and whether different
// blocks compute the chunks of k.
#ifndef REE_DEVICE_CUDA_TILES_H
#define REE_DEVICE_CUDA_TILES_H

#include <stdbool.h>
#include <stdint.h>

// Maximum bytes of the results of a product's chunks in the scratch memory.
#define REE_CUDA_MAX_PARTS_BYTES ((uint64_t)1 << 30)

enum ree_cuda_tile {
    REE_CUDA_TILE_128X128,
    REE_CUDA_TILE_128X64,
    REE_CUDA_TILE_64X64,
    REE_CUDA_TILE_32X64,
    REE_CUDA_N_TILES
};

// Device properties by which encoders choose kernels. The choice never changes bits. Tests change
// these values. Self-tests also do, so that a small twin runs the same kernels as its dispatch.
struct ree_cuda_limits {
    uint32_t n_multiprocessors; // 0: every dispatch counts as large enough to fill the device
    uint32_t max_shared;        // maximum bytes of shared memory per block (opt-in)
    uint32_t shared_per_multiprocessor;
    // If set, every float32 product uses `tile` and, if `splits`, a block for each chunk of k.
    bool forces_plan;
    bool splits;
    enum ree_cuda_tile tile;
};

struct ree_cuda_plan {
    enum ree_cuda_tile tile;
    uint32_t threads; // threads per block
    uint32_t n_parts; // 1, or the number of chunks of k if each has a block of its own
    uint32_t n_stages;
    // Shared memory per block, in bytes: of the tile's sums, and of all stages.
    uint32_t totals_bytes, stages_bytes;
    uint64_t n_blocks;
};

// Chooses how to compute n_products products of float32 matrices (m, k) and (k, n). The choice
// never changes bits.
struct ree_cuda_plan ree_cuda_plan_tiles(const struct ree_cuda_limits *limits, uint32_t m,
                                         uint32_t n, uint32_t k, uint64_t n_products);

#endif
