#include "device/vulkan/compiler.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/vulkan/encode.h"

static enum ree_status buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    (void)device;
    struct ree_device_buffer *buffer = ree_alloc_zeroed(1, sizeof *buffer);
    if (buffer) buffer->mapped = ree_alloc_zeroed(size ? size : 1, 1);
    if (!buffer || !buffer->mapped) {
        ree_free(buffer);
        return ree_no_memory(err);
    }
    buffer->size = size;
    *out = buffer;
    return REE_OK;
}

static void buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer) {
    (void)device;
    if (buffer) ree_free(buffer->mapped);
    ree_free(buffer);
}

static enum ree_status buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err) {
    (void)device;
    (void)err;
    memcpy(buffer->mapped + offset, data, size);
    return REE_OK;
}

static enum ree_status buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    (void)device;
    (void)err;
    memcpy(data, buffer->mapped + offset, size);
    return REE_OK;
}

static enum ree_status compile(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                               struct ree_error *err) {
    struct ree_vk_forms forms = {.dot8 = vk->has_dot8};
    struct ree_vk_encoding encoding = {0};
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        forms.of[p] = p <= REE_VK_FMA ? REE_VK_NATIVE : REE_VK_INTEGER;
    REE_TRY(ree_vk_encode(vk, dispatch, &forms, &encoding, err));
    for (uint32_t s = 0; s < encoding.n_steps; s++) {
        struct ree_vk_pipeline *pipeline;
        if (encoding.steps[s].n_groups == 0) continue;
        REE_TRY(ree_vk_pipeline_get(vk, &encoding.steps[s], encoding.expr, &pipeline, err));
    }
    return REE_OK;
}

static enum ree_status program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    (void)constants;
    (void)copies_capacity;
    *out = NULL;
    for (uint32_t i = 0; i < program->n_dispatches; i++)
        REE_TRY(compile(ree_vk_of(device), &program->dispatches[i], err));
    *out = ree_alloc_zeroed(1, 1);
    return *out ? REE_OK : ree_no_memory(err);
}

static void program_destroy(struct ree_device *device, struct ree_device_program *program) {
    (void)device;
    ree_free(program);
}

static enum ree_status program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    (void)device;
    (void)program;
    (void)slots;
    (void)options;
    (void)err;
    return REE_OK;
}

static bool program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    (void)device;
    (void)program;
    (void)out_seconds;
    return false;
}

static enum ree_status program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err) {
    (void)device;
    (void)program;
    (void)sink;
    (void)err;
    return REE_OK;
}

static void destroy(struct ree_device *device) {
    (void)device;
}

static size_t facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    (void)device;
    *out_facts = NULL;
    return 0;
}

static const struct ree_device_vtable vtable = {
    .destroy = destroy,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_run = program_run,
    .program_times = program_times,
    .program_kernels = program_kernels,
    .facts = facts,
};

enum ree_status ree_vk_compiler_open(const char *which, ree_vk_compiled *compiled, void *user,
                                     struct ree_device **out, struct ree_error *err) {
    struct ree_vk *vk;
    REE_TRY(ree_vk_open_for_compiling(which, &vk, err));
    vk->base.vtable = &vtable;
    vk->base.max_buffer_size = vk->base.memory_size = UINT64_C(1) << 40;
    // A CPU's driver gets the settings of a GPU, so that it compiles a GPU's pipelines.
    if (vk->is_cpu) vk->subgroup.subgroupSize = 32;
    vk->is_cpu = false;
    vk->thresholds = ree_vk_gpu_thresholds;
    vk->compiled = compiled;
    vk->compiled_user = user;
    *out = &vk->base;
    return REE_OK;
}

uint32_t ree_vk_statistics(const struct ree_device *compiler, VkPipeline pipeline,
                           struct ree_vk_statistic *out) {
    const struct ree_vk *vk = REE_CONTAINER_OF(compiler, const struct ree_vk, base);
    VkPipelineExecutableStatisticKHR list[REE_VK_MAX_STATISTICS];
    VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
        .pipeline = pipeline,
    };
    uint32_t n = REE_VK_MAX_STATISTICS;
    if (!vk->has_statistics) return 0;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (VkPipelineExecutableStatisticKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    if (vk->vk.vkGetPipelineExecutableStatisticsKHR(vk->handle, &info, &n, list) < 0) return 0;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(out[i].name, list[i].name, sizeof out[i].name);
        const bool is_bool = list[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR;
        out[i].value = is_bool ? list[i].value.b32 : list[i].value.u64;
    }
    return n;
}
