// NonMaxSuppression, Unique, CenterCropPad, MaxUnpool, Col2Im and Det over random shapes, compared
// with their definitions.
#include "check.h"

#define MAX_ELEMENTS 8192

static float x_data[MAX_ELEMENTS], scores[MAX_ELEMENTS];
static int64_t index_data[MAX_ELEMENTS], rows[3 * MAX_ELEMENTS];
static double want[MAX_ELEMENTS];
static struct earlier_run earlier;

static int64_t product(int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static void check_ints(struct test_node *n, uint32_t i, int64_t count, const int64_t *values) {
    const struct ree_view *t = n->out[i];
    char text[128];
    CHECK_MSG(t->dtype == REE_I64 && ree_view_count(t) == count &&
                  !memcmp(test_node_output(n, i), values, (size_t)count * sizeof *values),
              "%s: output %u, %s, has other numbers", n->node.op_type, i,
              ree_view_text(t, text, sizeof text));
}

// Intersection over union of two boxes (y0, x0, y1, x1) with corners in any order.
static double overlap(const float *a, const float *b) {
    double area[2] = {1, 1}, shared = 1;
    for (int d = 0; d < 2; d++) {
        double a0 = (double)fminf(a[d], a[2 + d]), a1 = (double)fmaxf(a[d], a[2 + d]);
        double b0 = (double)fminf(b[d], b[2 + d]), b1 = (double)fmaxf(b[d], b[2 + d]);
        area[0] *= a1 - a0;
        area[1] *= b1 - b0;
        shared *= fmax(fmin(a1, b1) - fmax(a0, b0), 0);
    }
    return shared > 0 ? shared / (area[0] + area[1] - shared) : 0;
}

// Coordinates are multiples of 1/4 and scores multiples of 1/8, so that ties are common and areas
// exact.
static void non_max_suppression(uint64_t *state) {
    int64_t batch = pick(state, 1, 2), classes = pick(state, 1, 2), n = pick(state, 0, 24);
    int64_t most = pick(state, 0, 12), n_rows = 0;
    float threshold = (float)pick(state, 0, 3) / 4, lowest = (float)pick(state, 0, 4) / 8;
    bool centre = pick(state, 0, 1), has_lowest = pick(state, 0, 1);
    static float boxes[2 * 24 * 4], corners[2 * 24 * 4];
    for (int64_t i = 0; i < batch * n * 4; i++)
        corners[i] = boxes[i] = (float)pick(state, 0, 16) / 4;
    for (int64_t i = 0; centre && i < batch * n; i++) { // x, y, width, height
        const float *c = boxes + i * 4;
        float *box = corners + i * 4;
        box[0] = c[1] - c[3] / 2;
        box[1] = c[0] - c[2] / 2;
        box[2] = c[1] + c[3] / 2;
        box[3] = c[0] + c[2] / 2;
    }
    for (int64_t i = 0; i < batch * classes * n; i++)
        scores[i] = (float)pick(state, 0, 8) / 8;
    for (int64_t at = 0; at < batch * classes; at++) {
        const float *score = scores + at * n, *box = corners + at / classes * n * 4;
        int64_t kept[24], n_kept = 0;
        bool done[24] = {false};
        while (n_kept < most) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!done[i] && (!has_lowest || score[i] > lowest) &&
                    (best < 0 || score[i] > score[best]))
                    best = i;
            if (best < 0) break;
            done[best] = true;
            bool keep = true;
            for (int64_t k = 0; k < n_kept; k++)
                keep = keep && overlap(box + best * 4, box + kept[k] * 4) <= (double)threshold;
            if (!keep) continue;
            kept[n_kept++] = best;
            rows[n_rows * 3] = at / classes;
            rows[n_rows * 3 + 1] = at % classes;
            rows[n_rows++ * 3 + 2] = best;
        }
    }
    struct test_node node;
    test_node_start(&node, "NonMaxSuppression", 11);
    test_node_f32(&node, 3, (int64_t[]){batch, n, 4}, boxes);
    test_node_f32(&node, 3, (int64_t[]){batch, classes, n}, scores);
    test_node_input(&node, REE_I64, 0, NULL, &most);
    test_node_f32(&node, 1, (int64_t[]){1}, &threshold);
    if (has_lowest) test_node_f32(&node, 1, (int64_t[]){1}, &lowest);
    test_node_int(&node, "center_point_box", centre);
    CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
    check_ints(&node, 0, n_rows * 3, rows);
    test_node_finish(&node);
}

// Compares subtensors by brute force. `first` has the first occurrence of each one, in the order of
// the output.
static void unique(uint64_t *state) {
    int rank = (int)pick(state, 1, 3), axis = (int)pick(state, -1, rank - 1);
    bool sorted = pick(state, 0, 1);
    int64_t dims[3], outer = 1, inner = 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = pick(state, pick(state, 0, 9) ? 1 : 0, 4);
        if (axis >= 0 && i < axis) outer *= dims[i];
        if (axis >= 0 && i > axis) inner *= dims[i];
    }
    int64_t total = product(rank, dims), n = axis < 0 ? total : dims[axis];
    static const float numbers[] = {-1, -0.0f, 0, 2, NAN};
    for (int64_t i = 0; i < total; i++)
        x_data[i] = numbers[pick(state, 0, 4)];
// Element (o, i, k), where i is the index along the axis.
#define ELEMENT(i, o, k) x_data[((o)*n + (i)) * inner + (k)]
    int64_t first[64], n_first = 0, inverse[64], counts[64] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        int order = 1;
        for (; at < n_first; at++) {
            order = 0;
            for (int64_t o = 0; o < outer && !order; o++)
                for (int64_t k = 0; k < inner && !order; k++) {
                    float a = ELEMENT(i, o, k), b = ELEMENT(first[at], o, k);
                    if (isnan(a) || isnan(b))
                        order = (isnan(a) != 0) - (isnan(b) != 0);
                    else
                        order = (a > b) - (a < b);
                }
            if (order == 0 || (sorted && order < 0)) break;
        }
        if (at == n_first || order) {
            memmove(first + at + 1, first + at, (size_t)(n_first - at) * sizeof *first);
            memmove(counts + at + 1, counts + at, (size_t)(n_first - at) * sizeof *counts);
            for (int64_t j = 0; j < i; j++)
                if (inverse[j] >= at) inverse[j]++;
            first[at] = i;
            counts[at] = 0;
            n_first++;
        }
        inverse[i] = at;
        counts[at]++;
    }
    struct test_node node;
    test_node_start(&node, "Unique", 11);
    test_node_f32(&node, (uint32_t)rank, dims, x_data);
    test_node_int(&node, "sorted", sorted);
    if (axis >= 0) test_node_int(&node, "axis", pick(state, 0, 1) ? axis : axis - rank);
    CHECK_MSG(test_node_run(&node, 4) == REE_OK, "%s", node.err.message);
    check_ints(&node, 1, n_first, first);
    check_ints(&node, 2, n, inverse);
    check_ints(&node, 3, n_first, counts);
    CHECK(ree_view_count(node.out[0]) == outer * n_first * inner);
    const float *y = test_node_output(&node, 0);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n_first; i++)
            for (int64_t k = 0; k < inner; k++)
                CHECK(!memcmp(&y[(o * n_first + i) * inner + k], &ELEMENT(first[i], o, k), 4));
    test_node_finish(&node);
#undef ELEMENT
}

// Narrow types: in the order of their values, zeros and NaNs of any bits equal, NaNs last. NonZero
// finds neither of the two zeros.
static void narrow(void) {
    static const struct {
        enum ree_dtype dtype;
        unsigned char x[8];
        int64_t n, n_first, first[8]; // of x, in the order of Unique
        int64_t n_nonzero, nonzero[8];
    } cases[] = {
        // -1, 3, 0, 1, -1
        {REE_I4, {0xFF, 3, 0, 1, 0xFF}, 5, 4, {0, 2, 3, 1}, 4, {0, 1, 3, 4}},
        {REE_I2, {0xFF, 1, 0, 0xFE}, 4, 4, {3, 0, 2, 1}, 3, {0, 1, 3}},
        {REE_U4, {15, 3, 0, 1}, 4, 4, {2, 3, 1, 0}, 3, {0, 1, 3}},
        // NaN, 1, -1, 0, -0, -NaN, 448, -448
        {REE_F8E4M3FN,
         {0x7F, 0x38, 0xB8, 0, 0x80, 0xFF, 0x7E, 0xFE},
         8,
         6,
         {7, 2, 3, 1, 6, 0},
         6,
         {0, 1, 2, 5, 6, 7}},
        // NaN, 1, -1, 0, -0, infinity, another NaN, -infinity
        {REE_F8E5M2,
         {0x7F, 0x3C, 0xBC, 0, 0x80, 0x7C, 0xFE, 0xFC},
         8,
         6,
         {7, 2, 3, 1, 5, 0},
         6,
         {0, 1, 2, 5, 6, 7}},
        // NaN, 1, -1, 0, 240, -240
        {REE_F8E4M3FNUZ,
         {0x80, 0x40, 0xC0, 0, 0x7F, 0xFF},
         6,
         6,
         {5, 2, 3, 1, 4, 0},
         5,
         {0, 1, 2, 4, 5}},
        {REE_F8E5M2FNUZ,
         {0x80, 0x40, 0xC0, 0, 0x7F, 0xFF},
         6,
         6,
         {5, 2, 3, 1, 4, 0},
         5,
         {0, 1, 2, 4, 5}},
        // NaN, 1, 2^-127: there is no zero
        {REE_F8E8M0, {0xFF, 0x7F, 0}, 3, 3, {2, 1, 0}, 3, {0, 1, 2}},
        // 1, -1, 0, -0, -6
        {REE_F4E2M1, {2, 10, 0, 8, 15}, 5, 4, {4, 1, 2, 0}, 3, {0, 1, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_node node;
        test_node_start(&node, "Unique", 11);
        test_node_input(&node, cases[i].dtype, 1, &cases[i].n, cases[i].x);
        CHECK_MSG(test_node_run(&node, 4) == REE_OK, "%s", node.err.message);
        check_ints(&node, 1, cases[i].n_first, cases[i].first);
        test_node_finish(&node);
        test_node_start(&node, "NonZero", 13);
        test_node_input(&node, cases[i].dtype, 1, &cases[i].n, cases[i].x);
        CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
        check_ints(&node, 0, cases[i].n_nonzero, cases[i].nonzero);
        test_node_finish(&node);
    }
}

static void center_crop_pad(uint64_t *state) {
    int64_t dims[3], shape[3], at[3];
    for (int i = 0; i < 3; i++) {
        dims[i] = pick(state, 0, 6);
        shape[i] = pick(state, 0, 8);
    }
    test_random_fill(state, (size_t)product(3, dims), x_data);
    for (int64_t i = 0; i < product(3, shape); i++) {
        int64_t rest = i, from = 0;
        for (int d = 3; d-- > 0;) {
            at[d] = rest % shape[d];
            rest /= shape[d];
            int64_t more = shape[d] - dims[d];
            at[d] += more < 0 ? -more / 2 : -(more / 2);
        }
        for (int d = 0; d < 3; d++)
            from = from < 0 || at[d] < 0 || at[d] >= dims[d] ? -1 : from * dims[d] + at[d];
        want[i] = from < 0 ? 0 : (double)x_data[from];
    }
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node n;
        test_node_start(&n, "CenterCropPad", 18);
        n.fuse = fuse;
        test_node_f32(&n, 3, dims, x_data);
        test_node_input(&n, REE_I64, 1, (int64_t[]){3}, shape);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        check_close(&n, 0, 3, shape, want, 0);
        test_node_finish(&n);
    }
}

static void max_unpool(uint64_t *state) {
    int64_t dims[4], out[4], shape[4], kernel[2], stride[2], pads[4] = {0};
    bool shaped = pick(state, 0, 1);
    for (int i = 0; i < 2; i++) {
        shape[i] = out[i] = dims[i] = pick(state, 1, 2);
        dims[2 + i] = pick(state, 1, 4);
        kernel[i] = pick(state, 1, 3);
        stride[i] = pick(state, 1, 3);
        pads[i] = pick(state, 0, kernel[i] - 1) / 2;
        out[2 + i] = (dims[2 + i] - 1) * stride[i] + kernel[i] - pads[i];
        shape[2 + i] = out[2 + i] + (shaped ? pick(state, 0, 2) : 0);
    }
    int64_t count = product(4, dims), n_out = product(4, out);
    if (n_out == 0) return;
    test_random_fill(state, (size_t)count, x_data);
    memset(want, 0, sizeof want);
    for (int64_t i = 0; i < count; i++) { // the last value written to an element remains
        index_data[i] = pick(state, 0, n_out - 1);
        int64_t at = index_data[i], x = at % out[3], y = at / out[3] % out[2];
        int64_t plane = at / out[3] / out[2];
        want[(plane * shape[2] + y) * shape[3] + x] = (double)x_data[i];
    }
    struct test_node n;
    test_node_start(&n, "MaxUnpool", 11);
    test_node_f32(&n, 4, dims, x_data);
    test_node_input(&n, REE_I64, 4, dims, index_data);
    if (shaped) test_node_input(&n, REE_I64, 1, (int64_t[]){4}, shape);
    test_node_ints(&n, "kernel_shape", 2, kernel);
    test_node_ints(&n, "strides", 2, stride);
    test_node_ints(&n, "pads", 4, pads);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    check_close(&n, 0, 4, shape, want, 0);
    test_node_finish(&n);
}

// Adds every element of every block at its position in the image.
static void col2im(uint64_t *state) {
    int axes = (int)pick(state, 1, 3);
    int64_t image[3] = {1, 1, 1}, block[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
    int64_t dilation[3] = {1, 1, 1}, pads[6] = {0}, blocks[3] = {1, 1, 1};
    int64_t n = pick(state, 0, 2), channels = pick(state, 1, 2);
    for (int i = 0; i < axes; i++) {
        image[i] = pick(state, 5, 6);
        block[i] = pick(state, 1, 3);
        stride[i] = pick(state, 1, 3);
        dilation[i] = pick(state, 1, 2);
        pads[i] = pick(state, 0, 2);
        pads[axes + i] = pick(state, 0, 2);
        int64_t extent = (block[i] - 1) * dilation[i] + 1;
        blocks[i] = (image[i] + pads[i] + pads[axes + i] - extent) / stride[i] + 1;
    }
    int64_t elements = product(3, block), count = product(3, blocks), plane = product(3, image);
    int64_t dims[3] = {n, channels * elements, count};
    static float columns[2 * 2 * 27 * 1000];
    test_random_fill(state, (size_t)product(3, dims), columns);
    memset(want, 0, sizeof want);
    for (int64_t p = 0; p < n * channels; p++)
        for (int64_t k = 0; k < elements; k++)
            for (int64_t l = 0; l < count; l++) {
                int64_t rest_k = k, rest_l = l, at[3], place = 0;
                for (int d = 3; d-- > 0;) {
                    int64_t pad = d < axes ? pads[d] : 0;
                    at[d] = rest_l % blocks[d] * stride[d] + rest_k % block[d] * dilation[d] - pad;
                    rest_k /= block[d];
                    rest_l /= blocks[d];
                }
                for (int d = 0; d < 3; d++)
                    place =
                        place < 0 || at[d] < 0 || at[d] >= image[d] ? -1 : place * image[d] + at[d];
                if (place >= 0)
                    want[p * plane + place] += (double)columns[(p * elements + k) * count + l];
            }
    int64_t y_dims[5] = {n, channels, image[0], image[1], image[2]}, n_axes = axes;
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node node;
        test_node_start(&node, "Col2Im", 18);
        node.fuse = fuse;
        test_node_f32(&node, 3, dims, columns);
        test_node_input(&node, REE_I64, 1, &n_axes, image);
        test_node_input(&node, REE_I64, 1, &n_axes, block);
        test_node_ints(&node, "strides", (size_t)axes, stride);
        test_node_ints(&node, "dilations", (size_t)axes, dilation);
        test_node_ints(&node, "pads", 2 * (size_t)axes, pads);
        CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
        check_close(&node, 0, 2 + (uint32_t)axes, y_dims, want, 3e-7); // measured: 9.7e-8
        check_same_bytes(&node, &earlier);
        test_node_finish(&node);
    }
}

// Expands along the first row.
static double cofactors(int n, const double *a) {
    double sum = 0, minor[25];
    if (n == 0) return 1;
    for (int c = 0; c < n; c++) {
        for (int i = 1, k = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (j != c) minor[k++] = a[i * n + j];
        sum += (c % 2 ? -1 : 1) * a[c] * cofactors(n - 1, minor);
    }
    return sum;
}

// Half of the cases have small integers, so that many matrices are singular and many pivots equal.
static void det(uint64_t *state) {
    int64_t m = pick(state, 0, 5), batch = pick(state, 0, 3), dims[3] = {batch, m, m};
    bool whole = pick(state, 0, 1);
    test_random_fill(state, (size_t)(batch * m * m), x_data);
    for (int64_t i = 0; whole && i < batch * m * m; i++)
        x_data[i] = (float)pick(state, -2, 2);
    for (int64_t b = 0; b < batch; b++) {
        double a[25];
        for (int64_t i = 0; i < m * m; i++)
            a[i] = (double)x_data[b * m * m + i];
        want[b] = cofactors((int)m, a);
    }
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node n;
        test_node_start(&n, "Det", 11);
        n.fuse = fuse;
        test_node_f32(&n, 3, dims, x_data);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        const float *got = test_node_output(&n, 0);
        // An absolute tolerance, because the determinants of a batch differ in magnitude. Measured:
        // 1.6e-5, for a determinant of 132.
        for (int64_t b = 0; b < batch; b++)
            CHECK_MSG(fabs((double)got[b] - want[b]) <= 5e-5, "Det: %.9g, expected %.9g",
                      (double)got[b], want[b]);
        check_same_bytes(&n, &earlier);
        test_node_finish(&n);
    }
}

int main(void) {
    uint64_t state = 3;
    narrow();
    for (int i = 0; i < 250; i++) {
        non_max_suppression(&state);
        unique(&state);
        center_crop_pad(&state);
        max_unpool(&state);
        col2im(&state);
        det(&state);
    }
    return test_finish();
}
