// Random numbers: their bits match the definition, they depend only on the seed or the name, and
// their distribution is correct. The bounds are five standard deviations: with fixed seeds nothing
// varies, and a wrong generator is off by far more.
#include "node.h"
#include "repops/scalar/ops.h"
#include "test.h"

#include <math.h>
#include <string.h>

#define N 100000

static const int64_t shape[2] = {N / 100, 100};

static const float *draw(struct test_node *n, const char *op, const float *seed, float *copy) {
    test_node_start(n, op, 22);
    test_node_ints(n, "shape", 2, shape);
    if (seed) test_node_float(n, "seed", *seed);
    CHECK_MSG(test_node_run(n, 1) == REE_OK, "%s", n->err.message);
    CHECK(n->out[0]->dtype == REE_F32 && n->out[0]->rank == 2 && n->out[0]->dims[0] == shape[0]);
    memcpy(copy, test_node_output(n, 0), N * sizeof *copy);
    return copy;
}

static float x[N], y[N];

// Computed from the text of NUMERICS.md: w0 and w1 of element i under the key (bits of the seed,
// 0). tests/repops checks the scalar functions that this uses.
static void definition(void) {
    struct test_node n;
    float seed = 3;
    uint64_t key = 0x40400000;
    draw(&n, "RandomUniform", &seed, x);
    test_node_finish(&n);
    draw(&n, "RandomNormal", &seed, y);
    test_node_finish(&n);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t words = ree_op_philox_b64(i, key);
        uint32_t w0 = (uint32_t)words, w1 = (uint32_t)(words >> 32);
        float u = (float)(w0 >> 8) * 0x1p-24f;
        CHECK(x[i] == u);
        float log = ree_float(ree_op_log_f32(ree_bits((float)((w0 >> 8) + 1) * 0x1p-24f)));
        float angle = 0x1.921fb6p+2f * ((float)(w1 >> 8) * 0x1p-24f);
        float normal = sqrtf(-2 * log) * ree_float(ree_op_cos_f32(ree_bits(angle)));
        CHECK(y[i] == 0 + 1 * normal);
    }
}

static void distributions(void) {
    struct test_node n;
    float seed = 17;
    draw(&n, "RandomUniform", &seed, x);
    test_node_finish(&n);
    double mean = 0, squares = 0, bins[100] = {0}, chi = 0, serial = 0;
    for (int i = 0; i < N; i++) {
        CHECK(x[i] >= 0 && x[i] < 1);
        mean += x[i];
        squares += (x[i] - 0.5) * (x[i] - 0.5);
        bins[(int)(x[i] * 100)]++;
        if (i) serial += (x[i] - 0.5) * (x[i - 1] - 0.5);
    }
    CHECK(fabs(mean / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    CHECK(fabs(squares / N - 1.0 / 12) < 5 * sqrt(1.0 / 180 / N));
    CHECK(fabs(serial / N) < 5 * sqrt(1.0 / 144 / N));
    for (int i = 0; i < 100; i++)
        chi += (bins[i] - N / 100.0) * (bins[i] - N / 100.0) / (N / 100.0);
    CHECK_MSG(fabs(chi - 99) < 5 * sqrt(2 * 99.0), "chi-square is %g of 99", chi);

    draw(&n, "RandomNormal", &seed, y);
    test_node_finish(&n);
    double sum = 0, second = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double v = y[i];
        sum += v;
        second += v * v;
        fourth += v * v * v * v;
    }
    CHECK(fabs(sum / N) < 5 / sqrt(N));
    CHECK(fabs(second / N - 1) < 5 * sqrt(2.0 / N));
    CHECK(fabs(fourth / N - 3) < 5 * sqrt(96.0 / N));
}

// Without a seed, the name of the output is the seed.
static void seeds(void) {
    struct test_node n;
    float one = 1, two = 2;
    static float z[N];
    draw(&n, "RandomUniform", &one, x);
    test_node_finish(&n);
    draw(&n, "RandomUniform", &two, y);
    test_node_finish(&n);
    CHECK(memcmp(x, y, sizeof x) != 0);
    draw(&n, "RandomUniform", &one, y);
    test_node_finish(&n);
    CHECK(memcmp(x, y, sizeof x) == 0);
    draw(&n, "RandomUniform", NULL, y);
    test_node_finish(&n);
    draw(&n, "RandomUniform", NULL, z);
    test_node_finish(&n);
    CHECK(memcmp(y, z, sizeof y) == 0 && memcmp(x, y, sizeof x) != 0);
    // The output's name is "v": FNV-1a of one byte.
    uint64_t key = (0xCBF29CE484222325 ^ 'v') * 0x100000001B3;
    CHECK(y[7] == (float)((uint32_t)ree_op_philox_b64(7, key) >> 8) * 0x1p-24f);
}

static void choices(void) {
    struct test_node n;
    for (int i = 0; i < N; i++)
        x[i] = 0.3f;
    test_node_start(&n, "Bernoulli", 15);
    test_node_f32(&n, 2, shape, x);
    test_node_int(&n, "dtype", REE_I32);
    CHECK(test_node_run(&n, 1) == REE_OK);
    const int32_t *ones = test_node_output(&n, 0);
    double count = 0;
    for (int i = 0; i < N; i++) {
        CHECK(ones[i] == 0 || ones[i] == 1);
        count += ones[i];
    }
    CHECK(fabs(count / N - 0.3) < 5 * sqrt(0.21 / N));
    test_node_finish(&n);

    // Weights 1, 0, 2, 1; in the second row only class 1 has weight.
    float logs[8] = {0, -INFINITY, 0x1.62e43p-1f, 0, -300, 300, -300, -300};
    test_node_start(&n, "Multinomial", 15);
    test_node_f32(&n, 2, (int64_t[]){2, 4}, logs);
    test_node_int(&n, "sample_size", N / 10);
    test_node_float(&n, "seed", 5);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    const int32_t *classes = test_node_output(&n, 0);
    double counts[4] = {0};
    for (int i = 0; i < N / 10; i++) {
        REQUIRE(classes[i] >= 0 && classes[i] < 4);
        counts[classes[i]]++;
        CHECK(classes[N / 10 + i] == 1);
    }
    static const double share[4] = {0.25, 0, 0.5, 0.25};
    for (int i = 0; i < 4; i++)
        CHECK(fabs(counts[i] / (N / 10) - share[i]) <=
              5 * sqrt(share[i] * (1 - share[i]) / (N / 10)));
    test_node_finish(&n);
}

static void dropout(void) {
    struct test_node n;
    float ratio = 0.25f;
    uint8_t training = 1;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i + 1);
    test_node_start(&n, "Dropout", 13);
    test_node_f32(&n, 2, shape, x);
    test_node_f32(&n, 0, NULL, &ratio);
    test_node_input(&n, REE_BOOL, 0, NULL, &training);
    test_node_int(&n, "seed", 3);
    CHECK_MSG(test_node_run(&n, 2) == REE_OK, "%s", n.err.message);
    const float *out = test_node_output(&n, 0);
    const uint8_t *mask = test_node_output(&n, 1);
    double kept = 0;
    for (uint64_t i = 0; i < N; i++) {
        float u = (float)((uint32_t)ree_op_philox_b64(i, 0x40400000) >> 8) * 0x1p-24f;
        CHECK(mask[i] == (u >= ratio));
        CHECK(out[i] == (mask[i] ? x[i] * (1 / (1 - ratio)) : 0));
        kept += mask[i];
    }
    CHECK(fabs(kept / N - 0.75) < 5 * sqrt(0.1875 / N));
    test_node_finish(&n);
}

static void expect(struct test_node *n, const char *message) {
    enum ree_status got = test_node_run(n, 1);
    CHECK_MSG(got == REE_INVALID && strstr(n->err.message, message), "got '%s', expected '%s'",
              n->err.message, message);
    test_node_finish(n);
}

static void messages(void) {
    struct test_node n;
    test_node_start(&n, "RandomNormal", 22);
    expect(&n, "attribute 'shape' is missing");
    test_node_start(&n, "RandomNormal", 22);
    test_node_ints(&n, "shape", 2, shape);
    test_node_int(&n, "dtype", REE_I32);
    expect(&n, "dtype is 6, expected a floating-point type");
    test_node_start(&n, "Multinomial", 22);
    test_node_f32(&n, 2, (int64_t[]){1, 2}, x);
    test_node_int(&n, "dtype", REE_F32);
    expect(&n, "dtype is 1, expected 6 (int32) or 7 (int64)");
    test_node_start(&n, "Multinomial", 22);
    test_node_f32(&n, 2, (int64_t[]){1, 0}, x);
    expect(&n, "1 samples of 0 classes, expected at least one of each");
    test_node_start(&n, "Dropout", 22);
    test_node_f32(&n, 2, shape, x);
    test_node_f32(&n, 1, (int64_t[]){2}, x);
    test_node_input(&n, REE_BOOL, 0, NULL, &(uint8_t){1});
    expect(&n, "input ratio is float32[2], expected one float");
}

// In old opsets the mask has the data's type, with 1 for true.
static void dropout_masks(void) {
    static const uint16_t data[2] = {0x4000, 0xC000};
    struct test_node n;
    test_node_start(&n, "Dropout", 7);
    test_node_input(&n, REE_F16, 1, (int64_t[]){2}, data);
    CHECK_MSG(test_node_run(&n, 2) == REE_OK, "%s", n.err.message);
    const uint16_t *mask = test_node_output(&n, 1);
    CHECK(n.out[1]->dtype == REE_F16 && mask[0] == 0x3C00 && mask[1] == 0x3C00);
    test_node_finish(&n);
    static const uint8_t yes = 1;
    test_node_start(&n, "Dropout", 13);
    test_node_text(&n, "i2 f", "");
    test_node_input(&n, REE_BOOL, 0, NULL, &yes);
    n.err.message[0] = 0;
    CHECK(test_node_run(&n, 2) == REE_UNSUPPORTED &&
          strstr(n.err.message, "Dropout of int32 is not supported"));
    test_node_finish(&n);
}

int main(void) {
    definition();
    distributions();
    seeds();
    choices();
    dropout();
    messages();
    dropout_masks();
    return test_finish();
}
