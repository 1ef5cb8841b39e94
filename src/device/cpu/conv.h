// What the files of conv share.
//
// A convolution is a product of w (rows: output channels, K: taps) with a matrix that is never
// built: the input is laid out so that a tap is an offset (conv_layout.h), and summed by tiles
// (conv_tiles.c), or directly where a group has few output channels (conv_direct.c). All of that
// moves words, which are floats or several terms of an integer sum.
#ifndef REE_DEVICE_CPU_CONV_H
#define REE_DEVICE_CPU_CONV_H

#include "device/cpu/conv_layout.h"
#include "device/cpu/expr.h"

// Fewer output channels per group than this are summed directly. No tile has fewer rows.
#define REE_CONV_FEW_CHANNELS 4

struct ree_conv_output {
    const struct ree_cpu_expr_plan *epilogue; // NULL: none
    void *out;
    size_t elem_size; // of out
};

// Writes elements [first, first + count) of the output from finished sums (float32, or int32 by the
// same bits); values may be the output's own memory.
static inline void ree_conv_write(const struct ree_conv_output *output, const void *values,
                                  uint32_t first, uint32_t count) {
    if (output->epilogue)
        ree_cpu_expr_row(output->epilogue, values, first, count, output->out);
    else if (values != (char *)output->out + (size_t)first * 4)
        memcpy((char *)output->out + (size_t)first * 4, values, (size_t)count * 4);
}

struct ree_conv {
    const struct ree_conv_params *p;
    const struct ree_tiles *floats, *tiles; // tiles: those of the sum's type
    struct ree_conv_words words;            // of integers: how x becomes words
    struct ree_conv_layout layout;
    const void *x, *w;
    struct ree_conv_output output;
    const uint32_t *taps; // their offsets
};

static inline uint64_t ree_conv_n_kernel(const struct ree_conv_params *p) {
    return (uint64_t)p->kernel[0] * p->kernel[1] * p->kernel[2];
}
static inline uint64_t ree_conv_n_input(const struct ree_conv_params *p) {
    return (uint64_t)p->in[0] * p->in[1] * p->in[2];
}
static inline uint32_t ree_conv_min(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static inline uint32_t ree_conv_ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

// Packed weights (conv_weights.c): for each group, each chunk of K, each panel of output channels:
// (chunk's words, rows). Of integers, behind them the sum of each output channel's weights.

struct ree_conv_packing {
    const struct ree_conv_params *p;
    const struct ree_tiles *tiles;
    const struct ree_integer_tiles *integer; // NULL: floats
    uint32_t n_words;                        // of K
    uint32_t panel_rows;                     // of all panels but the last of a group
};
struct ree_conv_packing ree_conv_packing_of(const struct ree_cpu_context *ctx,
                                            const struct ree_conv_params *p);
size_t ree_conv_packed_size(const struct ree_conv_packing *packing); // bytes
// Output channels [i, i + panel_rows) of group g.
void ree_conv_pack_panel(const struct ree_conv_packing *packing, const void *w, uint32_t g,
                         uint32_t i, float *packed);

// x is laid out as what it is less this: as many times a channel's weights have to be added to its
// sums.
static inline uint32_t ree_conv_shift(const struct ree_conv *conv) {
    if (!conv->words.flip) return 0;
    return (uint32_t)ree_integer_shift(conv->words.is_signed);
}
// What that adds to the sums of output channel `channel` of all groups.
static inline uint32_t ree_conv_correction(const struct ree_conv *conv, const float *packed,
                                           uint32_t channel) {
    uint32_t shift = ree_conv_shift(conv);
    if (!shift) return 0;
    size_t n_words = (size_t)conv->p->groups * conv->p->m * conv->layout.n_taps;
    return shift * ((const ree_any_u32 *)packed + n_words)[channel];
}

// Scratch of the context, by what it is for. The first two are thread 0's, for all.
enum ree_conv_slot {
    REE_CONV_SLOT_SHARED,  // taps and laid-out input
    REE_CONV_SLOT_WEIGHTS, // packed weights
    REE_CONV_SLOT_PANELS,
    REE_CONV_SLOT_TOTALS,
};

enum ree_status ree_conv_tiles(const struct ree_cpu_context *ctx, struct ree_conv *conv,
                               uint32_t n_threads, struct ree_error *err);
enum ree_status ree_conv_direct(const struct ree_cpu_context *ctx, struct ree_conv *conv,
                                uint32_t n_threads, struct ree_error *err);
// Depthwise, by its own kernels: for what is_depthwise says.
bool ree_conv_is_depthwise(const struct ree_conv_params *p);
enum ree_status ree_conv_depthwise(const struct ree_cpu_context *ctx, const struct ree_conv *conv,
                                   uint32_t n_threads, struct ree_error *err);
// For shapes that no layout suits.
void ree_conv_definition(const struct ree_conv *conv, uint32_t n_threads);

#endif
