// acc[l] = acc[l] + x[l][i], i ascending (NUMERICS.md section 3), in plain C. Eight chunks at a
// time hide the latency of an addition.
#include "device/cpu/reduce.h"

#include <math.h>

#define LANES(name, start, step)                                                                   \
    static void name(const float *const x[REE_CPU_LANES], uint32_t n, float out[REE_CPU_LANES]) {  \
        for (uint32_t l = 0; l < REE_CPU_LANES; l += 8) {                                          \
            const float *const *p = x + l;                                                         \
            float a0 = start, a1 = start, a2 = start, a3 = start;                                  \
            float a4 = start, a5 = start, a6 = start, a7 = start;                                  \
            for (uint32_t i = 0; i < n; i++) {                                                     \
                a0 = step(a0, p[0][i]), a1 = step(a1, p[1][i]);                                    \
                a2 = step(a2, p[2][i]), a3 = step(a3, p[3][i]);                                    \
                a4 = step(a4, p[4][i]), a5 = step(a5, p[5][i]);                                    \
                a6 = step(a6, p[6][i]), a7 = step(a7, p[7][i]);                                    \
            }                                                                                      \
            const float a[8] = {a0, a1, a2, a3, a4, a5, a6, a7};                                   \
            memcpy(out + l, a, sizeof a);                                                          \
        }                                                                                          \
    }

#define SUM(a, v) ((a) + (v))
#define SUM_SQ(a, v) fmaf((v), (v), (a))
#define SUM_ABS(a, v) ((a) + fabsf(v))
#define PROD(a, v) ((a) * (v))
LANES(sum, 0.0f, SUM)
LANES(sum_sq, 0.0f, SUM_SQ)
LANES(sum_abs, 0.0f, SUM_ABS)
LANES(prod, 1.0f, PROD)

const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_portable = {
    .lanes = {sum, sum_sq, sum_abs, prod},
};
