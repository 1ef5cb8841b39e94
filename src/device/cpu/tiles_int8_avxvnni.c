// Tiles for blockwise activations with AVX-VNNI: one instruction for 32 multiply-adds.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx2.h"

#define TILES ree_int8_tiles_avxvnni
#define LANES 8
#define TERMS 4
#define ROWS_4VECS 1
#define ROWS_2VECS 3
#define vec_dot(acc, a, b) _mm256_dpbusd_avx_epi32(acc, b, a)
#include "device/cpu/tiles_int8.inc"
