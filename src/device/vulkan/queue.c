// The device's queue: the choice of its family, its timestamps, submissions and waiting.
#include "device/vulkan/vulkan.h"

#define MAX_FAMILIES 16
// Maximum time of one wait for a fence. After it, ree_vk_queue_wait calls `watch` and waits again.
// The next wait also notices a lost device whose driver does not wake the thread.
#define WAIT_NANOSECONDS 250000000

static uint64_t mask_of(uint32_t n_bits) {
    return n_bits < 64 ? (UINT64_C(1) << n_bits) - 1 : UINT64_MAX;
}

enum ree_status ree_vk_queue_choose(struct ree_vk *vk, struct ree_error *err) {
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t n = 0, chosen = MAX_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(vk->physical, &n, NULL);
    if (n > MAX_FAMILIES) n = MAX_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(vk->physical, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
        // A family without graphics does not compete with the desktop, and operating systems allow
        // its submissions more time.
        bool better =
            chosen == MAX_FAMILIES || (families[chosen].queueFlags & VK_QUEUE_GRAPHICS_BIT &&
                                       !(flags & VK_QUEUE_GRAPHICS_BIT));
        if (better) chosen = i;
    }
    if (chosen == MAX_FAMILIES)
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: '%s' has no compute queue",
                        vk->properties.deviceName);
    vk->queue_family = chosen;
    vk->timestamp_mask = vk->properties.limits.timestampPeriod > 0
                             ? mask_of(families[chosen].timestampValidBits)
                             : 0;
    return REE_OK;
}

double ree_vk_seconds_between(const struct ree_vk *vk, uint64_t from, uint64_t to) {
    return (double)((to - from) & vk->timestamp_mask) *
           (double)vk->properties.limits.timestampPeriod * 1e-9;
}

enum ree_status ree_vk_queue_submit(struct ree_vk *vk, VkCommandBuffer commands, VkFence fence,
                                    struct ree_error *err) {
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };
    VkResult result = vk->vk.vkQueueSubmit(vk->queue, 1, &info, fence);
    vk->is_lost = vk->is_lost || result == VK_ERROR_DEVICE_LOST;
    REE_VK_TRY(err, result, "cannot submit");
    return REE_OK;
}

enum ree_status ree_vk_queue_wait(struct ree_vk *vk, VkFence fence,
                                  void (*watch)(struct ree_vk *vk, void *user), void *user,
                                  struct ree_error *err) {
    VkResult result;
    // Not by the clock: while the process is stopped, by a terminal or a debugger, a driver that
    // runs on the processor does not work either.
    double waited = 0;
    while ((result = vk->vk.vkWaitForFences(vk->handle, 1, &fence, VK_TRUE, WAIT_NANOSECONDS)) ==
           VK_TIMEOUT) {
        if (watch) watch(vk, user);
        waited += 1e-9 * WAIT_NANOSECONDS;
        if (vk->wait_limit > 0 && waited > vk->wait_limit) {
            ree_vk_abandon(vk);
            return ree_fail(err, REE_DEVICE, "Vulkan: '%s' did not finish within %.0f s",
                            vk->properties.deviceName, vk->wait_limit);
        }
    }
    vk->is_lost = vk->is_lost || result == VK_ERROR_DEVICE_LOST;
    REE_VK_TRY(err, result, "waiting for the device");
    REE_VK_TRY(err, vk->vk.vkResetFences(vk->handle, 1, &fence), "cannot reset a fence");
    return REE_OK;
}

enum ree_status ree_vk_submit(struct ree_vk *vk, VkCommandBuffer commands, struct ree_error *err) {
    REE_TRY(ree_vk_queue_submit(vk, commands, vk->fences[0], err));
    return ree_vk_queue_wait(vk, vk->fences[0], NULL, NULL, err);
}
