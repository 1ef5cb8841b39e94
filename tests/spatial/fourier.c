// DFT and STFT over random shapes and lengths of every kind (short, composite, prime, powers of
// two), compared with the sums in double.
#include "check.h"

#define TWO_PI 6.283185307179586476925286766559

static float x_data[1 << 15], window_data[1 << 10];
static double want[1 << 16];
static struct earlier_run earlier;

// Computes result k of the transform of length n of x (samples, parts), with samples `stride`
// apart, into out[0], out[1].
static void transform(const float *x, int64_t samples, int64_t stride, int64_t parts, int64_t n,
                      bool inverse, int64_t k, const float *window, double *out) {
    out[0] = out[1] = 0;
    for (int64_t i = 0; i < samples && i < n; i++) {
        double angle = TWO_PI * (double)(i * k % n) / (double)n * (inverse ? 1 : -1);
        double c = cos(angle), s = sin(angle), w = window ? (double)window[i] : 1;
        double re = (double)x[i * stride] * w, im = parts == 2 ? (double)x[i * stride + 1] * w : 0;
        out[0] += re * c - im * s;
        out[1] += re * s + im * c;
    }
}

static int64_t random_length(uint64_t *state) {
    static const int64_t lengths[] = {1,   2,   3,   16,  37,  255, 256, 257, 258,
                                      263, 289, 300, 384, 509, 512, 514, 771, 1024};
    return lengths[pick(state, 0, sizeof lengths / sizeof *lengths - 1)];
}

static void dft(uint64_t *state) {
    int64_t outer = pick(state, 1, 2), inner = pick(state, 1, 3), parts = pick(state, 1, 2);
    int64_t n = random_length(state), samples = n;
    bool inverse = pick(state, 0, 1), onesided = !inverse && parts == 1 && pick(state, 0, 1);
    bool given = pick(state, 0, 1);
    if (given) samples = pick(state, 1, 600); // truncated or zero-padded
    int64_t n_out = onesided ? n / 2 + 1 : n;
    int64_t dims[4] = {outer, samples, inner, parts}, y_dims[4] = {outer, n_out, inner, 2};
    test_random_fill(state, (size_t)(outer * samples * inner * parts), x_data);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < n_out; k++)
            for (int64_t i = 0; i < inner; i++) {
                double *y = want + ((o * n_out + k) * inner + i) * 2;
                transform(x_data + (o * samples * inner + i) * parts, samples, inner * parts, parts,
                          n, inverse, k, NULL, y);
                if (inverse) y[0] /= (double)n, y[1] /= (double)n;
            }
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node node;
        bool old = pick(state, 0, 1);
        int64_t axis = pick(state, 0, 1) ? 1 : -3;
        test_node_start(&node, "DFT", old ? 17 : 20);
        node.fuse = fuse;
        test_node_f32(&node, 4, dims, x_data);
        if (given)
            test_node_input(&node, REE_I64, 0, NULL, &n);
        else
            test_node_omit(&node);
        if (old)
            test_node_int(&node, "axis", axis);
        else
            test_node_input(&node, REE_I64, 0, NULL, &axis);
        test_node_int(&node, "inverse", inverse);
        test_node_int(&node, "onesided", onesided);
        CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
        check_close(&node, 0, 4, y_dims, want, 3e-6); // measured: 1e-6
        check_same_bytes(&node, &earlier);
        test_node_finish(&node);
    }
}

// In float64 the tables are not rounded to float32.
static void dft_float64(uint64_t *state) {
    static double signal[2 * 1024];
    int64_t n = random_length(state), parts = pick(state, 1, 2);
    for (int64_t i = 0; i < n * parts; i++)
        signal[i] = (double)(x_data[i] = test_random(state)); // float32 numbers
    struct test_node node;
    test_node_start(&node, "DFT", 20);
    test_node_input(&node, REE_F64, 3, (int64_t[]){1, n, parts}, signal);
    CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
    CHECK(node.out[0]->dtype == REE_F64 && ree_view_count(node.out[0]) == 2 * n);
    const double *got = test_node_output(&node, 0);
    for (int64_t k = 0; k < n; k++) {
        transform(x_data, n, parts, parts, n, false, k, NULL, want);
        // Measured: 3e-13, mostly of the reference: up to 2048 additions to sums of about 100, each
        // rounded by up to 2^-53 of the sum.
        bool close = fabs(got[2 * k] - want[0]) < 1e-12 && fabs(got[2 * k + 1] - want[1]) < 1e-12;
        CHECK_MSG(close, "length %lld, result %lld: %.17g %.17g, expected %.17g %.17g",
                  (long long)n, (long long)k, got[2 * k], got[2 * k + 1], want[0], want[1]);
    }
    test_node_finish(&node);
}

// The inverse transform restores a real signal from its onesided transform.
static void round_trip(uint64_t *state) {
    int64_t n = random_length(state), dims[3] = {2, n, 1};
    static float spectrum[4 * 1024];
    struct test_node node;
    test_random_fill(state, (size_t)(2 * n), x_data);
    for (int64_t i = 0; i < 2 * n; i++)
        want[i] = (double)x_data[i];
    test_node_start(&node, "DFT", 20);
    test_node_f32(&node, 3, dims, x_data);
    test_node_int(&node, "onesided", 1);
    CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
    int64_t half[3] = {2, n / 2 + 1, 2};
    memcpy(spectrum, test_node_output(&node, 0), (size_t)(4 * half[1]) * sizeof(float));
    test_node_finish(&node);
    test_node_start(&node, "DFT", 20);
    test_node_f32(&node, 3, half, spectrum);
    test_node_input(&node, REE_I64, 0, NULL, &n);
    test_node_int(&node, "onesided", 1);
    test_node_int(&node, "inverse", 1);
    CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
    check_close(&node, 0, 3, dims, want, 3e-6); // measured: 1e-6
    test_node_finish(&node);
}

// A signal's bits do not depend on the other signals in the same transform.
static void company(uint64_t *state) {
    int64_t n = random_length(state), parts = pick(state, 1, 2), rows = 3;
    test_random_fill(state, (size_t)(rows * n * parts), x_data);
    earlier.has = false;
    struct test_node node;
    test_node_start(&node, "DFT", 20);
    test_node_f32(&node, 3, (int64_t[]){rows, n, parts}, x_data);
    CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
    check_same_bytes(&node, &earlier);
    test_node_finish(&node);
    for (int64_t r = 0; r < rows; r++) {
        size_t size = (size_t)n * 2 * sizeof(float);
        test_node_start(&node, "DFT", 20);
        test_node_f32(&node, 3, (int64_t[]){1, n, parts}, x_data + r * n * parts);
        CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
        CHECK_MSG(!memcmp(test_node_output(&node, 0), earlier.bytes + (size_t)r * size, size),
                  "DFT of length %lld: row %lld alone has other bits", (long long)n, (long long)r);
        test_node_finish(&node);
    }
}

static void stft(uint64_t *state) {
    int64_t batch = pick(state, 1, 2), parts = pick(state, 1, 2), step = pick(state, 1, 60);
    int64_t length = pick(state, 0, 2) ? pick(state, 1, 40) : random_length(state);
    bool windowed = pick(state, 0, 1), onesided = parts == 1 && pick(state, 0, 1);
    int64_t samples = length + pick(state, 0, 200), frames = (samples - length) / step + 1;
    if (frames > 12) {
        frames = 12;
        samples = length + 11 * step;
    }
    int64_t n_out = onesided ? length / 2 + 1 : length, dims[3] = {batch, samples, parts};
    test_random_fill(state, (size_t)(batch * samples * parts), x_data);
    test_random_fill(state, (size_t)length, window_data);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t f = 0; f < frames; f++)
            for (int64_t k = 0; k < n_out; k++)
                transform(x_data + (b * samples + f * step) * parts, length, parts, parts, length,
                          false, k, windowed ? window_data : NULL,
                          want + ((b * frames + f) * n_out + k) * 2);
    earlier.has = false;
    for (int fuse = 1; fuse >= 0; fuse--) {
        struct test_node node;
        test_node_start(&node, "STFT", 17);
        node.fuse = fuse;
        test_node_f32(&node, 3, dims, x_data);
        test_node_input(&node, REE_I64, 0, NULL, &step);
        if (windowed)
            test_node_f32(&node, 1, &length, window_data);
        else
            test_node_omit(&node);
        test_node_input(&node, REE_I64, 0, NULL, &length);
        test_node_int(&node, "onesided", onesided);
        CHECK_MSG(test_node_run(&node, 1) == REE_OK, "%s", node.err.message);
        // Measured: 5.6e-7.
        check_close(&node, 0, 4, (int64_t[]){batch, frames, n_out, 2}, want, 2e-6);
        if (ree_view_count(node.out[0]) * 4 <= (int64_t)sizeof earlier.bytes)
            check_same_bytes(&node, &earlier);
        test_node_finish(&node);
    }
}

int main(void) {
    uint64_t state = 4;
    for (int i = 0; i < 60; i++) {
        dft(&state);
        dft_float64(&state);
        round_trip(&state);
        company(&state);
        stft(&state);
    }
    return test_finish();
}
