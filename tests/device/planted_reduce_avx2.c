// A kernel as a careless compiler would produce it: fma with two roundings. For
// cpu_selftest_planted.
#include <immintrin.h>
#define _mm256_fmadd_ps(a, b, c) _mm256_add_ps(_mm256_mul_ps(a, b), c)
#include "device/cpu/reduce_avx2.c"
