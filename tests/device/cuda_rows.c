// A product of few rows must run on the kernels for few rows on every GPU: the kernels for many
// rows take 32 rows at once, and convert narrow weights in memory first. The test encodes products
// with shapes of language models and weights in both orders, under the limits of several GPUs, and
// runs nothing. Without a GPU the device is the emulator's.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "ree.h"
#include "test.h"

#include <string.h>

struct gpu {
    const char *name;
    struct ree_cuda_limits limits;
};
static const struct gpu gpus[] = {
    {"T4",
     {.n_multiprocessors = 40, .max_shared = 64 << 10, .shared_per_multiprocessor = 64 << 10}},
    {"A100",
     {.n_multiprocessors = 108, .max_shared = 163 << 10, .shared_per_multiprocessor = 164 << 10}},
    {"RTX 3060",
     {.n_multiprocessors = 28, .max_shared = 99 << 10, .shared_per_multiprocessor = 100 << 10}},
    {"RTX 4090",
     {.n_multiprocessors = 128, .max_shared = 99 << 10, .shared_per_multiprocessor = 100 << 10}},
    {"H100",
     {.n_multiprocessors = 132, .max_shared = 227 << 10, .shared_per_multiprocessor = 228 << 10}},
};
// Outputs and terms.
static const uint32_t shapes[][2] = {{4096, 4096},  {1024, 4096},  {14336, 4096},
                                     {4096, 14336}, {896, 4864},   {8192, 28672},
                                     {3584, 18944}, {5120, 13824}, {128256, 4096}};
static const struct {
    uint32_t dtype, bits;
    bool zero_points, int8; // int8: activations in blocks too
} weights[] = {{REE_F32, 0, false, false}, {REE_F16, 0, false, false}, {REE_BF16, 0, false, false},
               {REE_U8, 8, false, false},  {REE_U8, 4, false, false},  {REE_U8, 4, true, false},
               {REE_U8, 8, false, true},   {REE_U8, 4, false, true},   {REE_U8, 4, true, true}};

static struct ree_error err;

static void check(struct ree_cuda *cuda, const struct gpu *gpu, uint32_t rows, uint32_t n,
                  uint32_t k, uint32_t w, bool by_rows) {
    static struct ree_cuda_encoding encoding;
    const uint32_t bits = weights[w].bits, block = 32;
    const int32_t stride_k = by_rows ? (int32_t)n : 1, stride_n = by_rows ? 1 : (int32_t)k;
    const uint64_t element = ree_dtype_size((enum ree_dtype)weights[w].dtype);
    struct ree_dispatch d = {.op = REE_REPOP_MATMUL, .n_outputs = 1};
    d.params.matmul = (struct ree_matmul_params){
        .dtype = REE_F32,
        .a_dtype = REE_F32,
        .b_dtype = weights[w].dtype,
        .m = rows,
        .n = n,
        .k = k,
        .a_stride_m = (int32_t)k,
        .a_stride_k = 1,
        .b_stride_k = bits ? 0 : stride_k,
        .b_stride_n = bits ? 0 : stride_n,
        .n_batch = 1,
        .b_bits = bits,
        .b_block = bits ? block : 0,
        .has_zero_points = weights[w].zero_points,
        .a_block = weights[w].int8 ? block : 0,
    };
    if (weights[w].int8) d.params.matmul.a_dtype = REE_I8;
    uint64_t sizes[6] = {(weights[w].int8 ? 1ull : 4ull) * rows * k,
                         bits ? (uint64_t)n * k * bits / 8 : n * k * element};
    uint32_t count = 2;
    if (bits) sizes[count++] = 4ull * n * (k / block);
    if (weights[w].zero_points) sizes[count++] = (uint64_t)n * (k / block);
    if (weights[w].int8) sizes[count++] = 4ull * rows * (k / block);
    sizes[count++] = 4ull * rows * n;
    d.n_operands = count;
    for (uint32_t i = 0; i < count; i++)
        d.operands[i] = (struct ree_operand){.slot = i, .size = sizes[i]};
    CHECK_MSG(ree_dispatch_check(&d, &err) == REE_OK, "%s", err.message);
    CHECK_MSG(ree_cuda_encode(cuda, &d, &encoding, &err) == REE_OK, "%s", err.message);
    const char *name = ree_cuda_kernel_name(encoding.steps[0].kernel);
    const char *expected = weights[w].int8 ? "matvec_int8"
                           : by_rows       ? "matvec_rows"
                                           : "matvec_columns";
    CHECK_MSG(strstr(name, expected), "%s: %u rows by %u x %u, weights %u: %s", gpu->name, rows, n,
              k, w, name);
    CHECK(encoding.steps[0].shared_bytes <= gpu->limits.max_shared);
}

int main(void) {
    struct ree_device *device;
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    const enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        cuda->limits = gpus[g].limits;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (uint32_t w = 0; w < sizeof weights / sizeof *weights; w++)
                for (uint32_t rows = 1; rows <= 8; rows *= 2) {
                    check(cuda, &gpus[g], rows, shapes[s][0], shapes[s][1], w, false);
                    // Blocks of weights have only one order.
                    if (weights[w].bits == 0)
                        check(cuda, &gpus[g], rows, shapes[s][0], shapes[s][1], w, true);
                }
    }
    ree_device_destroy(device);
    return test_finish();
}
