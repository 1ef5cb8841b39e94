// Opening Vulkan devices, the probe, and memory, on every device of this machine, with the
// validation layer on.
#include "device/vulkan/vulkan.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct ree_error err;

static struct ree_device *open_device(const char *which, const char *broken, const char *form) {
    struct ree_device_testing testing = {
        .size = sizeof testing, .break_primitive = broken, .force_form = form};
    struct ree_device_options options = {.size = sizeof options,
                                         .validation = true,
                                         .cache_dir = "",
                                         .testing = &testing,
                                         .all_facts = !broken && !form};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open(which, &options, &device, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    return device;
}

// A primitive that computes wrongly is detected, and integer emulation replaces it; the verdicts on
// the other primitives do not change.
static void probe_notices(const char *which) {
    struct ree_device *sound = open_device(which, NULL, NULL);
    if (!sound) return;
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        struct ree_device *device = open_device(which, ree_vk_primitive_name(p), NULL);
        if (!device) continue;
        const struct ree_vk_verdict *before = ree_vk_of(sound)->verdicts;
        const struct ree_vk_verdict *after = ree_vk_of(device)->verdicts;
        CHECK(after[p].form == REE_VK_INTEGER);
        const struct ree_device_fact *fact;
        for (size_t i = device->vtable->facts(device, &fact); i > 0; i--, fact++)
            CHECK(strcmp(fact->kind, "not used") != 0); // all_facts is not set
        CHECK(after[p].tried[REE_VK_NATIVE] && after[p].n_wrong[REE_VK_NATIVE] > 0);
        for (int q = 0; q < REE_VK_N_PRIMITIVES; q++)
            CHECK_MSG(q == p || after[q].form == before[q].form, "%s broken changes %s",
                      ree_vk_primitive_name(p), ree_vk_primitive_name(q));
        CHECK(after[p].tried[REE_VK_INTEGER] && after[p].allowed[REE_VK_INTEGER]);
        device->vtable->destroy(device);
        // If the integer form is wrong as well, no form is left.
        char name[64];
        snprintf(name, sizeof name, "integer %s", ree_vk_primitive_name(p));
        struct ree_device_testing testing = {.size = sizeof testing, .break_primitive = name};
        struct ree_device_options options = {
            .size = sizeof options, .cache_dir = "", .testing = &testing};
        CHECK(ree_vulkan_device_open(which, &options, &device, &err) == REE_UNSUPPORTED && !device);
        CHECK_MSG(strstr(err.message, ree_vk_primitive_name(p)) &&
                      strstr(err.message, "even in integers"),
                  "%s", err.message);
    }
    // A form that the probe found wrong cannot be forced.
    const struct ree_vk_verdict *fma = &ree_vk_of(sound)->verdicts[REE_VK_FMA];
    struct ree_device_testing testing = {.size = sizeof testing, .force_form = "native"};
    struct ree_device_options options = {
        .size = sizeof options, .cache_dir = "", .testing = &testing};
    struct ree_device *device;
    if (!fma->allowed[REE_VK_NATIVE]) {
        CHECK(ree_vulkan_device_open(which, &options, &device, &err) == REE_UNSUPPORTED);
        CHECK(device == NULL && strstr(err.message, "wrongly"));
    }
    testing.force_form = "decimal";
    CHECK(ree_vulkan_device_open(which, &options, &device, &err) == REE_INVALID);
    const struct ree_device_fact *facts;
    size_t n = sound->vtable->facts(sound, &facts), n_primitives = 0, n_observed = 0;
    for (size_t i = 0; i < n; i++) {
        CHECK(facts[i].value[0] != '\0');
        n_primitives += strcmp(facts[i].kind, "primitive") == 0;
        n_observed += strcmp(facts[i].kind, "not used") == 0;
    }
    CHECK(n_observed == REE_VK_N_OBSERVED);
    for (int f = 0; f < REE_VK_N_OBSERVED; f++) {
        const struct ree_vk_observation *o = &ree_vk_of(sound)->observations[f];
        CHECK_MSG(o->n_vectors == 1024 && o->n_wrong <= 1024, "%s: %u wrong of %u",
                  ree_vk_observed_name(f), o->n_wrong, o->n_vectors);
        // Some results must be counted as correct: a shader that wrote nothing would have none.
        CHECK_MSG(o->n_wrong < 1024, "%s is never right", ree_vk_observed_name(f));
    }
    CHECK(n_primitives == REE_VK_N_PRIMITIVES);
    sound->vtable->destroy(sound);
}

// Thousands of small buffers share few allocations, keep their contents, and are reused when freed.
static void small_buffers(struct ree_device *device) {
    enum { N = 6000 };
    static struct ree_device_buffer *buffers[N];
    const struct ree_device_vtable *vt = device->vtable;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            uint64_t size = (uint64_t)(i * 37 % 4001);
            if (buffers[i]) continue;
            CHECK(vt->buffer_create(device, size, &buffers[i], &err) == REE_OK);
            CHECK(buffers[i]->address % 64 == 0);
            uint8_t bytes[4001];
            memset(bytes, i % 251, size);
            CHECK(vt->buffer_write(device, buffers[i], 0, bytes, size, &err) == REE_OK);
        }
        for (int i = 0; i < N; i++) {
            uint64_t size = (uint64_t)(i * 37 % 4001);
            uint8_t bytes[4001], should[4001];
            memset(should, i % 251, size);
            CHECK(vt->buffer_read(device, buffers[i], 0, bytes, size, &err) == REE_OK);
            CHECK(memcmp(bytes, should, size) == 0);
            if (i % 3 == round % 3) {
                vt->buffer_destroy(device, buffers[i]);
                buffers[i] = NULL;
            }
        }
    }
    for (int i = 0; i < N; i++)
        vt->buffer_destroy(device, buffers[i]);
    memset(buffers, 0, sizeof buffers);
    struct ree_device_buffer *buffer;
    CHECK(vt->buffer_create(device, device->max_buffer_size + 1, &buffer, &err) == REE_UNSUPPORTED);
}

// One row of K numbers times a K x N matrix, through memory that is not visible to the host.
static void row_times_matrix(struct ree_device *device, uint32_t K, uint32_t N) {
    const struct ree_device_vtable *vt = device->vtable;
    uint64_t sizes[3] = {K * 4ull, (uint64_t)K * N * 4, (uint64_t)N * 4};
    float *a = malloc(sizes[0]), *b = malloc(sizes[1]), *out = malloc(sizes[2]);
    REQUIRE(a && b && out);
    for (uint32_t k = 0; k < K; k++)
        a[k] = 1.0f / (float)(k + 3);
    for (uint32_t i = 0; i < K * N; i++)
        b[i] = (float)(i * 2654435761u >> 8) * 0x1p-24f - 0.5f;
    struct ree_device_buffer *buffers[3] = {0};
    const void *data[] = {a, b};
    struct ree_dispatch dispatch = {.op = REE_REPOP_MATMUL, .n_operands = 3, .n_outputs = 1};
    dispatch.params.matmul = (struct ree_matmul_params){.dtype = REE_F32,
                                                        .a_dtype = REE_F32,
                                                        .b_dtype = REE_F32,
                                                        .m = 1,
                                                        .n = N,
                                                        .k = K,
                                                        .a_stride_m = (int32_t)K,
                                                        .a_stride_k = 1,
                                                        .b_stride_k = (int32_t)N,
                                                        .b_stride_n = 1,
                                                        .n_batch = 1};
    for (uint32_t i = 0; i < 3; i++) {
        dispatch.operands[i] = (struct ree_operand){i, 0, sizes[i]};
        CHECK(vt->buffer_create(device, sizes[i], &buffers[i], &err) == REE_OK);
        if (i < 2)
            CHECK(vt->buffer_write(device, buffers[i], 0, data[i], sizes[i], &err) == REE_OK);
    }
    struct ree_program source = {&dispatch, 1, 3, NULL, 0};
    struct ree_device_program *program;
    CHECK_MSG(vt->program_create(device, &source, NULL, NULL, &program, &err) == REE_OK, "%s",
              err.message);
    CHECK_MSG(program && vt->program_run(device, program, buffers, NULL, &err) == REE_OK, "%s",
              err.message);
    CHECK(vt->buffer_read(device, buffers[2], 0, out, sizes[2], &err) == REE_OK);
    uint32_t n_wrong = 0;
    for (uint32_t j = 0; j < N; j += 13) {
        float sum = 0;
        for (uint32_t k0 = 0; k0 < K; k0 += REE_CHUNK) {
            float acc = 0;
            for (uint32_t k = k0; k < K && k < k0 + REE_CHUNK; k++)
                acc = fmaf(a[k], b[(uint64_t)k * N + j], acc);
            sum = k0 == 0 ? acc : sum + acc;
        }
        sum += 0.0f;
        n_wrong += memcmp(&sum, &out[j], 4) != 0;
    }
    CHECK_MSG(n_wrong == 0, "%u results differ", n_wrong);
    double seconds;
    if (ree_vk_of(device)->timestamp_mask) {
        CHECK(vt->program_times(device, program, &seconds));
        CHECK(seconds > 0);
    }
    vt->program_destroy(device, program);
    for (int i = 0; i < 3; i++)
        vt->buffer_destroy(device, buffers[i]);
    free(a);
    free(b);
    free(out);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n = ree_vulkan_device_list(list, 16, &note);
    if (n == 0) return test_skip(note);
    struct ree_device_testing testing = {.size = sizeof testing};
    struct ree_device_options options = {
        .size = sizeof options, .cache_dir = "", .testing = &testing};
    struct ree_device *device;
    CHECK(ree_vulkan_device_open("99", &options, &device, &err) == REE_NOT_FOUND && !device);
    CHECK(ree_vulkan_device_open("no such name", &options, &device, &err) == REE_NOT_FOUND);
    testing.break_primitive = "no such primitive";
    CHECK(ree_vulkan_device_open("", &options, &device, &err) == REE_INVALID);
    for (size_t i = 0; i < n && i < 16; i++) {
        const char *which = strchr(list[i].spec, ':') + 1;
        probe_notices(which);
        device = open_device(which, NULL, NULL);
        if (!device) continue;
        small_buffers(device);
        ree_vk_force_staging(ree_vk_of(device));
        small_buffers(device);
        row_times_matrix(device, 40, 1 << 20); // 160 MiB: beyond lavapipe's storage buffer range
        row_times_matrix(device, 3000, 39);    // few columns: split into chunks
        device->vtable->destroy(device);
    }
    return test_finish();
}
