#include "device/cpu/conv_layout.h"

#define MAX_PHASES 64

// Sets everything of an axis but n_phases and length from the parameters.
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
    // A single output position has no step, and would otherwise cost phases.
    if (axis.out == 1) axis.step = 1;
    axis.origin = first + (axis.dilation < 0 ? (axis.kernel - 1) * axis.dilation : 0);
    return axis;
}

// Distance of a tap's coordinate from the origin, at output position 0.
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
    axis->length = axis->out + (uint32_t)furthest;
    return true;
}

// Whether x already is what the layout would be along this axis.
static bool axis_in_place(const struct ree_conv_axis *axis) {
    return axis->step == 1 && axis->spread == 1 && axis->origin >= 0 &&
           axis->origin + axis->length <= axis->in;
}

bool ree_conv_layout_init(struct ree_conv_layout *layout, const struct ree_conv_params *p) {
    memset(layout, 0, sizeof *layout);
    uint64_t plane = 1, n_in = 1;
    bool in_place = true;
    layout->c = p->c;
    layout->n_taps = p->c;
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
        layout->n_taps *= axis->kernel;
        layout->n_out *= axis->out;
    }
    if (in_place) {
        layout->in_place = true;
        for (int i = 0; i < 3; i++) {
            struct ree_conv_axis *axis = &layout->axes[i];
            layout->start = layout->start * axis->in + (uint32_t)axis->origin;
            axis->length = axis->in;
        }
        layout->plane = (uint32_t)n_in;
        return true;
    }
    uint64_t spread = (uint64_t)layout->axes[0].spread * layout->axes[1].spread;
    spread *= layout->axes[2].spread;
    uint64_t proportion = 8 * spread * n_in + 8 * (uint64_t)layout->n_out + (1 << 16);
    if (plane > proportion || plane * p->c > INT32_MAX) return false;
    layout->plane = (uint32_t)plane;
    return true;
}

void ree_conv_layout_taps(const struct ree_conv_layout *layout, uint32_t *out) {
    const struct ree_conv_axis *axes = layout->axes;
    uint32_t phase_size = axes[0].length * axes[1].length * axes[2].length;
    for (uint32_t c = 0; c < layout->c; c++)
        for (uint32_t kd = 0; kd < axes[0].kernel; kd++)
            for (uint32_t kh = 0; kh < axes[1].kernel; kh++)
                for (uint32_t kw = 0; kw < axes[2].kernel; kw++) {
                    const uint32_t taps[3] = {kd, kh, kw};
                    uint32_t phase = 0, at = 0;
                    for (int i = 0; i < 3; i++) {
                        uint64_t distance = tap_distance(&axes[i], taps[i]);
                        uint32_t remainder = (uint32_t)(distance % axes[i].step);
                        phase = phase * axes[i].n_phases + phase_slot(&axes[i], remainder);
                        at = at * axes[i].length + (uint32_t)(distance / axes[i].step);
                    }
                    *out++ = c * layout->plane + phase * phase_size + at;
                }
}

// The input element at a coordinate, or -1 for a zero. Divisions cost as much as copying a row.
static int64_t element_at(const struct ree_conv_axis *axis, int64_t coordinate) {
    if (coordinate < 0) return -1;
    if (axis->spread != 1) {
        if (coordinate % axis->spread != 0) return -1;
        coordinate /= axis->spread;
    }
    return coordinate < axis->in ? coordinate : -1;
}

// One row of one phase, where element e is the input at coordinate `first` + e * step, and
// elements [begin, end) lie inside the input.
struct row {
    int64_t first, begin, end;
};

static struct row make_row(const struct ree_conv_axis *axis, uint32_t phase) {
    int64_t step = axis->step, length = axis->length;
    struct row row = {.first = axis->origin + axis->phases[phase]};
    if (axis->spread != 1) return row; // its elements are asked for one by one
    row.begin = row.first < 0 ? (-row.first + step - 1) / step : 0;
    row.end = row.first >= axis->in ? 0 : (axis->in - row.first + step - 1) / step;
    if (row.begin > length) row.begin = length;
    if (row.end > length) row.end = length;
    if (row.end < row.begin) row.end = row.begin;
    return row;
}

static void fill_row(const struct ree_conv_axis *axis, const struct row *row, const float *x,
                     float *out) {
    if (axis->spread == 1) {
        for (int64_t e = 0; e < row->begin; e++)
            out[e] = 0.0f;
        if (axis->step == 1 && row->end > row->begin)
            memcpy(out + row->begin, x + row->first + row->begin,
                   (size_t)(row->end - row->begin) * sizeof(float));
        else
            for (int64_t e = row->begin; e < row->end; e++)
                out[e] = x[row->first + e * axis->step];
        for (int64_t e = row->end; e < axis->length; e++)
            out[e] = 0.0f;
        return;
    }
    for (uint32_t e = 0; e < axis->length; e++) {
        int64_t i = element_at(axis, row->first + (int64_t)e * axis->step);
        out[e] = i < 0 ? 0.0f : x[i];
    }
}

void ree_conv_layout_fill(const struct ree_conv_layout *layout, const float *x, float *out) {
    const struct ree_conv_axis *d = &layout->axes[0], *h = &layout->axes[1], *w = &layout->axes[2];
    for (uint32_t phase_d = 0; phase_d < d->n_phases; phase_d++)
        for (uint32_t phase_h = 0; phase_h < h->n_phases; phase_h++)
            for (uint32_t phase_w = 0; phase_w < w->n_phases; phase_w++) {
                struct row row = make_row(w, phase_w);
                for (uint32_t i = 0; i < d->length; i++) {
                    int64_t at_d =
                        element_at(d, d->origin + d->phases[phase_d] + (int64_t)i * d->step);
                    for (uint32_t j = 0; j < h->length; j++, out += w->length) {
                        int64_t at_h =
                            element_at(h, h->origin + h->phases[phase_h] + (int64_t)j * h->step);
                        if (at_d < 0 || at_h < 0)
                            memset(out, 0, w->length * sizeof(float));
                        else
                            fill_row(w, &row, x + (at_d * h->in + at_h) * w->in, out);
                    }
                }
            }
}
