// The encoders of softmax and norm: one workgroup or one thread per row.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#define SHORT_ROW 32 // too short for a group

// Returns the iterations of a thread in a group of `size`: passes over its part of the row, and
// sums of whole chunks.
static uint64_t group_loops(uint32_t n, uint32_t size) {
    uint64_t n_walks = ((uint64_t)n + REE_CHUNK * size - 1) / (REE_CHUNK * size);
    return 4 * (uint64_t)n / size + n_walks * (3 * REE_CHUNK + 4 * size) + 64;
}

static bool has_few_elements(const struct ree_vk *vk, uint64_t n_rows, uint32_t n) {
    if (!vk->thresholds.few_elements) return false;
    uint64_t n_vectors = (n_rows + vk->subgroup.subgroupSize - 1) / vk->subgroup.subgroupSize;
    return n_vectors * n < vk->thresholds.few_elements;
}

struct ree_vk_step *ree_vk_add_rows(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                    uint32_t shader, uint64_t n_rows, uint32_t n, bool *out_group) {
    // A thread passes over its row at most four times.
    bool long_loops = ree_vk_is_long(vk, 4 * (uint64_t)n, vk->thresholds.long_loops);
    bool too_few = n <= SHORT_ROW || (!long_loops && has_few_elements(vk, n_rows, n));
    *out_group = !too_few && (n_rows < vk->thresholds.many_rows || long_loops);
    struct ree_vk_step *step;
    if (!*out_group) {
        step = ree_vk_add_step(out, shader, 64, n_rows);
        step->loops = 4 * (uint64_t)n;
        return step;
    }
    // On a CPU driver a group consists of a vector's lanes; more threads would only enlarge the
    // stack. The maximum is 128, shaders/include/rows.glsl.
    uint32_t size = vk->is_cpu ? vk->subgroup.subgroupSize : n < vk->thresholds.long_row ? 64 : 128;
    if (ree_vk_is_long(vk, group_loops(n, size), vk->thresholds.long_loops)) size = 128;
    step = ree_vk_add_step(out, shader, size, n_rows * size);
    step->loops = group_loops(n, size);
    return step;
}

enum ree_status ree_vk_encode_softmax(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    const struct ree_softmax_params *p = &out->params.softmax;
    uint64_t n_rows = (uint64_t)p->outer * p->inner;
    if (n_rows == 0 || p->k == 0) return REE_OK;
    bool group;
    struct ree_vk_step *step =
        ree_vk_add_rows(vk, out, ree_vk_variant(out, REE_VK_SHADER_SOFTMAX), n_rows, p->k, &group);
    ree_vk_add_spec(step, p->log);
    ree_vk_add_spec(step, group);
    ree_vk_add_spec(step, p->zero_empty != 0);
    return REE_OK;
}

enum ree_status ree_vk_encode_norm(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    const struct ree_norm_params *p = &out->params.norm;
    if (p->rows == 0 || p->cols == 0) return REE_OK;
    bool group;
    struct ree_vk_step *step =
        ree_vk_add_rows(vk, out, ree_vk_variant(out, REE_VK_SHADER_NORM), p->rows, p->cols, &group);
    ree_vk_add_spec(step, p->rms);
    ree_vk_add_spec(step, p->has_scale);
    ree_vk_add_spec(step, p->has_bias);
    ree_vk_add_spec(step, group);
    return REE_OK;
}
