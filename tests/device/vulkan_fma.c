// The probe tests fma in a module of its own. A driver that fuses there, but not in the modules of
// the RepOps, is noticed by the self-tests: they run on the very pipelines that dispatches use. So
// each of these modules fails its self-test, and every result has the CPU's bytes.
//
// The test makes the probe's verdict on the native fma "right" on a driver whose fma rounds twice,
// such as lavapipe.
#include "device/vulkan/vulkan.h"
#include "device_cases.h"

static struct ree_error err;

// Modules that have a native fma, and the RepOp whose cases run them.
static const struct {
    const char *module;
    enum ree_repop op;
} modules[] = {
    {"matmul_1_native", REE_REPOP_MATMUL},
    {"matmul_n_native", REE_REPOP_MATMUL},
    {"matmul_narrow_native", REE_REPOP_MATMUL},
    {"matmul_int8_1_mul", REE_REPOP_MATMUL},
    {"matmul_int8_n_mul", REE_REPOP_MATMUL},
    {"conv_1_native", REE_REPOP_CONV},
    {"conv_n_native", REE_REPOP_CONV},
    {"attention_scores_1_native", REE_REPOP_ATTENTION},
    {"attention_scores_n_native", REE_REPOP_ATTENTION},
    {"attention_values_1_native", REE_REPOP_ATTENTION},
    {"attention_values_n_native", REE_REPOP_ATTENTION},
    {"norm", REE_REPOP_NORM},
    {"pool", REE_REPOP_POOL},
    {"resize", REE_REPOP_RESIZE},
};
#define MOST_CASES 30 // of each module

// Returns whether a self-test that ran this module failed, with the native fma.
static bool has_failed(struct ree_device *device, const char *module) {
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), length = strlen(module);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(facts[i].name, "failed") != 0 || !strstr(facts[i].value, "fma native")) continue;
        for (const char *at = facts[i].value; (at = strstr(at, module)); at += length)
            if ((at == facts[i].value || at[-1] == ' ') && (at[length] == ' ' || at[length] == ','))
                return true;
    }
    return false;
}

// A product of m rows, in which the matrix has this type.
static void compare_product(struct ree_device *device, uint32_t m, enum ree_dtype b_dtype) {
    const uint32_t n = 41, k = 300;
    struct test_case c;
    struct rng rng = {.state = m};
    uint32_t n_printed = 0;
    case_begin(&c, REE_REPOP_MATMUL);
    c.dispatch.params.matmul = dense_products(m, n, k);
    c.dispatch.params.matmul.b_dtype = b_dtype;
    case_input(&c, &rng, REE_F32, (uint64_t)m * k);
    case_input(&c, &rng, b_dtype, (uint64_t)k * n);
    case_output(&c, &rng, REE_F32, (uint64_t)m * n);
    compare_case(device, "unfused", REE_REPOP_MATMUL, m, &c, &n_printed);
    test_case_finish(&c);
}

// A product of m rows of blockwise activations and weights.
static void compare_blocks(struct ree_device *device, uint32_t m) {
    const struct ree_matmul_params params = {
        .m = m, .n = 41, .k = 300, .a_block = 32, .b_block = 32, .b_bits = 4};
    struct test_case c;
    struct rng rng = {.state = m};
    uint32_t n_printed = 0;
    case_block_product(&c, &rng, &params);
    compare_case(device, "unfused", REE_REPOP_MATMUL, m, &c, &n_printed);
    test_case_finish(&c);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    REQUIRE(status == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    vk->thresholds.small_product = vk->thresholds.tiny_product = 0; // modules for many rows, too
    struct ree_vk_verdict *fma = &vk->verdicts[REE_VK_FMA];
    if (fma->allowed[REE_VK_NATIVE] || vk->verdicts[REE_VK_ADD].form != REE_VK_NATIVE) {
        device->vtable->destroy(device);
        return test_skip("the device fuses, or adds in another form");
    }
    fma->form = REE_VK_NATIVE;
    fma->allowed[REE_VK_NATIVE] = true;
    uint32_t n_printed = 0;
    compare_product(device, 1, REE_F32);
    compare_product(device, 19, REE_F32);
    compare_product(device, 1, REE_F16);
    vk->has_dot8 = false; // the modules that every device has
    compare_blocks(device, 1);
    compare_blocks(device, 19);
    for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
        const enum ree_repop op = modules[m].op;
        uint32_t n_done = 0;
        for (uint64_t seed = 1; n_done < MOST_CASES && !has_failed(device, modules[m].module);
             seed++) {
            struct rng rng = {.state = seed * 1000003 + (uint64_t)op};
            struct test_case c = {0};
            if (case_generators[op](&rng, &c)) {
                compare_case(device, "unfused", op, seed, &c, &n_printed);
                n_done++;
            }
            test_case_finish(&c);
        }
        CHECK_MSG(has_failed(device, modules[m].module), "no self-test of %s noticed",
                  modules[m].module);
    }
    device->vtable->destroy(device);
    return test_finish();
}
