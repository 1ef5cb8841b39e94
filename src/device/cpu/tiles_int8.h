// Tiles for products of blockwise activations (int8) and blockwise weights (4 or 8 bits), the
// block-dot of NUMERICS.md section 3:
//
//     acc(i, j) = fma(I, da(i) * db(j), acc(i, j)) from +0 in each chunk, for each run in order
//     I = the sum over the run of a(i, l) * (q(l, j) - z(j)), exact in int32
//
// A run is a part of a chunk in which neither operand begins a new block: min(a_block, b_block)
// terms.
//
// Performance bounds for one core, with V lanes: a run of 32 terms of one result takes 8 dot
// instructions for V results, and 3 more for the scales. With few rows the weights' bytes bound the
// time: per vector of columns a run of 8-bit weights is 32 * V bytes and about 12 instructions.
//
// The weights are packed as panels (matmul_panels.c) with their words as they are in memory, so a
// lane's word is 4 numbers of 8 bits or 8 numbers of 4 bits of one column. The rows are packed so
// that one word of A meets one word of B after B's bytes are separated:
//
//     bits  terms per A word  A words for each word of B, as indices of its terms
//     8     4                 0 1 2 3
//     4     4                 0 2 4 6 | 1 3 5 7
//     8     2                 0 2 | 1 3
//     4     2                 0 4 | 1 5 | 2 6 | 3 7
#ifndef REE_DEVICE_CPU_TILES_INT8_H
#define REE_DEVICE_CPU_TILES_INT8_H

#include "device/cpu/tiles.h"

// Packed rows: `rows` rows of A at a time, the last group may be smaller. For each group, for each
// run, with r rows in the group:
//     words (words of the run, r), u32
//     corrections (r), int32: -sum(a) over the run; without zero points of B, -sum(a) * 2^(bits-1),
//         or 0 if the tiles read B's numbers as q - 2^(bits-1) (b_center)
//     scales (r), f32
// Zeros complete a run that ends beyond K. Tiles with by_rows have the words of a row side by side
// instead: (r, words of the run).

// One chunk of a product with one panel of weights.
struct ree_int8_chunk {
    uint32_t n_runs, run; // runs in the chunk, and terms of a run
    uint32_t b_block, bits;
    // The first group of packed rows; the runs before this chunk in each group; the words between
    // two rows of a group, that is, of a whole row with its corrections and scales.
    const ree_any_u32 *a;
    uint32_t first_run;
    size_t a_pitch;
    const ree_any_u32 *b;   // (words of the chunk, columns of the panel)
    const float *b_scales;  // (blocks of B in the chunk, columns of the panel)
    const uint8_t *b_zeros; // (blocks of B in the chunk, columns of the panel); NULL: 2^(bits - 1)
};

struct ree_int8_tiles {
    uint32_t lanes; // a panel has REE_PANEL_VECS * lanes columns
    // terms[bits]: terms in a word of packed A that meets numbers of 4 or 8 bits, 2 or 4
    uint32_t terms[9];
    uint32_t rows;     // rows of a group of packed A
    uint32_t min_rows; // the tiles are for products of at least so many rows
    bool by_rows;
    // b_center[bits]: what the tiles subtract from each number of B before they multiply. Where
    // both factors must be signed bytes (NEON, AMX), it is 128 for 8 bits.
    int32_t b_center[9];
    // Adds the chunk's result to c (n_rows, columns of the panel), row pitch ldc.
    void (*run)(uint32_t n_rows, const struct ree_int8_chunk *chunk, float *c, size_t ldc,
                uint32_t flags);
};

// Returns the words of packed A for each run of a row: its terms, correction and scale. bits: of
// the numbers of B.
static inline uint32_t ree_int8_run_words(const struct ree_int8_tiles *tiles, uint32_t run,
                                          uint32_t bits) {
    return run / tiles->terms[bits] + 2;
}

// Returns the tiles for a product with m rows.
const struct ree_int8_tiles *ree_int8_tiles_for(const struct ree_cpu_context *ctx, uint32_t m);

#endif
