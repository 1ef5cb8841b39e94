// Tiles for blockwise activations with AVX2: two instructions for 16 multiply-adds of 16-bit
// numbers. (VPMADDUBSW, which multiplies pairs of bytes, saturates, so it cannot be used.)
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx2.h"

#define TILES ree_int8_tiles_avx2
#define LANES 8
#define TERMS 2
#define ROWS_4VECS 1
#define ROWS_2VECS 3
#define vec_dot(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#include "device/cpu/tiles_int8.inc"
