// acc[l] = acc[l] + x[l][i], i ascending (NUMERICS.md section 3), for 16 chunks l in the lanes of
// two vectors. For each of the two, four vectors are gathered from 16-byte pieces: half h of vector
// j holds four terms of chunk 4*h + j. A 4x4 transposition inside each 128-bit half then gives
// vectors with one term of each chunk.
#include "device/cpu/reduce.h"

#include <immintrin.h>
#include <math.h>

static inline __m256 gather_rows(const float *const *x, uint32_t j, uint32_t i) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x[j] + i)),
                                _mm_loadu_ps(x[4 + j] + i), 1);
}

#define LANES(name, start, vector_step, step)                                                      \
    static void name(const float *const x[REE_CPU_LANES], uint32_t n, float out[REE_CPU_LANES]) {  \
        __m256 acc[2] = {_mm256_set1_ps(start), _mm256_set1_ps(start)};                            \
        uint32_t i = 0;                                                                            \
        for (; i + 4 <= n; i += 4) {                                                               \
            for (uint32_t h = 0; h < 2; h++) {                                                     \
                const float *const *p = x + 8 * h;                                                 \
                __m256 r0 = gather_rows(p, 0, i), r1 = gather_rows(p, 1, i);                       \
                __m256 r2 = gather_rows(p, 2, i), r3 = gather_rows(p, 3, i);                       \
                __m256 a = _mm256_unpacklo_ps(r0, r2), b = _mm256_unpacklo_ps(r1, r3);             \
                __m256 c = _mm256_unpackhi_ps(r0, r2), d = _mm256_unpackhi_ps(r1, r3);             \
                acc[h] = vector_step(acc[h], _mm256_unpacklo_ps(a, b));                            \
                acc[h] = vector_step(acc[h], _mm256_unpackhi_ps(a, b));                            \
                acc[h] = vector_step(acc[h], _mm256_unpacklo_ps(c, d));                            \
                acc[h] = vector_step(acc[h], _mm256_unpackhi_ps(c, d));                            \
            }                                                                                      \
        }                                                                                          \
        _mm256_storeu_ps(out, acc[0]);                                                             \
        _mm256_storeu_ps(out + 8, acc[1]);                                                         \
        for (; i < n; i++)                                                                         \
            for (uint32_t l = 0; l < REE_CPU_LANES; l++)                                           \
                out[l] = step(out[l], x[l][i]);                                                    \
    }

#define SUM(a, v) ((a) + (v))
#define SUM_SQ(a, v) fmaf((v), (v), (a))
#define SUM_ABS(a, v) ((a) + fabsf(v))
#define PROD(a, v) ((a) * (v))
#define VECTOR_SUM(a, v) _mm256_add_ps(a, v)
#define VECTOR_SUM_SQ(a, v) vector_sum_sq(a, v)
#define VECTOR_SUM_ABS(a, v) _mm256_add_ps(a, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v))
#define VECTOR_PROD(a, v) _mm256_mul_ps(a, v)
static inline __m256 vector_sum_sq(__m256 a, __m256 v) {
    return _mm256_fmadd_ps(v, v, a);
}
LANES(sum, 0.0f, VECTOR_SUM, SUM)
LANES(sum_sq, 0.0f, VECTOR_SUM_SQ, SUM_SQ)
LANES(sum_abs, 0.0f, VECTOR_SUM_ABS, SUM_ABS)
LANES(prod, 1.0f, VECTOR_PROD, PROD)

const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_avx2 = {
    .lanes = {sum, sum_sq, sum_abs, prod},
};
