// Gives up a device that does not finish its work. Destroying what the device still uses is not
// allowed, and waiting for it would never end. So the functions that do either are replaced: ree
// frees its own memory as usual, and the driver's objects stay until the process ends.
#include "device/vulkan/vulkan.h"

#define KEEP(type)                                                                                 \
    static VKAPI_ATTR void VKAPI_CALL keep_##type(VkDevice device, type object,                    \
                                                  const VkAllocationCallbacks *callbacks) {        \
        (void)device, (void)object, (void)callbacks;                                               \
    }
KEEP(VkBuffer)
KEEP(VkCommandPool)
KEEP(VkDeviceMemory)
KEEP(VkFence)
KEEP(VkPipeline)
KEEP(VkPipelineCache)
KEEP(VkPipelineLayout)
KEEP(VkQueryPool)
KEEP(VkShaderModule)

static VKAPI_ATTR void VKAPI_CALL keep_device(VkDevice device,
                                              const VkAllocationCallbacks *callbacks) {
    (void)device, (void)callbacks;
}
static VKAPI_ATTR void VKAPI_CALL keep_commands(VkDevice device, VkCommandPool pool, uint32_t n,
                                                const VkCommandBuffer *buffers) {
    (void)device, (void)pool, (void)n, (void)buffers;
}

static VKAPI_ATTR VkResult VKAPI_CALL refuse_to_submit(VkQueue queue, uint32_t n,
                                                       const VkSubmitInfo *infos, VkFence fence) {
    (void)queue, (void)n, (void)infos, (void)fence;
    return VK_ERROR_DEVICE_LOST;
}
static VKAPI_ATTR VkResult VKAPI_CALL refuse_to_wait(VkDevice device, uint32_t n,
                                                     const VkFence *fences, VkBool32 all,
                                                     uint64_t nanoseconds) {
    (void)device, (void)n, (void)fences, (void)all, (void)nanoseconds;
    return VK_ERROR_DEVICE_LOST;
}
static VKAPI_ATTR VkResult VKAPI_CALL refuse_to_idle(VkDevice device) {
    (void)device;
    return VK_ERROR_DEVICE_LOST;
}

void ree_vk_abandon(struct ree_vk *vk) {
    vk->is_lost = vk->is_abandoned = true;
    vk->vk.vkDestroyBuffer = keep_VkBuffer;
    vk->vk.vkDestroyCommandPool = keep_VkCommandPool;
    vk->vk.vkFreeMemory = keep_VkDeviceMemory;
    vk->vk.vkDestroyFence = keep_VkFence;
    vk->vk.vkDestroyPipeline = keep_VkPipeline;
    vk->vk.vkDestroyPipelineCache = keep_VkPipelineCache;
    vk->vk.vkDestroyPipelineLayout = keep_VkPipelineLayout;
    vk->vk.vkDestroyQueryPool = keep_VkQueryPool;
    vk->vk.vkDestroyShaderModule = keep_VkShaderModule;
    vk->vk.vkDestroyDevice = keep_device;
    vk->vk.vkFreeCommandBuffers = keep_commands;
    vk->vk.vkQueueSubmit = refuse_to_submit;
    vk->vk.vkWaitForFences = refuse_to_wait;
    vk->vk.vkDeviceWaitIdle = refuse_to_idle;
}
