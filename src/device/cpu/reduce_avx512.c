// acc[l] = acc[l] + x[l][i], i ascending (NUMERICS.md section 3), for 16 chunks l in the lanes of
// one vector. Four vectors are gathered from 16-byte pieces: quarter q of vector j holds four terms
// of chunk 4*q + j. A 4x4 transposition inside each 128-bit quarter then gives vectors with one
// term of each chunk.
#include "device/cpu/reduce.h"

#include <immintrin.h>
#include <math.h>

static inline __m512 gather_rows(const float *const x[REE_CPU_LANES], uint32_t j, uint32_t i) {
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(x[j] + i));
    v = _mm512_mask_broadcast_f32x4(v, 0x00F0, _mm_loadu_ps(x[4 + j] + i));
    v = _mm512_mask_broadcast_f32x4(v, 0x0F00, _mm_loadu_ps(x[8 + j] + i));
    return _mm512_mask_broadcast_f32x4(v, 0xF000, _mm_loadu_ps(x[12 + j] + i));
}

#define LANES(name, start, vector_step, step)                                                      \
    static void name(const float *const x[REE_CPU_LANES], uint32_t n, float out[REE_CPU_LANES]) {  \
        __m512 acc = _mm512_set1_ps(start);                                                        \
        uint32_t i = 0;                                                                            \
        for (; i + 4 <= n; i += 4) {                                                               \
            __m512 r0 = gather_rows(x, 0, i), r1 = gather_rows(x, 1, i);                           \
            __m512 r2 = gather_rows(x, 2, i), r3 = gather_rows(x, 3, i);                           \
            __m512 a = _mm512_unpacklo_ps(r0, r2), b = _mm512_unpacklo_ps(r1, r3);                 \
            __m512 c = _mm512_unpackhi_ps(r0, r2), d = _mm512_unpackhi_ps(r1, r3);                 \
            acc = vector_step(acc, _mm512_unpacklo_ps(a, b));                                      \
            acc = vector_step(acc, _mm512_unpackhi_ps(a, b));                                      \
            acc = vector_step(acc, _mm512_unpacklo_ps(c, d));                                      \
            acc = vector_step(acc, _mm512_unpackhi_ps(c, d));                                      \
        }                                                                                          \
        _mm512_storeu_ps(out, acc);                                                                \
        for (; i < n; i++)                                                                         \
            for (uint32_t l = 0; l < REE_CPU_LANES; l++)                                           \
                out[l] = step(out[l], x[l][i]);                                                    \
    }

#define SUM(a, v) ((a) + (v))
#define SUM_SQ(a, v) fmaf((v), (v), (a))
#define SUM_ABS(a, v) ((a) + fabsf(v))
#define PROD(a, v) ((a) * (v))
#define VECTOR_SUM(a, v) _mm512_add_ps(a, v)
#define VECTOR_SUM_SQ(a, v) vector_sum_sq(a, v)
#define VECTOR_SUM_ABS(a, v) _mm512_add_ps(a, _mm512_abs_ps(v))
#define VECTOR_PROD(a, v) _mm512_mul_ps(a, v)
static inline __m512 vector_sum_sq(__m512 a, __m512 v) {
    return _mm512_fmadd_ps(v, v, a);
}
LANES(sum, 0.0f, VECTOR_SUM, SUM)
LANES(sum_sq, 0.0f, VECTOR_SUM_SQ, SUM_SQ)
LANES(sum_abs, 0.0f, VECTOR_SUM_ABS, SUM_ABS)
LANES(prod, 1.0f, VECTOR_PROD, PROD)

const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_avx512 = {
    .lanes = {sum, sum_sq, sum_abs, prod},
};
