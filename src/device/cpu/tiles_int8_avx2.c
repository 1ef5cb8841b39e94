// Tiles for blockwise activations with AVX2. Weights of 8 bits: two instructions for 16
// multiply-adds of 16-bit numbers, because VPMADDUBSW, which adds two products of bytes in 16 bits,
// would saturate. Weights of 4 bits: VPMADDUBSW and an addition for 32 multiply-adds.
#include "device/cpu/tiles_int8.h"
#include "device/cpu/vec_int8_avx2.h"

#define TILES ree_int8_tiles_avx2
#define LANES 8
#define TERMS 2
#define ROWS_4VECS 1
#define ROWS_2VECS 3
#define vec_dot(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define vec_pairs(a, b) _mm256_maddubs_epi16(b, a)
#define vec_add16(a, b) _mm256_add_epi16(a, b)
#define vec_join(acc, sums) _mm256_add_epi32(acc, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)))
#include "device/cpu/tiles_int8.inc"
