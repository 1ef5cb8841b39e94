// Products on CUDA (the emulator, or a GPU) give the CPU's bytes for random cases, whatever kernels
// the encoder chooses under the device's limits.
//
// Usage: cuda_products [N [SEED]]: N cases for each set of limits.
#include "device/cuda/cuda.h"
#include "device_cases.h"

// Device limits that the encoder uses.
struct limits {
    const char *name;
    uint32_t n_multiprocessors, max_shared, shared_per_multiprocessor;
};
static const struct limits limits[] = {
    {"the device's", 0, 0, 0},
    {"a large device", 132, 160u << 10, 228u << 10},
    {"little shared memory", 20, 99u << 10, 100u << 10},
    {"least shared memory", 1, 64u << 10, 64u << 10},
};

static bool run(struct ree_device *device, const char *name, uint64_t seed,
                case_generator generate) {
    struct rng rng = {.state = seed * 7919 + 3};
    struct test_case c = {0};
    bool found = generate(&rng, &c);
    if (found) {
        const char *what = run_device_case(device, GUARD_OF(seed), &c);
        CHECK_MSG(!what, "%s, seed %llu: %s", name, (unsigned long long)seed, what);
        if (what) {
            struct ree_strbuf text;
            ree_strbuf_init(&text);
            ree_dispatch_print(&c.dispatch, &text);
            fprintf(stderr, "  %s\n", text.data ? text.data : "");
            ree_strbuf_finish(&text);
        }
    }
    test_case_finish(&c);
    return found;
}

// Makes a product of dense matrices, half of the time with an epilogue. a_by_k, b_by_k: the
// elements of A or B along k are adjacent.
static void choose_dense(struct rng *rng, struct test_case *c, uint32_t m, uint32_t n, uint32_t k,
                         bool a_by_k, bool b_by_k, uint32_t a_dtype, uint32_t b_dtype) {
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    p->dtype = ree_dtype_size((enum ree_dtype)a_dtype) == 1 ? REE_I32 : REE_F32;
    p->a_dtype = a_dtype, p->b_dtype = b_dtype;
    p->m = m, p->n = n, p->k = k, p->n_batch = 1;
    p->a_stride_m = a_by_k ? (int32_t)k : 1, p->a_stride_k = a_by_k ? 1 : (int32_t)m;
    p->b_stride_n = b_by_k ? (int32_t)k : 1, p->b_stride_k = b_by_k ? 1 : (int32_t)n;
    case_input(c, rng, (enum ree_dtype)a_dtype, (uint64_t)m * k);
    case_input(c, rng, (enum ree_dtype)b_dtype, (uint64_t)k * n);
    if (rng_one_in(rng, 2)) {
        uint32_t dims[] = {m, n};
        p->has_epilogue = 1;
        case_expr(c, rng, &p->epilogue, 2, dims, true);
        case_output(c, rng, (enum ree_dtype)p->epilogue.out_dtype, (uint64_t)m * n);
    } else {
        case_output(c, rng, (enum ree_dtype)p->dtype, (uint64_t)m * n);
    }
}
static bool dense(struct rng *rng, struct test_case *c) {
    uint32_t m = 1 + rng_below(rng, 200), n = 1 + rng_below(rng, 200), k = case_length(rng);
    if (rng_one_in(rng, 2)) m = (m + 3) / 4 * 4, n = (n + 3) / 4 * 4, k = (k + 3) / 4 * 4;
    if ((uint64_t)m * n * k > 3000000) return false;
    bool a_by_k = rng_one_in(rng, 2), b_by_k = rng_one_in(rng, 2);
    choose_dense(rng, c, m, n, k, a_by_k, b_by_k, REE_F32, REE_F32);
    return true;
}

// Products with several of the largest tiles on one multiprocessor.
static bool large(struct rng *rng, struct test_case *c) {
    uint32_t m = 240 + rng_below(rng, 17), n = 240 + rng_below(rng, 17);
    uint32_t k = 250 + rng_below(rng, 30);
    if (rng_one_in(rng, 2)) m = 252, n = 256, k = 264;
    bool a_by_k = rng_one_in(rng, 2), b_by_k = rng_one_in(rng, 2);
    choose_dense(rng, c, m, n, k, a_by_k, b_by_k, REE_F32, REE_F32);
    return true;
}
static bool bytes(struct rng *rng, struct test_case *c) {
    static const uint32_t types[] = {REE_I8, REE_U8};
    bool few = rng_one_in(rng, 4);
    uint32_t m = 1 + rng_below(rng, few ? 8 : 200), n = 1 + rng_below(rng, 200);
    uint32_t k = case_length(rng);
    if (few || rng_one_in(rng, 2)) k = (k + 63) / 64 * 64;
    if ((uint64_t)m * n * k > 3000000) return false;
    bool a_by_k = few || rng_one_in(rng, 2), b_by_k = few || rng_one_in(rng, 2);
    uint32_t a_dtype = rng_of(rng, 2, types), b_dtype = rng_of(rng, 2, types);
    choose_dense(rng, c, m, n, k, a_by_k, b_by_k, a_dtype, b_dtype);
    return true;
}

// Typical numbers in models: no NaN, nothing huge. With `few`, they have few significant bits.
static void tame(struct rng *rng, float *x, uint64_t n, float size, bool few) {
    for (uint64_t i = 0; i < n; i++) {
        x[i] = ((float)rng_below(rng, 1u << 24) / (1u << 24) - 0.5f) * size;
        if (few) x[i] = size * (float)(rng_below(rng, 255) + 1) / 256;
    }
}

// Few rows, or one column, times weights that can be read 16 bytes at a time.
static bool few_rows(struct rng *rng, struct test_case *c) {
    static const uint32_t types[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    static const uint32_t blocks[] = {16, 32, 64, 128, 256};
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    bool blockwise = rng_one_in(rng, 2), column = !blockwise && rng_one_in(rng, 4);
    bool by_k = rng_one_in(rng, 2), is_tame = !rng_one_in(rng, 3);
    uint32_t m = column || rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 8);
    uint32_t n = (1 + rng_below(rng, 50)) * (by_k ? 1 : 4);
    uint32_t k = 1 + rng_below(rng, rng_one_in(rng, 3) ? 2600 : 600);
    if (!blockwise && by_k) k = (k + 15) / 16 * 16;
    p->dtype = REE_F32;
    p->a_dtype = rng_one_in(rng, 3) ? rng_of(rng, 3, types) : REE_F32;
    p->b_dtype = rng_of(rng, 5, types);
    p->n_batch = 1;
    p->m = m, p->n = n, p->k = k;
    p->a_stride_m = (int32_t)k, p->a_stride_k = 1;
    p->b_stride_n = by_k ? (int32_t)k : 1, p->b_stride_k = by_k ? 1 : (int32_t)n;
    if (!blockwise && rng_one_in(rng, 3)) {
        p->batch_rank = 1, p->n_batch = p->batch_dims[0] = 1 + rng_below(rng, 3);
        p->a_batch_strides[0] = (int32_t)(m * k);
        p->b_batch_strides[0] = rng_one_in(rng, 2) ? (int32_t)(n * k) : 0;
    }
    if (column) { // the same product transposed
        uint32_t t = p->a_dtype;
        p->a_dtype = p->b_dtype, p->b_dtype = t;
        p->m = n, p->n = 1;
        p->a_stride_m = p->b_stride_n, p->a_stride_k = p->b_stride_k;
        p->b_stride_n = 7, p->b_stride_k = 1;
        int32_t s = p->a_batch_strides[0];
        p->a_batch_strides[0] = p->b_batch_strides[0], p->b_batch_strides[0] = s;
    }
    uint64_t n_a = (uint64_t)p->n_batch * p->m * k, n_b = (uint64_t)p->n_batch * p->n * k;
    void *a = case_input(c, rng, (enum ree_dtype)p->a_dtype, n_a);
    if (is_tame && p->a_dtype == REE_F32) tame(rng, a, n_a, 4, false);
    if (blockwise) {
        p->b_dtype = REE_U8;
        p->b_stride_n = p->b_stride_k = 0;
        p->b_block = rng_of(rng, 5, blocks);
        p->b_bits = rng_one_in(rng, 3) ? 8 : 4;
        p->has_zero_points = rng_one_in(rng, 2);
        uint64_t n_blocks = (uint64_t)n * ((k + p->b_block - 1) / p->b_block);
        uint64_t n_bytes = n_blocks * p->b_block * p->b_bits / 8;
        uint8_t *bytes = case_input(c, rng, REE_U8, n_bytes);
        for (uint64_t i = 0; i < n_bytes; i++)
            bytes[i] = (uint8_t)rng_next(rng);
        float *scales = case_input(c, rng, REE_F32, n_blocks);
        if (is_tame) tame(rng, scales, n_blocks, 0.01f, rng_one_in(rng, 2));
        if (is_tame && rng_one_in(rng, 4)) scales[rng_below(rng, (uint32_t)n_blocks)] = 1e-30f;
        if (p->has_zero_points) {
            uint8_t *zeros = case_input(c, rng, REE_U8, n_blocks);
            for (uint64_t i = 0; i < n_blocks; i++)
                zeros[i] = (uint8_t)rng_below(rng, 1u << p->b_bits);
        }
    } else {
        void *b = case_input(c, rng, (enum ree_dtype)p->b_dtype, n_b);
        if (is_tame && p->b_dtype == REE_F32) tame(rng, b, n_b, 1, false);
    }
    if (rng_one_in(rng, 3)) {
        uint32_t dims[] = {p->n_batch, p->m, p->n};
        p->has_epilogue = 1;
        case_expr(c, rng, &p->epilogue, p->batch_rank + 2, dims + 1 - p->batch_rank, true);
        if (c->dispatch.n_operands == REE_MAX_OPERANDS) return false;
    }
    uint64_t n_out = (uint64_t)p->n_batch * p->m * p->n;
    case_output(c, rng,
                p->has_epilogue ? (enum ree_dtype)p->epilogue.out_dtype : (enum ree_dtype)p->dtype,
                n_out);
    // A product whose operands are both integers is not a float32 product.
    return ree_dtype_size((enum ree_dtype)p->a_dtype) > 1 || blockwise ||
           ree_dtype_size((enum ree_dtype)p->b_dtype) > 1;
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 60;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    struct ree_device *device;
    struct ree_error err;
    struct ree_device_options options = {.size = sizeof options};
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        if (limits[l].n_multiprocessors) {
            cuda->limits.n_multiprocessors = limits[l].n_multiprocessors;
            cuda->limits.max_shared = limits[l].max_shared;
            cuda->limits.shared_per_multiprocessor = limits[l].shared_per_multiprocessor;
        }
        uint32_t n_done = 0;
        for (uint64_t seed = first; n_done < n; seed++)
            n_done += run(device, limits[l].name, seed, case_matmul);
        n_done = 0;
        for (uint64_t seed = first; n_done < n / 4; seed++)
            n_done += run(device, limits[l].name, seed, dense);
        n_done = 0;
        for (uint64_t seed = first; n_done < n; seed++)
            n_done += run(device, limits[l].name, seed, few_rows);
        for (uint64_t seed = first; seed < first + n / 15; seed++)
            if (limits[l].n_multiprocessors <= 1) run(device, limits[l].name, seed, large);
        n_done = 0;
        for (uint64_t seed = first; n_done < n / 2; seed++)
            n_done += run(device, limits[l].name, seed, bytes);
        n_done = 0;
        for (uint64_t seed = first; n_done < 2 * n; seed++) {
            // Few rows run on tiles only if the plan is forced. Odd seeds are not aligned.
            cuda->limits.forces_plan = seed % 4 == 0;
            cuda->limits.tile = seed % 8 ? REE_CUDA_TILE_32X64 : REE_CUDA_TILE_64X64;
            cuda->limits.splits = seed % 16 < 8;
            n_done += run(device, limits[l].name, seed, case_matmul_int8);
        }
        cuda->limits.forces_plan = false;
    }
    // A kernel that fails its self-test is replaced, so the cases above pass.
    const struct ree_device_fact *facts;
    const size_t n_facts = device->vtable->facts(device, &facts);
    for (size_t i = 0; i < n_facts; i++)
        CHECK_MSG(strcmp(facts[i].kind, "self-test") != 0, "self-test: %s: %s", facts[i].name,
                  facts[i].value);
    CHECK_MSG(cuda->n_untested == 0, "%u launches were not tested", cuda->n_untested);
    device->vtable->destroy(device);
    return test_finish();
}
