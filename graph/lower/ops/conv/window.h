// The geometry of convolution and pooling windows: reads and checks attributes, computes output
// sizes.
#ifndef REE_GRAPH_LOWER_OPS_CONV_WINDOW_H
#define REE_GRAPH_LOWER_OPS_CONV_WINDOW_H

#include "graph/lower/ops/rules.h"

#define REE_WINDOW_DIMS 3

enum ree_auto_pad { REE_PAD_NOTSET, REE_PAD_VALID, REE_PAD_SAME_UPPER, REE_PAD_SAME_LOWER };

// Always three dimensions: 1-D and 2-D windows have leading dimensions of size 1. Every sum of
// these numbers that a kernel forms is below 2^31.
struct ree_window {
    uint32_t n;     // spatial dimensions of the model, 1 to 3
    uint32_t first; // REE_WINDOW_DIMS - n: index of the model's first dimension
    enum ree_auto_pad auto_pad;
    int64_t in[REE_WINDOW_DIMS], kernel[REE_WINDOW_DIMS], out[REE_WINDOW_DIMS];
    int64_t stride[REE_WINDOW_DIMS], dilation[REE_WINDOW_DIMS];
    int64_t pad_begin[REE_WINDOW_DIMS], pad_end[REE_WINDOW_DIMS];
    int64_t extent[REE_WINDOW_DIMS]; // (kernel - 1) * dilation + 1
};

// Reads strides, dilations, pads and auto_pad for x (n, channels, sizes...), whose rank must be 3
// to 5. The kernel's size is taken from w (.., .., sizes...), and kernel_shape must agree with it;
// if w is NULL, it is kernel_shape.
enum ree_status ree_window_read(struct ree_lower *lower, const struct ree_view *x,
                                const struct ree_view *w, struct ree_window *out);
// Computes `out`, and the padding that auto_pad requires.
enum ree_status ree_window_forward(struct ree_lower *lower, struct ree_window *w, bool ceil_mode);
// As ree_window_forward, for ConvTranspose, with output_padding and output_shape.
enum ree_status ree_window_transposed(struct ree_lower *lower, struct ree_window *w);
// Reads a list attribute with one integer in [low, 2^31) per dimension of the model into
// out[first...]. If the attribute is absent, all entries are `fallback`. *out_given (may be NULL)
// tells whether it was present.
enum ree_status ree_window_list(struct ree_lower *lower, const struct ree_window *w,
                                const char *name, int64_t low, int64_t fallback, int64_t *out,
                                bool *out_given);

// Convolution (conv.c). Reads the window and the number of groups from x (n, channels, sizes...), w
// (channels, channels per group, sizes...) and the attributes.
enum ree_status ree_conv_read(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *w, struct ree_window *window,
                              int64_t *out_groups);
// Emits only the convolution, without bias: float32, or int32 for int8 and uint8. m: output
// channels per group. pad_value, for integers, is one element of x's type; NULL: zero.
enum ree_status ree_conv_emit(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                              struct ree_view *pad_value, const struct ree_window *window,
                              int64_t groups, int64_t m, bool transposed, struct ree_view **out);

#endif
