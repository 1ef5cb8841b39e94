// Composite operators give the same bits fused and step by step. Activations are near their formula
// in double; layer norm and softmax have the right moments and sums.
#include "node.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N (3 * 5 * 70)

// Fills x with values for both sides of every branch, and special values.
static void fill_input(float x[N]) {
    static const float special[] = {0.0f,  -0.0f,  INFINITY, -INFINITY, NAN,  0x1p-149f, -0x1p-130f,
                                    88.5f, -88.5f, 3e38f,    -3e38f,    0.5f, -0.5f,     1.0f};
    uint64_t state = 1;
    for (int i = 0; i < N; i++)
        x[i] = 4 * test_random(&state);
    memcpy(x + N - sizeof special / sizeof special[0], special, sizeof special);
}

// Runs the node that `start` builds both ways; returns the fused one, which the caller must finish.
static void both(struct test_node *fused, void (*start)(struct test_node *n, const void *user),
                 const void *user, uint32_t n_outputs) {
    struct test_node steps;
    start(fused, user);
    start(&steps, user);
    steps.fuse = false;
    CHECK_MSG(test_node_run(fused, n_outputs) == REE_OK, "%s", fused->err.message);
    CHECK_MSG(test_node_run(&steps, n_outputs) == REE_OK, "%s", steps.err.message);
    for (uint32_t i = 0; i < n_outputs; i++) {
        const void *a = test_node_output(fused, i), *b = test_node_output(&steps, i);
        REQUIRE(a && b);
        size_t size = (size_t)ree_view_count(fused->out[i]) * ree_dtype_size(fused->out[i]->dtype);
        CHECK_MSG(!memcmp(a, b, size), "%s: output %u differs step by step", fused->node.op_type,
                  i);
    }
    test_node_finish(&steps);
}

struct activation {
    const char *type;
    int64_t opset;
    const char *attr, *text; // a string attribute and its value
    double (*formula)(double x);
};

static double leaky_relu(double x) {
    return x < 0 ? 0.01 * x : x;
}
static double elu(double x) {
    return x < 0 ? expm1(x) : x;
}
static double selu(double x) {
    return 1.0507010221481323 * (x < 0 ? 1.6732631921768188 * expm1(x) : x);
}
static double gelu(double x) {
    return x * 0.5 * erfc(-x * M_SQRT1_2);
}
static double gelu_tanh(double x) {
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double hard_sigmoid(double x) {
    return fmax(0, fmin(1, 0.2 * x + 0.5));
}
static double hard_swish(double x) {
    return x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double softsign(double x) {
    return x / (1 + fabs(x));
}
static double mish(double x) {
    return x * tanh(x > 40 ? x : log1p(exp(x)));
}
static double swish(double x) {
    return x / (1 + exp(-x));
}
static double shrink(double x) {
    return x < -0.5 ? x : x > 0.5 ? x : 0;
}
static double thresholded(double x) {
    return x > 1 ? x : 0;
}
static double relu(double x) {
    return x > 0 ? x : 0;
}

static const struct activation activations[] = {
    {"Relu", 17, NULL, NULL, relu},
    {"LeakyRelu", 17, NULL, NULL, leaky_relu},
    {"Elu", 17, NULL, NULL, elu},
    {"Selu", 17, NULL, NULL, selu},
    {"Celu", 17, NULL, NULL, elu}, // alpha = 1
    {"Gelu", 20, "approximate", "none", gelu},
    {"Gelu", 20, "approximate", "tanh", gelu_tanh},
    {"HardSigmoid", 17, NULL, NULL, hard_sigmoid},
    {"HardSwish", 17, NULL, NULL, hard_swish},
    {"Softsign", 17, NULL, NULL, softsign},
    {"Mish", 18, NULL, NULL, mish},
    {"Swish", 24, NULL, NULL, swish},
    {"Shrink", 17, NULL, NULL, shrink},
    {"ThresholdedRelu", 17, NULL, NULL, thresholded},
};

static float input[N];

static void start_activation(struct test_node *n, const void *user) {
    const struct activation *a = user;
    test_node_start(n, a->type, a->opset);
    test_node_f32(n, 3, (int64_t[]){3, 5, 70}, input);
    if (a->attr) test_node_string(n, a->attr, a->text);
}

static void check_activation(const struct activation *a) {
    struct test_node n;
    both(&n, start_activation, a, 1);
    const float *y = test_node_output(&n, 0);
    REQUIRE(y);
    for (int i = 0; i < N; i++) {
        double want = a->formula((double)input[i]);
        // The formula in double overflows or cancels only if binary32 has no finite result.
        if (!isfinite(input[i]) || fabs(want) > 3e38 || !isfinite(want)) continue;
        // 2e-6 allows for a few roundings of 2^-24; the absolute part allows for cancellation in 1
        // + erf.
        CHECK_MSG(fabs(y[i] - want) <= 2e-6 * fabs(want) + 5e-7, "%s(%.9g) = %.9g, expected %.9g",
                  a->type, input[i], y[i], want);
    }
    test_node_finish(&n);
}

struct norm {
    const char *type;
    int64_t opset, axis;
    uint32_t n_params, n_outputs;
    int64_t param_dims[3];
    uint32_t param_rank;
};

static void start_norm(struct test_node *n, const void *user) {
    const struct norm *norm = user;
    static float params[2][5 * 70];
    uint64_t state = 2;
    test_random_fill(&state, 2 * 5 * 70, params[0]);
    test_node_start(n, norm->type, norm->opset);
    test_node_f32(n, 3, (int64_t[]){3, 5, 70}, input);
    for (uint32_t i = 0; i < norm->n_params; i++)
        test_node_f32(n, norm->param_rank, norm->param_dims, params[i]);
    if (norm->axis != INT64_MIN) test_node_int(n, "axis", norm->axis);
    if (!strcmp(norm->type, "GroupNormalization")) test_node_int(n, "num_groups", 5);
    if (!strcmp(norm->type, "MeanVarianceNormalization"))
        test_node_ints(n, "axes", 2, (int64_t[]){0, 2});
    if (!strcmp(norm->type, "LRN")) test_node_int(n, "size", 3);
}

static const struct norm norms[] = {
    {"Softmax", 13, -1, 0, 1, {0}, 0},
    {"Softmax", 13, 1, 0, 1, {0}, 0},
    {"Softmax", 11, 1, 0, 1, {0}, 0},
    {"LogSoftmax", 13, -1, 0, 1, {0}, 0},
    {"LogSoftmax", 13, 0, 0, 1, {0}, 0},
    {"Hardmax", 13, 1, 0, 1, {0}, 0},
    {"LayerNormalization", 17, -1, 2, 3, {70}, 1},
    {"LayerNormalization", 17, -1, 1, 1, {70}, 1},
    {"LayerNormalization", 17, 1, 2, 3, {5, 70}, 2},
    {"LayerNormalization", 17, 1, 2, 3, {5, 1}, 2},
    {"LayerNormalization", 17, -1, 2, 1, {5, 70}, 2},
    {"RMSNormalization", 23, -1, 1, 1, {70}, 1},
    {"RMSNormalization", 23, 1, 1, 1, {5, 70}, 2},
    {"InstanceNormalization", 17, INT64_MIN, 2, 1, {5}, 1},
    {"GroupNormalization", 18, INT64_MIN, 2, 1, {5}, 1},
    {"GroupNormalization", 21, INT64_MIN, 2, 1, {5}, 1},
    // start_batch_norm adds its four parameters.
    {"BatchNormalization", 15, INT64_MIN, 0, 1, {5}, 1},
    {"MeanVarianceNormalization", 13, INT64_MIN, 0, 1, {0}, 0},
    {"LpNormalization", 13, 1, 0, 1, {0}, 0},
    {"LRN", 13, INT64_MIN, 0, 1, {0}, 0},
};

static void start_batch_norm(struct test_node *n, const void *user) {
    (void)user;
    test_node_start(n, "BatchNormalization", 15);
    test_node_f32(n, 3, (int64_t[]){3, 5, 70}, input);
    for (int i = 0; i < 4; i++)
        test_node_f32(n, 1, (int64_t[]){5}, (float[]){0.3f, 1.7f, 2.9f, 0.01f, 5.5f});
}

// With ordinary numbers as inputs: rows have mean 0 and variance 1, and softmax rows sum to 1.
static void check_moments(void) {
    struct test_node n;
    static const float ones[70] = {[0 ... 69] = 1}, zeros[70];
    for (int i = 0; i < N; i++)
        if (!isfinite(input[i]) || fabsf(input[i]) > 8) input[i] = 0.75f;
    test_node_start(&n, "LayerNormalization", 17);
    test_node_f32(&n, 2, (int64_t[]){15, 70}, input);
    test_node_f32(&n, 1, (int64_t[]){70}, ones);
    test_node_f32(&n, 1, (int64_t[]){70}, zeros);
    REQUIRE(test_node_run(&n, 3) == REE_OK);
    const float *y = test_node_output(&n, 0), *mean = test_node_output(&n, 1),
                *inverse = test_node_output(&n, 2);
    for (int r = 0; r < 15; r++) {
        double sum = 0, squares = 0, m = 0, v = 0;
        for (int i = 0; i < 70; i++) {
            sum += y[r * 70 + i];
            squares += (double)y[r * 70 + i] * y[r * 70 + i];
            m += (double)input[r * 70 + i] / 70;
        }
        for (int i = 0; i < 70; i++)
            v += (input[r * 70 + i] - m) * (input[r * 70 + i] - m) / 70;
        // u = 2^-24 is the largest relative error of a rounding. The mean's error is the only one
        // without a useful bound, because the roundings of its sum cancel in part (measured:
        // 1.4e-7). It moves every y by less than 5e-7 / 4, and y has two roundings more: the sum
        // of the y is at most 70 * 5e-7 / 4 + 2u * 70. The variance is a sum of 70 positive terms,
        // so it has a relative error of less than 75u, half of which goes into its root.
        CHECK(fabs(mean[r] - m) < 5e-7 && v > 16 && fabs(sum) < 2e-5);
        CHECK(fabs(inverse[r] * sqrt(v + 1e-5) - 1) < 40 * 0x1p-24);
        CHECK(fabs(squares - 70) < 70 * (1e-5 / v + 80 * 0x1p-24));
    }
    test_node_finish(&n);
    test_node_start(&n, "Softmax", 13);
    test_node_f32(&n, 2, (int64_t[]){15, 70}, input);
    REQUIRE(test_node_run(&n, 1) == REE_OK);
    y = test_node_output(&n, 0);
    for (int r = 0; r < 15; r++) {
        double sum = 0;
        for (int i = 0; i < 70; i++)
            sum += y[r * 70 + i];
        // The divisor is a sum of 70 positive terms, and each quotient is rounded.
        CHECK(fabs(sum - 1) < 71 * 0x1p-24);
    }
    test_node_finish(&n);
}

int main(void) {
    struct test_node n;
    fill_input(input);
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++)
        check_activation(&activations[i]);
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
        bool batch = !strcmp(norms[i].type, "BatchNormalization");
        both(&n, batch ? start_batch_norm : start_norm, &norms[i], norms[i].n_outputs);
        test_node_finish(&n);
    }
    check_moments();
    return test_finish();
}
