// The probe tests CUDA's promises about arithmetic when a device is opened.
//
// It runs the vectors of probe_vectors.h and, because elementary functions are computed in doubles,
// vectors of binary64. Each vector uses the operation exactly as every kernel does (cuda/probe.cu).
// CUDA has no alternative form of an operation, so a device that computes one incorrectly is
// rejected. It does not try the instructions of JIT-generated kernels: each of these kernels is
// tested before its first use (selftest.c) and has an alternative.
#include "device/cuda/cuda.h"
#include "base/memory.h"
#include "device/cuda/kernel_interface.h"
#include "device/probe_vectors.h"
#include "repops/scalar/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 128

// Operations on doubles, in the order of cuda/probe.cu.
enum operation {
    F64_ADD,
    F64_SUB,
    F64_MUL,
    F64_DIV,
    F64_SQRT,
    F64_FMA,
    F64_TO_F32,
    F64_FROM_F32,
    N_F64_OPERATIONS
};
#define N_F64_PRIMITIVES 6
static const struct ree_probe_primitive f64_primitives[N_F64_PRIMITIVES] = {
    {"float64 add", F64_ADD, 2}, {"float64 mul", F64_MUL, 1},
    {"float64 div", F64_DIV, 1}, {"float64 sqrt", F64_SQRT, 1},
    {"float64 fma", F64_FMA, 1}, {"float64 and float", F64_TO_F32, 2},
};

struct f64_vector {
    uint64_t operation, a, b, c;
};

#define N_SPECIAL 16
#define N_RANDOM 512
#define N_EACH (N_SPECIAL * N_SPECIAL + N_RANDOM)
#define N_F64_VECTORS (N_F64_OPERATIONS * N_EACH)

static uint64_t compute(const struct f64_vector *v) {
    switch ((enum operation)v->operation) {
    case F64_ADD: return ree_op_add_f64(v->a, v->b);
    case F64_SUB: return ree_op_sub_f64(v->a, v->b);
    case F64_MUL: return ree_op_mul_f64(v->a, v->b);
    case F64_DIV: return ree_op_div_f64(v->a, v->b);
    case F64_SQRT: return ree_op_sqrt_f64(v->a);
    case F64_FMA: return ree_op_fma_f64(v->a, v->b, v->c);
    case F64_TO_F32: return ree_result((float)ree_from_double_bits(v->a));
    case F64_FROM_F32: return ree_double_result((double)ree_float((uint32_t)v->a));
    case N_F64_OPERATIONS: break;
    }
    return 0;
}

static uint64_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state ^ *state >> 33) * 0xFF51AFD7ED558CCDu;
}
// Returns a number with a biased exponent within `spread` of `biased`.
static uint64_t random_near(uint64_t *state, uint32_t biased, uint32_t spread) {
    uint64_t r = random_bits(state),
             e = biased - spread + (random_bits(state) >> 32) % (2 * spread);
    return (r & 0x800FFFFFFFFFFFFFu) | (e & 2047) << 52;
}

// Chooses operands for hard cases: cancellation, exact results and ties, subnormals, overflow, as
// probe_vectors.c does for binary32; in addition, ties and subnormals of the conversion to
// binary32.
static void random_vector(uint64_t *state, uint32_t i, struct f64_vector *v) {
    v->a = random_near(state, 1023, 3);
    v->b = random_near(state, 1023, 3);
    v->c = random_near(state, 1023, 56);
    const double product = ree_from_double_bits(v->a) * ree_from_double_bits(v->b);
    switch (i % 8) {
    case 0: v->c = ree_double_bits(-product); break;
    case 1: v->c = ree_double_bits(product) ^ (random_bits(state) & 0x8000000000000003u); break;
    case 2: // few significant bits
        v->a &= 0xFFFFFFFFE0000000u;
        v->b &= 0xFFFFFFFFF0000000u;
        break;
    case 3: // subnormal results
        v->a = random_near(state, 300, 200);
        v->b = random_near(state, v->operation == F64_DIV ? 1350 : 700, 250);
        v->c = random_near(state, 2, 2);
        break;
    case 4: // subnormal operands
        v->a &= 0x800FFFFFFFFFFFFFu;
        if (i & 8) v->b &= 0x800FFFFFFFFFFFFFu;
        break;
    case 5: // ties and subnormals of the conversion to binary32
        v->a = random_near(state, i & 8 ? 1023 : 1023 - 140, i & 8 ? 100 : 16);
        v->a = (v->a & 0xFFFFFFFFE0000000u) | 0x10000000u | (i & 16 ? 0 : random_bits(state) & 1);
        break;
    case 6: // near overflow
        v->a = random_near(state, 2043, 4);
        v->b = random_near(state, v->operation == F64_MUL ? 1026 : 2043, 4);
        v->c = random_near(state, 2043, 4);
        break;
    default: v->a = random_bits(state), v->b = random_bits(state), v->c = random_bits(state);
    }
}

static void fill(struct f64_vector *list) {
    static const uint64_t special[N_SPECIAL] = {
        0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
        0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000001,
        0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
        0x7FF8000000000000, 0x3FE0000000000000, 0x3FF0000000000001, 0x36A0000000000001,
    };
    uint64_t state = 1;
    struct f64_vector *v = list;
    for (uint32_t operation = 0; operation < N_F64_OPERATIONS; operation++)
        for (uint32_t i = 0; i < N_EACH; i++, v++) {
            const uint32_t s = i / N_SPECIAL, t = i % N_SPECIAL;
            v->operation = operation;
            if (s < N_SPECIAL)
                v->a = special[s], v->b = special[t], v->c = special[(s + 5 * t) % N_SPECIAL];
            else
                random_vector(&state, i, v);
        }
}

struct broken {
    uint32_t first, n;
};

// Runs one kernel over n vectors of `size` bytes with results of `result_size` bytes. broken:
// operations whose results the kernel falsifies, for tests.
static enum ree_status run(struct ree_cuda *cuda, enum ree_cuda_kernel kernel, const void *vectors,
                           uint32_t n, size_t size, void *results, size_t result_size,
                           struct broken broken, struct ree_error *err) {
    struct ree_device_buffer *in = NULL, *out = NULL;
    struct ree_cuda_args *args = ree_alloc_zeroed(1, sizeof *args);
    CUfunction function;
    enum ree_status status =
        args ? REE_OK : ree_fail(err, REE_NO_MEMORY, "no memory for the probe");
    if (status == REE_OK) status = ree_cuda_function(cuda, kernel, 0, &function, err);
    if (status == REE_OK) status = ree_cuda_buffer_create(cuda, n * size, &in, err);
    if (status == REE_OK) status = ree_cuda_buffer_create(cuda, n * result_size, &out, err);
    if (status == REE_OK) status = ree_cuda_buffer_write(cuda, in, 0, vectors, n * size, err);
    if (status == REE_OK) {
        void *params[] = {args};
        args->header.operands[0] = in->address;
        args->header.operands[1] = out->address;
        args->header.sizes[0] = n * size;
        args->header.sizes[1] = n * result_size;
        args->params.probe = (struct ree_cuda_probe_params){n, broken.first, broken.n};
        CUresult result = cuda->driver.launch(function, (n + THREADS - 1) / THREADS, 1, 1, THREADS,
                                              1, 1, 0, cuda->stream, params, NULL);
        if (result != CUDA_SUCCESS)
            status = ree_cuda_fail(&cuda->driver, err, result, ree_cuda_kernel_name(kernel));
    }
    if (status == REE_OK)
        status = ree_cuda_buffer_read(cuda, out, 0, results, n * result_size, err);
    ree_cuda_buffer_destroy(cuda, in);
    ree_cuda_buffer_destroy(cuda, out);
    ree_free(args);
    return status;
}

// Adds the fact about a primitive, or fails with a message that names it.
static enum ree_status judge(struct ree_cuda *cuda, const char *name, uint32_t n_vectors,
                             uint32_t n_wrong, const char *example, struct ree_error *err) {
    if (n_wrong > 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "CUDA: '%s' computes %s wrongly, in %u of %u vectors, e.g. %s; results of "
                        "such a device are not reliable",
                        cuda->base.name, name, n_wrong, n_vectors, example);
    ree_facts_add(&cuda->facts, "primitive", name, "native (right in %u vectors)", n_vectors);
    return REE_OK;
}

static enum ree_status probe_words(struct ree_cuda *cuda, struct broken broken,
                                   struct ree_error *err) {
    struct ree_probe_vectors vectors;
    REE_TRY(ree_probe_vectors_init(&vectors, err));
    uint32_t *results = ree_alloc_zeroed(vectors.n, sizeof *results);
    enum ree_status status =
        results ? REE_OK : ree_fail(err, REE_NO_MEMORY, "no memory for the probe");
    if (status == REE_OK)
        status = run(cuda, REE_CUDA_probe_words, vectors.list, vectors.n, sizeof *vectors.list,
                     results, sizeof *results, broken, err);
    for (int p = 0; p < REE_PROBE_N_PRIMITIVES && status == REE_OK; p++) {
        struct ree_probe_count count =
            ree_probe_judge(&vectors, results, 0, vectors.n, &ree_probe_primitives[p]);
        const uint32_t *e = count.example;
        char example[80];
        snprintf(example, sizeof example, "%08x %08x %08x gives %08x, not %08x", e[0], e[1], e[2],
                 e[3], e[4]);
        status =
            judge(cuda, ree_probe_primitives[p].name, count.n_vectors, count.n_wrong, example, err);
    }
    ree_free(results);
    ree_probe_vectors_finish(&vectors);
    return status;
}

static enum ree_status judge_doubles(struct ree_cuda *cuda, const struct f64_vector *list,
                                     const uint64_t *results, struct ree_error *err) {
    for (int p = 0; p < N_F64_PRIMITIVES; p++) {
        uint32_t n_vectors = 0, n_wrong = 0;
        char example[128] = "";
        for (uint32_t i = 0; i < N_F64_VECTORS; i++) {
            const struct f64_vector *v = &list[i];
            if (v->operation - f64_primitives[p].first >= f64_primitives[p].n) continue;
            uint64_t right = compute(v);
            n_vectors++;
            if (results[i] == right || n_wrong++ > 0) continue;
            snprintf(example, sizeof example, "%016llx %016llx %016llx gives %016llx, not %016llx",
                     (unsigned long long)v->a, (unsigned long long)v->b, (unsigned long long)v->c,
                     (unsigned long long)results[i], (unsigned long long)right);
        }
        REE_TRY(judge(cuda, f64_primitives[p].name, n_vectors, n_wrong, example, err));
    }
    return REE_OK;
}

static enum ree_status probe_doubles(struct ree_cuda *cuda, struct broken broken,
                                     struct ree_error *err) {
    struct f64_vector *list = ree_alloc_zeroed(N_F64_VECTORS, sizeof *list);
    uint64_t *results = ree_alloc_zeroed(N_F64_VECTORS, sizeof *results);
    enum ree_status status = REE_NO_MEMORY;
    if (list && results) {
        fill(list);
        status = run(cuda, REE_CUDA_probe_doubles, list, N_F64_VECTORS, sizeof *list, results,
                     sizeof *results, broken, err);
        if (status == REE_OK) status = judge_doubles(cuda, list, results, err);
    } else {
        ree_fail(err, REE_NO_MEMORY, "no memory for the probe");
    }
    ree_free(list);
    ree_free(results);
    return status;
}

enum ree_status ree_cuda_probe(struct ree_cuda *cuda, const char *break_primitive,
                               struct ree_error *err) {
    struct broken words = {0, 0}, doubles = {0, 0};
    if (break_primitive) {
        int p = ree_probe_find(ree_probe_primitives, REE_PROBE_N_PRIMITIVES, break_primitive);
        int q = ree_probe_find(f64_primitives, N_F64_PRIMITIVES, break_primitive);
        if (p < 0 && q < 0)
            return ree_fail(err, REE_INVALID, "unknown primitive '%s'", break_primitive);
        if (p >= 0)
            words = (struct broken){ree_probe_primitives[p].first, ree_probe_primitives[p].n};
        else
            doubles = (struct broken){f64_primitives[q].first, f64_primitives[q].n};
    }
    REE_TRY(probe_words(cuda, words, err));
    return probe_doubles(cuda, doubles, err);
}
