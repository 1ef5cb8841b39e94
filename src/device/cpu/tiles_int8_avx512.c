// Tiles for blockwise activations with AVX-512 but without VNNI, as in tiles_int8_avx2.c.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx512.h"

#define TILES ree_int8_tiles_avx512
#define LANES 16
#define TERMS 2
#define ROWS_4VECS 2
#define ROWS_2VECS 6
#define vec_dot(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define vec_pairs(a, b) _mm512_maddubs_epi16(b, a)
#define vec_add16(a, b) _mm512_add_epi16(a, b)
#define vec_join(acc, sums) _mm512_add_epi32(acc, _mm512_madd_epi16(sums, _mm512_set1_epi16(1)))
#include "device/cpu/tiles_int8.inc"
