// Shared by the files conv*.c.
//
// A convolution is a product of w (output channels, K) with a matrix of inputs that is never built.
// K counts the taps: one for each input channel and kernel position. The input is laid out so that
// a tap is an offset (conv_layout.h). The sums are computed by tiles (conv_tiles.c), or directly if
// a group has few output channels (conv_direct.c). All of these move words: a word is one float, or
// several terms of an integer sum.
#ifndef REE_DEVICE_CPU_CONV_H
#define REE_DEVICE_CPU_CONV_H

#include "device/cpu/conv_layout.h"
#include "device/cpu/expr.h"

// Groups with fewer output channels than this are summed directly. The largest tile of every
// instruction set has at least this many rows, so their packed weights are one panel.
#define REE_CONV_FEW_CHANNELS 4

struct ree_conv_output {
    const struct ree_cpu_expr_plan *epilogue; // NULL: none
    void *out;
    size_t elem_size; // bytes per element of out
};

// Writes elements [first, first + count) of the output from finished sums (float32 or int32),
// through the epilogue if there is one. `values` may be the output's own memory.
static inline void ree_conv_write(const struct ree_conv_output *output, const void *values,
                                  uint32_t first, uint32_t count) {
    if (output->epilogue)
        ree_cpu_expr_row(output->epilogue, values, first, count, output->out);
    else if (values != (char *)output->out + (size_t)first * 4)
        memcpy((char *)output->out + (size_t)first * 4, values, (size_t)count * 4);
}

struct ree_conv {
    const struct ree_conv_params *p;
    // Tiles for float32 sums, and tiles for the type of this convolution's sums (float32 or int32).
    const struct ree_tiles *floats, *tiles;
    // how elements of the input x are packed into 32-bit words
    struct ree_conv_words words;
    struct ree_conv_layout layout;
    const void *x, *w;
    struct ree_conv_output output;
    const uint32_t *taps; // [layout.n_taps]: offset of each tap in the laid-out input, in words
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

// Layout of packed weights (conv_weights.c): for each group, for each chunk of K, for each panel of
// output channels, a matrix (words of the chunk, rows of the panel). For integers, the sum of each
// output channel's weights follows at the end.

struct ree_conv_packing {
    const struct ree_conv_params *p;
    const struct ree_tiles *tiles;
    const struct ree_integer_tiles *integer; // NULL: floats
    uint32_t n_words;                        // length of each sum (K) in packed 32-bit words
    uint32_t panel_rows; // output channels per panel; the last panel of a group may have fewer
};
struct ree_conv_packing ree_conv_packing_of(const struct ree_cpu_context *ctx,
                                            const struct ree_conv_params *p);
size_t ree_conv_packed_size(const struct ree_conv_packing *packing); // in bytes
// Packs output channels [i, i + panel_rows) of group g. `packed` is the start of all packed
// weights.
void ree_conv_pack_panel(const struct ree_conv_packing *packing, const void *w, uint32_t g,
                         uint32_t i, float *packed);

// Returns `shift`: x is laid out as x - shift. To correct a channel's sums, add shift times the sum
// of the channel's weights. 0 for floats.
static inline uint32_t ree_conv_shift(const struct ree_conv *conv) {
    if (!conv->words.flip) return 0;
    return (uint32_t)ree_integer_shift(conv->words.is_signed);
}
// Returns the correction to add to the sums of output channel `channel` (counted over all groups).
static inline uint32_t ree_conv_correction(const struct ree_conv *conv, const float *packed,
                                           uint32_t channel) {
    uint32_t shift = ree_conv_shift(conv);
    if (!shift) return 0;
    size_t n_words = (size_t)conv->p->groups * conv->p->m * conv->layout.n_taps;
    return shift * ((const ree_any_u32 *)packed + n_words)[channel];
}

// Uses of the context's scratch slots. The first two slots belong to thread 0 and are shared by all
// threads.
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
// Returns whether ree_conv_depthwise, which has kernels of its own, can compute the convolution:
// one input channel and few output channels per group, kernels of 3x3 or 5x5, stride 1 or 2.
bool ree_conv_is_depthwise(const struct ree_conv_params *p);
enum ree_status ree_conv_depthwise(const struct ree_cpu_context *ctx, const struct ree_conv *conv,
                                   uint32_t n_threads, struct ree_error *err);
// Computes the convolution element by element, for shapes that have no suitable layout.
void ree_conv_definition(const struct ree_cpu_context *ctx, const struct ree_conv *conv,
                         uint32_t n_threads);

#endif
