// A device that compiles what a program would run, and runs nothing. It needs no GPU: Mesa's RADV
// compiles for AMD's GPUs on "null hardware", if the environment variable RADV_FORCE_FAMILY names
// a GPU.
#ifndef REE_DEVICE_VULKAN_COMPILER_H
#define REE_DEVICE_VULKAN_COMPILER_H

#include "device/vulkan/vulkan.h"

// Opens the device `which` (as in ree_vulkan_device_open). Its primitives have their native forms,
// as on a GPU that passes the probe. Buffers are memory of the host, set to 0; a run writes
// nothing. `compiled` is called for each pipeline that the driver compiles. The device must not be
// destroyed, because drivers of null hardware crash then; the process must end with _exit.
enum ree_status ree_vk_compiler_open(const char *which, ree_vk_compiled *compiled, void *user,
                                     struct ree_device **out, struct ree_error *err);

#define REE_VK_MAX_STATISTICS 32
// A number that the driver reports about a pipeline, such as "VGPRs" or "Code size".
struct ree_vk_statistic {
    char name[VK_MAX_DESCRIPTION_SIZE];
    uint64_t value;
};
// Writes the driver's statistics of a pipeline to out[REE_VK_MAX_STATISTICS] and returns their
// number; 0 if the driver has none.
uint32_t ree_vk_statistics(const struct ree_device *compiler, VkPipeline pipeline,
                           struct ree_vk_statistic *out);

#endif
