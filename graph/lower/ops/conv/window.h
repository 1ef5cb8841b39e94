// The geometry of convolution and pooling windows: reads and checks the attributes, and computes
// the sizes of the output.
#ifndef REE_GRAPH_LOWER_OPS_CONV_WINDOW_H
#define REE_GRAPH_LOWER_OPS_CONV_WINDOW_H

#include "graph/lower/ops/rules.h"

#define REE_WINDOW_DIMS 3

enum ree_auto_pad { REE_PAD_NOTSET, REE_PAD_VALID, REE_PAD_SAME_UPPER, REE_PAD_SAME_LOWER };

// A window in three dimensions: 1-D and 2-D windows have leading dimensions of size 1. Every sum of
// these numbers that a kernel forms is below 2^31.
struct ree_window {
    uint32_t n;     // number of spatial dimensions of x, 1 to 3
    uint32_t first; // index of x's first spatial dimension in the arrays: REE_WINDOW_DIMS - n
    enum ree_auto_pad auto_pad;
    int64_t in[REE_WINDOW_DIMS], kernel[REE_WINDOW_DIMS], out[REE_WINDOW_DIMS];
    int64_t stride[REE_WINDOW_DIMS], dilation[REE_WINDOW_DIMS];
    int64_t pad_begin[REE_WINDOW_DIMS], pad_end[REE_WINDOW_DIMS];
    // input positions that a window spans: (kernel - 1) * dilation + 1
    int64_t extent[REE_WINDOW_DIMS];
};

// Reads strides, dilations, pads and auto_pad for x (n, channels, sizes...), whose rank must be 3
// to 5. The kernel's size is that of w (.., .., sizes...), and the attribute kernel_shape must
// agree with it. If w is NULL, kernel_shape gives the size. Does not set `out`.
enum ree_status ree_window_read(struct ree_lower *lower, const struct ree_view *x,
                                const struct ree_view *w, struct ree_window *out);
// Computes w->out, and the padding that auto_pad requires. ceil_mode rounds the size of the output
// up.
enum ree_status ree_window_forward(struct ree_lower *lower, struct ree_window *w, bool ceil_mode);
// As ree_window_forward, for ConvTranspose: reads the attributes output_padding and output_shape.
enum ree_status ree_window_transposed(struct ree_lower *lower, struct ree_window *w);
// Reads the attribute `name`, a list with one integer in [low, 2^31) per spatial dimension of x,
// into out[w->first], out[w->first + 1], ... If the attribute is absent or empty, all entries are
// `fallback` and *out_given (may be NULL) is false.
enum ree_status ree_window_list(struct ree_lower *lower, const struct ree_window *w,
                                const char *name, int64_t low, int64_t fallback, int64_t *out,
                                bool *out_given);

// Convolution (conv.c). Reads the window and the number of groups from x (n, channels, sizes...), w
// (output channels, input channels per group, sizes...) and the attributes.
enum ree_status ree_conv_read(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *w, struct ree_window *window,
                              int64_t *out_groups);
// Emits the convolution without bias. *out is float32 for float32 inputs, and int32 for int8 and
// uint8. m: number of output channels per group. pad_value, only for integers, is one element of
// the type of x that padding has; NULL: padding is zero.
enum ree_status ree_conv_emit(struct ree_lower *lower, struct ree_view *x, struct ree_view *w,
                              struct ree_view *pad_value, const struct ree_window *window,
                              int64_t groups, int64_t m, bool transposed, struct ree_view **out);

#endif
