// The operation sets that use cuBLAS: products agree with RepOps within a tolerance, and what
// cuBLAS cannot compute runs as in RepOps, bit for bit. Without a GPU a stand-in replaces cuBLAS
// (tests/cuda/emulator/cublas.cc).
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device_cases.h"
#include "splitmix.h"

#include <math.h>

// Tolerance for two orders of summing k products of magnitudes up to 1. Per term: half an ulp of a
// sum between 4 and 8 or, with TF32, two operands rounded to 11 bits.
static double tolerance(uint32_t k, bool tf32) {
    return k * (tf32 ? 0x1p-10 : 0x1p-22) + 1e-6;
}

static float random_unit(struct splitmix *rng) {
    return (float)(int32_t)splitmix_next(rng) * 0x1p-31f;
}

struct product {
    uint32_t m, n, k, n_batch;
    bool a_turned, b_turned; // stored column-major
    uint32_t b_batches;      // 1: one matrix shared by all batches
    bool epilogue;           // max(sum, 0)
};

static void compare(struct ree_device *device, const struct product *x, bool tf32) {
    const struct ree_device_vtable *vt = device->vtable;
    struct ree_dispatch dispatch = {.op = REE_REPOP_MATMUL, .n_operands = 3, .n_outputs = 1};
    struct ree_matmul_params *p = &dispatch.params.matmul;
    *p = (struct ree_matmul_params){
        .dtype = REE_F32,
        .a_dtype = REE_F32,
        .b_dtype = REE_F32,
        .m = x->m,
        .n = x->n,
        .k = x->k,
        .a_stride_m = x->a_turned ? 1 : (int32_t)x->k,
        .a_stride_k = x->a_turned ? (int32_t)x->m : 1,
        .b_stride_k = x->b_turned ? 1 : (int32_t)x->n,
        .b_stride_n = x->b_turned ? (int32_t)x->k : 1,
        .batch_rank = 1,
        .n_batch = x->n_batch,
        .batch_dims = {x->n_batch},
        .a_batch_strides = {(int32_t)(x->m * x->k)},
        .b_batch_strides = {x->b_batches > 1 ? (int32_t)(x->k * x->n) : 0},
    };
    p->has_epilogue = x->epilogue;
    if (x->epilogue)
        p->epilogue = (struct ree_expr){
            .rank = 3,
            .dims = {x->n_batch, x->m, x->n},
            .n_elements = x->n_batch * x->m * x->n,
            .out_dtype = REE_F32,
            .n_instrs = 2,
            .instrs = {{.op = REE_MAP_CONST32}, {.op = REE_MAP_max_f32, .args = {0, 1}}},
        };
    const uint64_t counts[3] = {(uint64_t)x->n_batch * x->m * x->k,
                                (uint64_t)x->b_batches * x->k * x->n,
                                (uint64_t)x->n_batch * x->m * x->n};
    struct ree_device_buffer *buffers[3] = {0};
    float *memory[3], *got;
    struct ree_error err;
    struct splitmix rng = {1};
    REQUIRE(got = malloc(counts[2] * sizeof(float)));
    for (int i = 0; i < 3; i++) {
        REQUIRE(memory[i] = malloc(counts[i] * sizeof(float)));
        for (uint64_t j = 0; j < counts[i]; j++)
            memory[i][j] = random_unit(&rng);
        dispatch.operands[i] = (struct ree_operand){(uint32_t)i, 0, counts[i] * sizeof(float)};
        REQUIRE(vt->buffer_create(device, counts[i] * sizeof(float), &buffers[i], &err) == REE_OK);
        REQUIRE(vt->buffer_write(device, buffers[i], 0, memory[i], counts[i] * sizeof(float),
                                 &err) == REE_OK);
    }
    struct ree_cuda_encoding encoding;
    REQUIRE(ree_cuda_encode(ree_cuda_of(device), &dispatch, &encoding, &err) == REE_OK);
    CHECK_MSG(encoding.by_cublas, "%u x %u x %u does not go to the library", x->m, x->n, x->k);
    struct ree_program program = {&dispatch, 1, 3, NULL, 0};
    struct ree_device_program *compiled = NULL;
    REQUIRE(vt->program_create(device, &program, NULL, NULL, &compiled, &err) == REE_OK);
    enum ree_status status = vt->program_run(device, compiled, buffers, NULL, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(vt->buffer_read(device, buffers[2], 0, got, counts[2] * sizeof(float), &err) == REE_OK);
    REQUIRE(ree_cpu_execute(&dispatch, (void *[]){memory[0], memory[1], memory[2]}, &err) ==
            REE_OK);
    uint64_t n_off = 0;
    for (uint64_t j = 0; j < counts[2]; j++) // NaN is off
        n_off += !(fabs((double)got[j] - memory[2][j]) <= tolerance(x->k, tf32));
    CHECK_MSG(n_off == 0, "%u x %u x %u in %u batches: %llu elements are off", x->m, x->n, x->k,
              x->n_batch, (unsigned long long)n_off);
    vt->program_destroy(device, compiled);
    for (int i = 0; i < 3; i++) {
        vt->buffer_destroy(device, buffers[i]);
        free(memory[i]);
    }
    free(got);
}

// Compares n products that do not go to the library. Products of integers, of blocks, of operands
// of two types, and without terms never do.
static void compare_others(struct ree_device *device, case_generator generate, uint32_t n) {
    uint32_t n_done = 0, n_printed = 0;
    for (uint64_t seed = 1; n_done < n && n_printed <= 5; seed++) {
        struct rng rng = {.state = seed * 7919};
        struct test_case c = {0};
        struct ree_cuda_encoding encoding;
        struct ree_error err;
        if (generate(&rng, &c)) {
            REQUIRE(ree_cuda_encode(ree_cuda_of(device), &c.dispatch, &encoding, &err) == REE_OK);
            const struct ree_matmul_params *p = &c.dispatch.params.matmul;
            const bool never =
                p->dtype != REE_F32 || p->b_block || p->a_dtype != p->b_dtype || p->k == 0;
            CHECK_MSG(!(never && encoding.by_cublas), "seed %llu", (unsigned long long)seed);
            if (!encoding.by_cublas) {
                compare_case(device, "not by cuBLAS", REE_REPOP_MATMUL, seed, &c, &n_printed);
                n_done++;
            }
        }
        test_case_finish(&c);
    }
}

int main(void) {
    static const struct product products[] = {
        {5, 7, 300, 1, false, false, 1, false},  {5, 7, 300, 1, true, false, 1, false},
        {5, 7, 300, 1, false, true, 1, false},   {5, 7, 300, 1, true, true, 1, false},
        {1, 64, 33, 1, false, true, 1, false},   {64, 1, 33, 1, false, false, 1, false},
        {4, 6, 8, 3, false, false, 3, false},    {4, 6, 8, 3, true, true, 1, false},
        {33, 65, 129, 2, false, true, 2, false}, {5, 7, 300, 1, false, true, 1, true},
        {33, 65, 129, 2, false, true, 2, true},
    };
    for (int set = REE_DETERMINISTIC; set <= REE_DEFAULT; set++) {
        struct ree_device_options options = {.size = sizeof options,
                                             .operation_set = (enum ree_operation_set)set};
        struct ree_device *device;
        struct ree_error err;
        enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
        if (status == REE_UNAVAILABLE) return test_skip(err.message);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (status != REE_OK) return test_finish();
        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
            compare(device, &products[i], set == REE_DEFAULT);
        compare_cases(device, "cuda with cuBLAS", 20, "softmax");
        compare_cases(device, "cuda with cuBLAS", 20, "conv");
        compare_others(device, case_matmul, 20);
        compare_others(device, case_matmul_int8, 10);
        ree_device_destroy(device);
    }
    return test_finish();
}
