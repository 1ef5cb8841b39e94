// The innermost loops of matmul and conv, one set per instruction set.
//
// A tile kernel multiplies one chunk of at most REE_CHUNK terms of K:
//
//     acc(i, j) = fma(a(i, l), b(l, j), acc(i, j)) from +0, l ascending     NUMERICS.md section 3
//
// and adds it to the running total c(i, j). Every output element is one lane of one accumulator, so
// the bits equal those of the scalar definition for any tile size.
//
// The first chunk's total is stored as p0, not as 0 + p0. The two differ only if p0 is -0, and then
// only in the sign of a zero. The addition of +0 after the last chunk makes that sign + in either
// case, and a sum with a non-zero value does not depend on it.
#ifndef REE_DEVICE_CPU_TILES_H
#define REE_DEVICE_CPU_TILES_H

#include "base/any.h"
#include "device/cpu/cpu_internal.h"

#define REE_TILE_MAX_ROWS 14
#define REE_TILE_MAX_VECS 4
#define REE_TILE_MAX_TERMS 4
#define REE_STREAM_MAX_ROWS 8

// For the vector functions of the innermost loops: inlined in builds with little optimization, too.
#define REE_TILES_INLINE static inline __attribute__((always_inline))

enum {
    REE_TILE_FIRST = 1, // c holds no total yet; the result is stored, not added
    REE_TILE_LAST = 2,  // after adding this chunk, +0 is added and NaNs become canonical
};

// A tile kernel, for a fixed number of rows and vectors. a: packed (k, rows). b: packed (k, cols of
// the full tile); only the first n_cols are computed. c: row-major with row pitch ldc. flags:
// REE_TILE_FIRST, REE_TILE_LAST.
typedef void (*ree_tile_fn)(uint32_t k, const float *a, const float *b, float *c, size_t ldc,
                            uint32_t n_cols, uint32_t flags);

struct ree_tile_run {
    // Adjacent words of a laid-out input, from word `at` on. length is at least 1; the runs of one
    // panel have at most cols words in total.
    uint32_t at, length;
};

// Element types that tiles read and widen exactly to float32.
enum ree_tile_type {
    REE_TILE_F32,
    REE_TILE_F16,
    REE_TILE_BF16,
    REE_TILE_I8,
    REE_TILE_U8,
    REE_N_TILE_TYPES
};

// Blockwise weights (repop.h) of n columns. Column j consists of n_blocks blocks of `block` numbers
// of `bits` bits each. A weight is (q - z) * s, rounded once, with its number q and its block's
// zero point z and scale s.
struct ree_tile_blocks {
    const uint8_t *numbers;
    const float *scales;  // (n, n_blocks)
    const uint8_t *zeros; // (n, n_blocks); NULL: every zero point is 2^(bits - 1)
    uint32_t bits, block, n_blocks;
};

// A plane of a depthwise convolution with a 3x3 or 5x5 kernel and stride 1 or 2 along both axes.
struct ree_tile_plane {
    uint32_t in_h, in_w, out_h, out_w;
    uint32_t kernel, stride;
    uint32_t pad_h, pad_w;   // padding before the first row and column, at most `kernel`
    enum ree_tile_type type; // element type of x: F32, or I8 or U8 with int32 sums
    float pad;               // value of elements outside x
};

// One chunk of a panel of blockwise weights: REE_PANEL_VECS vectors of columns, laid out for
// products with few rows (matmul_panels.c). weights: u32 (words of a chunk, columns). scales and
// zeros: (blocks of a chunk, columns); zeros NULL: every zero point is 2^(bits - 1). A word holds
// its even terms in its low half, ascending from the lowest bits, and its odd terms likewise in its
// high half.
#define REE_PANEL_VECS 4
struct ree_tile_panel {
    const void *weights;
    const float *scales;
    const uint8_t *zeros;
    uint32_t bits, block;
};

struct ree_tiles {
    uint32_t rows;  // rows of the largest tile
    uint32_t vecs;  // vectors in a row of the largest tile
    uint32_t lanes; // floats in a vector
    uint32_t cols;  // vecs * lanes: the width of a packed panel of b
    ree_tile_fn tile[REE_TILE_MAX_ROWS][REE_TILE_MAX_VECS]; // tile kernels: [rows - 1][vecs - 1]
    // terms of K per packed word: 1 for floats; 2 or 4 for integers (tiles_integer.h); 2 for pairs
    // of bfloat16 (tiles_pairs.h)
    uint32_t terms;
    // packed words per chunk of REE_CHUNK terms; for integers, any number gives the same bits
    uint32_t chunk;

    // dst[l * pitch + i] = src[i * stride_n + l * stride_k] for i < n, l < k; zeros for n <= i <
    // pitch.
    void (*pack)(const float *src, int64_t stride_n, int64_t stride_k, uint32_t n, uint32_t k,
                 float *dst, uint32_t pitch);

    // As pack, for elements of any type and stride_k 1. Prefetches the elements at a distance of
    // `ahead` elements into the second-level cache, because they are packed soon.
    void (*pack_vectors[REE_N_TILE_TYPES])(const void *src, int64_t stride_n, int64_t ahead,
                                           uint32_t n, uint32_t k, float *dst, uint32_t pitch);

    // Few rows times b as it is stored in memory: out(i, j) = the whole sum over k, including the
    // final +0 and canonical NaN, for i < m <= REE_STREAM_MAX_ROWS, j < n. Indexed by the type of
    // b's elements. stream_by_rows requires the elements of a row of b to be adjacent (the stride
    // of j is 1), and acc: m * n floats of scratch. stream_by_cols requires the elements of a
    // column of b to be adjacent (the stride of l is 1).
    void (*stream_by_rows[REE_N_TILE_TYPES])(uint32_t m, uint32_t n, uint32_t k, const float *a,
                                             int64_t a_stride_m, int64_t a_stride_k, const void *b,
                                             int64_t b_stride_k, float *acc, float *out,
                                             size_t ldo);
    // Continues the sums of a chunk: acc(i, j) = fma(a(i, l), b(l, j), acc(i, j)) for l < k,
    // ascending. acc is (m, n). For a chunk whose rows of b are in several places in memory: one
    // call for each place. The elements of a row of b must be adjacent.
    void (*stream_part[REE_N_TILE_TYPES])(uint32_t m, uint32_t n, uint32_t k, const float *a,
                                          int64_t a_stride_m, int64_t a_stride_k, const void *b,
                                          int64_t b_stride_k, float *acc);
    void (*stream_by_cols[REE_N_TILE_TYPES])(uint32_t m, uint32_t n, uint32_t k, const float *a,
                                             int64_t a_stride_m, int64_t a_stride_k, const void *b,
                                             int64_t b_stride_n, float *out, size_t ldo);
    // Few rows times columns [j, j + n) of blockwise weights: out(i, c) = the whole sum for column
    // j + c, including the final +0 and canonical NaN.
    void (*stream_blocks)(uint32_t m, uint32_t n, uint32_t k, const float *a, int64_t a_stride_m,
                          int64_t a_stride_k, const struct ree_tile_blocks *b, uint32_t j,
                          float *out, size_t ldo);

    // Few rows times one chunk of a panel of narrow weights; the contract is that of a tile kernel,
    // with its flags. a: (m, k), k adjacent. b: (k, REE_PANEL_VECS * lanes); only the first n_cols
    // columns are computed.
    void (*panel[REE_N_TILE_TYPES])(uint32_t m, uint32_t k, const float *a, int64_t a_stride_m,
                                    const void *b, float *c, size_t ldc, uint32_t n_cols,
                                    uint32_t flags);
    void (*panel_blocks)(uint32_t m, uint32_t k, const float *a, int64_t a_stride_m,
                         const struct ree_tile_panel *b, float *c, size_t ldc, uint32_t n_cols,
                         uint32_t flags);
    // Computes terms [0, k) of vector v of such a panel's columns as floats: dst[l * pitch + i] is
    // term l of column v * lanes + i.
    void (*panel_floats)(const struct ree_tile_panel *b, uint32_t v, uint32_t k, float *dst,
                         size_t pitch);

    // Transposes 32-bit words: dst[l * pitch + c] = src[c * stride + l] for l < n, c < lanes.
    void (*transpose)(const ree_any_u32 *src, size_t stride, uint32_t n, ree_any_u32 *dst,
                      size_t pitch);

    // Widens n adjacent elements to floats.
    void (*widen[REE_N_TILE_TYPES])(uint32_t n, const void *src, float *dst);
    // Computes terms [l, l + n) of column j as floats.
    void (*dequantise)(const struct ree_tile_blocks *b, uint32_t j, uint32_t l, uint32_t n,
                       float *dst);

    // Packs one panel of b from a convolution's laid-out input x. Row l < k of dst has cols words:
    // n_runs runs of adjacent words, then zeros. Run r of row l is read from x + offset[l] +
    // runs[r].at.
    void (*pack_runs)(const float *x, const uint32_t *offset, uint32_t k,
                      const struct ree_tile_run *runs, uint32_t n_runs, float *dst);

    // out[r * n + j] = the whole sum over l < k of w[l] * x[offset[l] + r * pitch + j], for r <
    // n_rows, j < n: rows of a convolution whose taps have fixed offsets.
    void (*taps)(uint32_t n_rows, uint32_t n, uint32_t k, const float *w, const float *x,
                 size_t pitch, const uint32_t *offset, float *out);

    // Depthwise convolution. A step computes n_rows output rows. depthwise_floats returns the
    // floats required for the laid-out part of plane x (with its padding) that they read.
    // depthwise_lay_out lays out that part for output rows [first, first + n_rows); `out` must be
    // 64-byte aligned. depthwise computes the whole sums of these rows with one kernel w, to out
    // (n_rows, out_w).
    size_t (*depthwise_floats)(const struct ree_tile_plane *p, uint32_t n_rows);
    void (*depthwise_lay_out)(const struct ree_tile_plane *p, const void *x, uint32_t first,
                              uint32_t n_rows, float *out);
    void (*depthwise)(const struct ree_tile_plane *p, const float *w, const float *laid_out,
                      uint32_t n_rows, float *out);
};

const struct ree_tiles *ree_tiles_for(enum ree_cpu_isa isa);
// Returns the tile type of an element type, or REE_N_TILE_TYPES if tiles do not support it.
enum ree_tile_type ree_tile_type_of(enum ree_dtype dtype);

extern const struct ree_tiles ree_tiles_portable;
#ifdef REE_CPU_HAVE_AVX2
extern const struct ree_tiles ree_tiles_avx2;
#endif
#ifdef REE_CPU_HAVE_AVX512
extern const struct ree_tiles ree_tiles_avx512;
#endif
#ifdef REE_CPU_HAVE_NEON
extern const struct ree_tiles ree_tiles_neon;
#endif

#endif
