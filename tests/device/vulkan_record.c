// What is recorded about a device's pipelines:
// - A recorded failure is reported once the pipeline that failed would be used. A failure recorded
//   for another device is never reported.
// - A pipeline that a dispatch's self-test does not reach is tested for a later dispatch whose
//   self-test reaches it.
// - A convolution whose output extends beyond its input runs on a pipeline that passed its
//   self-test, the same as that of a larger kernel.
// - All pipelines of a product are tested, whatever its size.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "device_cases.h"
#include "test_folder.h"

#include <unistd.h>

static struct ree_error err;

static struct ree_device *open_device(const char *which, const char *cache_dir) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = cache_dir};
    struct ree_device *device = NULL;
    CHECK_MSG(ree_vulkan_device_open(which, &options, &device, &err) == REE_OK, "%s", err.message);
    return device;
}

// Returns the number of self-test facts with this name. *out: the value of the last one, or NULL.
static size_t find_facts(struct ree_device *device, const char *name, const char **out) {
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), n_found = 0;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].kind, "self-test") == 0 && strcmp(facts[i].name, name) == 0) {
            *out = facts[i].value;
            n_found++;
        }
    return n_found;
}

static uint32_t n_passed(struct ree_device *device) {
    const char *value;
    CHECK(find_facts(device, "passed", &value) == 1);
    return value ? (uint32_t)atoi(value) : 0;
}

static size_t n_failed(struct ree_device *device) {
    const char *value;
    return find_facts(device, "failed", &value);
}

static struct ree_dispatch softmax(void) {
    struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX, .n_operands = 2, .n_outputs = 1};
    d.params.softmax = (struct ree_softmax_params){.outer = 3, .k = 20, .inner = 1};
    for (uint32_t i = 0; i < 2; i++)
        d.operands[i] = (struct ree_operand){.slot = i, .size = 3 * 20 * 4};
    return d;
}

// size: kernel size; with 1 the output extends beyond the input.
static struct ree_dispatch conv(uint32_t size) {
    const uint32_t in = 4, out = size == 1 ? 5 : 2, c = 16, m = 16;
    struct ree_dispatch d = {.op = REE_REPOP_CONV, .n_operands = 3, .n_outputs = 1};
    d.params.conv = (struct ree_conv_params){
        .n = 1,
        .groups = 1,
        .c = c,
        .m = m,
        .in = {1, in, in},
        .kernel = {1, size, size},
        .out = {1, out, out},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .x_dtype = REE_F32,
        .w_dtype = REE_F32,
    };
    const uint32_t n[3] = {c * in * in, m * c * size * size, m * out * out};
    for (uint32_t i = 0; i < 3; i++)
        d.operands[i] = (struct ree_operand){.slot = i, .size = (uint64_t)n[i] * 4};
    return d;
}

static struct ree_dispatch matmul(uint32_t m, uint32_t n, uint32_t k) {
    struct ree_dispatch d = {.op = REE_REPOP_MATMUL, .n_operands = 3, .n_outputs = 1};
    d.params.matmul = dense_products(m, n, k);
    const uint64_t sizes[3] = {(uint64_t)m * k, (uint64_t)k * n, (uint64_t)m * n};
    for (uint32_t i = 0; i < 3; i++)
        d.operands[i] = (struct ree_operand){.slot = i, .size = sizes[i] * 4};
    return d;
}

// Two products, (3, 20) by (20, 22). The epilogue adds a number to each element: the sum of its
// coordinates times these strides.
static struct ree_dispatch numbered(int32_t batch, int32_t row, int32_t column) {
    struct ree_dispatch d = matmul(3, 22, 20);
    struct ree_matmul_params *p = &d.params.matmul;
    p->batch_rank = 1;
    p->n_batch = p->batch_dims[0] = 2;
    p->has_epilogue = 1;
    p->epilogue = (struct ree_expr){
        .rank = 3,
        .dims = {2, 3, 22},
        .n_elements = 2 * 3 * 22,
        .out_dtype = REE_F32,
        .n_operands = 1,
        .operands = {{REE_EXPR_IOTA, REE_I32, 0, {batch, row, column}}},
        .n_instrs = 2,
        .instrs = {{.op = REE_MAP_i32_to_f32, .args = {1}},
                   {.op = REE_MAP_add_f32, .args = {0, 2}}},
    };
    d.operands[2].size *= 2;
    return d;
}

// Returns the pipeline of the encoding's last step.
static struct ree_vk_pipeline *last_pipeline(struct ree_vk *vk,
                                             const struct ree_vk_encoding *encoding) {
    struct ree_vk_pipeline *pipeline = NULL;
    REQUIRE(ree_vk_pipeline_get(vk, &encoding->steps[encoding->n_steps - 1], encoding->expr,
                                &pipeline, &err) == REE_OK);
    return pipeline;
}

// Returns the pipeline of the last step that the dispatch would run with.
static struct ree_vk_pipeline *pipeline_of(struct ree_device *device,
                                           const struct ree_dispatch *dispatch) {
    static struct ree_vk_encoding encoding;
    struct ree_vk *vk = ree_vk_of(device);
    REQUIRE(ree_vk_encode_tested(vk, dispatch, &encoding, &err) == REE_OK);
    return last_pipeline(vk, &encoding);
}

// The same for the device's first form, without self-tests.
static struct ree_vk_pipeline *first_pipeline_of(struct ree_device *device,
                                                 const struct ree_dispatch *dispatch) {
    static struct ree_vk_encoding encoding;
    struct ree_vk *vk = ree_vk_of(device);
    const struct ree_vk_forms forms = ree_vk_first_forms(vk);
    REQUIRE(ree_vk_encode(vk, dispatch, &forms, &encoding, &err) == REE_OK);
    return last_pipeline(vk, &encoding);
}

static void reports_own_failures(const char *which) {
    char folder[] = "vulkan-record-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    const struct ree_dispatch d = softmax();
    const unsigned char foreign[REE_SHA256_SIZE] = {1, 2, 3};
    unsigned char own[REE_SHA256_SIZE];
    struct ree_device *device = open_device(which, ""); // to get a digest
    REQUIRE(device != NULL);
    memcpy(own, pipeline_of(device, &d)->digest, sizeof own);
    CHECK(n_passed(device) > 0 && n_failed(device) == 0);
    device->vtable->destroy(device);

    device = open_device(which, folder);
    REQUIRE(device != NULL);
    ree_test_record_add(&ree_vk_of(device)->tests, foreign, REE_TEST_FAILED, "of another driver");
    ree_test_record_add(&ree_vk_of(device)->tests, own, REE_TEST_FAILED, "of this device");
    device->vtable->destroy(device);

    device = open_device(which, folder);
    REQUIRE(device != NULL);
    CHECK(n_passed(device) == 0 && n_failed(device) == 0);
    const struct ree_vk_pipeline *pipeline = pipeline_of(device, &d);
    CHECK(memcmp(pipeline->digest, own, sizeof own) != 0); // another form
    CHECK(pipeline->state == REE_TEST_PASSED && n_passed(device) > 0);
    const char *failed;
    CHECK(find_facts(device, "failed", &failed) == 1);
    CHECK_MSG(failed && strcmp(failed, "of this device") == 0, "%s", failed ? failed : "nothing");
    device->vtable->destroy(device);

    test_remove_folder(folder);
}

// The batches and rows of the first epilogue merge into one dimension. In its twin, whose sizes
// differ, they do not, so it runs on another pipeline.
static void tests_later(const char *which) {
    struct ree_device *device = open_device(which, "");
    REQUIRE(device != NULL);
    const struct ree_dispatch first = numbered(3, 1, 2), next = numbered(150, 50, 1);
    const struct ree_vk_pipeline *pipeline = first_pipeline_of(device, &first);
    pipeline_of(device, &first);
    CHECK(ree_vk_of(device)->n_untested > 0 && pipeline->state == REE_TEST_UNKNOWN);
    CHECK(pipeline_of(device, &next) == pipeline);
    CHECK(pipeline->state == REE_TEST_PASSED);
    CHECK(pipeline_of(device, &first) == pipeline);
    device->vtable->destroy(device);
}

static void shares_pipelines(const char *which) {
    struct ree_device *device = open_device(which, "");
    REQUIRE(device != NULL);
    const struct ree_dispatch first = conv(1), next = conv(3);
    const struct ree_vk_pipeline *pipeline = pipeline_of(device, &first);
    CHECK(pipeline_of(device, &next) == pipeline);
    CHECK(pipeline->state == REE_TEST_PASSED);
    device->vtable->destroy(device);
}

// The large product uses another kernel if loops are limited.
static void tests_all_sizes(const char *which) {
    const struct ree_dispatch sizes[] = {matmul(2048, 4096, 4096), matmul(1, 16384, 2048),
                                         matmul(1, 16384, 64), matmul(1, 64, 2048)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct ree_device *device = open_device(which, "");
        REQUIRE(device != NULL);
        CHECK(pipeline_of(device, &sizes[i])->state == REE_TEST_PASSED);
        CHECK_MSG(ree_vk_of(device)->n_untested == 0, "product %zu", i);
        device->vtable->destroy(device);
    }
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        const char *which = strchr(list[d].spec, ':') + 1;
        reports_own_failures(which);
        tests_later(which);
        shares_pipelines(which);
        tests_all_sizes(which);
    }
    return test_finish();
}
