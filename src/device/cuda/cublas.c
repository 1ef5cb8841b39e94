// Loads cuBLAS at run time and computes products with it. Names, types and values are those of
// version 11 and later.
#include "device/cuda/cuda.h"

#include "base/float_env.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cublasContext *cublasHandle_t;

enum { CUBLAS_OP_N, CUBLAS_OP_T };
enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
#define CUBLAS_GEMM_DEFAULT (-1)

struct ree_cublas {
    void *library;
    cublasHandle_t handle;
    bool tf32;
    char version[32];
    int (*create)(cublasHandle_t *handle);
    int (*destroy)(cublasHandle_t handle);
    int (*set_stream)(cublasHandle_t handle, CUstream stream);
    int (*get_version)(cublasHandle_t handle, int *version);
    int (*gemm)(cublasHandle_t handle, int transa, int transb, int m, int n, int k,
                const void *alpha, const void *a, int a_type, int lda, long long a_stride,
                const void *b, int b_type, int ldb, long long b_stride, const void *beta, void *c,
                int c_type, int ldc, long long c_stride, int n_batch, int compute, int algorithm);
};

static void *open_library(void) {
    const char *path = getenv("REE_CUBLAS");
    if (path && *path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (int major = 20; major >= 11; major--) {
        char name[32];
        snprintf(name, sizeof name, "libcublas.so.%d", major);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    return NULL;
}

enum ree_status ree_cublas_open(CUstream stream, bool tf32, struct ree_cublas **out,
                                struct ree_error *err) {
    *out = NULL;
    struct ree_cublas *cublas = ree_alloc_zeroed(1, sizeof *cublas);
    if (!cublas) return ree_no_memory(err);
    cublas->tf32 = tf32;
    cublas->library = open_library();
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"cublasCreate_v2", &cublas->create},
        {"cublasDestroy_v2", &cublas->destroy},
        {"cublasSetStream_v2", &cublas->set_stream},
        {"cublasGetVersion_v2", &cublas->get_version},
        {"cublasGemmStridedBatchedEx", &cublas->gemm},
    };
    bool found = cublas->library != NULL;
    for (size_t i = 0; found && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(cublas->library, symbols[i].name);
        found = symbol != NULL;
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
    int version = 0;
    found = found && cublas->create(&cublas->handle) == 0 &&
            cublas->set_stream(cublas->handle, stream) == 0 &&
            cublas->get_version(cublas->handle, &version) == 0;
    ree_float_env_set(); // the library may have changed it
    if (!found) {
        ree_cublas_close(cublas);
        return ree_fail(err, REE_UNAVAILABLE,
                        "CUDA: libcublas is not installed, or does not work on this machine");
    }
    snprintf(cublas->version, sizeof cublas->version, "%d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    *out = cublas;
    return REE_OK;
}

void ree_cublas_close(struct ree_cublas *cublas) {
    if (!cublas) return;
    if (cublas->handle) cublas->destroy(cublas->handle);
    if (cublas->library) dlclose(cublas->library);
    ree_free(cublas);
}

const char *ree_cublas_version(const struct ree_cublas *cublas) {
    return cublas->version;
}

// Sets *out_by_rows to whether the elements of each row are adjacent (otherwise those of each
// column are), and *out_ld to the leading dimension. Returns false if neither are adjacent, or if
// rows or columns overlap.
static bool layout(int32_t row_stride, int32_t column_stride, uint32_t rows, uint32_t columns,
                   bool *out_by_rows, int *out_ld) {
    if (column_stride == 1 && (rows == 1 || row_stride >= (int32_t)columns)) {
        *out_by_rows = true;
        *out_ld = rows == 1 ? (int)columns : row_stride;
        return true;
    }
    *out_by_rows = false;
    *out_ld = columns == 1 ? (int)rows : column_stride;
    return row_stride == 1 && (columns == 1 || column_stride >= (int32_t)rows);
}

static int type_of(uint32_t dtype) {
    return dtype == REE_F16 ? CUDA_R_16F : dtype == REE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

bool ree_cublas_can(const struct ree_matmul_params *p) {
    bool by_rows;
    int ld;
    return p->dtype == REE_F32 && p->b_block == 0 && p->k > 0 && p->a_dtype == p->b_dtype &&
           (p->a_dtype == REE_F32 || p->a_dtype == REE_F16 || p->a_dtype == REE_BF16) &&
           (p->n_batch == 1 || p->batch_rank == 1) &&
           layout(p->a_stride_m, p->a_stride_k, p->m, p->k, &by_rows, &ld) &&
           layout(p->b_stride_k, p->b_stride_n, p->k, p->n, &by_rows, &ld);
}

enum ree_status ree_cublas_run(struct ree_cublas *cublas, const struct ree_matmul_params *p,
                               CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, struct ree_error *err) {
    const float one = 1, zero = 0;
    const int64_t size = (int64_t)ree_dtype_size((enum ree_dtype)p->a_dtype);
    bool a_by_rows, b_by_rows;
    int lda, ldb;
    layout(p->a_stride_m, p->a_stride_k, p->m, p->k, &a_by_rows, &lda);
    layout(p->b_stride_k, p->b_stride_n, p->k, p->n, &b_by_rows, &ldb);
    long long a_batch = p->n_batch > 1 ? p->a_batch_strides[0] : 0;
    long long b_batch = p->n_batch > 1 ? p->b_batch_strides[0] : 0;
    // cuBLAS writes column-major, but the output is row-major. So it computes out^T = b^T a^T, with
    // b as its first operand.
    int compute =
        cublas->tf32 && p->a_dtype == REE_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int result = cublas->gemm(
        cublas->handle, b_by_rows ? CUBLAS_OP_N : CUBLAS_OP_T,
        a_by_rows ? CUBLAS_OP_N : CUBLAS_OP_T, (int)p->n, (int)p->m, (int)p->k, &one,
        (const void *)(uintptr_t)(b + (CUdeviceptr)(p->b_offset * size)), type_of(p->b_dtype), ldb,
        b_batch, (const void *)(uintptr_t)(a + (CUdeviceptr)(p->a_offset * size)),
        type_of(p->a_dtype), lda, a_batch, &zero, (void *)(uintptr_t)c, CUDA_R_32F, (int)p->n,
        (long long)p->m * p->n, (int)p->n_batch, compute, CUBLAS_GEMM_DEFAULT);
    if (result == 0) return REE_OK;
    return ree_fail(err, REE_DEVICE, "CUDA: cublasGemmStridedBatchedEx failed with status %d",
                    result);
}
