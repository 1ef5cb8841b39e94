// Tiles for integer products with AVX-512 VNNI: one instruction for 64 multiply-adds of unsigned
// and signed bytes. The tile has the shape of the float32 tile: 24 accumulators, which hide the
// instruction's latency, and 14 loads per 24 instructions.
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_avx512.h"

#define ROWS 12
#define VECS 2
#define LANES 16
#define TERMS 4

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs)                                                                                     \
    X(2, vecs)                                                                                     \
    X(3, vecs)                                                                                     \
    X(4, vecs)                                                                                     \
    X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs) X(9, vecs) X(10, vecs) X(11, vecs) X(12, vecs)

#define TILES ree_integer_tiles_avx512vnni_us
#define A_SIGNED 0
#define B_SIGNED 1
#define vec_dot(acc, a, b) _mm512_dpbusd_epi32(acc, a, b)
#include "device/cpu/tiles_integer.inc"
#undef vec_dot

#define TILES ree_integer_tiles_avx512vnni_su
#define A_SIGNED 1
#define B_SIGNED 0
#define vec_dot(acc, a, b) _mm512_dpbusd_epi32(acc, b, a)
#include "device/cpu/tiles_integer.inc"
