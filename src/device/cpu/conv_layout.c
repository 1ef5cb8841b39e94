#include "device/cpu/conv_layout.h"

#define MAX_PHASES 64

// Returns an axis with the fields that follow directly from the parameters; find_phases computes
// the others.
static struct ree_conv_axis make_axis(const struct ree_conv_params *p, int i) {
    struct ree_conv_axis axis = {.in = p->in[i], .out = p->out[i], .kernel = p->kernel[i]};
    int64_t first; // coordinate of tap 0 at output position 0
    if (p->transposed) {
        axis.spread = p->stride[i];
        axis.step = 1;
        axis.dilation = -(int64_t)p->dilation[i];
        first = p->pad[i];
    } else {
        axis.spread = 1;
        axis.step = p->stride[i];
        axis.dilation = p->dilation[i];
        first = -(int64_t)p->pad[i];
    }
    // With a single output position the step has no effect, except that it would add phases.
    if (axis.out == 1) axis.step = 1;
    axis.origin = first + (axis.dilation < 0 ? (axis.kernel - 1) * axis.dilation : 0);
    return axis;
}

// Returns the distance of a tap's coordinate from the origin, at output position 0.
static uint64_t tap_distance(const struct ree_conv_axis *axis, uint32_t tap) {
    return axis->dilation < 0 ? (uint64_t)(axis->kernel - 1 - tap) * (uint64_t)-axis->dilation
                              : (uint64_t)tap * (uint64_t)axis->dilation;
}

static uint32_t phase_slot(const struct ree_conv_axis *axis, uint32_t remainder) {
    uint32_t slot = 0;
    while (slot < axis->n_phases && axis->phases[slot] != remainder)
        slot++;
    return slot;
}

static bool find_phases(struct ree_conv_axis *axis) {
    uint64_t furthest = 0;
    for (uint32_t tap = 0; tap < axis->kernel; tap++) {
        uint64_t distance = tap_distance(axis, tap);
        uint32_t remainder = (uint32_t)(distance % axis->step);
        uint32_t slot = phase_slot(axis, remainder);
        if (slot == MAX_PHASES) return false;
        if (slot == axis->n_phases) axis->phases[axis->n_phases++] = remainder;
        if (distance / axis->step > furthest) furthest = distance / axis->step;
    }
    if (furthest >= INT32_MAX - axis->out) return false;
    axis->furthest = (uint32_t)furthest;
    axis->length = axis->out + axis->furthest;
    return true;
}

// Returns whether x already has the layout along this axis.
static bool axis_in_place(const struct ree_conv_axis *axis) {
    return axis->step == 1 && axis->spread == 1 && axis->origin >= 0 &&
           axis->origin + axis->length <= axis->in;
}

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

// Folds only if this saves at least a quarter of the words, because words with folded taps cost
// more to make.
uint32_t ree_conv_fold(const struct ree_conv_params *p, uint32_t terms) {
    uint64_t plain = (uint64_t)ceil_div(p->c, terms) * p->kernel[2];
    uint64_t folded = ((uint64_t)p->c * p->kernel[2] + terms - 1) / terms;
    return terms > 1 && p->kernel[2] > 1 && 4 * folded <= 3 * plain ? p->kernel[2] : 1;
}

uint32_t ree_conv_n_words(const struct ree_conv_params *p, uint32_t terms) {
    uint32_t fold = ree_conv_fold(p, terms);
    return ceil_div(p->c * fold, terms) * p->kernel[0] * p->kernel[1] * (p->kernel[2] / fold);
}

// Sets the fields that describe planes of words. Those that describe planes of elements must be set
// already.
static void set_words(struct ree_conv_layout *layout, const struct ree_conv_params *p) {
    uint32_t terms = layout->words.tiles ? layout->words.tiles->tiles.terms : 1;
    layout->fold = ree_conv_fold(p, terms);
    layout->n_terms = p->c * layout->fold;
    layout->c = ceil_div(layout->n_terms, terms);
    layout->n_taps = ree_conv_n_words(p, terms);
    // A word with folded taps belongs to the phase of tap 0, the first phase of the last axis. The
    // other taps are bytes at an offset, so their phases need no words.
    layout->c_plane = layout->fold > 1 ? layout->plane / layout->axes[2].n_phases : layout->plane;
}

bool ree_conv_layout_init(struct ree_conv_layout *layout, const struct ree_conv_params *p,
                          const struct ree_conv_words *words) {
    memset(layout, 0, sizeof *layout);
    uint64_t plane = 1, n_in = 1;
    bool in_place = true;
    layout->words = *words;
    layout->channels = p->c;
    layout->n_out = 1;
    for (int i = 0; i < 3; i++) {
        struct ree_conv_axis *axis = &layout->axes[i];
        *axis = make_axis(p, i);
        axis->phases = layout->phases[i];
        if (!find_phases(axis)) return false;
        in_place = in_place && axis_in_place(axis);
        plane *= (uint64_t)axis->length * axis->n_phases;
        if (plane > INT32_MAX) return false;
        n_in *= axis->in;
        layout->n_out *= axis->out;
    }
    if (in_place) {
        layout->in_place = true;
        for (int i = 0; i < 3; i++) {
            struct ree_conv_axis *axis = &layout->axes[i];
            layout->start = layout->start * axis->in + (uint32_t)axis->origin;
            axis->length = axis->in;
        }
        plane = n_in;
    }
    layout->plane = (uint32_t)plane;
    set_words(layout, p);
    // The offsets of taps must fit in 32 bits.
    if (in_place && !words->tiles) return true;
    if ((uint64_t)layout->c_plane * layout->c > INT32_MAX) return false;
    if (in_place) return true;
    uint64_t spread = (uint64_t)layout->axes[0].spread * layout->axes[1].spread;
    spread *= layout->axes[2].spread;
    uint64_t proportion = 8 * spread * n_in + 8 * (uint64_t)layout->n_out + (1 << 16);
    return plane <= proportion;
}

// Returns the offset of the element that a tap reads from the element that offset 0 reads, in a
// plane with phases_w phases along the last axis.
static uint32_t tap_offset(const struct ree_conv_layout *layout, const uint32_t taps[3],
                           uint32_t phases_w) {
    const struct ree_conv_axis *axes = layout->axes;
    uint32_t phase_size = axes[0].length * axes[1].length * axes[2].length;
    uint32_t phase = 0, at = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t distance = tap_distance(&axes[i], taps[i]);
        uint32_t remainder = (uint32_t)(distance % axes[i].step);
        phase = phase * (i == 2 ? phases_w : axes[i].n_phases) + phase_slot(&axes[i], remainder);
        at = at * axes[i].length + (uint32_t)(distance / axes[i].step);
    }
    return phase * phase_size + at;
}

void ree_conv_layout_taps(const struct ree_conv_layout *layout, uint32_t *out) {
    const struct ree_conv_axis *axes = layout->axes;
    bool folded = layout->fold > 1;
    for (uint32_t c = 0; c < layout->c; c++)
        for (uint32_t kd = 0; kd < axes[0].kernel; kd++)
            for (uint32_t kh = 0; kh < axes[1].kernel; kh++)
                for (uint32_t kw = 0; kw < (folded ? 1 : axes[2].kernel); kw++)
                    *out++ = c * layout->c_plane + tap_offset(layout, (uint32_t[]){kd, kh, kw},
                                                              folded ? 1 : axes[2].n_phases);
}

// Returns the index of the input element at a coordinate, or -1 if there is none: in the padding,
// or between the elements of a transposed convolution's input. The divisions cost as much as
// copying a row, so they are left out if spread is 1.
static int64_t element_at(const struct ree_conv_axis *axis, int64_t coordinate) {
    if (coordinate < 0) return -1;
    if (axis->spread != 1) {
        if (coordinate % axis->spread != 0) return -1;
        coordinate /= axis->spread;
    }
    return coordinate < axis->in ? coordinate : -1;
}

// One row of one phase: element e is the input at coordinate `first` + e * step. Elements [begin,
// end) are inside the input.
struct row {
    int64_t first, begin, end;
};

static struct row make_row(const struct ree_conv_axis *axis, uint32_t phase) {
    int64_t step = axis->step, length = axis->length;
    struct row row = {.first = axis->origin + axis->phases[phase]};
    if (axis->spread != 1) return row; // fill_row_<type> looks up its elements one by one
    row.begin = row.first < 0 ? (-row.first + step - 1) / step : 0;
    row.end = row.first >= axis->in ? 0 : (axis->in - row.first + step - 1) / step;
    if (row.begin > length) row.begin = length;
    if (row.end > length) row.end = length;
    if (row.end < row.begin) row.end = row.begin;
    return row;
}

// Defines fill_<type>, which lays out one channel x as a plane `out`. In the loop for step 2, the
// compiler knows the stride.
#define DEFINE_FILL(type)                                                                          \
    static void fill_row_##type(const struct ree_conv_axis *axis, const struct row *row,           \
                                const type *x, type pad, type *restrict out) {                     \
        if (axis->spread != 1) {                                                                   \
            for (uint32_t e = 0; e < axis->length; e++) {                                          \
                int64_t i = element_at(axis, row->first + (int64_t)e * axis->step);                \
                out[e] = i < 0 ? pad : x[i];                                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t e = 0; e < row->begin; e++)                                                   \
            out[e] = pad;                                                                          \
        const type *from = x + row->first + row->begin * axis->step;                               \
        int64_t n = row->end - row->begin;                                                         \
        if (axis->step == 1 && n > 0)                                                              \
            memcpy(out + row->begin, from, (size_t)n * sizeof(type));                              \
        else if (axis->step == 2)                                                                  \
            for (int64_t e = 0; e < n; e++)                                                        \
                out[row->begin + e] = from[2 * e];                                                 \
        else                                                                                       \
            for (int64_t e = 0; e < n; e++)                                                        \
                out[row->begin + e] = from[e * axis->step];                                        \
        for (int64_t e = row->end; e < axis->length; e++)                                          \
            out[e] = pad;                                                                          \
    }                                                                                              \
    static void fill_##type(const struct ree_conv_layout *layout, const type *x, type pad,         \
                            type *out) {                                                           \
        const struct ree_conv_axis *d = &layout->axes[0], *h = &layout->axes[1];                   \
        const struct ree_conv_axis *w = &layout->axes[2];                                          \
        uint32_t n_phases = d->n_phases * h->n_phases * w->n_phases;                               \
        for (uint32_t phase = 0; phase < n_phases; phase++) {                                      \
            uint32_t phase_h = phase / w->n_phases % h->n_phases;                                  \
            uint32_t phase_d = phase / w->n_phases / h->n_phases;                                  \
            struct row row = make_row(w, phase % w->n_phases);                                     \
            for (uint32_t i = 0; i < d->length; i++) {                                             \
                int64_t at_d =                                                                     \
                    element_at(d, d->origin + d->phases[phase_d] + (int64_t)i * d->step);          \
                for (uint32_t j = 0; j < h->length; j++, out += w->length) {                       \
                    int64_t at_h =                                                                 \
                        element_at(h, h->origin + h->phases[phase_h] + (int64_t)j * h->step);      \
                    if (at_d >= 0 && at_h >= 0)                                                    \
                        fill_row_##type(w, &row, x + (at_d * h->in + at_h) * w->in, pad, out);     \
                    else                                                                           \
                        for (uint32_t e = 0; e < w->length; e++)                                   \
                            out[e] = pad;                                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_FILL(float)
DEFINE_FILL(uint8_t)

size_t ree_conv_layout_scratch(const struct ree_conv_layout *layout) {
    if (!layout->words.tiles || layout->in_place) return 0;
    return (size_t)layout->words.tiles->tiles.terms * layout->plane;
}

// Makes one plane of words from its terms' planes of bytes.
static void interleave(const struct ree_conv_layout *layout, const uint8_t *const *terms,
                       ree_any_u32 *out) {
    const struct ree_conv_words *words = &layout->words;
    if (layout->fold == 1) {
        words->tiles->interleave(terms, layout->plane, words->is_signed, words->flip, out);
        return;
    }
    // Words with folded taps exist for each phase of the other axes, and for the phase of tap 0
    // along the last axis. The last words of a phase are left out: bytes of other taps may lie
    // beyond the end of the plane, and no output position reads these words.
    const struct ree_conv_axis *axes = layout->axes;
    uint32_t size = axes[0].length * axes[1].length * axes[2].length;
    uint32_t n_phases = axes[0].n_phases * axes[1].n_phases;
    for (uint32_t phase = 0; phase < n_phases; phase++) {
        const uint8_t *from[REE_TILE_MAX_TERMS];
        for (uint32_t t = 0; t < words->tiles->tiles.terms; t++)
            from[t] = terms[t] + (size_t)phase * axes[2].n_phases * size;
        words->tiles->interleave(from, size - axes[2].furthest, words->is_signed, words->flip,
                                 out + (size_t)phase * size);
    }
}

void ree_conv_layout_fill(const struct ree_conv_layout *layout, const void *x, uint32_t first,
                          uint32_t n, uint8_t *bytes, void *out) {
    const struct ree_conv_axis *axes = layout->axes;
    size_t n_in = (size_t)axes[0].in * axes[1].in * axes[2].in;
    if (!layout->words.tiles) {
        float *plane = out;
        for (uint32_t c = first; c < first + n; c++, plane += layout->plane)
            fill_float(layout, (const float *)x + c * n_in, 0.0f, plane);
        return;
    }
    uint32_t terms = layout->words.tiles->tiles.terms, fold = layout->fold;
    // The channels of one word are consecutive, and there are at most `terms`. So `terms` planes of
    // bytes suffice; the next channel reuses the oldest plane.
    ree_any_u32 *words = out;
    uint32_t next = first * terms / fold;
    for (uint32_t i = first; i < first + n; i++, words += layout->c_plane) {
        const uint8_t *planes[REE_TILE_MAX_TERMS];
        for (uint32_t t = 0; t < terms; t++) {
            uint32_t term = i * terms + t, c = term / fold;
            // Padding terms have weight zero, so their value is irrelevant.
            if (term >= layout->n_terms) {
                planes[t] = planes[0];
                continue;
            }
            const uint8_t *from = (const uint8_t *)x + c * n_in, *plane = from;
            if (!layout->in_place) {
                plane = bytes + (size_t)(c % terms) * layout->plane;
                if (c >= next) {
                    fill_uint8_t(layout, from, layout->words.pad, (uint8_t *)(uintptr_t)plane);
                    next = c + 1;
                }
            }
            if (fold > 1)
                plane += tap_offset(layout, (uint32_t[]){0, 0, term % fold}, axes[2].n_phases);
            planes[t] = plane;
        }
        interleave(layout, planes, words);
    }
}
