// GridSample over random shapes, modes and paddings, compared with the definition in double, one
// point at a time. Both use float32 coordinates, because rounding a coordinate can change the
// nearest element.
#include "check.h"

enum padding { ZEROS, BORDER, REFLECTION };

struct setup {
    int axes, taps;
    enum padding padding;
    bool align;
    int64_t n, channels, sizes[3], out[3];
};

static double weight(int taps, int t, double r) {
    if (taps == 1) return 1;
    if (taps == 2) return t ? r : 1 - r;
    const double a = -0.75;
    double d = fabs(r - (t - 1));
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Folds x into [low, high], reflecting with period 2 (high - low).
static double fold(double x, double low, double high) {
    if (high == low) return low;
    while (x < low || x > high)
        x = x < low ? 2 * low - x : 2 * high - x;
    return x;
}

// Sets the index of each tap along an axis; -1: the tap reads zero. Returns the fractional part of
// the coordinate.
static double place_taps(const struct setup *s, float g, int64_t size, int64_t place[4]) {
    float n = (float)size, x = s->align ? (g + 1) * 0.5f * (n - 1) : ((g + 1) * n - 1) * 0.5f;
    double low = s->align ? 0 : -0.5, high = s->align ? n - 1 : n - 0.5;
    if (s->taps == 1) x = rintf(x);
    double at = (double)x;
    if (at < low || at > high) {
        if (s->padding == BORDER) at = at < low ? 0 : n - 1;
        if (s->padding == REFLECTION) at = fold(at, low, high);
    }
    for (int t = 0; t < s->taps; t++) {
        double k = floor(at) + (s->taps == 1 ? 0 : 1 - s->taps / 2 + t);
        bool outside = k < 0 || k >= n;
        if (outside && s->padding == ZEROS)
            k = -1;
        else if (outside && s->padding == BORDER)
            k = k < 0 ? 0 : n - 1;
        else if (outside)
            k = fold(k, low, high);
        place[t] = (int64_t)k;
    }
    return at - floor(at);
}

static double sample(const struct setup *s, const float *plane, const float *g) {
    int64_t place[3][4] = {{0}};
    double r[3] = {0}, sum = 0;
    int taps[3] = {1, 1, 1};
    for (int a = 0; a < s->axes; a++) {
        r[a] = place_taps(s, g[s->axes - 1 - a], s->sizes[a], place[a]);
        taps[a] = s->taps;
    }
    for (int i = 0; i < taps[0]; i++)
        for (int j = 0; j < taps[1]; j++)
            for (int k = 0; k < taps[2]; k++) {
                int t[3] = {i, j, k};
                int64_t at = 0;
                double w = 1;
                for (int a = 0; a < s->axes && at >= 0; a++) {
                    at = place[a][t[a]] < 0 ? -1 : at * s->sizes[a] + place[a][t[a]];
                    w *= weight(s->taps, t[a], r[a]);
                }
                if (at >= 0) sum += w * (double)plane[at];
            }
    return sum;
}

static float x_data[3 * 3 * 343], grid_data[3 * 343 * 3];
static double want[3 * 3 * 343];
static struct earlier_run earlier;

static void one(uint64_t *state) {
    static const char *const modes[2][3] = {{"nearest", "bilinear", "bicubic"},
                                            {"nearest", "linear", "cubic"}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    static const int tap_counts[] = {1, 2, 4};
    struct setup s = {.axes = (int)pick(state, 1, 3)};
    int mode = (int)pick(state, 0, 2);
    s.taps = tap_counts[mode];
    s.padding = (enum padding)pick(state, 0, 2);
    s.align = pick(state, 0, 1);
    s.n = pick(state, 1, 3);
    s.channels = pick(state, 1, 3);
    int64_t x_dims[5] = {s.n, s.channels}, g_dims[5] = {s.n}, y_dims[5] = {s.n, s.channels};
    int64_t plane = 1, points = 1;
    for (int a = 0; a < s.axes; a++) {
        s.sizes[a] = x_dims[2 + a] = pick(state, 1, 7);
        s.out[a] = g_dims[1 + a] = y_dims[2 + a] = pick(state, pick(state, 0, 9) ? 1 : 0, 5);
        plane *= s.sizes[a];
        points *= s.out[a];
    }
    uint32_t rank = (uint32_t)s.axes + 2;
    g_dims[rank - 1] = s.axes;
    test_random_fill(state, (size_t)(s.n * s.channels * plane), x_data);
    size_t n_grid = (size_t)(s.n * points * s.axes);
    test_random_fill(state, n_grid, grid_data);
    // Sometimes a coordinate on the border, on an element, between two, or far away.
    static const float special[] = {-1, 1, 0, 0.5f, -3, 1e6f, -1e30f};
    for (size_t i = 0; i < n_grid; i++)
        if (pick(state, 0, 3) == 0)
            grid_data[i] = special[pick(state, 0, s.padding == REFLECTION ? 4 : 6)];
    for (int64_t i = 0, k = 0; i < s.n; i++)
        for (int64_t c = 0; c < s.channels; c++)
            for (int64_t p = 0; p < points; p++)
                want[k++] = sample(&s, x_data + (i * s.channels + c) * plane,
                                   grid_data + (i * points + p) * s.axes);
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node n;
        int64_t opset = pick(state, 0, 1) ? 16 : 22;
        test_node_start(&n, "GridSample", opset);
        n.fuse = fuse;
        test_node_f32(&n, rank, x_dims, x_data);
        test_node_f32(&n, rank, g_dims, grid_data);
        test_node_string(&n, "mode", modes[opset > 16][mode]);
        test_node_string(&n, "padding_mode", paddings[s.padding]);
        test_node_int(&n, "align_corners", s.align);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        // Measured: 2.1e-6. The weights of mode cubic are polynomials whose terms cancel.
        check_close(&n, 0, rank, y_dims, want, 6e-6);
        check_same_bytes(&n, &earlier);
        test_node_finish(&n);
    }
}

int main(void) {
    uint64_t state = 1;
    for (int i = 0; i < 400; i++)
        one(&state);
    return test_finish();
}
