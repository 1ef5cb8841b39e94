// Tiles for blockwise activations with AVX-512 VNNI: one instruction for 64 multiply-adds. The tile
// of 6 rows by 2 vectors has 12 integer sums and 12 float accumulators in the 32 registers.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx512.h"

#define TILES ree_int8_tiles_avx512vnni
#define LANES 16
#define TERMS 4
#define ROWS_4VECS 2
#define ROWS_2VECS 6
#define vec_dot(acc, a, b) _mm512_dpbusd_epi32(acc, b, a)
#include "device/cpu/tiles_int8.inc"
