// Tiles for integer products with NEON's dotprod: one instruction for 16 multiply-adds of bytes of
// equal signedness.
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_neon.h"

#define ROWS 8
#define VECS 3
#define LANES 4
#define TERMS 4

static inline vec dot_signed(vec acc, vec a, vec b) {
    return vreinterpretq_u32_s32(
        vdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_s8_u32(a), vreinterpretq_s8_u32(b)));
}
static inline vec dot_unsigned(vec acc, vec a, vec b) {
    return vdotq_u32(acc, vreinterpretq_u8_u32(a), vreinterpretq_u8_u32(b));
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs)

#define TILES ree_integer_tiles_neondot_ss
#define A_SIGNED 1
#define B_SIGNED 1
#define vec_dot dot_signed
#include "device/cpu/tiles_integer.inc"
#undef vec_dot

#define TILES ree_integer_tiles_neondot_uu
#define A_SIGNED 0
#define B_SIGNED 0
#define vec_dot dot_unsigned
#include "device/cpu/tiles_integer.inc"
