// The encoder of reduce: one step, or one step for the chunks and one to combine them.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "repops/merge.h"
#include "shaders.h"

static void add_stage(struct ree_vk_encoding *out, uint32_t stage, uint64_t n_threads) {
    const struct ree_reduce_params *p = &out->params.reduce;
    uint32_t module = p->dtype == REE_F64 ? REE_VK_SHADER_REDUCE_DOUBLE
                                          : ree_vk_variant(out, REE_VK_SHADER_REDUCE);
    struct ree_vk_step *step = ree_vk_add_step(out, module, 64, n_threads);
    ree_vk_add_spec(step, p->kind);
    ree_vk_add_spec(step, p->dtype);
    ree_vk_add_spec(step, stage);
    ree_vk_add_spec(step, p->select_last);
    ree_vk_add_spec(step, p->outer_rank);
    ree_vk_add_spec(step, p->reduce_rank);
}

enum ree_status ree_vk_encode_reduce(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    struct ree_reduce_params *p = &out->params.reduce;
    if (p->n_outer == 0) return REE_OK;
    int32_t *outer[] = {p->outer_strides}, *reduce[] = {p->reduce_strides};
    p->outer_rank = ree_merge_dims(p->outer_rank, p->outer_dims, 1, outer);
    if (p->n_reduce > 0) p->reduce_rank = ree_merge_dims(p->reduce_rank, p->reduce_dims, 1, reduce);
    uint64_t n_chunks = ((uint64_t)p->n_reduce + REE_CHUNK - 1) / REE_CHUNK;
    // Loops over the chunks, their terms, and the dimensions.
    const uint64_t of_dims = ree_vk_loop(p->reduce_rank, 0, 0);
    const uint64_t of_chunk = of_dims + ree_vk_loop(REE_CHUNK, of_dims, 1);
    const uint64_t loops = ree_vk_loop(n_chunks, of_chunk, 3);
    bool long_loops = ree_vk_is_long(vk, loops, vk->thresholds.long_loops);
    if (n_chunks < 2 || (p->n_outer >= vk->thresholds.many_outputs && !long_loops)) {
        add_stage(out, 0, p->n_outer);
        out->steps[0].loops = loops;
        return REE_OK;
    }
    out->scratch_bytes = p->n_outer * n_chunks * 16;
    add_stage(out, 1, p->n_outer * n_chunks);
    add_stage(out, 2, p->n_outer);
    out->steps[1].loops = ree_vk_loop(n_chunks, 0, 0);
    return REE_OK;
}
