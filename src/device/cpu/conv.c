// conv: out(b, i, o) = expr(sum over (c, k) of x(b, c, o*stride + k*dilation - pad) * w(i, c, k)),
// NUMERICS.md section 3, for image b, output channel i, output position o, input channel c and
// kernel position k. The terms are in the order (c, kd, kh, kw) and include zeros outside x. Sums
// of 8-bit integers are exact in 32 bits, wrapping, so their order is irrelevant; outside x they
// use the pad value.
#include "device/cpu/conv.h"

size_t ree_cpu_conv_pack_size(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                              struct ree_cpu_pack_key *key) {
    bool integer = ree_conv_sum_dtype(p) == REE_I32;
    // Float weights of few output channels, and depthwise kernels, are not packed.
    if ((p->m < REE_CONV_FEW_CHANNELS && !integer) || ree_conv_is_depthwise(p) || p->m == 0 ||
        p->c == 0 || ree_conv_n_kernel(p) == 0)
        return 0;
    struct ree_conv_packing packing = ree_conv_packing_of(ctx, p);
    *key = (struct ree_cpu_pack_key){{REE_REPOP_CONV, p->groups, p->c, p->m, p->kernel[0],
                                      p->kernel[1], p->kernel[2], p->transposed,
                                      packing.tiles->rows, packing.tiles->terms, p->w_dtype}};
    return ree_conv_packed_size(&packing);
}

void ree_cpu_conv_pack(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                       const void *w, void *out) {
    struct ree_conv_packing packing = ree_conv_packing_of(ctx, p);
    for (uint32_t g = 0; g < p->groups; g++)
        for (uint32_t i = 0; i < p->m; i += packing.panel_rows)
            ree_conv_pack_panel(&packing, w, g, i, out);
}

static struct ree_conv_words words_of(const struct ree_cpu_context *ctx,
                                      const struct ree_conv_params *p, void *const *operands) {
    struct ree_conv_words words = {.tiles = ree_conv_packing_of(ctx, p).integer};
    if (!words.tiles) return words;
    words.is_signed = p->x_dtype == REE_I8;
    words.flip = !words.tiles->any_sign && words.tiles->b_signed != words.is_signed;
    if (p->has_pad_value) words.pad = *(const uint8_t *)operands[2];
    return words;
}

enum ree_status ree_cpu_conv(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                             void *const *operands, struct ree_error *err) {
    uint64_t n_out = (uint64_t)p->out[0] * p->out[1] * p->out[2];
    uint64_t n_elements = (uint64_t)p->n * p->groups * p->m * n_out;
    if (n_elements == 0) return REE_OK;
    uint32_t n_factors = ree_conv_n_operands(p), n_tensors = 0;
    for (uint32_t i = 0; p->has_epilogue && i < p->epilogue.n_operands; i++)
        n_tensors += p->epilogue.operands[i].kind == REE_EXPR_TENSOR;
    struct ree_cpu_expr_plan epilogue;
    if (p->has_epilogue)
        REE_TRY(
            ree_cpu_expr_prepare(ctx, &p->epilogue, operands + n_factors, true, &epilogue, err));
    struct ree_conv conv = {
        .p = p,
        .words = words_of(ctx, p, operands),
        .x = operands[0],
        .w = operands[1],
        .output =
            {
                .epilogue = p->has_epilogue ? &epilogue : NULL,
                .out = operands[n_factors + n_tensors],
                .elem_size =
                    p->has_epilogue ? ree_dtype_size(p->epilogue.out_dtype) : sizeof(float),
            },
    };
    bool integer = conv.words.tiles != NULL;
    conv.floats = ree_tiles_for(ctx->isa);
    conv.tiles = integer ? &conv.words.tiles->tiles : conv.floats;
    uint64_t k = p->c * ree_conv_n_kernel(p), multiplications = n_elements * k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, multiplications / (integer ? 72 : 24));
    bool whole_groups = n_threads == 1 || p->n * p->groups >= 2 * n_threads;
    if (whole_groups && ree_conv_is_depthwise(p))
        return ree_conv_depthwise(ctx, &conv, n_threads, err);
    // There are no taps at all, or the layout would be too large in relation to the tensors.
    if (k == 0 || !ree_conv_layout_init(&conv.layout, p, &conv.words)) {
        ree_conv_definition(ctx, &conv, ree_cpu_threads_for(ctx, multiplications * 4));
        return REE_OK;
    }
    if (whole_groups && p->m < REE_CONV_FEW_CHANNELS && (!p->transposed || p->c == 1))
        return ree_conv_direct(ctx, &conv, n_threads, err);
    return ree_conv_tiles(ctx, &conv, n_threads, err);
}
