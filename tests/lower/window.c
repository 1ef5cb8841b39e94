// Convolution and pooling windows over random geometries, compared with the definition.
#include "node.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

struct geometry {
    uint32_t n; // dimensions
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
    const char *auto_pad; // NULL: pads are used
    bool ceil_mode;
    // Computed from the definition:
    int64_t out[3], begin[3], end[3];
};

static uint32_t pick(uint64_t *state, uint32_t n) {
    return (uint32_t)(splitmix_step(state) >> 33) % n;
}

static bool is_same(const struct geometry *g) {
    return g->auto_pad && !strncmp(g->auto_pad, "SAME", 4);
}

// A window starts at every multiple of the stride. It counts if it is inside the padded input. With
// ceil_mode it also counts if it starts inside the input or the leading padding and the previous
// window does not reach the end.
static int64_t count_windows(int64_t in, int64_t begin, int64_t end, int64_t extent, int64_t stride,
                             bool ceil_mode) {
    int64_t n = 0;
    for (int64_t at = 0;; at += stride) {
        bool inside = at + extent <= in + begin + end;
        bool partial = ceil_mode && at < in + begin && at - stride + extent < in + begin + end;
        if (!inside && !partial) return n;
        n++;
    }
}

static bool make(struct geometry *g, uint64_t *state, bool pool) {
    static const char *const modes[] = {NULL, NULL, "VALID", "SAME_UPPER", "SAME_LOWER"};
    memset(g, 0, sizeof *g);
    g->n = 1 + pick(state, 3);
    g->auto_pad = modes[pick(state, 5)];
    g->ceil_mode = pool && !is_same(g) && pick(state, 2);
    for (uint32_t i = 0; i < g->n; i++) {
        g->in[i] = 3 + pick(state, 5);
        g->kernel[i] = 1 + pick(state, 3);
        g->stride[i] = 1 + pick(state, 3);
        g->dilation[i] = 1 + pick(state, 2);
        int64_t extent = (g->kernel[i] - 1) * g->dilation[i] + 1;
        if (is_same(g)) {
            g->out[i] = (g->in[i] - 1) / g->stride[i] + 1;
            int64_t total = (g->out[i] - 1) * g->stride[i] + extent - g->in[i];
            if (total < 0) total = 0;
            g->begin[i] = strcmp(g->auto_pad, "SAME_UPPER") ? (total + 1) / 2 : total / 2;
            g->end[i] = total - g->begin[i];
            continue;
        }
        if (!g->auto_pad) {
            g->begin[i] = g->pads[i] = pick(state, (uint32_t)g->kernel[i]);
            g->end[i] = g->pads[g->n + i] = pick(state, (uint32_t)g->kernel[i]);
        }
        if (g->in[i] + g->begin[i] + g->end[i] < extent) return false;
        g->out[i] =
            count_windows(g->in[i], g->begin[i], g->end[i], extent, g->stride[i], g->ceil_mode);
    }
    for (uint32_t i = g->n; i < 3; i++)
        g->in[i] = g->kernel[i] = g->stride[i] = g->dilation[i] = g->out[i] = 1;
    return true;
}

static void set_attributes(struct test_node *n, const struct geometry *g) {
    test_node_ints(n, "kernel_shape", g->n, g->kernel);
    test_node_ints(n, "strides", g->n, g->stride);
    test_node_ints(n, "dilations", g->n, g->dilation);
    if (g->auto_pad)
        test_node_string(n, "auto_pad", g->auto_pad);
    else
        test_node_ints(n, "pads", 2 * (size_t)g->n, g->pads);
    if (g->ceil_mode) test_node_int(n, "ceil_mode", 1);
}

// For every tap of the window at output (o0, o1, o2): the index in x's plane, -1 in the padding, -2
// beyond the padding.
struct window {
    int64_t at[27];
    int n;
};
static void taps(const struct geometry *g, const int64_t o[3], struct window *w) {
    w->n = 0;
    int64_t k[3];
    for (k[0] = 0; k[0] < g->kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < g->kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < g->kernel[2]; k[2]++) {
                int64_t at = 0;
                for (int i = 0; i < 3; i++) {
                    int64_t p = o[i] * g->stride[i] + k[i] * g->dilation[i] - g->begin[i];
                    if (p >= g->in[i] + g->end[i])
                        at = -2;
                    else if ((p < 0 || p >= g->in[i]) && at >= 0)
                        at = -1;
                    if (at >= 0) at = at * g->in[i] + p;
                }
                w->at[w->n++] = at;
            }
}

static float x_data[4 * 512], w_data[4 * 4 * 27], bias[4];

static void check_conv(const struct geometry *g, uint64_t *state) {
    struct test_node n;
    int64_t groups = 1 + pick(state, 2), c = 1 + pick(state, 2), m = 1 + pick(state, 2);
    int64_t x_dims[5] = {1, groups * c}, w_dims[5] = {groups * m, c};
    int64_t plane = g->in[0] * g->in[1] * g->in[2];
    int64_t kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    for (uint32_t i = 0; i < g->n; i++) {
        x_dims[2 + i] = g->in[i];
        w_dims[2 + i] = g->kernel[i];
    }
    test_node_start(&n, "Conv", 11);
    test_node_f32(&n, 2 + g->n, x_dims, x_data);
    test_node_f32(&n, 2 + g->n, w_dims, w_data);
    test_node_f32(&n, 1, (int64_t[]){groups * m}, bias);
    set_attributes(&n, g);
    test_node_int(&n, "group", groups);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    const float *y = n.err.message[0] ? NULL : test_node_output(&n, 0);
    for (uint32_t i = 0; y && i < g->n; i++)
        CHECK(n.out[0]->dims[2 + i] == g->out[i]);
    int64_t o[3];
    for (int64_t f = 0; y && f < groups * m; f++)
        for (o[0] = 0; o[0] < g->out[0]; o[0]++)
            for (o[1] = 0; o[1] < g->out[1]; o[1]++)
                for (o[2] = 0; o[2] < g->out[2]; o[2]++) {
                    struct window w;
                    double sum = bias[f], size = fabs((double)bias[f]);
                    taps(g, o, &w);
                    for (int64_t i = 0; i < c; i++)
                        for (int t = 0; t < w.n; t++) {
                            if (w.at[t] < 0) continue;
                            double term = (double)x_data[(f / m * c + i) * plane + w.at[t]] *
                                          w_data[(f * c + i) * kernel + t];
                            sum += term;
                            size += fabs(term);
                        }
                    // At most 60 roundings, each of 2^-24 of the terms' magnitude.
                    CHECK_MSG(fabs(*y - sum) <= 4e-6 * size, "conv: %.9g, expected %.9g", *y, sum);
                    y++;
                }
    test_node_finish(&n);
}

static void check_pool(const struct geometry *g, const char *type, bool include) {
    struct test_node n;
    int64_t x_dims[5] = {2, 2}, plane = g->in[0] * g->in[1] * g->in[2];
    bool max = !strcmp(type, "MaxPool");
    for (uint32_t i = 0; i < g->n; i++)
        x_dims[2 + i] = g->in[i];
    test_node_start(&n, type, 19);
    test_node_f32(&n, 2 + g->n, x_dims, x_data);
    set_attributes(&n, g);
    if (include) test_node_int(&n, "count_include_pad", 1);
    CHECK_MSG(test_node_run(&n, max ? 2 : 1) == REE_OK, "%s", n.err.message);
    const float *y = n.err.message[0] ? NULL : test_node_output(&n, 0);
    const int64_t *index = y && max ? test_node_output(&n, 1) : NULL;
    for (uint32_t i = 0; y && i < g->n; i++)
        CHECK(n.out[0]->dims[2 + i] == g->out[i]);
    int64_t o[3], at = 0;
    for (int64_t p = 0; y && p < 4; p++)
        for (o[0] = 0; o[0] < g->out[0]; o[0]++)
            for (o[1] = 0; o[1] < g->out[1]; o[1]++)
                for (o[2] = 0; o[2] < g->out[2]; o[2]++, at++) {
                    struct window w;
                    taps(g, o, &w);
                    double sum = 0, size = 0;
                    int count = 0, inside = 0;
                    int64_t best = -1;
                    for (int t = 0; t < w.n; t++) {
                        if (w.at[t] >= 0 || (include && w.at[t] == -1)) count++;
                        if (w.at[t] < 0) continue;
                        inside++;
                        sum += x_data[p * plane + w.at[t]];
                        size += fabs((double)x_data[p * plane + w.at[t]]);
                        if (best < 0 || x_data[p * plane + w.at[t]] > x_data[p * plane + best])
                            best = w.at[t];
                    }
                    if (!inside) continue; // dilated taps may all miss a small input
                    if (max)
                        CHECK(y[at] == x_data[p * plane + best] && index[at] == p * plane + best);
                    else // at most 27 roundings, each of 2^-24 of the terms' magnitude
                        CHECK_MSG(fabs(y[at] - sum / count) <= 1.7e-6 * size / count,
                                  "%s: %.9g, expected %.9g", type, y[at], sum / count);
                }
    test_node_finish(&n);
}

int main(void) {
    uint64_t state = 5;
    test_random_fill(&state, sizeof x_data / sizeof x_data[0], x_data);
    test_random_fill(&state, sizeof w_data / sizeof w_data[0], w_data);
    test_random_fill(&state, 4, bias);
    for (int i = 0; i < 1500; i++) {
        struct geometry g;
        if (make(&g, &state, false)) check_conv(&g, &state);
        if (!make(&g, &state, true)) continue;
        check_pool(&g, "MaxPool", false);
        check_pool(&g, "AveragePool", false);
        check_pool(&g, "AveragePool", true);
    }
    return test_finish();
}
