// The encoders of pool and resize: one thread per output.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

enum ree_status ree_vk_encode_pool(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)dispatch, (void)err;
    const struct ree_pool_params *p = &out->params.pool;
    uint64_t n = (uint64_t)p->planes * p->out[0] * p->out[1] * p->out[2];
    if (n == 0) return REE_OK;
    uint64_t per_thread = p->dtype == REE_F32 ? 1 : 4; // a thread writes a word of 4 bytes
    struct ree_vk_step *step = ree_vk_add_step(out, ree_vk_variant(out, REE_VK_SHADER_POOL), 64,
                                               (n + per_thread - 1) / per_thread);
    uint64_t window = 0;
    for (uint32_t d = 3; d-- > 0;)
        window = ree_vk_loop(p->kernel[d], window, 2 - d);
    step->loops = ree_vk_loop(per_thread, window, 3);
    ree_vk_add_spec(step, p->kind);
    ree_vk_add_spec(step, p->dtype);
    ree_vk_add_spec(step, p->has_indices);
    ree_vk_add_spec(step, p->has_indices && p->storage_order != 0);
    ree_vk_add_spec(step, p->kind == REE_POOL_AVG && p->count_include_pad != 0);
    return REE_OK;
}

enum ree_status ree_vk_encode_resize(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)dispatch, (void)err;
    const struct ree_resize_params *p = &out->params.resize;
    uint64_t n = (uint64_t)p->outer * p->k_out * p->inner;
    if (n > 0)
        ree_vk_add_step(out, ree_vk_variant(out, REE_VK_SHADER_RESIZE), 64, n)->loops =
            ree_vk_loop(p->taps, 0, 0);
    return REE_OK;
}
