// The encoders of gather and scatter.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "repops/merge.h"
#include "shaders.h"

// A scatter that replaces elements applies up to FEW_STEPS steps of a vector one after another.
// With more steps it first finds the last update of each element (shaders/scatter.comp).
#define FEW_STEPS 4

enum ree_status ree_vk_encode_gather(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)dispatch, (void)err;
    struct ree_gather_params *p = &out->params.gather;
    if (p->n_elements == 0) return REE_OK;
    int32_t *sets[] = {p->data_strides, p->index_strides};
    p->rank = ree_merge_dims(p->rank, p->dims, 2, sets);
    uint64_t per_thread = p->elem_size < 4 ? 4 / p->elem_size : 1;
    struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_GATHER, 64,
                                               (p->n_elements + per_thread - 1) / per_thread);
    ree_vk_add_spec(step, p->elem_size);
    ree_vk_add_spec(step, p->index_dtype == REE_I64);
    ree_vk_add_spec(step, p->rank);
    ree_vk_add_spec(step, p->n_components);
    return REE_OK;
}

static void add_scatter_stage(struct ree_vk_encoding *out, uint32_t stage, uint64_t n_threads) {
    const struct ree_scatter_params *p = &out->params.scatter;
    bool in_float64 = p->dtype == REE_F64 && p->kind != REE_SCATTER_SET;
    uint32_t module = in_float64 ? REE_VK_SHADER_SCATTER_DOUBLE : REE_VK_SHADER_SCATTER;
    struct ree_vk_step *step = ree_vk_add_step(out, module, 64, n_threads);
    ree_vk_add_spec(step, p->kind);
    ree_vk_add_spec(step, p->dtype);
    ree_vk_add_spec(step, p->index_dtype == REE_I64);
    ree_vk_add_spec(step, p->rank);
    ree_vk_add_spec(step, p->n_step_dims);
    ree_vk_add_spec(step, p->n_components);
    ree_vk_add_spec(step, stage);
}

enum ree_status ree_vk_encode_scatter(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)err;
    const struct ree_scatter_params *p = &out->params.scatter;
    if (p->n_vectors == 0 || p->n_steps == 0) return REE_OK;
    if (p->kind != REE_SCATTER_SET || p->n_steps <= FEW_STEPS) {
        add_scatter_stage(out, 0, p->n_vectors);
        // Each step loops over the dimensions and over the components of the index.
        out->steps[0].loops = (uint64_t)p->n_steps * (1 + p->rank + 1 + p->n_components + 1) + 1;
        return REE_OK;
    }
    uint64_t n_updates = (uint64_t)p->n_vectors * p->n_steps;
    out->scratch_bytes =
        dispatch->operands[0].size / ree_dtype_size((enum ree_dtype)p->dtype) * sizeof(uint32_t);
    for (uint32_t stage = 1; stage <= 3; stage++)
        add_scatter_stage(out, stage, n_updates);
    return REE_OK;
}
