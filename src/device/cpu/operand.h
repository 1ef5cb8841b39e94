// One operand of a product, of any type, and its packing into the panels that tiles read.
//
// An operand consists of `vectors` (rows of A or columns of B) of k terms each. Its packed form is,
// for each chunk of REE_CHUNK words along K, for each panel of vectors: (chunk's words, vectors of
// the panel). A word is one float or, for integer products, as many terms as one step of the tiles
// (tiles_integer.h). Narrow floats, integers and blockwise weights become floats a few vectors at a
// time, in the first-level cache, so no float copy of a whole matrix is ever in memory.
#ifndef REE_DEVICE_CPU_OPERAND_H
#define REE_DEVICE_CPU_OPERAND_H

#include "device/cpu/tiles_integer.h"

// Blockwise weights that were packed as panels (matmul_panels.c).
struct ree_packed_blocks {
    const ree_any_u32 *weights;
    const float *scales;
    const uint8_t *zeros; // NULL: every zero point is 2^(bits - 1)
    uint32_t bits, block, k;
};

// Returns panel number `panel`, of `cols` columns, from term l on, the first of a chunk.
static inline struct ree_tile_panel ree_packed_panel(const struct ree_packed_blocks *b,
                                                     uint32_t cols, uint32_t panel, uint32_t l) {
    const uint32_t per_word = 32 / b->bits;
    size_t n_words = b->k / per_word + (b->k % per_word != 0);
    size_t n_blocks = b->k / b->block + (b->k % b->block != 0);
    size_t word = panel * n_words + l / per_word, block = panel * n_blocks + l / b->block;
    return (struct ree_tile_panel){
        .weights = b->weights + word * cols,
        .scales = b->scales + block * cols,
        .zeros = b->zeros ? b->zeros + block * cols : NULL,
        .bits = b->bits,
        .block = b->block,
    };
}

struct ree_cpu_operand {
    // address of term 0 of vector 0 (a row of A or a column of B); unused if `blocks` is set
    const char *data;
    enum ree_dtype dtype;
    int64_t stride_vector, stride_k;      // distances in elements
    const struct ree_tile_blocks *blocks; // blockwise weights; NULL: a plain matrix
    // packed columns of B, to read instead of `blocks`; NULL: none. Calls of ree_cpu_operand_pack
    // must begin at a multiple of tiles->lanes columns and at the beginning of a chunk.
    const struct ree_packed_blocks *packed;
    // integer: for integer products, NULL otherwise. flip: pack every byte with its top bit
    // flipped.
    const struct ree_integer_tiles *integer;
    bool flip;
    // Prefetch distance in elements, from a term to one that is packed soon after it, if stride_k
    // is 1. 0: one chunk.
    int64_t ahead;
};

// Returns the operand advanced by `elements`. An operand without data is returned unchanged: only
// its shape is read.
static inline struct ree_cpu_operand ree_cpu_operand_at(const struct ree_cpu_operand *f,
                                                        int64_t elements) {
    struct ree_cpu_operand at = *f;
    if (!f->blocks && f->data) at.data += elements * (int64_t)ree_dtype_size(f->dtype);
    return at;
}

// Packs words [word, word + n_words) of vectors [vector, vector + n_vectors): word number `word` +
// w of vector number `vector` + i goes to dst[w * pitch + i]. dst gets zeros for n_vectors <= i <
// pitch. k: terms of a whole vector.
void ree_cpu_operand_pack(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                          uint32_t k, uint32_t vector, uint32_t n_vectors, uint32_t word,
                          uint32_t n_words, float *dst, uint32_t pitch);

// Writes vectors [0, n_vectors), of k terms each, as a dense float32 matrix out (n_vectors, k).
void ree_cpu_operand_widen(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                           uint32_t k, uint32_t n_vectors, float *out);

#endif
