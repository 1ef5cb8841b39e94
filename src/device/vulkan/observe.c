// Measures how often a device's own exp, tanh, inversesqrt and float(int(x)) differ from the
// correctly rounded result. ree computes these functions from the probed primitives, so only the
// output of `ree-run devices` depends on this measurement, and only that command asks for it.
//
// Also measures after how many iterations the driver ends a loop. The encoders use this limit.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "repops/scalar/ops.h"
#include "shaders.h"

#include <string.h>

#define N_EACH 1024 // arguments per function

static const char *const names[REE_VK_N_OBSERVED] = {"exp", "tanh", "inversesqrt", "float(int(x))"};

const char *ree_vk_observed_name(enum ree_vk_observed function) {
    return names[function];
}

// Returns argument i, evenly spread over the function's interesting range.
static uint32_t argument(enum ree_vk_observed function, uint32_t i) {
    // i * (an odd number) modulo 1024 visits every step once, in mixed order. x is exact in
    // binary32.
    float x = (float)(i * 619u % N_EACH) / N_EACH;
    switch (function) {
    case REE_VK_OBSERVED_EXP: return ree_bits(x * 160.0f - 80.0f);
    case REE_VK_OBSERVED_TANH: return ree_bits(x * 8.0f - 4.0f);
    case REE_VK_OBSERVED_RSQRT: return ree_bits(x * 1000.0f + 0.125f);
    default: return ree_bits(x * 4.0f - 2.0f); // values in (-1, 0) become +0
    }
}

static uint32_t expected(enum ree_vk_observed function, uint32_t x) {
    switch (function) {
    case REE_VK_OBSERVED_EXP: return ree_op_exp_f32(x);
    case REE_VK_OBSERVED_TANH: return ree_op_tanh_f32(x);
    case REE_VK_OBSERVED_RSQRT: return ree_op_rsqrt_f32(x);
    default: return ree_op_i32_to_f32(ree_op_f32_to_i32(x));
    }
}

static enum ree_status observe(struct ree_vk *vk, struct ree_device_buffer *block,
                               struct ree_device_buffer *inputs, struct ree_device_buffer *results,
                               struct ree_error *err) {
    const uint32_t n = REE_VK_N_OBSERVED * N_EACH;
    uint64_t head[17] = {inputs->address, results->address}; // block layout of program.c
    head[16] = n;
    memcpy(block->mapped, head, sizeof head);
    uint32_t *x = (uint32_t *)(void *)inputs->mapped;
    for (uint32_t i = 0; i < n; i++)
        x[i] = argument((enum ree_vk_observed)(i / N_EACH), i % N_EACH);
    struct ree_vk_step step = {.shader = REE_VK_SHADER_OBSERVE, .local_size = 64};
    REE_TRY(ree_vk_run_vectors(vk, &step, block, n, err));
    const uint32_t *got = (const uint32_t *)(const void *)results->mapped;
    for (uint32_t i = 0; i < n; i++) {
        struct ree_vk_observation *o = &vk->observations[i / N_EACH];
        uint32_t right = expected((enum ree_vk_observed)(i / N_EACH), x[i]);
        o->n_vectors++;
        if (got[i] == right) continue;
        if (o->n_wrong++ == 0) {
            const uint32_t example[3] = {x[i], got[i], right};
            memcpy(o->example, example, sizeof example);
        }
    }
    return REE_OK;
}

bool ree_vk_has_observed(const struct ree_vk *vk) {
    return vk->observations[0].n_vectors > 0;
}

enum ree_status ree_vk_observe(struct ree_vk *vk, struct ree_error *err) {
    struct ree_device_buffer *block = NULL, *inputs = NULL, *results = NULL;
    if (ree_vk_has_observed(vk)) return REE_OK;
    const uint64_t size = (uint64_t)REE_VK_N_OBSERVED * N_EACH * sizeof(uint32_t);
    enum ree_status status = ree_vk_host_buffer_create(vk, 256, &block, err);
    if (status == REE_OK) status = ree_vk_host_buffer_create(vk, size, &inputs, err);
    if (status == REE_OK) status = ree_vk_host_buffer_create(vk, size, &results, err);
    if (status == REE_OK) status = observe(vk, block, inputs, results, err);
    ree_vk_buffer_destroy(&vk->base, block);
    ree_vk_buffer_destroy(&vk->base, inputs);
    ree_vk_buffer_destroy(&vk->base, results);
    return status;
}

// Maximum iterations of the test. A driver that reaches it is assumed to have no limit.
#define N_ITERATIONS (1u << 18)

static enum ree_status count_loops(struct ree_vk *vk, struct ree_device_buffer *block,
                                   struct ree_device_buffer *results, struct ree_error *err) {
    uint64_t head[17] = {results->address}; // block layout of program.c
    head[16] = N_ITERATIONS;
    memcpy(block->mapped, head, sizeof head);
    struct ree_vk_step step = {.shader = REE_VK_SHADER_LOOPS, .local_size = 64};
    REE_TRY(ree_vk_run_vectors(vk, &step, block, 1, err));
    uint32_t got[2], value = 0;
    memcpy(got, results->mapped, sizeof got);
    uint32_t i = 0;
    while (i < N_ITERATIONS && i < got[1]) {
        value = (value ^ i) * 1664525u + 1u;
        i++;
    }
    if (got[0] != value || got[1] == 0)
        return ree_fail(err, REE_UNSUPPORTED, "'%s' cannot be used: it executes loops wrongly",
                        vk->base.name);
    vk->loop_budget = got[1] >= N_ITERATIONS ? UINT64_MAX : got[1] - 1;
    return REE_OK;
}

enum ree_status ree_vk_count_loops(struct ree_vk *vk, struct ree_error *err) {
    struct ree_device_buffer *block = NULL, *results = NULL;
    enum ree_status status = ree_vk_host_buffer_create(vk, 256, &block, err);
    if (status == REE_OK) status = ree_vk_host_buffer_create(vk, 64, &results, err);
    if (status == REE_OK) status = count_loops(vk, block, results, err);
    ree_vk_buffer_destroy(&vk->base, block);
    ree_vk_buffer_destroy(&vk->base, results);
    return status;
}
