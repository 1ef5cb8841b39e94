// Tiles for integer products with NEON but without dotprod: 16-bit numbers, 4 multiply-adds per
// instruction.
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_neon.h"

#define TILES ree_integer_tiles_neon
#define ROWS 8
#define VECS 2
#define LANES 4
#define TERMS 2

// Multiplies the lower terms of all words, then the upper terms.
static inline vec vec_dot(vec acc, vec a, vec b) {
    int32x4_t sum = vreinterpretq_s32_u32(acc);
    int16x4_t a0 = vmovn_s32(vreinterpretq_s32_u32(a)), b0 = vmovn_s32(vreinterpretq_s32_u32(b));
    int16x4_t a1 = vshrn_n_s32(vreinterpretq_s32_u32(a), 16);
    int16x4_t b1 = vshrn_n_s32(vreinterpretq_s32_u32(b), 16);
    return vreinterpretq_u32_s32(vmlal_s16(vmlal_s16(sum, a0, b0), a1, b1));
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs)

#include "device/cpu/tiles_integer.inc"
