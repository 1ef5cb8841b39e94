#include "device/vulkan/vulkan.h"
#include <stdlib.h>
enum ree_status ree_vk_probe(struct ree_vk *vk, const struct ree_device_options *options,
                             struct ree_error *err) {
    (void)options;(void)err;
    for (int i=0;i<REE_VK_N_PRIMITIVES;i++) vk->verdicts[i].form=REE_VK_INTEGER;
    vk->verdicts[REE_VK_FMA].form=atoi(getenv("FMA"));
    vk->verdicts[REE_VK_ADD].form=atoi(getenv("ADD"));
    return REE_OK;
}
