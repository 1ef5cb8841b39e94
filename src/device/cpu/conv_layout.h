// The input of a convolution, laid out so that every tap reads adjacent words.
//
// One channel becomes a plane with explicit padding. The plane is divided into "phases" by the
// coordinate modulo the stride. Output position o then reads element o + t of the phase to which a
// tap belongs. So a tap is one number: its offset from the output position. A convolution is a sum
// over taps, without any check for padding.
//
// Transposed convolutions are computed the same way, with stride 1, over an input with stride - 1
// zeros between its elements and with taps in reverse order.
//
// A float is one word. For bytes, a word holds as many terms as one step of the integer tiles
// (tiles_integer.h). The terms are the same element of several channels, so one plane of words
// represents several channels and one tap reads all of them. If there are too few channels (an
// image, or depthwise), taps along the last axis are "folded" into channels: term (c, kw) of the
// word at e is byte e + offset(kw) of channel c.
#ifndef REE_DEVICE_CPU_CONV_LAYOUT_H
#define REE_DEVICE_CPU_CONV_LAYOUT_H

#include "device/cpu/tiles_integer.h"

struct ree_conv_axis {
    uint32_t in, out, kernel;
    uint32_t spread;   // input element i has coordinate i * spread; 1 unless transposed
    uint32_t step;     // increase of the input coordinate per output position
    int64_t dilation;  // increase of the input coordinate per tap; negative if transposed
    int64_t origin;    // lowest input coordinate that is read; negative if in the padding
    uint32_t n_phases; // number of phases (remainders of coordinates modulo `step`) that are read
    uint32_t *phases;  // [n_phases]: for each phase, (coordinate - origin) modulo `step`
    uint32_t length;   // elements of one phase along this axis
    uint32_t furthest; // largest offset of a tap from the output position
};

// How elements of the convolution's input x are packed into 32-bit words. A float already is one;
// `tiles` is NULL for floats.
struct ree_conv_words {
    const struct ree_integer_tiles *tiles;
    // is_signed: the bytes are int8. flip: the top bit of every byte is flipped.
    bool is_signed, flip;
    uint8_t pad; // value of elements outside x, before flipping
};

struct ree_conv_layout {
    struct ree_conv_axis axes[3];
    uint32_t phases[3][64];
    bool in_place; // x itself has this layout, starting at element `start`
    uint32_t start;
    uint32_t plane;    // elements of one channel after layout, all phases
    uint32_t n_taps;   // words per sum (length of K); for floats c * kernel positions
    uint32_t n_out;    // output positions of one channel
    uint32_t c;        // planes of words per group; for floats one per input channel
    uint32_t c_plane;  // words of one plane
    uint32_t fold;     // taps along the last axis that share a word; 1: no folding
    uint32_t n_terms;  // terms of all planes of a group: channels * fold
    uint32_t channels; // input channels per group, before folding
    struct ree_conv_words words;
};

// Computes the layout. Returns false if it would have too many phases or would be too large in
// relation to the tensors (huge stride, padding or dilation).
bool ree_conv_layout_init(struct ree_conv_layout *layout, const struct ree_conv_params *p,
                          const struct ree_conv_words *words);

// ree_conv_fold returns how many taps along the last axis are folded into channels if a word has
// `terms` terms. ree_conv_n_words returns the length of the reduction in words.
uint32_t ree_conv_fold(const struct ree_conv_params *p, uint32_t terms);
uint32_t ree_conv_n_words(const struct ree_conv_params *p, uint32_t terms);

// Writes the offsets of all taps to out[n_taps], in (c, kd, kh, kw) order. If taps along the last
// axis are folded, only kw 0 has an offset.
void ree_conv_layout_taps(const struct ree_conv_layout *layout, uint32_t *out);

// Lays out planes of words [first, first + n) of one group, from x (channels, in), the group's
// channels, to out (n, c_plane). `bytes` is scratch of ree_conv_layout_scratch() bytes.
void ree_conv_layout_fill(const struct ree_conv_layout *layout, const void *x, uint32_t first,
                          uint32_t n, uint8_t *bytes, void *out);
size_t ree_conv_layout_scratch(const struct ree_conv_layout *layout);

// Returns whether the kernels read x itself, without a copy.
static inline bool ree_conv_layout_is_x(const struct ree_conv_layout *layout) {
    return layout->in_place && !layout->words.tiles;
}

// Returns the index in a plane of the element that a tap of offset 0 reads for output position `o`
// (flat). *out_run: the number of positions from `o` to the end of its row; their elements are
// adjacent.
static inline uint32_t ree_conv_layout_at(const struct ree_conv_layout *layout, uint32_t o,
                                          uint32_t *out_run) {
    const struct ree_conv_axis *axes = layout->axes;
    uint32_t w = o % axes[2].out, row = o / axes[2].out;
    uint32_t h = row % axes[1].out, d = row / axes[1].out;
    *out_run = axes[2].out - w;
    return (d * axes[1].length + h) * axes[2].length + w;
}

#endif
