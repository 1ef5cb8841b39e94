// The input of a convolution, laid out so that every tap reads adjacent floats.
//
// One channel becomes a plane with its zeros written out, split by the remainder of the coordinate
// modulo the stride ("phases"), so that output position o reads element o + t of the phase that a
// tap belongs to. A tap is then one number, its offset from the output position's, and a
// convolution is sums over taps; nothing has to ask whether a coordinate lies in the padding.
//
// Transposed convolutions are the same with stride 1 over an input that has stride - 1 zeros
// between its elements, and with taps that walk backwards.
#ifndef REE_DEVICE_CPU_CONV_LAYOUT_H
#define REE_DEVICE_CPU_CONV_LAYOUT_H

#include "device/cpu/cpu_internal.h"

struct ree_conv_axis {
    uint32_t in, out, kernel;
    uint32_t spread;   // input element i stands at coordinate i * spread; 1 unless transposed
    uint32_t step;     // coordinate's increase with the output position
    int64_t dilation;  // and with the tap; negative when transposed
    int64_t origin;    // lowest coordinate that is read
    uint32_t n_phases; // that are read; phases[] their remainders
    uint32_t *phases;
    uint32_t length; // elements of one phase
};

struct ree_conv_layout {
    struct ree_conv_axis axes[3];
    uint32_t phases[3][64];
    bool in_place; // x itself has this layout, from element `start` on
    uint32_t start;
    uint32_t plane;  // floats of one channel
    uint32_t c;      // channels per group
    uint32_t n_taps; // c * kernel: the reduction's length
    uint32_t n_out;  // output positions of one channel
};

// False where the layout would be out of proportion to the tensors (huge paddings or dilations).
bool ree_conv_layout_init(struct ree_conv_layout *layout, const struct ree_conv_params *p);

// Offsets of all taps in (c, kd, kh, kw) order.
void ree_conv_layout_taps(const struct ree_conv_layout *layout, uint32_t *out);

// Lays out one channel: x (in) to out (plane).
void ree_conv_layout_fill(const struct ree_conv_layout *layout, const float *x, float *out);

// Where output position `o` (flat) stands, and how many positions from it on, at most, follow
// adjacently: those of the rest of its row.
static inline uint32_t ree_conv_layout_at(const struct ree_conv_layout *layout, uint32_t o,
                                          uint32_t *out_run) {
    const struct ree_conv_axis *axes = layout->axes;
    uint32_t w = o % axes[2].out, row = o / axes[2].out;
    uint32_t h = row % axes[1].out, d = row / axes[1].out;
    *out_run = axes[2].out - w;
    return (d * axes[1].length + h) * axes[2].length + w;
}

#endif
