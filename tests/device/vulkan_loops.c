// Long sums give the CPU's bytes or are refused with a message that gives the reason. Their lengths
// are such that a thread that adds all terms would loop more often than some drivers allow (struct
// ree_vk, loop_budget). Products have such small numbers that every result is recomputed in
// integers.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "device_cases.h"

static uint32_t n_printed;

static void fill(uint32_t *out, uint64_t n, uint32_t exponent) {
    struct rng rng = {.state = n};
    for (uint64_t i = 0; i < n; i++)
        out[i] = ((uint32_t)rng_next(&rng) & 0x807FFFFFu) | (exponent + i % 3) << 23;
}

static uint32_t *operand(struct test_case *c, uint64_t n, bool is_output) {
    struct rng rng = {.state = 1};
    return is_output ? case_output(c, &rng, REE_F32, n) : case_input(c, &rng, REE_F32, n);
}

static void products(struct ree_device *device, uint32_t m, uint32_t n, uint32_t k) {
    struct test_case c;
    case_begin(&c, REE_REPOP_MATMUL);
    c.dispatch.params.matmul = dense_products(m, n, k);
    fill(operand(&c, (uint64_t)m * k, false), (uint64_t)m * k, 60);
    fill(operand(&c, (uint64_t)k * n, false), (uint64_t)k * n, 60); // products near 2^-134
    operand(&c, (uint64_t)m * n, true);
    compare_case(device, "long sums", REE_REPOP_MATMUL, k, &c, &n_printed);
    test_case_finish(&c);
}

// Blocks whose scales are so small that every step is computed in integers.
static void block_products(struct ree_device *device, uint32_t m, uint32_t n, uint32_t k) {
    const struct ree_matmul_params params = {
        .m = m, .n = n, .k = k, .a_block = 16, .b_block = 32, .b_bits = 4};
    struct test_case c;
    struct rng rng = {.state = 1};
    case_block_product(&c, &rng, &params);
    fill(c.contents[2], (uint64_t)n * ((k + 31) / 32), 40);
    fill(c.contents[3], (uint64_t)m * ((k + 15) / 16), 70); // products near 2^-144
    compare_case(device, "long sums of blocks", REE_REPOP_MATMUL, k, &c, &n_printed);
    test_case_finish(&c);
}

static void convolution(struct ree_device *device) {
    const uint32_t channels = 400, size = 7, m = 20;
    struct test_case c;
    case_begin(&c, REE_REPOP_CONV);
    c.dispatch.params.conv = (struct ree_conv_params){
        .n = 1,
        .groups = 1,
        .c = channels,
        .m = m,
        .in = {1, size, size},
        .kernel = {1, 3, 3},
        .out = {1, size, size},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .pad = {0, 1, 1},
        .x_dtype = REE_F32,
        .w_dtype = REE_F32,
    };
    fill(operand(&c, channels * size * size, false), channels * size * size, 60);
    fill(operand(&c, m * channels * 9, false), m * channels * 9, 60);
    operand(&c, m * size * size, true);
    compare_case(device, "long sums", REE_REPOP_CONV, 0, &c, &n_printed);
    test_case_finish(&c);
}

static void rows(struct ree_device *device) {
    const uint32_t n_rows = 70, k = 20000;
    struct test_case c;
    case_begin(&c, REE_REPOP_SOFTMAX);
    c.dispatch.params.softmax = (struct ree_softmax_params){.outer = n_rows, .k = k, .inner = 1};
    fill(operand(&c, (uint64_t)n_rows * k, false), (uint64_t)n_rows * k, 126);
    operand(&c, (uint64_t)n_rows * k, true);
    compare_case(device, "long rows", REE_REPOP_SOFTMAX, 0, &c, &n_printed);
    test_case_finish(&c);
}

// Many updates of two elements, which one thread makes one after another.
static void updates(struct ree_device *device) {
    const uint32_t n = 100000;
    struct test_case c;
    struct rng rng = {.state = 1};
    case_begin(&c, REE_REPOP_SCATTER);
    c.dispatch.params.scatter = (struct ree_scatter_params){
        .kind = REE_SCATTER_ADD,
        .dtype = REE_F32,
        .index_dtype = REE_I32,
        .rank = 1,
        .n_step_dims = 1,
        .n_vectors = 1,
        .n_steps = n,
        .dims = {n},
        .index_strides = {1},
        .update_strides = {1},
        .n_components = 1,
        .component_stride = 1,
        .component_sizes = {2},
        .component_strides = {1},
    };
    fill(operand(&c, 2, false), 2, 126);
    c.is_written[0] = true;
    int32_t *index = case_input(&c, &rng, REE_I32, n);
    for (uint32_t i = 0; i < n; i++)
        index[i] = i % 3 == 0;
    fill(operand(&c, n, false), n, 126);
    if (ree_vk_of(device)->loop_budget == UINT64_MAX) {
        compare_case(device, "many updates", REE_REPOP_SCATTER, 0, &c, &n_printed);
    } else {
        const char *what = run_device_case(device, GUARD_8, &c);
        CHECK_MSG(what && strstr(what, "ends loops after"), "%s", what ? what : "not refused");
    }
    test_case_finish(&c);
}

// Returns whether the device accepts the case's dispatch, as it encodes it.
static bool is_taken(struct ree_device *device, const struct ree_dispatch *dispatch) {
    static struct ree_vk_encoding encoding;
    struct ree_vk *vk = ree_vk_of(device);
    struct ree_vk_forms forms = {.dot8 = vk->has_dot8, .guarded = vk->guarded};
    struct ree_error err;
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        forms.of[p] = vk->verdicts[p].form;
    return ree_vk_encode(vk, dispatch, &forms, &encoding, &err) == REE_OK;
}

// Makes a case of size n; the work of one thread grows only with n.
typedef void case_of(struct test_case *c, uint32_t n);

// Checks two lengths: one that used to be too long without an error, and the longest below 70,000
// that the device accepts.
static void one_thread(struct ree_device *device, const char *name, enum ree_repop op,
                       case_of *make, uint32_t once_wrong) {
    struct test_case c;
    uint32_t taken = 1, refused = 70000;
    while (refused - taken > 1) {
        uint32_t n = (taken + refused) / 2;
        make(&c, n);
        if (is_taken(device, &c.dispatch))
            taken = n;
        else
            refused = n;
        test_case_finish(&c);
    }
    const uint32_t lengths[] = {once_wrong, taken};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        make(&c, lengths[i]);
        if (is_taken(device, &c.dispatch)) {
            compare_case(device, name, op, lengths[i], &c, &n_printed);
        } else {
            const char *what = run_device_case(device, GUARD_8, &c);
            CHECK_MSG(what && strstr(what, "ends loops after"), "%s of %u: %s", name, lengths[i],
                      what ? what : "not refused");
        }
        test_case_finish(&c);
    }
}

// Two rows; neighbouring threads have elements at different positions of their rows.
static void topk_case(struct test_case *c, uint32_t n) {
    struct rng rng = {.state = 1};
    case_begin(c, REE_REPOP_TOPK);
    c->dispatch.params.topk = (struct ree_topk_params){
        .dtype = REE_F32, .outer = 2, .n = n, .inner = 1, .k = 2, .largest = 1};
    float *x = case_input(c, &rng, REE_F32, (uint64_t)n * 2);
    for (uint32_t i = 0; i < 2 * n; i++)
        x[i] = (float)(i % n % 1000) * 1e-3f;
    // The last element of the first row and an early one of the second are adjacent in memory.
    x[0] = 40;
    x[n - 1] = 50;
    x[n] = 60;
    x[n + n / 2] = 70;
    case_output(c, &rng, REE_F32, 4);
    case_output(c, &rng, REE_I64, 4);
}

static void conv_bytes_case(struct test_case *c, uint32_t n) {
    struct rng rng = {.state = 1};
    case_begin(c, REE_REPOP_CONV);
    c->dispatch.params.conv = (struct ree_conv_params){
        .n = 1,
        .groups = 1,
        .c = n,
        .m = 1,
        .in = {1, 2, 2},
        .kernel = {1, 1, 1},
        .out = {1, 2, 2},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .x_dtype = REE_U8,
        .w_dtype = REE_I8,
    };
    case_input(c, &rng, REE_U8, (uint64_t)n * 4);
    case_input(c, &rng, REE_I8, n);
    case_output(c, &rng, REE_I32, 4);
}

static void pool_case(struct test_case *c, uint32_t n) {
    struct rng rng = {.state = 1};
    case_begin(c, REE_REPOP_POOL);
    c->dispatch.params.pool = (struct ree_pool_params){
        .kind = REE_POOL_AVG,
        .dtype = REE_F32,
        .planes = 1,
        .in = {n, 1, 1},
        .kernel = {n, 1, 1},
        .out = {1, 1, 1},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
    };
    float *x = case_input(c, &rng, REE_F32, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = 1;
    case_output(c, &rng, REE_F32, 1);
}

// Products of bytes with a sum over n words of them, and an epilogue with loops for each of a
// thread's results.
static void epilogue_case(struct test_case *c, uint32_t n) {
    const uint32_t m = 8, n_columns = 8, k = 4 * n, n_powers = 8;
    struct rng rng = {.state = 1};
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    *p = (struct ree_matmul_params){
        .dtype = REE_I32,
        .a_dtype = REE_I8,
        .b_dtype = REE_I8,
        .m = m,
        .n = n_columns,
        .k = k,
        .a_stride_m = (int32_t)k,
        .a_stride_k = 1,
        .b_stride_k = (int32_t)n_columns,
        .b_stride_n = 1,
        .n_batch = 1,
        .has_epilogue = 1,
        .epilogue = {.rank = 2,
                     .dims = {m, n_columns},
                     .n_elements = m * n_columns,
                     .out_dtype = REE_I32,
                     .n_instrs = n_powers},
    };
    // Value 0 is the sum, value i + 1 is value i to the power of itself; odd numbers stay odd.
    for (uint32_t i = 0; i < n_powers; i++)
        p->epilogue.instrs[i] = (struct ree_expr_instr){.op = REE_MAP_pow_u32, .args = {i, i}};
    int8_t *a = case_input(c, &rng, REE_I8, (uint64_t)m * k);
    int8_t *b = case_input(c, &rng, REE_I8, (uint64_t)k * n_columns);
    memset(a, 0, (size_t)m * k);
    memset(b, 0, (size_t)k * n_columns);
    for (uint32_t i = 0; i < m; i++)
        a[(i + 1) * k - 1] = -3; // the sums are odd, and their exponents are long
    for (uint32_t j = 0; j < n_columns; j++)
        b[(k - 1) * n_columns + j] = (int8_t)(2 * j + 1);
    case_output(c, &rng, REE_I32, m * n_columns);
}

// A range of keys whose last values are NaN. A thread adds all chunks in integers, and then
// computes each result again because it is NaN.
static void ranges(const char *which) {
    struct ree_device_testing testing = {.size = sizeof testing, .force_form = "integer"};
    struct ree_device_options options = {
        .size = sizeof options, .cache_dir = "", .testing = &testing};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_vulkan_device_open(which, &options, &device, &err);
    if (status == REE_UNSUPPORTED) return; // the device does not have this form
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return;
    ree_vk_of(device)->thresholds.enough_groups = 0; // chunks get no workgroups of their own
    const uint32_t heads = 4, n = 12400, size = 32;
    struct test_case c;
    struct rng rng = {.state = 1};
    case_begin(&c, REE_REPOP_ATTENTION);
    c.dispatch.params.attention = (struct ree_attention_params){
        .batch = 1,
        .n_heads = heads,
        .n_kv_heads = heads,
        .q_len = 1,
        .kv_len = n,
        .head_dim = 1,
        .v_head_dim = size,
        .k_dtype = REE_F32,
        .v_dtype = REE_F32,
        .q_strides = {0, 1, 0, 1},
        .k_strides = {0, 0, 1, 1},
        .v_strides = {0, 0, size, 1},
        .out_strides = {0, size, 0},
        .scale = 1,
        .left = (int32_t)n,
        .right = -1,
        .start = (int32_t)n - 1,
    };
    fill(case_input(&c, &rng, REE_F32, heads), heads, 126);
    fill(case_input(&c, &rng, REE_F32, n), n, 126);
    uint32_t *values = case_input(&c, &rng, REE_F32, n * size);
    fill(values, n * size, 1);
    for (uint32_t i = 0; i < size; i++)
        values[(n - 1) * size + i] = 0x7FC00000;
    case_output(&c, &rng, REE_F32, heads * size);
    compare_case(device, "ranges of keys", REE_REPOP_ATTENTION, 0, &c, &n_printed);
    test_case_finish(&c);
    device->vtable->destroy(device);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
        struct ree_device *device;
        struct ree_error err;
        enum ree_status status =
            ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (status != REE_OK) continue;
        struct ree_vk_thresholds *thresholds = &ree_vk_of(device)->thresholds;
        const struct ree_vk_thresholds own = *thresholds;
        thresholds->enough_groups = 0; // chunks get no workgroups of their own
        products(device, 1, 1, 31000); // the longest loops of a tiny product
        *thresholds = own;
        thresholds->small_product = thresholds->tiny_product = 0; // the loops of large products
        products(device, 17, 9, 700);
        products(device, 5, 3, 66000);
        products(device, 1, 5, 70000);
        block_products(device, 1, 5, 70000);
        block_products(device, 5, 3, 400000);
        convolution(device);
        rows(device);
        updates(device);
        ranges(strchr(list[d].spec, ':') + 1);
        one_thread(device, "long topk", REE_REPOP_TOPK, topk_case, 50257);
        one_thread(device, "longer topk", REE_REPOP_TOPK, topk_case, 200000);
        one_thread(device, "many channels of bytes", REE_REPOP_CONV, conv_bytes_case, 20000);
        one_thread(device, "epilogue", REE_REPOP_MATMUL, epilogue_case, 60000);
        one_thread(device, "long window", REE_REPOP_POOL, pool_case, 30000);
        device->vtable->destroy(device);
    }
    return test_finish();
}
