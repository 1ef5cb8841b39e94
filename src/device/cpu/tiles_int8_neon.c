// Tiles for blockwise activations with NEON. They multiply pairs of 16-bit numbers.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_neon.h"

#define TILES ree_int8_tiles_neon
#define LANES 4
#define TERMS 2
#define ROWS_4VECS 2
#define ROWS_2VECS 6

static inline vec vec_dot(vec acc, vec a, vec b) {
    int16x8_t x = vreinterpretq_s16_u32(a), y = vreinterpretq_s16_u32(b);
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
    int32x4_t high = vmull_s16(vget_high_s16(x), vget_high_s16(y));
    return vaddq_u32(acc, vreinterpretq_u32_s32(vpaddq_s32(low, high)));
}
#include "device/cpu/tiles_int8.inc"
