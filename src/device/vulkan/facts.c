// What `ree-run devices` prints of a Vulkan device.
#include "device/vulkan/vulkan.h"

enum ree_status ree_vk_facts_init(struct ree_vk *vk, struct ree_error *err) {
    (void)vk;
    (void)err;
    return REE_OK;
}
size_t ree_vk_facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct ree_vk *vk = (const struct ree_vk *)device;
    *out_facts = vk->facts;
    return vk->n_facts;
}
