// A stand-in for cuBLAS on the emulator's memory, which is host memory: the five functions that the
// backend calls, with their checks of leading dimensions. Sums are computed in double, in an order
// of their own, like the library's.
#include <cstdint>
#include <cstring>

namespace {

constexpr int INVALID_VALUE = 7, NOT_SUPPORTED = 15;
constexpr int R_32F = 0, R_16F = 2, R_16BF = 14;

struct handle {
    void *stream;
};

float half_to_float(uint16_t bits) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    float magnitude;
    if (exponent == 31)
        magnitude = fraction ? __builtin_nanf("") : __builtin_inff();
    else if (exponent == 0)
        magnitude = (float)fraction * 0x1p-24f;
    else
        magnitude = (float)(fraction | 1024) * __builtin_ldexpf(1.0f, (int)exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

float element(const void *memory, int type, long long i) {
    if (type == R_32F) return static_cast<const float *>(memory)[i];
    uint16_t bits = static_cast<const uint16_t *>(memory)[i];
    if (type == R_16F) return half_to_float(bits);
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cublasCreate_v2(handle **out) {
    *out = new handle();
    return 0;
}
EXPORT int cublasDestroy_v2(handle *h) {
    delete h;
    return 0;
}
EXPORT int cublasSetStream_v2(handle *h, void *stream) {
    h->stream = stream;
    return 0;
}
EXPORT int cublasGetVersion_v2(handle *, int *version) {
    *version = 120000;
    return 0;
}
EXPORT int cublasGemmStridedBatchedEx(handle *h, int transa, int transb, int m, int n, int k,
                                      const void *alpha, const void *a, int a_type, int lda,
                                      long long a_stride, const void *b, int b_type, int ldb,
                                      long long b_stride, const void *beta, void *c, int c_type,
                                      int ldc, long long c_stride, int n_batch, int, int) {
    if (!h || m <= 0 || n <= 0 || k <= 0 || n_batch <= 0 || lda < (transa ? k : m) ||
        ldb < (transb ? n : k) || ldc < m)
        return INVALID_VALUE;
    if (a_type != b_type || c_type != R_32F ||
        (a_type != R_32F && a_type != R_16F && a_type != R_16BF) ||
        *static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0)
        return NOT_SUPPORTED;
    float *out = static_cast<float *>(c);
    for (int batch = 0; batch < n_batch; batch++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int l = k; l-- > 0;)
                    sum += (double)element(a, a_type,
                                           batch * a_stride + (transa ? (long long)i * lda + l
                                                                      : (long long)l * lda + i)) *
                           element(b, b_type,
                                   batch * b_stride +
                                       (transb ? (long long)l * ldb + j : (long long)j * ldb + l));
                out[batch * c_stride + (long long)j * ldc + i] = (float)sum;
            }
    return 0;
}
