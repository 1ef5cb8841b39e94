// RoiAlign, MaxRoiPool and DeformConv over random shapes, compared with their definitions in
// double.
#include "check.h"

static float x_data[2 * 4 * 144], roi_data[8 * 5], w_data[8 * 4 * 9], offset_data[2 * 36 * 144];
static float mask_data[2 * 18 * 144], bias_data[8];
static double want[8 * 8 * 144];
static struct earlier_run earlier;

// Returns x at (y, x), bilinear. Elements outside are 0, or with `edge` the nearest element.
static double bilinear(const float *plane, int64_t h, int64_t w, double y, double x, bool edge) {
    double sum = 0, y0 = floor(y), x0 = floor(x);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            double at_y = y0 + i, at_x = x0 + j;
            double weight = (i ? y - y0 : 1 - (y - y0)) * (j ? x - x0 : 1 - (x - x0));
            if (edge) {
                at_y = fmin(fmax(at_y, 0), (double)(h - 1));
                at_x = fmin(fmax(at_x, 0), (double)(w - 1));
            }
            if (at_y < 0 || at_y >= (double)h || at_x < 0 || at_x >= (double)w) continue;
            sum += weight * (double)plane[(int64_t)at_y * w + (int64_t)at_x];
        }
    return sum;
}

struct roi_align {
    bool max, half;
    int64_t n, channels, h, w, n_rois, ph, pw, ratio;
    float scale;
    int64_t batch[8];
};

// Returns the largest of the four products, as ONNX's reference does for mode max.
static double corner_maximum(const float *plane, int64_t h, int64_t w, double y, double x) {
    double largest = -INFINITY, y0 = floor(y), x0 = floor(x);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            double weight = (i ? y - y0 : 1 - (y - y0)) * (j ? x - x0 : 1 - (x - x0));
            int64_t at_y = (int64_t)fmin(y0 + i, (double)(h - 1));
            int64_t at_x = (int64_t)fmin(x0 + j, (double)(w - 1));
            largest = fmax(largest, weight * (double)plane[at_y * w + at_x]);
        }
    return largest;
}

static double align_bin(const struct roi_align *r, const float *roi, const float *plane, int64_t ph,
                        int64_t pw) {
    float shift = r->half ? 0.5f : 0, begin[2], bin[2];
    int64_t grid[2], pooled[2] = {r->ph, r->pw};
    for (int a = 0; a < 2; a++) {
        float from = roi[a ? 0 : 1] * r->scale - shift, to = roi[a ? 2 : 3] * r->scale - shift;
        float size = to - from;
        if (!r->half && size < 1) size = 1;
        begin[a] = from;
        bin[a] = size / (float)pooled[a];
        grid[a] = r->ratio ? r->ratio : (int64_t)fmaxf(ceilf(bin[a]), 0);
    }
    double sum = 0, largest = -INFINITY;
    for (int64_t i = 0; i < grid[0]; i++)
        for (int64_t j = 0; j < grid[1]; j++) {
            float y = begin[0] + (float)ph * bin[0] + ((float)i + 0.5f) * bin[0] / (float)grid[0];
            float x = begin[1] + (float)pw * bin[1] + ((float)j + 0.5f) * bin[1] / (float)grid[1];
            if (y < -1 || y > (float)r->h || x < -1 || x > (float)r->w) {
                largest = fmax(largest, 0);
                continue;
            }
            double cy = fmin(fmax((double)y, 0), (double)(r->h - 1));
            double cx = fmin(fmax((double)x, 0), (double)(r->w - 1));
            sum += bilinear(plane, r->h, r->w, cy, cx, true);
            largest = fmax(largest, corner_maximum(plane, r->h, r->w, cy, cx));
        }
    int64_t count = grid[0] * grid[1];
    if (count == 0) return 0;
    return r->max ? largest : sum / (double)count;
}

static void random_rois(uint64_t *state, int64_t n, int64_t columns, float *out) {
    for (int64_t i = 0; i < n; i++) {
        float *corner = out + i * columns + columns - 4;
        for (int a = 0; a < 2; a++) {
            corner[a] = (float)pick(state, -40, 140) / 10;
            corner[2 + a] = corner[a] + (float)pick(state, -5, 90) / 10;
        }
    }
}

// Runs regions [from, to) and returns the output's bytes; the caller finishes the node.
static const void *run_align(struct test_node *n, const struct roi_align *r, int64_t from,
                             int64_t to, bool fuse) {
    int64_t regions = to - from;
    test_node_start(n, "RoiAlign", 16);
    n->fuse = fuse;
    test_node_f32(n, 4, (int64_t[]){r->n, r->channels, r->h, r->w}, x_data);
    test_node_f32(n, 2, (int64_t[]){regions, 4}, roi_data + from * 4);
    test_node_input(n, REE_I64, 1, &regions, r->batch + from);
    test_node_string(n, "mode", r->max ? "max" : "avg");
    test_node_string(n, "coordinate_transformation_mode",
                     r->half ? "half_pixel" : "output_half_pixel");
    test_node_int(n, "output_height", r->ph);
    test_node_int(n, "output_width", r->pw);
    test_node_int(n, "sampling_ratio", r->ratio);
    test_node_float(n, "spatial_scale", r->scale);
    CHECK_MSG(test_node_run(n, 1) == REE_OK, "%s", n->err.message);
    return test_node_output(n, 0);
}

static void roi_align(uint64_t *state) {
    struct roi_align r = {.max = pick(state, 0, 1)};
    r.half = pick(state, 0, 1);
    r.n = pick(state, 1, 2);
    r.channels = pick(state, 1, 3);
    r.h = pick(state, 1, 12);
    r.w = pick(state, 1, 12);
    r.n_rois = pick(state, 0, 6);
    r.ph = pick(state, 1, 3);
    r.pw = pick(state, 1, 4);
    r.ratio = pick(state, 0, 3);
    r.scale = pick(state, 0, 1) ? 1 : 0.7f;
    test_random_fill(state, (size_t)(r.n * r.channels * r.h * r.w), x_data);
    random_rois(state, r.n_rois, 4, roi_data);
    for (int64_t i = 0, k = 0; i < r.n_rois; i++) {
        r.batch[i] = pick(state, 0, r.n - 1);
        for (int64_t c = 0; c < r.channels; c++)
            for (int64_t p = 0; p < r.ph * r.pw; p++)
                want[k++] = align_bin(&r, roi_data + i * 4,
                                      x_data + (r.batch[i] * r.channels + c) * r.h * r.w, p / r.pw,
                                      p % r.pw);
    }
    int64_t dims[4] = {r.n_rois, r.channels, r.ph, r.pw};
    size_t size = (size_t)(r.channels * r.ph * r.pw) * sizeof(float);
    struct test_node n;
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        run_align(&n, &r, 0, r.n_rois, fuse);
        check_close(&n, 0, 4, dims, want, 4e-7); // measured: 1.3e-7
        check_same_bytes(&n, &earlier);
        test_node_finish(&n);
    }
    // A region's bits do not depend on the other regions.
    for (int64_t i = 0; i < r.n_rois; i++) {
        const void *alone = run_align(&n, &r, i, i + 1, true);
        CHECK_MSG(!memcmp(alone, earlier.bytes + (size_t)i * size, size),
                  "RoiAlign: region %lld alone has other bits", (long long)i);
        test_node_finish(&n);
    }
}

static void max_roi_pool(uint64_t *state) {
    int64_t channels = pick(state, 1, 3), h = pick(state, 1, 12), w = pick(state, 1, 12);
    int64_t n_rois = pick(state, 0, 6), pooled[2];
    pooled[0] = pick(state, 1, 3);
    pooled[1] = pick(state, 1, 4);
    int64_t sizes[2] = {h, w}, batch = pick(state, 1, 2), k = 0;
    float scale = pick(state, 0, 1) ? 1 : 0.7f;
    test_random_fill(state, (size_t)(batch * channels * h * w), x_data);
    random_rois(state, n_rois, 5, roi_data);
    for (int64_t r = 0; r < n_rois; r++) {
        float *roi = roi_data + r * 5;
        int64_t sample = pick(state, 0, batch - 1);
        roi[0] = (float)sample;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pooled[0] * pooled[1]; p++) {
                int64_t from[2], to[2], at[2] = {p / pooled[1], p % pooled[1]};
                for (int a = 0; a < 2; a++) {
                    int64_t begin = (int64_t)roundf(roi[a ? 1 : 2] * scale);
                    int64_t size = (int64_t)roundf(roi[a ? 3 : 4] * scale) - begin + 1;
                    float bin = (float)(size < 1 ? 1 : size) / (float)pooled[a];
                    from[a] = (int64_t)floorf((float)at[a] * bin) + begin;
                    to[a] = (int64_t)ceilf((float)(at[a] + 1) * bin) + begin;
                }
                const float *plane = x_data + (sample * channels + c) * h * w;
                double largest = -INFINITY;
                for (int64_t y = from[0]; y < to[0]; y++)
                    for (int64_t x = from[1]; x < to[1]; x++)
                        if (y >= 0 && y < sizes[0] && x >= 0 && x < sizes[1])
                            largest = fmax(largest, (double)plane[y * w + x]);
                want[k++] = isinf(largest) ? 0 : largest;
            }
    }
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node n;
        test_node_start(&n, "MaxRoiPool", 1);
        n.fuse = fuse;
        test_node_f32(&n, 4, (int64_t[]){batch, channels, h, w}, x_data);
        test_node_f32(&n, 2, (int64_t[]){n_rois, 5}, roi_data);
        test_node_ints(&n, "pooled_shape", 2, pooled);
        test_node_float(&n, "spatial_scale", scale);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        check_close(&n, 0, 4, (int64_t[]){n_rois, channels, pooled[0], pooled[1]}, want, 0);
        test_node_finish(&n);
    }
}

struct deform {
    int64_t n, groups, offset_groups, channels, m, in[2], kernel[2], stride[2], dilation[2];
    int64_t pads[4], out[2];
};

static double deform_at(const struct deform *d, int64_t b, int64_t m, int64_t oy, int64_t ox,
                        bool masked) {
    int64_t per_group = d->channels / d->groups, plane = d->in[0] * d->in[1];
    int64_t kernel = d->kernel[0] * d->kernel[1], positions = d->out[0] * d->out[1];
    int64_t group = m / (d->m / d->groups), at = oy * d->out[1] + ox;
    double sum = (double)bias_data[m];
    for (int64_t c = 0; c < per_group; c++)
        for (int64_t k = 0; k < kernel; k++) {
            int64_t channel = group * per_group + c;
            int64_t field = b * d->offset_groups + channel / (d->channels / d->offset_groups);
            const float *offset = offset_data + (field * kernel + k) * 2 * positions + at;
            float y = (float)(oy * d->stride[0] - d->pads[0] + k / d->kernel[1] * d->dilation[0]);
            float x = (float)(ox * d->stride[1] - d->pads[1] + k % d->kernel[1] * d->dilation[1]);
            double seen = bilinear(x_data + (b * d->channels + channel) * plane, d->in[0], d->in[1],
                                   (double)(y + offset[0]), (double)(x + offset[positions]), false);
            if (masked) seen *= (double)mask_data[(field * kernel + k) * positions + at];
            sum += seen * (double)w_data[(m * per_group + c) * kernel + k];
        }
    return sum;
}

static void deform_conv(uint64_t *state) {
    struct deform d = {.n = pick(state, 1, 2)};
    d.groups = pick(state, 1, 2);
    d.offset_groups = pick(state, 1, 2);
    d.channels = d.groups * d.offset_groups * pick(state, 1, 2);
    d.m = d.groups * pick(state, 1, 3);
    bool masked = pick(state, 0, 1), biased = pick(state, 0, 1);
    for (int a = 0; a < 2; a++) {
        d.kernel[a] = pick(state, 1, 3);
        d.dilation[a] = pick(state, 1, 2);
        d.stride[a] = pick(state, 1, 2);
        d.pads[a] = pick(state, 0, 2);
        d.pads[2 + a] = pick(state, 0, 2);
        d.in[a] = pick(state, 5, 8);
        int64_t span = d.in[a] + d.pads[a] + d.pads[2 + a] - (d.kernel[a] - 1) * d.dilation[a] - 1;
        d.out[a] = span / d.stride[a] + 1;
    }
    int64_t kernel = d.kernel[0] * d.kernel[1];
    test_random_fill(state, sizeof x_data / sizeof *x_data, x_data);
    test_random_fill(state, sizeof w_data / sizeof *w_data, w_data);
    test_random_fill(state, sizeof offset_data / sizeof *offset_data, offset_data);
    test_random_fill(state, sizeof mask_data / sizeof *mask_data, mask_data);
    test_random_fill(state, sizeof bias_data / sizeof *bias_data, bias_data);
    if (!biased) memset(bias_data, 0, sizeof bias_data);
    for (int64_t b = 0, i = 0; b < d.n; b++)
        for (int64_t m = 0; m < d.m; m++)
            for (int64_t o = 0; o < d.out[0] * d.out[1]; o++)
                want[i++] = deform_at(&d, b, m, o / d.out[1], o % d.out[1], masked);
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node n;
        int64_t field = d.offset_groups * kernel;
        test_node_start(&n, "DeformConv", 22);
        n.fuse = fuse;
        test_node_f32(&n, 4, (int64_t[]){d.n, d.channels, d.in[0], d.in[1]}, x_data);
        test_node_f32(&n, 4, (int64_t[]){d.m, d.channels / d.groups, d.kernel[0], d.kernel[1]},
                      w_data);
        test_node_f32(&n, 4, (int64_t[]){d.n, field * 2, d.out[0], d.out[1]}, offset_data);
        if (biased)
            test_node_f32(&n, 1, &d.m, bias_data);
        else
            test_node_omit(&n);
        if (masked) test_node_f32(&n, 4, (int64_t[]){d.n, field, d.out[0], d.out[1]}, mask_data);
        test_node_int(&n, "group", d.groups);
        test_node_int(&n, "offset_group", d.offset_groups);
        test_node_ints(&n, "strides", 2, d.stride);
        test_node_ints(&n, "dilations", 2, d.dilation);
        test_node_ints(&n, "pads", 4, d.pads);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        // Measured: 2.5e-7.
        check_close(&n, 0, 4, (int64_t[]){d.n, d.m, d.out[0], d.out[1]}, want, 8e-7);
        check_same_bytes(&n, &earlier);
        test_node_finish(&n);
    }
}

int main(void) {
    uint64_t state = 2;
    for (int i = 0; i < 150; i++) {
        roi_align(&state);
        max_roi_pool(&state);
        deform_conv(&state);
    }
    return test_finish();
}
