// Tiles for blockwise activations with NEON's dotprod: one instruction for 16 multiply-adds of
// signed bytes.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_neon.h"

#define TILES ree_int8_tiles_neondot
#define LANES 4
#define TERMS 4
#define ROWS_4VECS 3
#define ROWS_2VECS 6
#define B_CENTERED 1

static inline vec vec_dot(vec acc, vec a, vec b) {
    return vreinterpretq_u32_s32(
        vdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_s8_u32(a), vreinterpretq_s8_u32(b)));
}
#include "device/cpu/tiles_int8.inc"
