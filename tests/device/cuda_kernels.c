// Every kernel of kernels.def computes the CPU's bytes, for a few cases of each. The test encodes
// cases until each kernel has enough of them, and runs only these. cuda_matches_cpu runs all cases,
// and does not notice a kernel that no case uses. Without a GPU they run on the emulator; the tests
// cuda/ptx_... run them as nvcc compiled them.
//
// Usage: cuda_kernels [N [KERNEL]]: N cases for each kernel, or only for KERNEL.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device_cases.h"

static const char *const names[] = {
#define MODULE(m)
#define KERNEL(k) #k,
#include "device/cuda/kernels.def"
};

static bool random_case(struct rng *rng, struct test_case *c) {
    return case_generators[rng_below(rng, REE_N_REPOPS)](rng, c);
}

// A transposed matrix of words.
static bool transpose(struct rng *rng, struct test_case *c) {
    const uint32_t rows = 16 + rng_below(rng, 60), columns = 16 + rng_below(rng, 60);
    case_begin(c, REE_REPOP_COPY);
    c->dispatch.params.copy = (struct ree_copy_params){
        .elem_size = 4,
        .rank = 2,
        .n_elements = rows * columns,
        .dims = {rows, columns},
        .src_strides = {1, (int32_t)rows},
        .dst_strides = {(int32_t)columns, 1},
    };
    case_input(c, rng, REE_F32, rows * columns);
    case_output(c, rng, REE_F32, rows * columns);
    return true;
}

// x * scale: only words.
static bool words(struct rng *rng, struct test_case *c) {
    const uint32_t rows = 1 + rng_below(rng, 30), columns = 1 + rng_below(rng, 300);
    case_begin(c, REE_REPOP_MAP);
    c->dispatch.params.map.expr = (struct ree_expr){
        .rank = 2,
        .dims = {rows, columns},
        .n_elements = rows * columns,
        .out_dtype = REE_F32,
        .n_operands = 2,
        .operands = {{.kind = REE_EXPR_TENSOR, .dtype = REE_F32, .strides = {(int32_t)columns, 1}},
                     {.kind = REE_EXPR_TENSOR, .dtype = REE_F32, .strides = {0, 1}}},
        .n_instrs = 1,
        .instrs = {{.op = REE_MAP_mul_f32, .args = {0, 1}}},
    };
    case_input(c, rng, REE_F32, rows * columns);
    case_input(c, rng, REE_F32, columns);
    case_output(c, rng, REE_F32, rows * columns);
    return true;
}

// Rows that do not fit into little shared memory.
static bool long_row(struct rng *rng, struct test_case *c) {
    const uint32_t rows = 1 + rng_below(rng, 3), n = 2000 + rng_below(rng, 2000);
    const bool norm = rng_one_in(rng, 2), variant = rng_one_in(rng, 2);
    case_begin(c, norm ? REE_REPOP_NORM : REE_REPOP_SOFTMAX);
    if (norm)
        c->dispatch.params.norm =
            (struct ree_norm_params){variant, rows, n, 1e-5f, 0, 0, 1, 1, 0, 1};
    else
        c->dispatch.params.softmax = (struct ree_softmax_params){variant, rows, n, 1, 0};
    case_input(c, rng, REE_F32, rows * n);
    case_output(c, rng, REE_F32, rows * n);
    return true;
}

static void dense(struct rng *rng, struct test_case *c, uint32_t m, uint32_t n, uint32_t k,
                  bool by_k, uint32_t a_dtype, uint32_t b_dtype) {
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    *p = dense_products(m, n, k);
    p->a_dtype = a_dtype, p->b_dtype = b_dtype;
    if (a_dtype != REE_F32) p->dtype = REE_I32;
    if (by_k) p->b_stride_n = (int32_t)k, p->b_stride_k = 1;
    case_input(c, rng, (enum ree_dtype)a_dtype, (uint64_t)m * k);
    if (p->b_dtype == REE_U8 && a_dtype == REE_F32 && by_k && rng_one_in(rng, 2)) {
        p->b_stride_n = p->b_stride_k = 0; // blocks of four bits
        p->b_block = 32, p->b_bits = 4;
        case_input(c, rng, REE_U8, (uint64_t)n * k / 2);
        case_input(c, rng, REE_F32, (uint64_t)n * k / 32);
    } else {
        case_input(c, rng, (enum ree_dtype)b_dtype, (uint64_t)n * k);
    }
    case_output(c, rng, (enum ree_dtype)p->dtype, (uint64_t)m * n);
}

static bool few_rows(struct rng *rng, struct test_case *c) {
    static const uint32_t types[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    static const uint32_t rows[] = {1, 3, 4, 5, 8};
    uint32_t m = rng_of(rng, 5, rows), n = 4 + 4 * rng_below(rng, 20);
    uint32_t k = 32 + 32 * rng_below(rng, 20);
    bool by_k = rng_one_in(rng, 2);
    dense(rng, c, m, n, k, by_k, REE_F32, rng_of(rng, 5, types));
    return true;
}

static bool product(struct rng *rng, struct test_case *c) {
    uint32_t m = 9 + rng_below(rng, 130), n = 9 + rng_below(rng, 130);
    uint32_t k = 1 + rng_below(rng, 300);
    dense(rng, c, m, n, k, rng_one_in(rng, 2), REE_F32, REE_F32);
    return true;
}

static bool bytes(struct rng *rng, struct test_case *c) {
    static const uint32_t types[] = {REE_I8, REE_U8};
    const bool few = rng_one_in(rng, 3);
    uint32_t m = few ? 1 + rng_below(rng, 8) : 100 + rng_below(rng, 40);
    uint32_t n = 100 + rng_below(rng, 40);
    uint32_t k = few ? 64 + 64 * rng_below(rng, 4) : 1 + rng_below(rng, 200);
    bool by_k = few || rng_one_in(rng, 2);
    uint32_t a_dtype = rng_of(rng, 2, types), b_dtype = rng_of(rng, 2, types);
    dense(rng, c, m, n, k, by_k, a_dtype, b_dtype);
    return true;
}

// Convolutions of several tiles, with one tap or nine.
static bool convolution(struct rng *rng, struct test_case *c) {
    const uint32_t taps = rng_one_in(rng, 2) ? 1 : 3, height = 3 + rng_below(rng, 9),
                   width = 3 + rng_below(rng, 9), channels = 1 + rng_below(rng, 40),
                   m = 4 + rng_below(rng, 130);
    case_begin(c, REE_REPOP_CONV);
    struct ree_conv_params *p = &c->dispatch.params.conv;
    *p = (struct ree_conv_params){
        .n = 1,
        .groups = 1,
        .c = channels,
        .m = m,
        .in = {1, height, width},
        .kernel = {1, taps, taps},
        .out = {1, height, width},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .pad = {0, (int32_t)taps / 2, (int32_t)taps / 2},
        .transposed = taps == 3 && rng_one_in(rng, 3),
        .x_dtype = REE_F32,
        .w_dtype = REE_F32,
    };
    case_input(c, rng, REE_F32, (uint64_t)p->c * height * width);
    case_input(c, rng, REE_F32, (uint64_t)p->m * p->c * taps * taps);
    case_output(c, rng, REE_F32, (uint64_t)p->m * height * width);
    return true;
}

// A prompt of two heads that share keys; each query attends to the keys before it.
static bool prompt(struct rng *rng, struct test_case *c) {
    const int32_t q = 33 + (int32_t)rng_below(rng, 40), keys = q + (int32_t)rng_below(rng, 300),
                  d = 8 + (int32_t)rng_below(rng, 40);
    case_begin(c, REE_REPOP_ATTENTION);
    c->dispatch.params.attention = (struct ree_attention_params){
        .batch = 1,
        .n_heads = 2,
        .n_kv_heads = 1,
        .q_len = (uint32_t)q,
        .kv_len = (uint32_t)keys,
        .head_dim = (uint32_t)d,
        .v_head_dim = (uint32_t)d,
        .k_dtype = REE_F32,
        .v_dtype = REE_F32,
        .q_strides = {2 * q * d, q * d, d, 1},
        .k_strides = {keys * d, keys * d, d, 1},
        .v_strides = {keys * d, keys * d, d, 1},
        .out_strides = {2 * q * d, q * d, d},
        .scale = 0.125f,
        .left = rng_one_in(rng, 2) ? 30 : REE_ATTENTION_UNBOUNDED,
        .start = keys - q,
        .zero_empty = 1,
    };
    case_input(c, rng, REE_F32, (uint64_t)(2 * q * d));
    case_input(c, rng, REE_F32, (uint64_t)(keys * d));
    case_input(c, rng, REE_F32, (uint64_t)(keys * d));
    case_output(c, rng, REE_F32, (uint64_t)(2 * q * d));
    return true;
}

static const case_generator generators[] = {transpose,        words,      long_row,    few_rows,
                                            product,          bytes,      convolution, prompt,
                                            case_matmul_int8, random_case};
#define N_GENERATORS (sizeof generators / sizeof *generators)

static bool enough(const uint32_t *n_cases, uint32_t n) {
    for (int k = 0; k < REE_CUDA_N_KERNELS; k++)
        if (n_cases[k] < n) return false;
    return true;
}

// Returns whether the case needs a kernel that has fewer than n cases, and counts the case.
static bool needed(struct ree_cuda *cuda, const struct test_case *c, uint32_t n,
                   uint32_t *n_cases) {
    struct ree_cuda_encoding encoding;
    struct ree_dispatch dispatch = c->dispatch;
    struct ree_error err;
    bool is_needed = false;
    for (uint32_t i = 0; i < dispatch.n_operands; i++)
        dispatch.operands[i].offset = GUARD_32;
    if (ree_cuda_encode_form(cuda, &dispatch, REE_CUDA_KERNELS, &encoding, &err) != REE_OK)
        return false;
    for (uint32_t s = 0; s < encoding.n_steps; s++)
        is_needed |= n_cases[encoding.steps[s].kernel] < n;
    for (uint32_t s = 0; s < encoding.n_steps && is_needed; s++)
        n_cases[encoding.steps[s].kernel]++;
    return is_needed;
}

int main(int argc, char **argv) {
    const uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
    const char *only = argc > 2 ? argv[2] : NULL;
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    const struct ree_cuda_limits own = cuda->limits;
    uint32_t n_cases[REE_CUDA_N_KERNELS] = {0}, n_printed = 0, n_missing = 0;
    for (int k = 0; k < REE_CUDA_N_KERNELS; k++)
        if (only && strcmp(only, names[k]) != 0) n_cases[k] = n;
    // The probe ran when the device was opened.
    n_cases[REE_CUDA_probe_words] = n_cases[REE_CUDA_probe_doubles] = n;
    cuda->no_jit = true;
    for (uint64_t seed = 0; seed < 20000 && n_printed < 6 && !enough(n_cases, n); seed++) {
        struct rng rng = {.state = seed * 7919 + 11};
        struct test_case c = {0};
        cuda->limits = own;
        cuda->limits.n_multiprocessors = rng_one_in(&rng, 2) ? 1 : 132;
        if (rng_one_in(&rng, 2)) {
            cuda->limits.forces_plan = true;
            cuda->limits.tile = (enum ree_cuda_tile)rng_below(&rng, REE_CUDA_N_TILES);
            cuda->limits.splits = rng_one_in(&rng, 2);
        }
        const case_generator generate = generators[seed % N_GENERATORS];
        if (generate == long_row) cuda->limits.max_shared = 8u << 10;
        if (generate(&rng, &c) && needed(cuda, &c, n, n_cases))
            compare_case(device, "each kernel", (int)c.dispatch.op, 2 * seed, &c, &n_printed);
        test_case_finish(&c);
    }
    for (int k = 0; k < REE_CUDA_N_KERNELS; k++) {
        CHECK_MSG(n_cases[k] >= n, "kernel %s has %u cases", names[k], n_cases[k]);
        n_missing += n_cases[k] == 0;
    }
    // A kernel that fails its self-test is replaced, so the case above passes.
    const struct ree_device_fact *facts;
    size_t n_facts = device->vtable->facts(device, &facts);
    for (size_t i = 0; i < n_facts; i++)
        CHECK_MSG(strcmp(facts[i].kind, "self-test") != 0, "self-test: %s: %s", facts[i].name,
                  facts[i].value);
    CHECK_MSG(cuda->n_untested == 0, "%u launches were not tested", cuda->n_untested);
    printf("%d kernels, %u without a case\n", REE_CUDA_N_KERNELS, n_missing);
    ree_device_destroy(device);
    return test_finish();
}
