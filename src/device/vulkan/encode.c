// The table of encoders, shared helpers, and the encoders of copy and map.
#include "device/vulkan/encode.h"

#include "device/vulkan/vulkan.h"
#include "repops/dispatch.h"
#include "repops/merge.h"
#include "shaders.h"

#include <stddef.h>
#include <string.h>

#define MAX_SPLIT_SCRATCH (UINT64_C(256) << 20)

const struct ree_vk_thresholds ree_vk_gpu_thresholds = {
    .enough_groups = 256,
    .many_outputs = 4096,
    .many_vectors = 4096,
    .many_rows = 4096,
    .few_elements = 0,
    .small_product = 0,
    .tiny_product = 0,
    .long_row = 1024,
    .long_tiles = UINT64_MAX,
    .long_loops = UINT64_MAX,
    .max_split_scratch = MAX_SPLIT_SCRATCH,
};
const struct ree_vk_thresholds ree_vk_cpu_thresholds = {
    .enough_groups = 256,
    .many_outputs = 4096,
    .many_vectors = 4096,
    .many_rows = 64, // few threads, each processes a row as fast as a group would
    .few_elements = 4096,
    .small_product = UINT64_C(1) << 22,
    .tiny_product = UINT64_C(1) << 18,
    .long_row = 1024,
    .long_tiles = UINT64_MAX,
    .long_loops = UINT64_MAX,
    .max_split_scratch = MAX_SPLIT_SCRATCH,
};

static ree_vk_encoder *const encoders[REE_N_REPOPS] = {
    [REE_REPOP_COPY] = ree_vk_encode_copy,       [REE_REPOP_MAP] = ree_vk_encode_map,
    [REE_REPOP_REDUCE] = ree_vk_encode_reduce,   [REE_REPOP_MATMUL] = ree_vk_encode_matmul,
    [REE_REPOP_CONV] = ree_vk_encode_conv,       [REE_REPOP_POOL] = ree_vk_encode_pool,
    [REE_REPOP_SOFTMAX] = ree_vk_encode_softmax, [REE_REPOP_NORM] = ree_vk_encode_norm,
    [REE_REPOP_GATHER] = ree_vk_encode_gather,   [REE_REPOP_SCATTER] = ree_vk_encode_scatter,
    [REE_REPOP_TOPK] = ree_vk_encode_topk,       [REE_REPOP_SCAN] = ree_vk_encode_scan,
    [REE_REPOP_RESIZE] = ree_vk_encode_resize,   [REE_REPOP_ATTENTION] = ree_vk_encode_attention,
};

enum ree_status ree_vk_encode(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                              const struct ree_vk_forms *forms, struct ree_vk_encoding *out,
                              struct ree_error *err) {
    memset(out, 0, sizeof *out);
    out->forms = *forms;
    REE_TRY(ree_dispatch_check_device(dispatch, vk->base.name, err));
    if (dispatch->op >= REE_N_REPOPS || !encoders[dispatch->op])
        return ree_fail(err, REE_UNSUPPORTED, "the Vulkan backend has no RepOp '%s'",
                        ree_repop_name(dispatch->op));
    out->params = dispatch->params;
    out->params_size = (uint32_t)ree_repop_params_size(dispatch->op);
    REE_TRY(encoders[dispatch->op](vk, dispatch, out, err));
    for (uint32_t s = 0; s < out->n_steps; s++)
        if (ree_vk_is_long(vk, out->steps[s].loops, UINT64_MAX))
            return ree_fail(err, REE_UNSUPPORTED,
                            "RepOp %s requires %llu loop iterations in a thread, but the driver of "
                            "'%s' ends loops after %llu",
                            ree_repop_name(dispatch->op), (unsigned long long)out->steps[s].loops,
                            vk->base.name, (unsigned long long)vk->loop_budget);
    if (out->scratch_bytes / 4 <= UINT32_MAX) return REE_OK; // word indices have 32 bits
    return ree_fail(err, REE_UNSUPPORTED,
                    "RepOp %s requires %llu bytes of scratch memory, more than a shader can index",
                    ree_repop_name(dispatch->op), (unsigned long long)out->scratch_bytes);
}

// Iterations that the estimates omit: loops over dimensions, and loops of a few hundred iterations
// inside single operations.
#define LOOP_SLACK 1024

bool ree_vk_is_long(const struct ree_vk *vk, uint64_t loops, uint64_t threshold) {
    if (loops > threshold) return true;
    return vk->loop_budget != UINT64_MAX && loops + LOOP_SLACK > vk->loop_budget;
}

// Returns the loop iterations of one operation in src/repops/scalar/.
static uint64_t op_loops(uint32_t op) {
    switch (op) {
    case REE_MAP_pow_f32: return ree_vk_loop(126, 0, 0) + ree_vk_loop(32, 0, 0);
    case REE_MAP_mod_f32:
    // exponents differ by up to 277; 8 bits per step
    case REE_MAP_fmod_f32: return ree_vk_loop(35, 0, 0);
    case REE_MAP_sqrt_f32: return ree_vk_loop(26, 0, 0);
    case REE_MAP_erf_f32: return ree_vk_loop(13, 0, 0);
    case REE_MAP_pow_i32:
    case REE_MAP_pow_u32: return ree_vk_loop(32, 0, 0);
    case REE_MAP_div_i64:
    case REE_MAP_div_u64:
    case REE_MAP_mod_i64:
    case REE_MAP_fmod_i64:
    case REE_MAP_mod_u64:
    case REE_MAP_pow_i64:
    case REE_MAP_pow_u64: return ree_vk_loop(64, 0, 0);
    case REE_MAP_philox_b64: return ree_vk_loop(10, 0, 0);
    case REE_MAP_div_f64: return ree_vk_loop(56, 0, 0);
    case REE_MAP_sqrt_f64: return ree_vk_loop(55, 0, 0);
    default: return 0;
    }
}

uint64_t ree_vk_expr_loops(const struct ree_expr *expr) {
    if (!expr) return 0;
    // Coordinates, and the position of each operand's element: not every driver unrolls these
    // loops.
    uint64_t n = (1 + expr->n_operands) * ree_vk_loop(expr->rank, 0, 0);
    for (uint32_t i = 0; i < expr->n_instrs; i++)
        n += op_loops(expr->instrs[i].op);
    return n;
}

struct ree_vk_step *ree_vk_add_step(struct ree_vk_encoding *out, uint32_t shader,
                                    uint32_t local_size, uint64_t n_threads) {
    struct ree_vk_step *step = &out->steps[out->n_steps++];
    step->shader = shader;
    step->local_size = local_size;
    step->forms = out->forms;
    step->forms.dot8 = 0; // dot8 only selects the module
    step->n_groups = (n_threads + local_size - 1) / local_size;
    return step;
}

uint32_t ree_vk_variant(const struct ree_vk_encoding *out, uint32_t shader) {
    return out->forms.of[REE_VK_FMA] == REE_VK_FLOAT64 ? shader + 1 : shader;
}

void ree_vk_add_spec(struct ree_vk_step *step, uint32_t value) {
    step->spec[step->n_spec++] = value;
}

void ree_vk_add_expr_spec(struct ree_vk_step *step, const struct ree_expr *expr) {
    ree_vk_add_spec(step, expr->rank);
    ree_vk_add_spec(step, expr->n_operands);
    ree_vk_add_spec(step, expr->out_dtype);
    for (uint32_t i = 0; i < REE_EXPR_MAX_OPERANDS; i++) {
        const struct ree_expr_operand *operand = &expr->operands[i];
        uint32_t iota = operand->kind == REE_EXPR_IOTA ? 256 : 0;
        ree_vk_add_spec(step, i < expr->n_operands ? operand->dtype + iota : 0);
    }
}

enum ree_status ree_vk_encode_copy(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                   struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)dispatch, (void)err;
    struct ree_copy_params *p = &out->params.copy;
    if (p->n_elements == 0) return REE_OK;
    int32_t *sets[] = {p->src_strides, p->dst_strides};
    p->rank = ree_merge_dims(p->rank, p->dims, 2, sets);
    // Dense: the output is one contiguous run that starts at a word boundary.
    int64_t expected = 1;
    bool dense = (uint64_t)p->dst_offset * p->elem_size % 4 == 0;
    for (uint32_t d = p->rank; d-- > 0;) {
        dense = dense && (p->dims[d] == 1 || p->dst_strides[d] == expected);
        expected *= p->dims[d];
    }
    uint64_t per_thread = dense && p->elem_size < 4 ? 4 / p->elem_size : 1;
    struct ree_vk_step *step =
        ree_vk_add_step(out, REE_VK_SHADER_COPY, 64, (p->n_elements + per_thread - 1) / per_thread);
    ree_vk_add_spec(step, p->elem_size);
    ree_vk_add_spec(step, p->rank);
    ree_vk_add_spec(step, dense);
    return REE_OK;
}

enum ree_status ree_vk_encode_map(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                  struct ree_vk_encoding *out, struct ree_error *err) {
    (void)vk, (void)err;
    struct ree_expr *expr = &out->params.map.expr;
    if (expr->n_elements == 0) return REE_OK;
    ree_merge_expr(expr);
    out->expr = &dispatch->params.map.expr;
    out->params_size = offsetof(struct ree_expr, instrs);
    const uint32_t local_size = 64;
    uint64_t n_threads = ((uint64_t)expr->n_elements + 3) / 4;
    struct ree_vk_step *step =
        ree_vk_add_step(out, ree_vk_variant(out, REE_VK_SHADER_MAP), local_size, n_threads);
    ree_vk_add_expr_spec(step, expr);
    step->loops = ree_vk_loop(4, ree_vk_expr_loops(out->expr), 0);
    return REE_OK;
}
