// Tiles for blockwise activations with AVX-512 but without VNNI: two instructions for 32
// multiply-adds of 16-bit numbers.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx512.h"

#define TILES ree_int8_tiles_avx512
#define LANES 16
#define TERMS 2
#define ROWS_4VECS 2
#define ROWS_2VECS 6
#define vec_dot(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#include "device/cpu/tiles_int8.inc"
