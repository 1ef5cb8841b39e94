// Every RepOp on every Vulkan device of this machine, in every form of arithmetic that the probe
// allows, gives the CPU's bytes for random cases, and writes nothing outside its outputs.
//
// Uses the validation layer only if it is installed, so a machine with only a driver is enough.
//
// Usage: vulkan_matches_cpu [N [OP]]: N cases of each RepOp and form, or only of OP ("bytes":
// products of bytes and of blocks). Drivers compile a module for most cases, so the default is
// small: 6, or 3 if REE_TEST_SAMPLE is set. REE_TEST_FORMS=chosen: only the forms that the device
// chooses itself; forced: only those that it does not choose.
#include "device/vulkan/vulkan.h"
#include "device_cases.h"

// Products of signed and unsigned bytes as either operand, with enough rows that they are packed;
// conv has a pad value.
static void byte_products(struct ree_device *device, const char *form) {
    static const uint32_t bytes[] = {REE_I8, REE_U8};
    uint32_t n_printed = 0;
    for (int i = 0; i < 8; i++) {
        int op = i < 4 ? REE_REPOP_MATMUL : REE_REPOP_CONV;
        bool found = false;
        for (uint64_t seed = 1; !found && seed < 100000; seed++) {
            struct rng rng = {.state = seed * 7919 + (uint64_t)op};
            struct test_case c = {0};
            found = case_generators[op](&rng, &c);
            const struct ree_matmul_params *matmul = &c.dispatch.params.matmul;
            const struct ree_conv_params *conv = &c.dispatch.params.conv;
            if (found && op == REE_REPOP_MATMUL)
                found = matmul->dtype == REE_I32 && matmul->a_dtype == bytes[i & 1] &&
                        matmul->b_dtype == bytes[i >> 1 & 1] && matmul->m > 8 && matmul->k > 8 &&
                        matmul->n > 8 && !matmul->has_epilogue;
            else if (found)
                found = conv->x_dtype == bytes[i & 1] && conv->w_dtype == bytes[i >> 1 & 1] &&
                        conv->n > 0 && conv->m >= 4 && conv->c > 1 && conv->has_pad_value &&
                        conv->pad[2] > 0 && conv->out[2] > 1 && !conv->has_epilogue;
            if (found) compare_case(device, form, op, seed, &c, &n_printed);
            test_case_finish(&c);
        }
        CHECK_MSG(found, "no case %d", i);
    }
}

// Products of blockwise activations and weights: one row, few and many, in all layouts of words.
static void block_products(struct ree_device *device, const char *form) {
    static const uint32_t rows[] = {1, 3, 19}, blocks[][2] = {{32, 32}, {16, 128}, {256, 256}};
    uint32_t n_printed = 0;
    for (uint32_t i = 0; i < 12; i++) {
        struct rng rng = {.state = i};
        struct test_case c;
        case_block_product(&c, &rng,
                           &(struct ree_matmul_params){.m = rows[i % 3],
                                                       .n = 41,
                                                       .k = 611,
                                                       .a_block = blocks[(i + i / 3) % 3][0],
                                                       .b_block = blocks[(i + i / 3) % 3][1],
                                                       .b_bits = i / 3 % 2 ? 8 : 4,
                                                       .has_zero_points = i / 6});
        compare_case(device, form, REE_REPOP_MATMUL, i, &c, &n_printed);
        test_case_finish(&c);
    }
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : getenv("REE_TEST_SAMPLE") ? 3 : 6;
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    const char *which = getenv("REE_TEST_FORMS");
    static const char *const forms[] = {NULL, "native", "float64", "float32", "integer"};
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            if (which && strcmp(which, forms[f] ? "forced" : "chosen") != 0) continue;
            struct ree_device_testing testing = {.size = sizeof testing, .force_form = forms[f]};
            struct ree_device_options options = {
                .size = sizeof options, .validation = true, .cache_dir = "", .testing = &testing};
            struct ree_device *device;
            struct ree_error err;
            enum ree_status status =
                ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
            if (status == REE_UNAVAILABLE) {
                if (!forms[f]) printf("without validation: %s\n", err.message);
                options.validation = false;
                status =
                    ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
            }
            if (status == REE_UNSUPPORTED && forms[f]) continue; // the probe refuses this form here
            if (status == REE_UNAVAILABLE) return test_skip(err.message);
            CHECK_MSG(status == REE_OK, "%s: %s", list[d].name, err.message);
            if (status != REE_OK) continue;
            // Random problems are small. They run on the code that the device chooses for small
            // ones, and on that for large ones.
            static const char *const ops[] = {"matmul", "conv", "attention", "softmax", "norm"};
            struct ree_vk_thresholds *thresholds = &ree_vk_of(device)->thresholds;
            const uint64_t small_product = thresholds->small_product;
            for (size_t o = 0; o < 5 && !forms[f] && argc <= 2 && small_product; o++)
                compare_cases(device, "small problems", n, ops[o]);
            thresholds->small_product = thresholds->tiny_product = thresholds->few_elements = 0;
            compare_cases(device, forms[f] ? forms[f] : "chosen", forms[f] ? (n + 3) / 4 : n,
                          argc > 2 ? argv[2] : NULL);
            if (!forms[f] && (argc <= 2 || strcmp(argv[2], "bytes") == 0)) {
                byte_products(device, "products of bytes");
                block_products(device, "products of blocks");
                ree_vk_of(device)->has_dot8 = false;
                byte_products(device, "products of bytes by multiplication");
                block_products(device, "products of blocks by multiplication");
            }
            // No pipeline ran without a self-test, and no self-test failed.
            CHECK_MSG(ree_vk_of(device)->n_untested == 0, "%u pipelines were not tested",
                      ree_vk_of(device)->n_untested);
            const struct ree_device_fact *facts;
            size_t n_facts = device->vtable->facts(device, &facts);
            for (size_t i = 0; i < n_facts; i++)
                CHECK_MSG(strcmp(facts[i].kind, "self-test") != 0 ||
                              strcmp(facts[i].name, "failed") != 0,
                          "self-test: %s", facts[i].value);
            device->vtable->destroy(device);
        }
    }
    return test_finish();
}
