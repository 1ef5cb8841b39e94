// Products on CUDA (the emulator, or a GPU) give the CPU's bytes for random cases, whatever the
// device's limits make the encoder choose.
//
// Usage: cuda_products [N [SEED]]: N cases for each set of limits.
#include "device/cuda/cuda.h"
#include "device_cases.h"

// What the encoder goes by.
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

static bool run(struct ree_device *device, const char *name, uint64_t seed, case_generator generate,
                bool (*wanted)(const struct test_case *)) {
    struct rng rng = {.state = seed * 7919 + 3};
    struct test_case c = {0};
    bool found = generate(&rng, &c) && (!wanted || wanted(&c));
    if (found) {
        const char *what = run_device_case(device, &c);
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

// Products that need more than one tile, of every shape.
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
    choose_dense(rng, c, m, n, k, rng_one_in(rng, 2), rng_one_in(rng, 2), REE_F32, REE_F32);
    return true;
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 60;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    struct ree_device *device;
    struct ree_error err;
    struct ree_device_options options = {0};
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        if (limits[l].n_multiprocessors) {
            cuda->n_multiprocessors = limits[l].n_multiprocessors;
            cuda->max_shared = limits[l].max_shared;
            cuda->shared_per_multiprocessor = limits[l].shared_per_multiprocessor;
        }
        uint32_t n_done = 0;
        for (uint64_t seed = first; n_done < n; seed++)
            n_done += run(device, limits[l].name, seed, case_matmul, NULL);
        n_done = 0;
        for (uint64_t seed = first; n_done < n / 4; seed++)
            n_done += run(device, limits[l].name, seed, dense, NULL);
    }
    device->vtable->destroy(device);
    return test_finish();
}
