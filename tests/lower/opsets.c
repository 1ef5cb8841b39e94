// Operators whose semantics changed from one opset to another, each with both semantics.
#include "node.h"
#include "test.h"

#include <math.h>
#include <string.h>

// The expected values must be met exactly: most are small integers or fractions, and Selu's result
// happens to be the correctly rounded one.
static void expect(struct test_node *n, uint32_t output, size_t count, const float *values) {
    const float *got = test_node_output(n, output);
    CHECK_MSG(ree_view_count(n->out[output]) == (int64_t)count, "%s opset %lld: %lld elements",
              n->node.op_type, (long long)n->node.opset, (long long)ree_view_count(n->out[output]));
    for (size_t i = 0; i < count && got; i++)
        CHECK_MSG(got[i] == values[i], "%s opset %lld [%zu]: %.9g, expected %.9g", n->node.op_type,
                  (long long)n->node.opset, i, got[i], values[i]);
}

static void run(struct test_node *n, uint32_t n_outputs) {
    CHECK_MSG(test_node_run(n, n_outputs) == REE_OK, "%s", n->err.message);
}

static void broadcasting(void) {
    struct test_node n;
    const float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[2] = {10, 20};
    test_node_start(&n, "Add", 6); // b along axis 1 of three
    test_node_f32(&n, 3, (int64_t[]){2, 2, 2}, a);
    test_node_f32(&n, 1, (int64_t[]){2}, b);
    test_node_int(&n, "broadcast", 1);
    test_node_int(&n, "axis", 1);
    run(&n, 1);
    expect(&n, 0, 8, (float[]){11, 12, 23, 24, 15, 16, 27, 28});
    test_node_finish(&n);
    test_node_start(&n, "Add", 7); // aligned at the last axis
    test_node_f32(&n, 3, (int64_t[]){2, 2, 2}, a);
    test_node_f32(&n, 1, (int64_t[]){2}, b);
    run(&n, 1);
    expect(&n, 0, 8, (float[]){11, 22, 13, 24, 15, 26, 17, 28});
    test_node_finish(&n);

    const float x[4] = {-1, -2, -3, 4}, slope[2] = {0.5f, 2};
    test_node_start(&n, "PRelu", 6); // one slope per channel
    test_node_f32(&n, 3, (int64_t[]){1, 2, 2}, x);
    test_node_f32(&n, 1, (int64_t[]){2}, slope);
    run(&n, 1);
    expect(&n, 0, 4, (float[]){-0.5f, -1, -6, 4});
    test_node_finish(&n);
    test_node_start(&n, "PRelu", 9);
    test_node_f32(&n, 3, (int64_t[]){1, 2, 2}, x);
    test_node_f32(&n, 1, (int64_t[]){2}, slope);
    run(&n, 1);
    expect(&n, 0, 4, (float[]){-0.5f, -4, -1.5f, 4});
    test_node_finish(&n);
}

static void clip(void) {
    struct test_node n;
    const float x[3] = {-2, 0.25f, 2};
    for (int bounds = 0; bounds < 4; bounds++) {
        float expected[3];
        for (int i = 0; i < 3; i++) {
            expected[i] = bounds & 1 && x[i] < -1 ? -1 : x[i];
            if (bounds & 2 && expected[i] > 0.125f) expected[i] = 0.125f;
        }
        for (int64_t opset = 6; opset <= 13; opset++) {
            test_node_start(&n, "Clip", opset);
            test_node_f32(&n, 1, (int64_t[]){3}, x);
            if (opset < 11) {
                if (bounds & 1) test_node_float(&n, "min", -1);
                if (bounds & 2) test_node_float(&n, "max", 0.125f);
            } else {
                if (bounds & 1) test_node_f32(&n, 0, NULL, (float[]){-1});
                if (bounds == 2) test_node_omit(&n);
                if (bounds & 2) test_node_f32(&n, 0, NULL, (float[]){0.125f});
            }
            run(&n, 1);
            expect(&n, 0, 3, expected);
            test_node_finish(&n);
        }
    }
}

static void softmax(void) {
    struct test_node n;
    const float x[8] = {0};
    static const struct {
        int64_t opset, axis; // INT64_MIN: the default axis
        float value;
    } cases[] = {
        {7, INT64_MIN, 0.25f}, {11, INT64_MIN, 0.25f}, {13, INT64_MIN, 0.5f}, {11, 0, 0.125f},
        {13, 0, 0.5f},         {11, -1, 0.5f},         {13, 1, 0.5f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_node_start(&n, "Softmax", cases[i].opset);
        test_node_f32(&n, 3, (int64_t[]){2, 2, 2}, x);
        if (cases[i].axis != INT64_MIN) test_node_int(&n, "axis", cases[i].axis);
        run(&n, 1);
        float expected[8];
        for (int k = 0; k < 8; k++)
            expected[k] = cases[i].value;
        expect(&n, 0, 8, expected);
        test_node_finish(&n);
    }
}

static void dropout(void) {
    struct test_node n;
    const float x[2] = {3, -4};
    for (int64_t opset = 7; opset <= 13; opset++) {
        test_node_start(&n, "Dropout", opset);
        test_node_f32(&n, 1, (int64_t[]){2}, x);
        run(&n, 2);
        expect(&n, 0, 2, x);
        CHECK(n.out[1]->dtype == (opset < 10 ? REE_F32 : REE_BOOL));
        if (opset < 10) {
            expect(&n, 1, 2, (float[]){1, 1});
        } else {
            CHECK(!memcmp(test_node_output(&n, 1), (uint8_t[]){1, 1}, 2));
        }
        test_node_finish(&n);
    }
}

static void normalisations(void) {
    struct test_node n;
    // Two groups of two channels of two positions; epsilon is small compared with the variances.
    const float x[8] = {-1, 1, -1, 1, -3, 3, -3, 3}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int64_t opset = 18; opset <= 21; opset += 3) {
        int64_t count = opset < 21 ? 2 : 4;
        test_node_start(&n, "GroupNormalization", opset);
        test_node_f32(&n, 3, (int64_t[]){1, 4, 2}, x);
        test_node_f32(&n, 1, &count, (float[]){1, 2, 3, 4});
        test_node_f32(&n, 1, &count, (float[]){0, 10, 20, 30});
        test_node_int(&n, "num_groups", 2);
        test_node_float(&n, "epsilon", 0);
        run(&n, 1);
        expect(&n, 0, 8,
               opset < 21 ? (float[]){-1, 1, -1, 1, 8, 12, 8, 12}
                          : (float[]){-1, 1, 8, 12, 17, 23, 26, 34});
        test_node_finish(&n);
    }
    // spatial = 0: separate statistics for every element of a sample.
    for (int spatial = 0; spatial < 2; spatial++) {
        test_node_start(&n, "BatchNormalization", 7);
        test_node_f32(&n, 3, (int64_t[]){1, 2, 2}, (float[]){1, 2, 3, 4});
        uint32_t rank = spatial ? 1 : 2;
        test_node_f32(&n, rank, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4});
        test_node_f32(&n, rank, (int64_t[]){2, 2}, (float[]){10, 20, 30, 40});
        test_node_f32(&n, rank, (int64_t[]){2, 2}, (float[]){1, 1, 1, 1});
        test_node_f32(&n, rank, (int64_t[]){2, 2}, ones);
        test_node_float(&n, "epsilon", 0);
        if (!spatial) test_node_int(&n, "spatial", 0);
        run(&n, 1);
        expect(&n, 0, 4, spatial ? (float[]){10, 11, 24, 26} : (float[]){10, 22, 36, 52});
        test_node_finish(&n);
    }
}

static void others(void) {
    struct test_node n;
    test_node_start(&n, "Cast", 5); // type given by name
    test_node_f32(&n, 1, (int64_t[]){2}, (float[]){1.75f, -2.5f});
    test_node_string(&n, "to", "INT32");
    run(&n, 1);
    CHECK(n.out[0]->dtype == REE_I32 && !memcmp(test_node_output(&n, 0), (int32_t[]){1, -2}, 8));
    test_node_finish(&n);

    const float minus_one[1] = {-1};
    for (int64_t opset = 1; opset <= 6; opset += 5) {
        test_node_start(&n, "Selu", opset);
        test_node_f32(&n, 1, (int64_t[]){1}, minus_one);
        run(&n, 1);
        double alpha = opset < 6 ? 1.6732 : 1.67326319217681884765625;
        double gamma = opset < 6 ? 1.0507 : 1.05070102214813232421875;
        expect(&n, 0, 1, (float[]){(float)(gamma * alpha * expm1(-1))});
        test_node_finish(&n);
    }

    // Signed shifts (opset 28) keep the sign; counts outside the width leave only the sign.
    test_node_start(&n, "BitShift", 28);
    test_node_input(&n, REE_I8, 1, (int64_t[]){5}, (int8_t[]){-128, -1, 127, -7, 5});
    test_node_input(&n, REE_I8, 1, (int64_t[]){5}, (int8_t[]){1, 9, 8, -1, 2});
    test_node_string(&n, "direction", "RIGHT");
    run(&n, 1);
    CHECK(!memcmp(test_node_output(&n, 0), (int8_t[]){-64, -1, 0, -1, 1}, 5));
    test_node_finish(&n);
}

int main(void) {
    broadcasting();
    clip();
    softmax();
    dropout();
    normalisations();
    others();
    return test_finish();
}
