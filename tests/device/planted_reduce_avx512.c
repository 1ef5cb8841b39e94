// A kernel as a careless compiler would produce it: fma with two roundings. For
// cpu_selftest_planted.
#include <immintrin.h>
#define _mm512_fmadd_ps(a, b, c) _mm512_add_ps(_mm512_mul_ps(a, b), c)
#include "device/cpu/reduce_avx512.c"
