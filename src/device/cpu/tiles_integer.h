// Tiles for products of 8-bit integers, summed exactly in 32 bits (wrapping):
//     out(i, j) = sum over l of a(i, l) * b(l, j), NUMERICS.md section 3, integers.
//
// They are struct ree_tiles whose packed words hold several terms of K instead of one float:
// - 4 bytes, if the processor has a dot product of bytes (AVX-512 VNNI, AVX-VNNI, NEON dotprod)
// - otherwise 2 numbers of 16 bits (AVX2 and AVX-512 multiply and add such pairs in one
//   instruction)
//
// Code that only moves packed words (matmul_gemm.c) works on both; the "floats" of c are int32.
//
// Performance bounds for one core: a dot instruction does 4 multiply-adds per lane, so four times
// the float32 rate. 16-bit pairs do 2 multiply-adds in two instructions, so the float32 rate. The
// bytes read are a quarter (dot) or a half (pairs) of float32's for the same tile, so the same tile
// shapes keep the caches busy.
//
// The dot products of x86 multiply an unsigned by a signed operand, those of NEON two operands of
// the same signedness. The operand that does not fit is packed with its top bits flipped, a' = a +
// 128 or a - 128. The sums are then corrected by adding -128 or +128 times the sum of the other
// operand's vector.
#ifndef REE_DEVICE_CPU_TILES_INTEGER_H
#define REE_DEVICE_CPU_TILES_INTEGER_H

#include "device/cpu/tiles.h"

struct ree_integer_tiles {
    // only the fields rows, vecs, lanes, cols, terms, chunk, tile and pack_runs are set
    struct ree_tiles tiles;
    // any_sign: a and b may each be signed or unsigned, because terms have 16 bits. Otherwise
    // a_signed and b_signed say which operands the instruction takes as signed; an operand that
    // does not fit is packed with flipped top bits.
    bool any_sign;
    bool a_signed, b_signed;
    // Packs vectors of bytes with k terms each: word w of vector i goes to dst[w * pitch + i], for
    // i < pitch and all words that hold a term, with zeros beyond n vectors and k terms. flip: flip
    // each byte's top bit.
    void (*pack)(const uint8_t *src, int64_t stride_vector, int64_t stride_k, uint32_t n,
                 uint32_t k, bool is_signed, bool flip, ree_any_u32 *dst, uint32_t pitch);
    // Packs tiles.terms rows of n bytes into n words: word e holds byte e of each row.
    void (*interleave)(const uint8_t *const *rows, uint32_t n, bool is_signed, bool flip,
                       ree_any_u32 *dst);
    // out[r * n + j] = start + the sum over l < k of the products of the terms of w[l * stride_w]
    // and x[offset[l] + r * pitch + j], for r < n_rows, j < n.
    void (*taps)(uint32_t n_rows, uint32_t n, uint32_t k, const ree_any_u32 *w, uint32_t stride_w,
                 const ree_any_u32 *x, size_t pitch, const uint32_t *offset, uint32_t start,
                 ree_any_u32 *out);
    uint32_t ones; // a word whose terms are all 1
};

// Returns the tiles for this context's processor, for operands of the given signedness. If
// b_natural, b is packed without flipping top bits, and a may need it. Otherwise a is packed
// without flipping, and b may need it.
const struct ree_integer_tiles *ree_integer_tiles_for(const struct ree_cpu_context *ctx,
                                                      bool a_signed, bool b_signed, bool b_natural);

// Returns a - a' for the operand that is packed as a' = a + 128 (signed) or a - 128 (unsigned).
static inline int32_t ree_integer_shift(bool is_signed) {
    return is_signed ? -128 : 128;
}

#endif
