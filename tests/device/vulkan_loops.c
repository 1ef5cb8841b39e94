// Long sums: lengths at which a thread that took all terms would loop more often than some drivers
// allow (struct ree_vk, loop_budget), of numbers so small that every result is computed again in
// integers, give the CPU's bytes or are refused with a message that says why.
#include "device/vulkan/vulkan.h"
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
    c.dispatch.params.matmul = (struct ree_matmul_params){
        .dtype = REE_F32,
        .a_dtype = REE_F32,
        .b_dtype = REE_F32,
        .m = m,
        .n = n,
        .k = k,
        .a_stride_m = (int32_t)k,
        .a_stride_k = 1,
        .b_stride_k = (int32_t)n,
        .b_stride_n = 1,
        .n_batch = 1,
    };
    fill(operand(&c, (uint64_t)m * k, false), (uint64_t)m * k, 60);
    fill(operand(&c, (uint64_t)k * n, false), (uint64_t)k * n, 60); // products near 2^-134
    operand(&c, (uint64_t)m * n, true);
    compare_case(device, "long sums", REE_REPOP_MATMUL, k, &c, &n_printed);
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

// Updates of one element, which have to follow one another.
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
        .n_lines = 1,
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

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        struct ree_device_options options = {.cache_dir = ""};
        struct ree_device *device;
        struct ree_error err;
        enum ree_status status =
            ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (status != REE_OK) continue;
        products(device, 17, 9, 700);
        products(device, 5, 3, 66000);
        products(device, 1, 5, 70000);
        convolution(device);
        rows(device);
        updates(device);
        device->vtable->destroy(device);
    }
    return test_finish();
}
