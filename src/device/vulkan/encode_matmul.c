// The encoders of matmul and conv: which module, and how the result is cut into tiles.
#include "device/vulkan/vulkan.h"
#include "shaders.h"

#include <stddef.h>

#define TILE_COLUMNS 4 // of a thread, shaders/include/tile.glsl
#define SPEC_SUBGROUP (40 - REE_VK_SPEC_FIRST)

// Modules are in the order NAME_1_native, float64, float32, integer, NAME_n_native, float64, float32.
static void add_tiles(const struct ree_vk *vk, struct ree_vk_encoding *out, uint32_t first_module,
                      uint32_t m, uint32_t n, uint64_t n_products, const struct ree_expr *epilogue,
                      bool has_epilogue) {
    static const uint32_t tile_rows[REE_VK_N_FORMS] = {
        [REE_VK_NATIVE] = 8, [REE_VK_FLOAT64] = 16, [REE_VK_FLOAT32] = 4, [REE_VK_INTEGER] = 1};
    enum ree_vk_form form = vk->verdicts[REE_VK_FMA].form;
    uint32_t rows = tile_rows[form];
    if (m < 4 || form == REE_VK_INTEGER) rows = 1;
    uint32_t module = first_module + form + (rows > 1 ? REE_VK_N_FORMS : 0);
    uint32_t lanes = vk->is_cpu ? vk->subgroup.subgroupSize : 64;
    if (form == REE_VK_FLOAT64 && rows > 1) lanes = vk->subgroup.subgroupSize;
    struct ree_vk_step *step = ree_vk_add_step(out, module, lanes, 1);
    uint64_t width = (uint64_t)TILE_COLUMNS * lanes;
    step->n_groups = (n + width - 1) / width * ((m + rows - 1) / rows) * n_products;
    ree_vk_add_expr_spec(step, epilogue);
    ree_vk_add_spec(step, has_epilogue);
}

enum ree_status ree_vk_encode_matmul(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_matmul_params *p = &out->params.matmul;
    if (p->m == 0 || p->n == 0 || p->n_batch == 0) return REE_OK;
    int32_t *sets[] = {p->a_batch_strides, p->b_batch_strides};
    p->batch_rank = p->n_batch == 1
                        ? 0
                        : ree_vk_merge_dims(p->batch_rank, p->batch_dims, 2, sets);
    if (p->has_epilogue) {
        ree_vk_merge_expr(&p->epilogue);
        out->expr = &dispatch->params.matmul.epilogue;
    }
    out->params_size = offsetof(struct ree_matmul_params, epilogue.instrs);
    add_tiles(vk, out, REE_VK_SHADER_MATMUL_1_NATIVE, p->m, p->n, p->n_batch, &p->epilogue,
              p->has_epilogue);
    struct ree_vk_step *step = &out->steps[0];
    ree_vk_add_spec(step, p->batch_rank);
    while (step->n_spec < SPEC_SUBGROUP) ree_vk_add_spec(step, 0);
    ree_vk_add_spec(step, vk->subgroup.subgroupSize);
    return REE_OK;
}
