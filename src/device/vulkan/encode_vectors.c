// The encoders of topk and scan, which process vectors of a tensor.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#define TOPK_PARTS 16 // topk.comp, N_PARTS

static void add_topk_stage(struct ree_vk_encoding *out, uint32_t stage, uint64_t n_threads) {
    struct ree_vk_step *step = ree_vk_add_step(out, REE_VK_SHADER_TOPK, 64, n_threads);
    ree_vk_add_spec(step, out->params.topk.dtype);
    ree_vk_add_spec(step, out->params.topk.largest);
    ree_vk_add_spec(step, stage);
}

enum ree_status ree_vk_encode_topk(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    const struct ree_topk_params *p = &out->params.topk;
    uint64_t n = (uint64_t)p->outer * p->n * p->inner;
    if (n == 0 || p->k == 0) return REE_OK;
    if (!ree_vk_is_long(vk, ree_vk_loop(p->n, 0, 0), vk->thresholds.long_loops)) {
        add_topk_stage(out, 0, n);
        out->steps[0].loops = ree_vk_loop(p->n, 0, 0);
        return REE_OK;
    }
    out->scratch_bytes = n * TOPK_PARTS * 4;
    add_topk_stage(out, 1, n * TOPK_PARTS);
    add_topk_stage(out, 2, n);
    out->steps[0].loops = ree_vk_loop((p->n + TOPK_PARTS - 1) / TOPK_PARTS, 0, 0);
    return REE_OK;
}

static void add_scan_stage(struct ree_vk_encoding *out, uint32_t stage, uint64_t n_threads) {
    const struct ree_scan_params *p = &out->params.scan;
    uint32_t module = p->dtype == REE_F64 ? REE_VK_SHADER_SCAN_DOUBLE : REE_VK_SHADER_SCAN;
    struct ree_vk_step *step = ree_vk_add_step(out, module, 64, n_threads);
    ree_vk_add_spec(step, p->dtype);
    ree_vk_add_spec(step, p->product);
    ree_vk_add_spec(step, p->exclusive);
    ree_vk_add_spec(step, p->reverse);
    ree_vk_add_spec(step, stage);
}

enum ree_status ree_vk_encode_scan(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    const struct ree_scan_params *p = &out->params.scan;
    uint64_t n_vectors = (uint64_t)p->outer * p->inner;
    uint64_t n_chunks = ((uint64_t)p->k + REE_CHUNK - 1) / REE_CHUNK;
    if (n_vectors == 0 || p->k == 0) return REE_OK;
    bool long_loops = ree_vk_is_long(vk, ree_vk_loop(p->k, 0, 0), vk->thresholds.long_loops);
    if (n_chunks == 1 || (n_vectors >= vk->thresholds.many_vectors && !long_loops)) {
        add_scan_stage(out, 0, n_vectors);
        out->steps[0].loops = ree_vk_loop(p->k, 0, 0);
        return REE_OK;
    }
    out->scratch_bytes = n_vectors * n_chunks * sizeof(uint64_t);
    add_scan_stage(out, 1, n_vectors * n_chunks);
    add_scan_stage(out, 2, n_vectors);
    add_scan_stage(out, 3, n_vectors * n_chunks);
    out->steps[1].loops = ree_vk_loop(n_chunks, 0, 0);
    return REE_OK;
}
