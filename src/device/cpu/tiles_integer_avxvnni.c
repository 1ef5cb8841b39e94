// Tiles for integer products with AVX-VNNI, for processors without AVX-512: one instruction for 32
// multiply-adds of unsigned and signed bytes.
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_avx2.h"

#define ROWS 6
#define VECS 2
#define LANES 8
#define TERMS 4

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs)

#define TILES ree_integer_tiles_avxvnni_us
#define A_SIGNED 0
#define B_SIGNED 1
#define vec_dot(acc, a, b) _mm256_dpbusd_avx_epi32(acc, a, b)
#include "device/cpu/tiles_integer.inc"
#undef vec_dot

#define TILES ree_integer_tiles_avxvnni_su
#define A_SIGNED 1
#define B_SIGNED 0
#define vec_dot(acc, a, b) _mm256_dpbusd_avx_epi32(acc, b, a)
#include "device/cpu/tiles_integer.inc"
