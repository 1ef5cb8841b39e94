// Opens a Vulkan device: required and optional features, the queue, the vtable.
#include "device/vulkan/known_defects.h"
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "shaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Optional extensions. Vulkan 1.2 contains everything that is required.
#define DOT_PRODUCT_EXTENSION VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME
#define SUBGROUP_SIZE_EXTENSION VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME

// Intended time of a submission. It is long compared with the cost of submitting. It is short
// enough that a prediction may be wrong by a factor of 10 before a watchdog ends the submission
// (pace.c), and that a cancelled run returns soon.
#define SUBMISSION_SECONDS 0.1
// A round of a self-test takes a few milliseconds. A driver's code for a shader may never end.
#define TEST_SECONDS 60

static bool has_extension(VkPhysicalDevice physical, const char *name) {
    uint32_t n = 0;
    if (vkEnumerateDeviceExtensionProperties(physical, NULL, &n, NULL) != VK_SUCCESS) return false;
    VkExtensionProperties *extensions = ree_alloc_zeroed(n ? n : 1, sizeof *extensions);
    bool found = false;
    if (extensions && vkEnumerateDeviceExtensionProperties(physical, NULL, &n, extensions) >= 0)
        for (uint32_t i = 0; i < n; i++)
            found = found || strcmp(extensions[i].extensionName, name) == 0;
    ree_free(extensions);
    return found;
}

static bool has_avx512(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

// Decides whether pipelines may rely on subgroups of exactly vk->subgroup.subgroupSize threads.
// Without the extension a driver may run a pipeline with smaller subgroups than it reports. Only
// the subgroups of CPU drivers always have the reported size, which is that of a vector.
static void query_subgroups(struct ree_vk *vk) {
    const VkSubgroupFeatureFlags operations = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                              VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                              VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    vk->has_subgroups = (vk->subgroup.supportedOperations & operations) == operations &&
                        vk->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    vk->has_subgroup_size = false;
    if (vk->has_subgroups && has_extension(vk->physical, SUBGROUP_SIZE_EXTENSION)) {
        VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT,
        };
        VkPhysicalDeviceProperties2 properties = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
            .pNext = &sizes,
        };
        VkPhysicalDeviceSubgroupSizeControlFeaturesEXT control = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
        };
        VkPhysicalDeviceFeatures2 features = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
            .pNext = &control,
        };
        vkGetPhysicalDeviceProperties2(vk->physical, &properties);
        vkGetPhysicalDeviceFeatures2(vk->physical, &features);
        vk->has_subgroup_size = control.subgroupSizeControl && control.computeFullSubgroups &&
                                sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT &&
                                sizes.minSubgroupSize <= vk->subgroup.subgroupSize &&
                                vk->subgroup.subgroupSize <= sizes.maxSubgroupSize;
    }
    vk->has_subgroups = vk->has_subgroups && (vk->has_subgroup_size || vk->is_cpu);
}

static enum ree_status query(struct ree_vk *vk, struct ree_error *err) {
    vkGetPhysicalDeviceProperties(vk->physical, &vk->properties);
    const char *name = vk->properties.deviceName;
    uint32_t version = vk->properties.apiVersion;
    if (version < VK_API_VERSION_1_2)
        return ree_fail(err, REE_UNAVAILABLE,
                        "Vulkan: '%s' supports version %u.%u, but 1.2 is required", name,
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    const char *defect = ree_vk_known_defect(name, has_avx512());
    if (defect)
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: '%s' cannot be used: %s", name, defect);
    vk->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    vk->float_controls.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    vk->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    vk->driver.pNext = &vk->float_controls;
    vk->float_controls.pNext = &vk->subgroup;
    VkPhysicalDeviceMaintenance3Properties maintenance3 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
        .pNext = &vk->driver,
    };
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &maintenance3,
    };
    vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    vk->is_cpu = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    vk->loop_budget = UINT64_MAX;
    vk->thresholds = vk->is_cpu ? ree_vk_cpu_thresholds : ree_vk_gpu_thresholds;
    vk->base.max_buffer_size = maintenance3.maxMemoryAllocationSize;
    vk->base.paged_queries = UINT32_MAX;
    for (uint32_t i = 0; i < vk->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &vk->memory.memoryHeaps[i];
        if (heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && heap->size > vk->base.memory_size)
            vk->base.memory_size = heap->size;
    }
    snprintf(vk->base.name, sizeof vk->base.name, "%.255s", name);
    query_subgroups(vk);

    bool has_dot_product = has_extension(vk->physical, DOT_PRODUCT_EXTENSION);
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
    };
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = has_dot_product ? &dot_product : NULL,
    };
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &features12,
    };
    vkGetPhysicalDeviceFeatures2(vk->physical, &features);
    if (!features12.bufferDeviceAddress)
        return ree_fail(
            err, REE_UNAVAILABLE,
            "Vulkan: '%s' does not have the feature bufferDeviceAddress, which ree requires", name);
    vk->has_float64 = features.features.shaderFloat64;
    vk->has_int64 = features.features.shaderInt64;
    vk->has_int16 = features.features.shaderInt16;
    vk->has_int8 = features12.shaderInt8;
    vk->has_float16 = features12.shaderFloat16;
    vk->has_dot8 = dot_product.shaderIntegerDotProduct;

    return ree_vk_queue_choose(vk, err);
}

// Creates the logical device.
static enum ree_status create_handle(struct ree_vk *vk, struct ree_error *err) {
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = vk->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .shaderIntegerDotProduct = VK_TRUE,
    };
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup_size = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
        .pNext = vk->has_dot8 ? &dot_product : NULL,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE,
    };
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = vk->has_subgroup_size ? &subgroup_size : subgroup_size.pNext,
        .bufferDeviceAddress = VK_TRUE,
    };
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &features12,
        .features = {.shaderFloat64 = vk->has_float64},
    };
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pNext = &features,
        .pipelineExecutableInfo = VK_TRUE,
    };
    const char *extensions[4];
    uint32_t n_extensions = 0;
    // A portability driver (Vulkan over Metal) requires its extension to be enabled.
    if (has_extension(vk->physical, "VK_KHR_portability_subset"))
        extensions[n_extensions++] = "VK_KHR_portability_subset";
    if (vk->has_dot8) extensions[n_extensions++] = DOT_PRODUCT_EXTENSION;
    if (vk->has_statistics)
        extensions[n_extensions++] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    if (vk->has_subgroup_size) extensions[n_extensions++] = SUBGROUP_SIZE_EXTENSION;
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = vk->has_statistics ? (const void *)&statistics : &features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = n_extensions,
        .ppEnabledExtensionNames = extensions,
    };
    VkResult created = vkCreateDevice(vk->physical, &info, NULL, &vk->handle);
    ree_float_env_set(); // libraries that the driver loads may have changed it
    REE_VK_TRY(err, created, "cannot open the device");
    volkLoadDeviceTable(&vk->vk, vk->handle);
    return REE_OK;
}

// Gets the queue, and creates what submissions need.
static enum ree_status create_queue(struct ree_vk *vk, struct ree_error *err) {
    vk->vk.vkGetDeviceQueue(vk->handle, vk->queue_family, 0, &vk->queue);

    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = vk->queue_family,
    };
    REE_VK_TRY(err, vk->vk.vkCreateCommandPool(vk->handle, &pool, NULL, &vk->command_pool),
               "cannot create a command pool");
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->command_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    REE_VK_TRY(err, vk->vk.vkAllocateCommandBuffers(vk->handle, &commands, &vk->transfer_commands),
               "cannot create a command buffer");
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    for (int i = 0; i < REE_VK_N_IN_FLIGHT; i++)
        REE_VK_TRY(err, vk->vk.vkCreateFence(vk->handle, &fence, NULL, &vk->fences[i]),
                   "cannot create a fence");
    return REE_OK;
}

static void destroy(struct ree_device *device) {
    struct ree_vk *vk = ree_vk_of(device);
    if (vk->handle) {
        vk->vk.vkDeviceWaitIdle(vk->handle);
        ree_vk_pipelines_finish(vk);
        ree_vk_memory_finish(vk);
        for (int i = 0; i < REE_VK_N_IN_FLIGHT; i++)
            if (vk->fences[i]) vk->vk.vkDestroyFence(vk->handle, vk->fences[i], NULL);
        if (vk->command_pool) vk->vk.vkDestroyCommandPool(vk->handle, vk->command_pool, NULL);
        vk->vk.vkDestroyDevice(vk->handle, NULL);
    }
    ree_vk_instance_finish(vk);
    ree_vk_unidentify(vk);
    ree_facts_finish(&vk->facts);
    ree_free(vk);
}

static const struct ree_device_vtable vtable = {
    .destroy = destroy,
    .buffer_create = ree_vk_buffer_create,
    .buffer_destroy = ree_vk_buffer_destroy,
    .buffer_write = ree_vk_buffer_write,
    .buffer_read = ree_vk_buffer_read,
    .program_create = ree_vk_program_create,
    .program_destroy = ree_vk_program_destroy,
    .program_run = ree_vk_program_run,
    .program_times = ree_vk_program_times,
    .program_kernels = ree_vk_program_kernels,
    .facts = ree_vk_facts,
};

static enum ree_status create(struct ree_vk **out, struct ree_error *err) {
    struct ree_vk *vk = ree_alloc_zeroed(1, sizeof *vk);
    if (!vk) return ree_fail(err, REE_NO_MEMORY, "no memory for a device");
    vk->base.vtable = &vtable;
    vk->modules = ree_vk_shader_modules;
    vk->submission_seconds = SUBMISSION_SECONDS;
    vk->test_seconds = TEST_SECONDS;
    vk->pace = 1;
    *out = vk;
    return REE_OK;
}

// First half of opening: the instance and the driver's properties.
static enum ree_status find_driver(struct ree_vk *vk, const char *which,
                                   const struct ree_device_options *options,
                                   struct ree_error *err) {
    REE_TRY(ree_vk_instance_init(vk, which, options->validation, err));
    return query(vk, err);
}

static enum ree_status identify_driver(struct ree_vk *vk, const char *which,
                                       const struct ree_device_options *options,
                                       struct ree_error *err) {
    REE_TRY(find_driver(vk, which, options, err));
    ree_vk_identify(vk, options->cache_dir);
    return REE_OK;
}

// Second half of opening: the logical device, the probe and the facts.
static enum ree_status open_steps(struct ree_vk *vk, const struct ree_device_options *options,
                                  struct ree_error *err) {
    REE_TRY(create_handle(vk, err));
    REE_TRY(create_queue(vk, err));
    REE_TRY(ree_vk_memory_init(vk, err));
    REE_TRY(ree_vk_pipelines_init(vk, err));
    REE_TRY(ree_vk_probe(vk, options, err));
    ree_vk_note_known_driver(vk);
    REE_TRY(ree_vk_facts_init(vk, err));
    return ree_vk_check_validation(vk, err);
}

static enum ree_status finish_opening(struct ree_vk *vk, enum ree_status status,
                                      struct ree_device **out) {
    if (status == REE_OK)
        *out = &vk->base;
    else
        destroy(&vk->base);
    return status;
}

enum ree_status ree_vk_open(const char *which, const struct ree_device_options *options,
                            struct ree_device **out, struct ree_error *err) {
    struct ree_vk *vk;
    *out = NULL;
    REE_TRY(create(&vk, err));
    enum ree_status status = identify_driver(vk, which, options, err);
    if (status == REE_OK) status = open_steps(vk, options, err);
    return finish_opening(vk, status, out);
}

enum ree_status ree_vk_open_for_compiling(const char *which, struct ree_vk **out,
                                          struct ree_error *err) {
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    REE_TRY(create(out, err));
    struct ree_vk *vk = *out;
    REE_TRY(identify_driver(vk, which, &options, err));
    vk->has_statistics =
        has_extension(vk->physical, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    REE_TRY(create_handle(vk, err));
    return ree_vk_pipelines_init(vk, err);
}

// What the parent does while the child probes the driver. It runs no code on the device: it only
// repeats what it did before the fork, and tests the CPU's kernels, which will compute the expected
// results of the device's self-tests.
struct second_open {
    const char *which;
    const struct ree_device_options *options;
    struct ree_vk *vk; // NULL: no memory, or not begun
    enum ree_status status;
    struct ree_error err;
};

static void begin_again(void *user) {
    struct second_open *second = user;
    if (create(&second->vk, &second->err) != REE_OK) return;
    second->status = find_driver(second->vk, second->which, second->options, &second->err);
    ree_cpu_execute_soon();
}

static enum ree_status open_or_try(const char *which, const struct ree_device_options *options,
                                   struct ree_device **out, struct ree_error *err) {
    struct ree_vk *vk;
    *out = NULL;
    REE_TRY(create(&vk, err));
    enum ree_status status = identify_driver(vk, which, options, err);
    if (status != REE_OK || ree_vk_driver_is_known(vk)) {
        if (status == REE_OK) status = open_steps(vk, options, err);
        return finish_opening(vk, status, out);
    }
    char name[sizeof vk->base.name];
    memcpy(name, vk->base.name, sizeof name);
    // Close the instance before the fork: the child would not have the driver's threads.
    destroy(&vk->base);
    struct second_open second = {.which = which, .options = options};
    status = ree_vk_try_driver(which, options, name, begin_again, &second, err);
    if (!second.vk && status == REE_OK) begin_again(&second); // there was no child
    if (!second.vk && status == REE_OK)
        status = ree_fail(err, REE_NO_MEMORY, "no memory for a device");
    if (!second.vk) return status;
    if (status == REE_OK && second.status != REE_OK) {
        if (err) *err = second.err;
        status = second.status;
    }
    if (status == REE_OK) {
        // Only now, because it reads what the child has recorded.
        ree_vk_identify(second.vk, options->cache_dir);
        second.vk->was_just_tried = true;
        status = open_steps(second.vk, options, err);
    }
    return finish_opening(second.vk, status, out);
}

enum ree_status ree_vulkan_device_open(const char *which, const struct ree_device_options *options,
                                       struct ree_device **out, struct ree_error *err) {
    // A child process inherits the locks that other threads hold, but not the threads. So no other
    // thread may be inside the loader during the fork.
    pthread_mutex_lock(&ree_vk_opening);
    enum ree_status status = open_or_try(which, options, out, err);
    pthread_mutex_unlock(&ree_vk_opening);
    return status;
}
