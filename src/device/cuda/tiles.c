// Chooses the tile of a product by an estimate of the time with each tile.
#include "device/cuda/tiles.h"

#include <stddef.h>

#include "repops/repop.h"

// The tiles of cuda/tile.h. Each stage has TILE_K terms.
#define TILE_K 8
struct tile {
    uint32_t rows, columns, threads;
    double rate; // estimated share of a multiprocessor's multiply-add rate
};
static const struct tile tiles[REE_CUDA_N_TILES] = {
    [REE_CUDA_TILE_128X128] = {128, 128, 256, 0.85},
    [REE_CUDA_TILE_128X64] = {128, 64, 256, 0.75},
    [REE_CUDA_TILE_64X64] = {64, 64, 128, 0.70},
    [REE_CUDA_TILE_32X64] = {32, 64, 128, 0.55},
};

static uint32_t totals_bytes(const struct tile *t) {
    return t->rows * t->columns * 4;
}
static uint32_t stage_bytes(const struct tile *t) {
    return TILE_K * (t->rows + 4 + t->columns + 4) * 4;
}
// Returns the number of resident blocks per multiprocessor with n_stages.
static uint32_t n_resident(const struct ree_cuda_limits *limits, const struct tile *t,
                           uint32_t n_stages) {
    uint32_t bytes = totals_bytes(t) + n_stages * stage_bytes(t);
    if (bytes > limits->max_shared) return 0;
    uint32_t n = limits->shared_per_multiprocessor / (bytes + 1024), most = 512 / t->threads;
    return n < most ? n : most; // 65536 registers, 128 per thread
}

struct plan {
    const struct tile *tile;
    uint32_t n_parts;
    double cost;
};

// Estimates the time of the whole product, in multiply-adds of one multiprocessor: the rounds of
// blocks. If there are parts, adds the second launch, and writing and reading the parts at about 6
// multiply-adds per byte.
static double cost_of(const struct ree_cuda_limits *limits, const struct tile *t, uint32_t m,
                      uint32_t n, uint32_t k, uint64_t n_products, uint32_t n_parts) {
    uint64_t n_tiles =
        (uint64_t)((m + t->rows - 1) / t->rows) * ((n + t->columns - 1) / t->columns) * n_products;
    uint32_t k_part = n_parts > 1 ? REE_CHUNK : k, n_mp = limits->n_multiprocessors;
    if (n_mp == 0) n_mp = 1;
    uint64_t blocks = n_tiles * n_parts;
    double rounds = (double)((blocks + n_mp - 1) / n_mp);
    double rate = t->rate;
    if (n_resident(limits, t, 2) < 512 / t->threads) rate *= 0.8; // latency is no longer hidden
    uint32_t together = 512 / t->threads; // number of blocks that keep a multiprocessor busy
    if (rounds < together) rate *= 0.5 + 0.5 * rounds / together;
    double cost = rounds * t->rows * t->columns * (k_part + 64.0) / rate;
    if (n_parts > 1)
        cost += (double)m * n * (double)n_products * (n_parts * 8.0 + 4.0) * 6.0 / n_mp + 4e5;
    return cost;
}

static struct plan choose(const struct ree_cuda_limits *limits, uint32_t m, uint32_t n, uint32_t k,
                          uint64_t n_products) {
    struct plan best = {.tile = NULL};
    uint32_t n_chunks = (uint32_t)(((uint64_t)k + REE_CHUNK - 1) / REE_CHUNK);
    for (size_t i = 0; i < REE_CUDA_N_TILES; i++) {
        if (n_resident(limits, &tiles[i], 2) == 0) continue;
        if (limits->forces_plan && limits->tile != i) continue;
        for (uint32_t split = 0; split < 2; split++) {
            uint32_t n_parts = split ? n_chunks : 1;
            if (split && n_chunks < 2) continue;
            if (limits->forces_plan && n_chunks > 1 && limits->splits != split) continue;
            if (split && n_products * m * n * n_chunks * 4 > REE_CUDA_MAX_PARTS_BYTES) continue;
            double cost = cost_of(limits, &tiles[i], m, n, k, n_products, n_parts);
            if (!best.tile || cost < best.cost) best = (struct plan){&tiles[i], n_parts, cost};
        }
    }
    return best;
}

// Returns the largest number of stages that does not reduce the resident blocks per multiprocessor.
static uint32_t choose_stages(const struct ree_cuda_limits *limits, const struct tile *t) {
    uint32_t n = 2;
    while (n < 4 && n_resident(limits, t, n + 1) == n_resident(limits, t, 2))
        n++;
    return n;
}

struct ree_cuda_plan ree_cuda_plan_tiles(const struct ree_cuda_limits *limits, uint32_t m,
                                         uint32_t n, uint32_t k, uint64_t n_products) {
    struct plan best = choose(limits, m, n, k, n_products);
    // On a GPU with too little shared memory for any tile, the driver refuses the smallest one.
    if (!best.tile) best = (struct plan){.tile = &tiles[REE_CUDA_TILE_32X64], .n_parts = 1};
    const struct tile *t = best.tile;
    uint32_t n_stages = choose_stages(limits, t);
    return (struct ree_cuda_plan){
        .tile = (enum ree_cuda_tile)(t - tiles),
        .threads = t->threads,
        .n_parts = best.n_parts,
        .n_stages = n_stages,
        .totals_bytes = totals_bytes(t),
        .stages_bytes = n_stages * stage_bytes(t),
        .n_blocks = (uint64_t)((m + t->rows - 1) / t->rows) * ((n + t->columns - 1) / t->columns) *
                    n_products * best.n_parts,
    };
}
