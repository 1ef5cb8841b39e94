// Tiles for integer products with AVX2 but without VNNI: pairs of 16-bit numbers, two instructions
// for 16 multiply-adds. (VPMADDUBSW, which multiplies pairs of bytes, saturates, so it cannot be
// used.)
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_avx2.h"

#define TILES ree_integer_tiles_avx2
#define ROWS 6
#define VECS 2
#define LANES 8
#define TERMS 2

static inline vec vec_dot(vec acc, vec a, vec b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs)

#include "device/cpu/tiles_integer.inc"
