// The encoder of conv: tiles if there are enough channels, otherwise one thread per output.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device/cuda/product.h"
#include "device/cuda/tiles.h"

#include <string.h>

#define FEW_CHANNELS 4 // groups with fewer output channels waste most of a tile

static const enum ree_cuda_kernel points_kernels[REE_CUDA_N_TILES] = {
    REE_CUDA_conv_points_128x128,
    REE_CUDA_conv_points_128x64,
    REE_CUDA_conv_points_64x64,
    REE_CUDA_conv_points_32x64,
};
static const enum ree_cuda_kernel taps_kernels[REE_CUDA_N_TILES] = {
    REE_CUDA_conv_taps_128x128,
    REE_CUDA_conv_taps_128x64,
    REE_CUDA_conv_taps_64x64,
    REE_CUDA_conv_taps_32x64,
};

static void add_finish(struct ree_cuda_encoding *out, const struct ree_dispatch *dispatch,
                       uint64_t n_outputs, const uint32_t *extra) {
    const struct ree_conv_params *p = &dispatch->params.conv;
    ree_cuda_add_finish(out, p->has_epilogue ? &p->epilogue : NULL,
                        out->params.conv.epilogue.n_slots, n_outputs, REE_CUDA_conv_finish,
                        REE_CUDA_conv_finish_any, extra);
}

static void encode_outputs(const struct ree_dispatch *dispatch, struct ree_cuda_encoding *out,
                           enum ree_cuda_kernel kernel, uint64_t n_outputs) {
    struct ree_cuda_step *step = ree_cuda_add_step(out, kernel, 128, n_outputs);
    if (!dispatch->params.conv.has_epilogue) return;
    uint32_t extra[5] = {REE_CUDA_TO_SCRATCH, 1};
    extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_add_parts(out, n_outputs, 1);
    memcpy(step->extra, extra, sizeof extra);
    add_finish(out, dispatch, n_outputs, extra);
}

static void encode_tiles(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                         struct ree_cuda_encoding *out, uint64_t n_outputs, uint32_t n_terms) {
    const struct ree_conv_params *p = &dispatch->params.conv;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2];
    // Pointwise: each output position reads exactly the input position with the same index.
    bool points = !p->transposed;
    for (int d = 0; d < 3; d++)
        points = points && p->kernel[d] == 1 && p->stride[d] == 1 && p->pad[d] == 0 &&
                 p->in[d] == p->out[d];
    if (p->transposed) {
        uint64_t n = (uint64_t)p->groups * p->m * n_terms;
        ree_cuda_add_step(out, REE_CUDA_conv_turn, 256, n);
        out->scratch_bytes += (n + 3) / 4 * 16;
    }
    if (!points) {
        ree_cuda_add_step(out, REE_CUDA_conv_table, 128, n_terms);
        out->scratch_bytes += (uint64_t)n_terms * 16;
    }
    struct ree_cuda_plan plan =
        ree_cuda_plan_tiles(&cuda->limits, p->m, n_out, n_terms, (uint64_t)p->n * p->groups);
    uint32_t extra[5] = {0, plan.n_parts, plan.n_stages};
    uint32_t stages = plan.stages_bytes;
    const struct ree_expr *epilogue = p->has_epilogue ? &p->epilogue : NULL;
    uint32_t n_slots = out->params.conv.epilogue.n_slots;
    uint32_t slots = n_slots * REE_CUDA_SLOT_BYTES * plan.threads;
    bool finish = plan.n_parts > 1 || !ree_cuda_epilogue_fits(epilogue, n_slots, plan.threads);
    if (finish) {
        extra[REE_CUDA_PRODUCT_FLAGS] = REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_add_parts(out, n_outputs, plan.n_parts);
    } else if (stages < slots) {
        stages = slots;
    }
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, (points ? points_kernels : taps_kernels)[plan.tile], plan.threads,
                          plan.n_blocks * plan.threads);
    step->shared_bytes = plan.totals_bytes + stages;
    memcpy(step->extra, extra, sizeof extra);
    if (finish) add_finish(out, dispatch, n_outputs, extra);
}

enum ree_status ree_cuda_encode_conv(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)err;
    const struct ree_conv_params *p = &dispatch->params.conv;
    uint64_t n_outputs = (uint64_t)p->n * p->groups * p->m * p->out[0] * p->out[1] * p->out[2];
    uint64_t n_terms = (uint64_t)p->c * p->kernel[0] * p->kernel[1] * p->kernel[2];
    if (n_outputs == 0) return REE_OK;
    if (p->has_epilogue) ree_cuda_expr_prepare(&p->epilogue, true, &out->params.conv.epilogue);
    if (p->x_dtype != REE_F32)
        encode_outputs(dispatch, out, REE_CUDA_conv_words, n_outputs);
    else if (p->m < FEW_CHANNELS || n_terms == 0)
        encode_outputs(dispatch, out, REE_CUDA_conv_direct, n_outputs);
    else
        encode_tiles(cuda, dispatch, out, n_outputs, (uint32_t)n_terms);
    return REE_OK;
}
