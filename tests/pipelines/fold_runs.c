// Runs modules of control_flow_shaders.py, specialized by the driver and by ree_spirv_fold, on the
// same inputs. Both must write the same words.
//
//     fold_runs MODULE.spv C [MODULE.spv C]...     C: the value of constant 1
#include "base/memory.h"
#include "device/vulkan/spirv_fold.h"
#include "device/vulkan/vulkan.h"
#include "splitmix.h"
#include "test.h"

#include <stddef.h>
#include <string.h>

#define MAX_WORDS (1 << 16)
#define N_INPUTS 20
#define N_INPUT_WORDS 64 // 256 bytes
#define N_DATA (N_INPUTS * N_INPUT_WORDS)
#define N_CONSTANTS 3

static struct ree_vk *vk;
static struct ree_device_buffer *buffer; // N_DATA words
static struct ree_error err;
static uint32_t n_runs, n_changing; // changing: some word of the inputs

// Creates a pipeline; constants may be NULL.
static VkPipeline create_pipeline(const uint32_t *words, size_t n_words,
                                  const struct ree_spirv_constant *constants) {
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = n_words * sizeof *words,
        .pCode = words,
    };
    VkShaderModule module;
    REQUIRE(vk->vk.vkCreateShaderModule(vk->handle, &code, NULL, &module) == VK_SUCCESS);
    VkSpecializationMapEntry entries[N_CONSTANTS];
    for (uint32_t i = 0; constants && i < N_CONSTANTS; i++)
        entries[i] = (VkSpecializationMapEntry){
            .constantID = constants[i].id,
            .offset =
                (uint32_t)(i * sizeof *constants + offsetof(struct ree_spirv_constant, value)),
            .size = sizeof constants->value,
        };
    const VkSpecializationInfo specialization = {
        .mapEntryCount = N_CONSTANTS,
        .pMapEntries = entries,
        .dataSize = N_CONSTANTS * sizeof *constants,
        .pData = constants,
    };
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = constants ? &specialization : NULL},
        .layout = vk->pipeline_layout,
    };
    VkPipeline pipeline;
    REQUIRE(vk->vk.vkCreateComputePipelines(vk->handle, VK_NULL_HANDLE, 1, &info, NULL,
                                            &pipeline) == VK_SUCCESS);
    vk->vk.vkDestroyShaderModule(vk->handle, module, NULL);
    return pipeline;
}

// Runs one workgroup for each input, whose words it changes.
static void run(VkPipeline pipeline, uint32_t data[N_DATA]) {
    const VkCommandBuffer commands = vk->transfer_commands;
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    memcpy(buffer->mapped, data, N_DATA * sizeof *data);
    REQUIRE(vk->vk.vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
    for (uint64_t i = 0; i < N_INPUTS; i++)
        ree_vk_record_groups(vk, commands, pipeline,
                             buffer->address + i * N_INPUT_WORDS * sizeof *data, 0, 1);
    vk->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    REQUIRE(vk->vk.vkEndCommandBuffer(commands) == VK_SUCCESS);
    REQUIRE(ree_vk_submit(vk, commands, &err) == REE_OK);
    memcpy(data, buffer->mapped, N_DATA * sizeof *data);
    vk->vk.vkDestroyPipeline(vk->handle, pipeline, NULL);
}

// The shaders compare with small numbers and loop up to a[0].
static void fill(uint32_t data[N_DATA]) {
    struct splitmix rng = {1};
    for (uint32_t i = 0; i < N_DATA; i++)
        data[i] = i % N_INPUT_WORDS == 0 ? i / N_INPUT_WORDS % 10 : splitmix_below(&rng, 4);
}

static void compare(const char *path, uint32_t c) {
    static uint32_t words[MAX_WORDS];
    FILE *file = fopen(path, "rb");
    REQUIRE(file);
    const size_t n_words = fread(words, sizeof *words, MAX_WORDS, file);
    fclose(file);
    const struct ree_spirv_constant constants[N_CONSTANTS] = {{0, 1}, {1, c}, {2, c % 2}};
    uint32_t *folded;
    size_t n_folded;
    const enum ree_status status =
        ree_spirv_fold(words, n_words, constants, N_CONSTANTS, &folded, &n_folded, &err);
    CHECK_MSG(status == REE_OK, "%s: %s", path, err.message);
    if (status != REE_OK) return;
    static uint32_t input[N_DATA], expected[N_DATA], actual[N_DATA];
    fill(input);
    memcpy(expected, input, sizeof input);
    memcpy(actual, input, sizeof input);
    run(create_pipeline(words, n_words, constants), expected);
    run(create_pipeline(folded, n_folded, NULL), actual);
    ree_free(folded);
    n_runs++;
    n_changing += memcmp(expected, input, sizeof input) != 0;
    uint32_t i = 0;
    while (i + 1 < N_DATA && actual[i] == expected[i])
        i++;
    CHECK_MSG(actual[i] == expected[i],
              "%s, C = %u: input %u, word %u: was %u; the driver's specialization writes %u, ree's "
              "%u",
              path, c, i / N_INPUT_WORDS, i % N_INPUT_WORDS, input[i], expected[i], actual[i]);
}

// Opens the first device, without the probe: it would run modules that ree_spirv_fold specialized.
static enum ree_status open_device(void) {
    REE_TRY(ree_vk_open_for_compiling("", &vk, &err));
    vk->vk.vkGetDeviceQueue(vk->handle, vk->queue_family, 0, &vk->queue);
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = vk->queue_family,
    };
    REE_VK_TRY(&err, vk->vk.vkCreateCommandPool(vk->handle, &pool, NULL, &vk->command_pool),
               "cannot create a command pool");
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->command_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    REE_VK_TRY(&err, vk->vk.vkAllocateCommandBuffers(vk->handle, &commands, &vk->transfer_commands),
               "cannot create a command buffer");
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    REE_VK_TRY(&err, vk->vk.vkCreateFence(vk->handle, &fence, NULL, &vk->fences[0]),
               "cannot create a fence");
    REE_TRY(ree_vk_memory_init(vk, &err));
    return ree_vk_host_buffer_create(vk, N_DATA * sizeof(uint32_t), &buffer, &err);
}

int main(int argc, char **argv) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    const enum ree_status status = open_device();
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    for (int i = 1; status == REE_OK && i + 1 < argc; i += 2)
        compare(argv[i], (uint32_t)strtoul(argv[i + 1], NULL, 10));
    CHECK_MSG(n_changing > n_runs / 2, "%u of %u runs change nothing", n_runs - n_changing, n_runs);
    if (status == REE_OK) {
        ree_vk_buffer_destroy(&vk->base, buffer);
        vk->base.vtable->destroy(&vk->base);
    }
    return test_finish();
}
