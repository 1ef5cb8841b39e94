// The input of a convolution, laid out so that every tap reads adjacent words.
//
// One channel becomes a plane with its padding written out, split by the remainder of the
// coordinate modulo the stride ("phases"), so that output position o reads element o + t of the
// phase that a tap belongs to. A tap is then one number, its offset from the output position's, and
// a convolution is sums over taps; nothing has to ask whether a coordinate lies in the padding.
//
// Transposed convolutions are the same with stride 1 over an input that has stride - 1 zeros
// between its elements, and with taps that walk backwards.
//
// Floats are words as they are. Of bytes a word holds as many terms as the integer tiles take at
// once (tiles_integer.h): the same element of several channels, so that a plane of words stands for
// a few channels and is read by one tap for all of them. Where there are too few channels for that
// (of a picture, or depthwise) taps along the last axis are "folded" into channels: term (c, kw) of
// the word at e is byte e + offset(kw) of channel c.
#ifndef REE_DEVICE_CPU_CONV_LAYOUT_H
#define REE_DEVICE_CPU_CONV_LAYOUT_H

#include "device/cpu/tiles_integer.h"

struct ree_conv_axis {
    uint32_t in, out, kernel;
    uint32_t spread;   // input element i stands at coordinate i * spread; 1 unless transposed
    uint32_t step;     // coordinate's increase with the output position
    int64_t dilation;  // and with the tap; negative when transposed
    int64_t origin;    // lowest coordinate that is read
    uint32_t n_phases; // that are read; phases[] their remainders
    uint32_t *phases;
    uint32_t length;   // elements of one phase
    uint32_t furthest; // element that a tap reads, from the output position's
};

// How bytes become words; for floats, `tiles` is NULL.
struct ree_conv_words {
    const struct ree_integer_tiles *tiles;
    bool is_signed, flip; // the bytes; `flip`: their top bits are
    uint8_t pad;          // outside x, before flipping
};

struct ree_conv_layout {
    struct ree_conv_axis axes[3];
    uint32_t phases[3][64];
    bool in_place; // x itself has this layout, from element `start` on
    uint32_t start;
    uint32_t plane;    // elements of one channel
    uint32_t n_taps;   // the reduction's length in words; of floats c * kernel
    uint32_t n_out;    // output positions of one channel
    uint32_t c;        // planes of words per group; of floats one for each channel
    uint32_t c_plane;  // words of such a plane
    uint32_t fold;     // taps along the last axis that are terms of one word; 1: none
    uint32_t n_terms;  // of all planes of a group: channels * fold
    uint32_t channels; // per group, as they come
    struct ree_conv_words words;
};

// False where the layout would be out of proportion to the tensors (huge paddings or dilations).
bool ree_conv_layout_init(struct ree_conv_layout *layout, const struct ree_conv_params *p,
                          const struct ree_conv_words *words);

// How many taps along the last axis are folded into channels with so many terms to a word, and how
// many words the reduction then has.
uint32_t ree_conv_fold(const struct ree_conv_params *p, uint32_t terms);
uint32_t ree_conv_n_words(const struct ree_conv_params *p, uint32_t terms);

// Offsets of all taps in (c, kd, kh, kw) order, kw being 0 where it is folded.
void ree_conv_layout_taps(const struct ree_conv_layout *layout, uint32_t *out);

// Lays out planes [first, first + n) of words of one group from its channels x (channels, in) to
// out (n, c_plane). bytes: scratch of ree_conv_layout_scratch() bytes.
void ree_conv_layout_fill(const struct ree_conv_layout *layout, const void *x, uint32_t first,
                          uint32_t n, uint8_t *bytes, void *out);
size_t ree_conv_layout_scratch(const struct ree_conv_layout *layout);

// Whether x is read where it lies.
static inline bool ree_conv_layout_is_x(const struct ree_conv_layout *layout) {
    return layout->in_place && !layout->words.tiles;
}

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
