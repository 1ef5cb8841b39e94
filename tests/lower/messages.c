// Errors for invalid nodes: a status and a message that names what was expected.
#include "node.h"
#include "test.h"

#include <string.h>

static const float zeros[4096];

static void expect(struct test_node *n, uint32_t n_outputs, enum ree_status status,
                   const char *message) {
    n->err.message[0] = 0;
    enum ree_status got = test_node_run(n, n_outputs);
    CHECK_MSG(got == status && strstr(n->err.message, message),
              "%s: got %s: '%s', expected %s: '%s'", n->node.op_type, ree_status_name(got),
              n->err.message, ree_status_name(status), message);
    test_node_finish(n);
}

static void start_conv(struct test_node *n, const char *op, const int64_t x[4],
                       const int64_t w[4]) {
    test_node_start(n, op, 17);
    test_node_f32(n, 4, x, zeros);
    test_node_f32(n, 4, w, zeros);
}

static void conv(void) {
    static const int64_t x[4] = {1, 8, 5, 5}, w[4] = {4, 4, 3, 3}, other[4] = {4, 3, 3, 3};
    struct test_node n;
    test_node_start(&n, "Conv", 17);
    test_node_f32(&n, 2, x, zeros);
    test_node_f32(&n, 4, w, zeros);
    expect(&n, 1, REE_INVALID, "input X has rank 2, expected 3 to 5");
    test_node_start(&n, "Conv", 17);
    test_node_f32(&n, 4, x, zeros);
    test_node_f32(&n, 3, w, zeros);
    expect(&n, 1, REE_INVALID, "input W has rank 3, expected 4");

    start_conv(&n, "Conv", x, other);
    test_node_int(&n, "group", 2);
    expect(&n, 1, REE_INVALID,
           "W has 3 input channels per group, X has 8 channels in 2 groups, expected 4");
    start_conv(&n, "Conv", x, w);
    test_node_int(&n, "group", 0);
    expect(&n, 1, REE_INVALID, "group is 0, expected 1 or more");
    start_conv(&n, "Conv", x, w);
    test_node_int(&n, "group", 3);
    expect(&n, 1, REE_INVALID, "is not a multiple of 3 groups");

    // Attributes: count, range, agreement. Each is added to a convolution that is valid without it.
    static const struct {
        const char *name;
        size_t count;
        int64_t values[4];
        const char *message;
    } wrong[] = {
        {"strides", 2, {0, 1}, "strides[0] is 0, expected 1 or more"},
        {"strides", 3, {1, 1, 1}, "strides has 3 entries, expected 2"},
        {"strides", 2, {INT64_MAX, 1}, "strides[0] is 9223372036854775807"},
        {"dilations", 2, {1, -1}, "dilations[1] is -1, expected 1 or more"},
        {"dilations", 2, {INT32_MAX, 1}, "the kernel spans 4294967295 along axis 2"},
        {"pads", 4, {0, 0, -1, 0}, "pads[2] is -1, expected 0 or more"},
        {"pads", 2, {0, 0}, "pads has 2 entries, expected 4"},
        {"pads", 4, {INT32_MAX, 0, INT32_MAX, 0}, "2^31"},
        {"kernel_shape", 2, {3, 2}, "kernel_shape[1] is 2, but W has size 3"},
        {"kernel_shape", 2, {0, 3}, "kernel_shape[0] is 0, expected 1 or more"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        start_conv(&n, "Conv", x, w);
        test_node_int(&n, "group", 2);
        test_node_ints(&n, wrong[i].name, wrong[i].count, wrong[i].values);
        expect(&n, 1, strcmp(wrong[i].message, "2^31") ? REE_INVALID : REE_UNSUPPORTED,
               wrong[i].message);
    }
    start_conv(&n, "Conv", x, w);
    test_node_int(&n, "group", 2);
    test_node_string(&n, "auto_pad", "SAME");
    expect(&n, 1, REE_INVALID, "auto_pad is 'SAME', expected NOTSET");
    start_conv(&n, "Conv", x, w);
    test_node_int(&n, "group", 2);
    test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 1, REE_INVALID, "input B is float32[3], expected 4 elements");

    start_conv(&n, "ConvTranspose", x, w);
    expect(&n, 1, REE_INVALID, "W has 4 input channels, but X has 8");
    start_conv(&n, "ConvTranspose", (int64_t[]){1, 4, 2, 2}, w);
    test_node_ints(&n, "pads", 4, (int64_t[]){2, 0, 2, 0});
    expect(&n, 1, REE_INVALID, "the padding leaves an output of size 0 along axis 2");
    start_conv(&n, "ConvTranspose", (int64_t[]){1, 4, 2, 2}, w);
    test_node_ints(&n, "strides", 2, (int64_t[]){INT32_MAX, INT32_MAX});
    expect(&n, 1, REE_UNSUPPORTED, "2^31");
}

// Tensors without elements can have huge dimensions; sizes derived from them must be checked.
static void empty(void) {
    struct test_node n;
    test_node_start(&n, "ConvTranspose", 17);
    test_node_f32(&n, 3, (int64_t[]){1, 0, INT64_C(1) << 40}, zeros);
    test_node_f32(&n, 3, (int64_t[]){0, 4, 3}, zeros);
    test_node_ints(&n, "strides", 1, (int64_t[]){INT32_MAX});
    expect(&n, 1, REE_UNSUPPORTED, "2^31 positions or more along axis 2");
    test_node_start(&n, "ConvTranspose", 17);
    test_node_f32(&n, 3, (int64_t[]){1, 0, 4}, zeros);
    test_node_f32(&n, 3, (int64_t[]){0, INT64_C(1) << 40, 3}, zeros);
    test_node_int(&n, "group", INT32_MAX);
    expect(&n, 1, REE_UNSUPPORTED, "W has 2^31 output channels or more");
    test_node_start(&n, "Conv", 17);
    test_node_f32(&n, 3, (int64_t[]){1, 0, 4}, zeros);
    test_node_f32(&n, 3, (int64_t[]){4, 0, INT64_C(1) << 40}, zeros);
    expect(&n, 1, REE_UNSUPPORTED, "2^31 positions or more along axis 2");
}

static void start_one(struct test_node *n, const char *op, int64_t opset, enum ree_dtype dtype) {
    test_node_start(n, op, opset);
    test_node_input(n, dtype, 3, (int64_t[]){2, 3, 4}, zeros);
}

static void others(void) {
    struct test_node n;
    start_one(&n, "MaxPool", 17, REE_F32);
    expect(&n, 1, REE_INVALID, "attribute 'kernel_shape' is missing");
    start_one(&n, "MaxPool", 17, REE_F32);
    test_node_ints(&n, "kernel_shape", 1, (int64_t[]){2});
    test_node_ints(&n, "pads", 2, (int64_t[]){2, 0});
    expect(&n, 1, REE_INVALID, "expected less than the kernel's extent of 2");
    start_one(&n, "AveragePool", 17, REE_I32);
    expect(&n, 1, REE_UNSUPPORTED, "AveragePool of int32 is not supported");

    start_one(&n, "Add", 17, REE_I4);
    test_node_input(&n, REE_I4, 1, (int64_t[]){4}, zeros);
    expect(&n, 1, REE_UNSUPPORTED, "Add of int4 is not supported");
    start_one(&n, "Add", 17, REE_F32);
    test_node_input(&n, REE_I32, 1, (int64_t[]){4}, zeros);
    expect(&n, 1, REE_INVALID, "input B is int32, expected float32 like input A");
    start_one(&n, "Add", 17, REE_F32);
    test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 1, REE_INVALID, "does not broadcast");
    start_one(&n, "Add", 17, REE_F32);
    expect(&n, 1, REE_INVALID, "has 1 inputs, expected 2 to 2");
    start_one(&n, "Exp", 17, REE_I32);
    expect(&n, 1, REE_UNSUPPORTED, "Exp of int32 is not supported");
    start_one(&n, "Neg", 17, REE_U8);
    expect(&n, 1, REE_UNSUPPORTED, "Neg of uint8 is not supported");
    start_one(&n, "BitShift", 17, REE_U8);
    test_node_input(&n, REE_U8, 0, NULL, zeros);
    expect(&n, 1, REE_INVALID, "direction is '', expected LEFT or RIGHT");
    start_one(&n, "Clip", 17, REE_F32);
    test_node_f32(&n, 1, (int64_t[]){2}, zeros);
    expect(&n, 1, REE_INVALID, "input min is float32[2], expected one float32");
    start_one(&n, "Clip", 6, REE_F32);
    test_node_int(&n, "min", 1);
    expect(&n, 1, REE_INVALID, "attribute 'min' is");
    start_one(&n, "Where", 17, REE_F32);
    test_node_f32(&n, 0, NULL, zeros);
    test_node_f32(&n, 0, NULL, zeros);
    expect(&n, 1, REE_INVALID, "input condition is float32, expected bool");
    start_one(&n, "Cast", 17, REE_F32);
    expect(&n, 1, REE_INVALID, "attribute 'to' is missing");
    start_one(&n, "Cast", 17, REE_F32);
    test_node_int(&n, "to", 14);
    expect(&n, 1, REE_UNSUPPORTED, "Cast from float32 to ? is not supported");
    start_one(&n, "Cast", 25, REE_F32);
    test_node_int(&n, "to", REE_F8E8M0);
    test_node_string(&n, "round_mode", "sideways");
    expect(&n, 1, REE_INVALID, "round_mode is 'sideways', expected up, down or nearest");
    start_one(&n, "BitCast", 26, REE_F32);
    expect(&n, 1, REE_INVALID, "attribute 'to' is 0, expected a type with a size");
    start_one(&n, "BitCast", 26, REE_F32);
    test_node_int(&n, "to", REE_F16);
    expect(&n, 1, REE_INVALID,
           "cannot cast the bits of float32, which has 32 bits, to float16, which has 16 bits");
    start_one(&n, "BitCast", 26, REE_U8);
    test_node_int(&n, "to", REE_U4);
    expect(&n, 1, REE_INVALID,
           "cannot cast the bits of uint8, which has 8 bits, to uint4, which has 4 bits");
    start_one(&n, "BitCast", 26, REE_U8);
    test_node_int(&n, "to", REE_BOOL);
    expect(&n, 1, REE_UNSUPPORTED, "cannot cast the bits of uint8 to bool");
    start_one(&n, "Cast", 17, REE_F32);
    test_node_int(&n, "to", INT64_MIN);
    expect(&n, 1, REE_INVALID, "is not a type");
    start_one(&n, "Gelu", 20, REE_F32);
    test_node_string(&n, "approximate", "cubic");
    expect(&n, 1, REE_INVALID, "approximate is 'cubic', expected none or tanh");

    start_one(&n, "Gemm", 17, REE_F32);
    test_node_f32(&n, 2, (int64_t[]){4, 4}, zeros);
    expect(&n, 1, REE_INVALID, "input A has rank 3, expected 2");
    start_one(&n, "MatMul", 17, REE_F32);
    test_node_f32(&n, 0, NULL, zeros);
    expect(&n, 1, REE_INVALID, "input B has rank 0, expected at least 1");
    start_one(&n, "MatMul", 17, REE_F32);
    test_node_f32(&n, 2, (int64_t[]){3, 4}, zeros);
    expect(&n, 1, REE_INVALID, "cannot multiply float32[2,3,4] by float32[3,4]");

    start_one(&n, "Softmax", 17, REE_F32);
    test_node_int(&n, "axis", 3);
    expect(&n, 1, REE_INVALID, "axis 3 is out of range for rank 3");
    start_one(&n, "LayerNormalization", 17, REE_F32);
    test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 1, REE_INVALID, "cannot broadcast float32[3] to float32[2,3,4]");
    start_one(&n, "GroupNormalization", 21, REE_F32);
    test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    test_node_int(&n, "num_groups", 2);
    expect(&n, 1, REE_INVALID, "is not a multiple of num_groups = 2");
    start_one(&n, "LRN", 13, REE_F32);
    expect(&n, 1, REE_INVALID, "size is 0, expected 1 or more");
    start_one(&n, "LpNormalization", 13, REE_F32);
    test_node_int(&n, "p", 3);
    expect(&n, 1, REE_INVALID, "p is 3, expected 1 or 2");
    start_one(&n, "BatchNormalization", 15, REE_F32);
    for (int i = 0; i < 4; i++)
        test_node_f32(&n, 1, (int64_t[]){i == 2 ? 4 : 3}, zeros);
    expect(&n, 1, REE_INVALID, "input input_mean is float32[4], expected 3 elements");
    start_one(&n, "BatchNormalization", 15, REE_F32);
    for (int i = 0; i < 4; i++)
        test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    test_node_int(&n, "training_mode", 1);
    expect(&n, 4, REE_UNSUPPORTED, "output 3 ('v') is not provided");
}

static void losses(void) {
    struct test_node n;
    start_one(&n, "NegativeLogLikelihoodLoss", 13, REE_F32);
    test_node_input(&n, REE_I64, 2, (int64_t[]){2, 3}, zeros);
    expect(&n, 1, REE_INVALID, "target int64[2,3] does not match input float32[2,3,4]");
    start_one(&n, "SoftmaxCrossEntropyLoss", 13, REE_F32);
    test_node_input(&n, REE_I32, 2, (int64_t[]){2, 4}, zeros);
    test_node_f32(&n, 1, (int64_t[]){4}, zeros);
    expect(&n, 1, REE_INVALID, "input weight is float32[4], expected 3 elements");
    start_one(&n, "SoftmaxCrossEntropyLoss", 13, REE_F32);
    test_node_input(&n, REE_I32, 2, (int64_t[]){2, 4}, zeros);
    test_node_string(&n, "reduction", "max");
    expect(&n, 1, REE_INVALID, "reduction is 'max', expected none, sum or mean");
}

static void start_step(struct test_node *n, const char *op) {
    test_node_start(n, op, 1);
    n->node.domain = "ai.onnx.preview.training";
    test_node_f32(n, 0, NULL, zeros);
}

static void optimisers(void) {
    struct test_node n;
    start_step(&n, "Momentum");
    for (int i = 0; i < 4; i++)
        test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 2, REE_INVALID, "input T is float32[3], expected one int64");
    start_step(&n, "Adagrad");
    test_node_input(&n, REE_I64, 0, NULL, zeros);
    for (int i = 0; i < 4; i++)
        test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 2, REE_INVALID, "has 6 inputs and 2 outputs, expected 2 + 3 n and 2 n");
    start_step(&n, "Adam");
    test_node_input(&n, REE_I64, 0, NULL, zeros);
    for (int i = 0; i < 4; i++)
        test_node_f32(&n, 1, (int64_t[]){i == 2 ? 4 : 3}, zeros);
    expect(&n, 3, REE_INVALID, "input 4 is float32[4], expected float32[3] like tensor 0");
    start_step(&n, "Momentum");
    test_node_input(&n, REE_I64, 0, NULL, zeros);
    test_node_string(&n, "mode", "heavy");
    for (int i = 0; i < 3; i++)
        test_node_f32(&n, 1, (int64_t[]){3}, zeros);
    expect(&n, 2, REE_INVALID, "mode is 'heavy', expected standard or nesterov");
}

static void einsum(void) {
    static const struct {
        const char *equation, *message;
    } wrong[] = {
        {"ij,jk->ik", "term 0 has 2 letters, input 0 has rank 3"},
        {"ijk", "does not have a term for each of 2 inputs"},
        {"ijk,kl,l", "does not have a term for each of 2 inputs"},
        {"ijk,lm->il->i", "unexpected characters after the output"},
        {"ijk,lm-il", "'-' without '>'"},
        {"ijk,lm->in", "a letter of the output is in no input"},
        {"ijk,lm->ii", "a letter occurs twice in the output"},
        {"ijk,lm1->i", "a character that is not a letter"},
        {"ijk,..l->i", "'.' outside '...'"},
        {"i......,lm->i", "two ellipses in a term"},
        {"i...,lm->i", "the output does not have the inputs' ellipsis"},
        {"ijk,im->m", "input 1 has size 4 for 'i', which has size 2 in another input"},
        {"ijk,ijklm->m", "term 1 has 5 letters, input 1 has rank 2"},
    };
    struct test_node n;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        start_one(&n, "Einsum", 13, REE_F32);
        test_node_f32(&n, 2, (int64_t[]){4, 5}, zeros);
        test_node_string(&n, "equation", wrong[i].equation);
        expect(&n, 1, REE_INVALID, wrong[i].message);
    }
    test_node_start(&n, "Einsum", 13);
    static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    test_node_f32(&n, 8, ones, zeros);
    test_node_f32(&n, 8, ones, zeros);
    test_node_string(&n, "equation", "abcdefgh,ijklmnop->");
    n.err.message[0] = 0;
    // Each operand is summed before the product.
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    test_node_finish(&n);
    test_node_start(&n, "Einsum", 13);
    test_node_f32(&n, 8, ones, zeros);
    test_node_f32(&n, 1, ones, zeros);
    test_node_f32(&n, 1, ones, zeros);
    test_node_string(&n, "equation", "abcdefgh,i,i->abcdefgh");
    expect(&n, 1, REE_UNSUPPORTED, "an intermediate product of rank 9; at most 8 is supported");
}

// Types that `reduce` and `topk` do not support, and a list of inputs with an omitted member.
static void refused_by_text(void) {
    static const struct {
        const char *domain, *op, *inputs, *attrs;
        enum ree_status status;
        const char *message;
    } wrong[] = {
        {"", "ReduceMax", "e2,3", "", REE_UNSUPPORTED, "float8e4m3fn is not supported"},
        {"", "ReduceSum", "e2,3", "", REE_UNSUPPORTED, "float8e4m3fn is not supported"},
        {"", "ReduceL2", "c2,3", "", REE_UNSUPPORTED, "int8 is not supported"},
        {"", "ArgMin", "e2,3", "", REE_UNSUPPORTED, "float8e4m3fn is not supported"},
        {"", "TopK", "e3 l1", "", REE_UNSUPPORTED, "float8e4m3fn is not supported"},
        {"ai.onnx.preview.training", "Adagrad", "f l f2 f2 f2 - f2 f2", "", REE_INVALID,
         "input 5 is omitted"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct test_node n;
        test_node_start(&n, wrong[i].op, wrong[i].domain[0] ? 1 : 18);
        n.node.domain = wrong[i].domain;
        test_node_text(&n, wrong[i].inputs, wrong[i].attrs);
        uint32_t n_outputs = wrong[i].domain[0] ? 4 : !strcmp(wrong[i].op, "TopK") ? 2 : 1;
        expect(&n, n_outputs, wrong[i].status, wrong[i].message);
    }
}

// Numbers at the limits of their range, and nodes with fewer outputs than the operator has.
static void extremes(void) {
    static const int64_t low[3] = {INT64_MIN, 1, 4}, high = INT64_MAX;
    struct test_node n;
    test_node_start(&n, "SplitToSequence", 18);
    test_node_f32(&n, 1, (int64_t[]){5}, zeros);
    test_node_input(&n, REE_I64, 0, NULL, &high);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    CHECK(n.out[0]->kind == REE_SEQUENCE && n.out[0]->n_items == 1);
    test_node_finish(&n);

    test_node_start(&n, "MaxUnpool", 11);
    test_node_text(&n, "f1,1,2 l1,1,2", "");
    test_node_input(&n, REE_I64, 1, (int64_t[]){3}, low);
    test_node_ints(&n, "kernel_shape", 1, (int64_t[]){2});
    expect(&n, 1, REE_INVALID, "output_shape is [-9223372036854775808,1,4], expected at least");

    static const int64_t pads[2] = {0, 1431655765};
    test_node_start(&n, "Pad", 18);
    test_node_f32(&n, 1, (int64_t[]){2}, zeros);
    test_node_input(&n, REE_I64, 1, (int64_t[]){2}, pads);
    test_node_string(&n, "mode", "wrap");
    expect(&n, 1, REE_UNSUPPORTED, "axis 0 becomes 1431655767 long; at most 268435456 is");

    // A node may have fewer outputs than its rule makes.
    test_node_start(&n, "DynamicQuantizeLinear", 18);
    test_node_f32(&n, 1, (int64_t[]){5}, zeros);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    CHECK(n.out[0]->dtype == REE_U8);
    test_node_finish(&n);
    const char *text = "a b";
    test_node_start(&n, "StringSplit", 20);
    test_node_text(&n, "f", "");
    REQUIRE(ree_lower_strings(&n.lower, 0, NULL, &text, &n.views[0]) == REE_OK);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    CHECK(n.out[0]->rank == 1 && n.out[0]->dims[0] == 2);
    test_node_finish(&n);
}

// An attribute of the wrong kind is an error; it is not treated as absent.
static void misread_attributes(void) {
    struct test_node n;
    test_node_start(&n, "Softmax", 13);
    test_node_f32(&n, 2, (int64_t[]){2, 3}, zeros);
    test_node_string(&n, "axis", "1");
    expect(&n, 1, REE_INVALID, "attribute 'axis' is a string, expected an integer");
    test_node_start(&n, "Cast", 13);
    test_node_f32(&n, 1, (int64_t[]){2}, zeros);
    test_node_float(&n, "to", 7);
    expect(&n, 1, REE_INVALID, "attribute 'to' is a float, expected an integer");
    test_node_start(&n, "MaxPool", 12);
    test_node_f32(&n, 3, (int64_t[]){1, 1, 4}, zeros);
    test_node_int(&n, "kernel_shape", 2);
    expect(&n, 1, REE_INVALID, "attribute 'kernel_shape' is an integer, expected a list of");
    test_node_start(&n, "NegativeLogLikelihoodLoss", 13);
    test_node_text(&n, "f3,4 l3", "");
    test_node_float(&n, "ignore_index", 2);
    expect(&n, 1, REE_INVALID, "attribute 'ignore_index' is a float, expected an integer");
    // An attribute that the rule does not read is ignored.
    test_node_start(&n, "Softmax", 13);
    test_node_f32(&n, 2, (int64_t[]){2, 3}, zeros);
    test_node_string(&n, "unheard", "1");
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    test_node_finish(&n);
}

int main(void) {
    conv();
    empty();
    others();
    losses();
    optimisers();
    einsum();
    refused_by_text();
    extremes();
    misread_attributes();
    return test_finish();
}
