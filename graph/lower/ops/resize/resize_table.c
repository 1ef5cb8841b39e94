// Resampling tables: the input positions that each output position of an axis reads, and their
// weights. NUMERICS.md, "Resize": each line below is a sequence of IEEE double operations in the
// written order, and each weight is rounded once to binary32 at the end. So the tables are the same
// on every machine.
#include "graph/lower/ops/data.h"

#include <math.h>

// Returns the number of taps of an antialiased filter whose radius is `reach` input elements at
// full size.
static int64_t stretched_taps(const struct ree_resize_axis *axis, double reach) {
    double scale = axis->scale < 1.0 ? axis->scale : 1.0;
    int64_t first = (int64_t)floor(-reach / scale) + 1;
    return 2 - 2 * first;
}

int64_t ree_resize_taps(const struct ree_resize_axis *axis) {
    if (axis->mode == REE_RESIZE_NEAREST) return 1;
    double reach = axis->mode == REE_RESIZE_LINEAR ? 1.0 : 2.0;
    return axis->antialias ? stretched_taps(axis, reach) : (int64_t)(2.0 * reach);
}

// Returns the input coordinate of output position i.
static double source_coordinate(const struct ree_resize_axis *axis, int64_t i) {
    double x = (double)i, n_in = (double)axis->n_in, n_out = (double)axis->n_out;
    // The output's length before rounding to an integer.
    double length = axis->scale * n_in;
    switch (axis->coordinates) {
    case REE_COORD_HALF_PIXEL: return (x + 0.5) / axis->scale - 0.5;
    case REE_COORD_HALF_PIXEL_SYMMETRIC: {
        double offset = n_in / 2.0 * (1.0 - n_out / length);
        return offset + (x + 0.5) / axis->scale - 0.5;
    }
    case REE_COORD_PYTORCH_HALF_PIXEL: return axis->n_out > 1 ? (x + 0.5) / axis->scale - 0.5 : 0.0;
    case REE_COORD_ALIGN_CORNERS:
        return length == 1.0 || axis->n_out == 1 ? 0.0 : x * (n_in - 1.0) / (length - 1.0);
    case REE_COORD_ASYMMETRIC: return x / axis->scale;
    case REE_COORD_TF_HALF_PIXEL_FOR_NN: return (x + 0.5) / axis->scale;
    case REE_COORD_TF_CROP_AND_RESIZE: {
        double range = axis->roi_end - axis->roi_start;
        double at = length == 1.0 || axis->n_out == 1 ? range * (n_in - 1.0) / 2.0
                                                      : x * range * (n_in - 1.0) / (length - 1.0);
        return at + axis->roi_start * (n_in - 1.0);
    }
    }
    return 0.0;
}

static int32_t clamp_index(double at, int64_t n_in) {
    if (!(at > 0.0)) return 0; // also for NaN
    return at >= (double)(n_in - 1) ? (int32_t)(n_in - 1) : (int32_t)at;
}

static double round_coordinate(enum ree_resize_rounding rounding, double x) {
    double below = floor(x), rest = x - below;
    switch (rounding) {
    case REE_ROUND_PREFER_FLOOR: return rest <= 0.5 ? below : below + 1.0;
    case REE_ROUND_PREFER_CEIL: return rest < 0.5 ? below : below + 1.0;
    case REE_ROUND_FLOOR: return below;
    case REE_ROUND_CEIL: return rest > 0.0 ? below + 1.0 : below;
    }
    return below;
}

// The triangle filter: 1 at distance 0, and 0 from distance 1 on.
static double triangle(double d) {
    d = 1.0 - fabs(d);
    return d > 0.0 ? d : 0.0;
}

// Keys' cubic convolution kernel: 1 at distance 0; 0 at distance 1 and from distance 2 on.
static double keys(double a, double d) {
    d = fabs(d);
    if (d <= 1.0) return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
    if (d < 2.0) return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
    return 0.0;
}

static void fill_row(const struct ree_resize_axis *axis, double x, int64_t taps, int32_t *index,
                     float *weights) {
    double below = floor(x), rest = x - below, scale = 1.0;
    // The first tap, relative to `below`.
    double first = (double)(1 - taps / 2);
    if (axis->antialias && axis->scale < 1.0) scale = axis->scale;
    double sum = 0.0;
    bool normalise = axis->antialias;
    // The weights are computed twice instead of stored as double: once for their sum, once to
    // divide.
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < taps; t++) {
            double at = below + (first + (double)t);
            double d = (first + (double)t - rest) * scale;
            double w = axis->mode == REE_RESIZE_LINEAR ? triangle(d) : keys(axis->cubic_a, d);
            if (axis->exclude_outside) {
                normalise = true;
                if (at < 0.0 || at > (double)(axis->n_in - 1)) w = 0.0;
            }
            if (pass == 0) {
                sum = sum + w;
                continue;
            }
            index[t] = clamp_index(at, axis->n_in);
            weights[t] = (float)(normalise && sum != 0.0 ? w / sum : w);
        }
    }
}

bool ree_resize_fill(const struct ree_resize_axis *axis, int64_t taps, int32_t *index,
                     float *weights) {
    bool any_outside = false;
    for (int64_t i = 0; i < axis->n_out; i++) {
        double x = source_coordinate(axis, i);
        bool outside = axis->coordinates == REE_COORD_TF_CROP_AND_RESIZE &&
                       !(x >= 0.0 && x <= (double)(axis->n_in - 1));
        if (axis->mode == REE_RESIZE_NEAREST)
            index[i] = clamp_index(round_coordinate(axis->rounding, x), axis->n_in);
        else
            fill_row(axis, x, taps, index + i * taps, weights + i * taps);
        if (outside) index[i * taps] = -1;
        any_outside = any_outside || outside;
    }
    return any_outside;
}
