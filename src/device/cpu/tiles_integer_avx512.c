// Tiles for integer products with AVX-512 but without VNNI: pairs of 16-bit numbers, two
// instructions for 32 multiply-adds.
#include "device/cpu/tiles_integer.h"
#include "device/cpu/vec_u32_avx512.h"

#define TILES ree_integer_tiles_avx512
#define ROWS 12
#define VECS 2
#define LANES 16
#define TERMS 2

static inline vec vec_dot(vec acc, vec a, vec b) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs)                                                                                     \
    X(2, vecs)                                                                                     \
    X(3, vecs)                                                                                     \
    X(4, vecs)                                                                                     \
    X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs) X(9, vecs) X(10, vecs) X(11, vecs) X(12, vecs)

#include "device/cpu/tiles_integer.inc"
