// Error messages for invalid nodes with quantised numbers.
#include "node.h"
#include "test.h"

#include <string.h>

#define MS "com.microsoft"

static const struct wrong {
    const char *domain, *op, *inputs, *attrs;
    enum ree_status status;
    const char *message;
} cases[] = {
    {"", "QuantizeLinear", "f2,3 f u", "output_dtype=3", REE_INVALID,
     "input y_zero_point is uint8, expected int8"},
    {"", "QuantizeLinear", "f2,3 l u", "", REE_INVALID,
     "input y_scale is int64[], expected float32, float16 or bfloat16"},
    {"", "QuantizeLinear", "l2,3 f u", "", REE_UNSUPPORTED,
     "QuantizeLinear from int64 to uint8 is not supported"},
    {"", "QuantizeLinear", "f2,3 f l", "", REE_UNSUPPORTED,
     "QuantizeLinear from float32 to int64 is not supported"},
    {"", "QuantizeLinear", "f2,3 f2 u2", "", REE_INVALID,
     "input y_scale is float32[2], expected a scalar or 3 elements"},
    {"", "QuantizeLinear", "f2,3 f3 u", "", REE_INVALID,
     "input y_zero_point is uint8[], expected the shape of y_scale, float32[3]"},
    {"", "QuantizeLinear", "f2,3 f1,3 u1,3", "", REE_INVALID,
     "input y_scale is float32[1,3], expected a scalar or 3 elements"},
    {"", "QuantizeLinear", "f2,3 f3 u3", "axis=2", REE_INVALID,
     "axis 2 is out of range for rank 2"},
    {"", "QuantizeLinear", "f2,3 f2,2 u2,2", "block_size=-1", REE_INVALID,
     "block_size is -1, expected 0 or more"},
    {"", "QuantizeLinear", "f2,3 f2,3 u2,3", "block_size=2", REE_INVALID,
     "input y_scale is float32[2,3], expected the shape of x with 2 blocks along axis 1"},
    {"", "QuantizeLinear", "f2,3 f", "output_dtype=1000", REE_INVALID,
     "attribute 'output_dtype' is 1000, which is not a type"},
    {"", "QuantizeLinear", "f2,3 f", "precision=7", REE_UNSUPPORTED,
     "a precision of int64 is not supported"},
    {"", "DequantizeLinear", "u2,3 f c", "", REE_INVALID,
     "input x_zero_point is int8, expected uint8"},
    {"", "DequantizeLinear", "u2,3 f u3", "", REE_INVALID,
     "input x_zero_point is uint8[3], expected the shape of x_scale, float32[]"},
    {"", "DequantizeLinear", "f2,3 f", "", REE_UNSUPPORTED,
     "DequantizeLinear from float32 to float32 is not supported"},
    {"", "DequantizeLinear", "u2,3 f", "output_dtype=6", REE_UNSUPPORTED,
     "DequantizeLinear from uint8 to int32 is not supported"},
    {"", "DequantizeLinear", "u2,3 f4", "axis=0", REE_INVALID,
     "input x_scale is float32[4], expected a scalar or 2 elements"},
    {"", "DequantizeLinear", "e2,3 f2,1 e2,1", "block_size=2", REE_INVALID,
     "input x_scale is float32[2,1], expected the shape of x with 2 blocks along axis 1"},
    {"", "DynamicQuantizeLinear", "h2,3", "", REE_INVALID,
     "input x is float16[2,3], expected float32"},

    {"", "MatMulInteger", "i2,3 u3,2", "", REE_INVALID,
     "input A is int32[2,3], expected int8 or uint8"},
    {"", "MatMulInteger", "u2,3 f3,2", "", REE_INVALID,
     "input B is float32[3,2], expected int8 or uint8"},
    {"", "MatMulInteger", "u2,3 u2,3", "", REE_INVALID, "cannot multiply uint8[2,3] by uint8[2,3]"},
    {"", "MatMulInteger", "u2,3 u3,2 c", "", REE_INVALID,
     "input a_zero_point is int8, expected uint8"},
    {"", "MatMulInteger", "u2,3 u3,2 u3", "", REE_INVALID,
     "input a_zero_point is uint8[3], expected a scalar or 2 elements"},
    {"", "MatMulInteger", "u2,3 u3,4 - u1,3", "", REE_INVALID,
     "input b_zero_point is uint8[1,3], expected one element, 4 elements or (...,1,4)"},
    {"", "MatMulInteger", "u u3,2", "", REE_INVALID, "input A has rank 0, expected at least 1"},
    {"", "QLinearMatMul", "u2,3 f u u3,2 f u f i", "", REE_INVALID,
     "input y_zero_point is int32[], expected integers of 2, 4, 8 or 16 bits"},
    {"", "QLinearMatMul", "u2,3 i u u3,2 f u f u", "", REE_INVALID,
     "input a_scale is int32[], expected float32, float16 or bfloat16"},
    {"", "QLinearMatMul", "u2,3 f2,2 u u3,2 f u f u", "", REE_INVALID,
     "input a_scale is float32[2,2], expected one element, 2 elements or (...,2,1)"},
    {"", "QLinearMatMul", "u2,3 f u u3,2 f3 u f u", "", REE_INVALID,
     "input b_scale is float32[3], expected a scalar or 2 elements"},
    {"", "QLinearMatMul", "u2,3 f u u3,2 f u f u3", "", REE_INVALID,
     "input y_zero_point is uint8[3], expected a scalar or 2 elements"},

    {"", "ConvInteger", "f1,1,3,3 u1,1,3,3", "", REE_INVALID,
     "input x is float32[1,1,3,3], expected int8 or uint8"},
    {"", "ConvInteger", "u1,1,3,3 f1,1,3,3", "", REE_INVALID,
     "input w is float32[1,1,3,3], expected int8 or uint8"},
    {"", "ConvInteger", "u1,1,3,3 c1,1,3,3 c", "", REE_INVALID,
     "input x_zero_point is int8, expected uint8"},
    {"", "ConvInteger", "u1,1,3,3 c1,1,3,3 u2", "", REE_INVALID,
     "input x_zero_point is uint8[2], expected one element"},
    {"", "ConvInteger", "u1,1,3,3 c1,1,3,3 u c2", "", REE_INVALID,
     "input w_zero_point is int8[2], expected a scalar or 1 elements"},
    {"", "QLinearConv", "u1,1,3,3 f u c1,1,3,3 f c f f", "", REE_INVALID,
     "input y_zero_point is float32[], expected integers of 2, 4, 8 or 16 bits"},
    {"", "QLinearConv", "u1,1,3,3 f2 u c1,1,3,3 f c f u", "", REE_INVALID,
     "input x_scale is float32[2], expected one element"},
    {"", "QLinearConv", "u1,1,3,3 f u c2,1,3,3 f3 c f u", "", REE_INVALID,
     "input w_scale is float32[3], expected a scalar or 2 elements"},
    {"", "QLinearConv", "u1,1,3,3 f u c2,1,3,3 f c f2 u", "", REE_INVALID,
     "input y_scale is float32[2], expected one element"},
    {"", "QLinearConv", "u1,1,3,3 f u c2,1,3,3 f c f u2", "", REE_INVALID,
     "input y_zero_point is uint8[2], expected one element"},
    {"", "QLinearConv", "u1,1,3,3 f u c2,1,3,3 f c f u f2", "", REE_INVALID,
     "input B is float32, expected int32"},
    {"", "QLinearConv", "u1,1,3,3 f u c2,1,3,3 f c f u i3", "", REE_INVALID,
     "input B is int32[3], expected 2 elements"},

    {MS, "MatMulIntegerToFloat", "u2,3 u3,2 f f u u f3", "", REE_INVALID,
     "input bias is float32[3], expected 2 elements"},
    {MS, "MatMulIntegerToFloat", "u2,3 u3,2 f f u u i2", "", REE_INVALID,
     "input bias is int32[2], expected float32"},
    {MS, "DynamicQuantizeMatMul", "u2,3 u3,2 f", "", REE_INVALID,
     "input A is uint8[2,3], expected float32"},
    {MS, "QGemm", "u2,3 f u u2,3 f u", "", REE_INVALID, "cannot multiply uint8[2,3] by uint8[2,3]"},
    {MS, "QGemm", "u2,3 f u u3,2 f u f2", "", REE_INVALID,
     "input C is float32[2], expected int32 that broadcasts to [2,2]"},
    {MS, "QGemm", "u2,3 f u u3,2 f u i3", "", REE_INVALID,
     "input C is int32[3], expected int32 that broadcasts to [2,2]"},
    {MS, "QGemm", "u2,3 f u u3,2 f u - f2 u", "", REE_INVALID,
     "input y_scale is float32[2], expected one element"},

    {MS, "MatMulNBits", "f2,32 u4,1,16 f4", "N=4 K=32 block_size=0", REE_UNSUPPORTED,
     "block_size is 0, expected a power of two from 16 to 256"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4", "N=4 K=32 block_size=48", REE_UNSUPPORTED,
     "block_size is 48, expected a power of two from 16 to 256"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4", "N=4 K=32 block_size=32 bits=3", REE_UNSUPPORTED,
     "bits is 3, expected 4 or 8"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4", "K=32 block_size=32", REE_INVALID,
     "N is 0 and K 32, expected 1 or more"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4", "N=2147483647 K=2147483647 block_size=16 bits=8",
     REE_INVALID, "N is 2147483647 and K 2147483647, expected a product below 2^31"},
    {MS, "MatMulNBits", "i2,32 u4,1,16 f4", "N=4 K=32 block_size=32", REE_INVALID,
     "input A is int32[2,32], expected float32, float16 or bfloat16"},
    {MS, "MatMulNBits", "f2,31 u4,1,16 f4", "N=4 K=32 block_size=32", REE_INVALID,
     "input A is float32[2,31], expected rows of K = 32"},
    {MS, "MatMulNBits", "f2,32 u4,1,15 f4", "N=4 K=32 block_size=32", REE_INVALID,
     "input B is uint8[4,1,15], expected 64 elements of uint8"},
    {MS, "MatMulNBits", "f2,32 c4,1,16 f4", "N=4 K=32 block_size=32", REE_INVALID,
     "input B is int8[4,1,16], expected 64 elements of uint8"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f5", "N=4 K=32 block_size=32", REE_INVALID,
     "input scales is float32[5], expected 4 elements of float32"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 i4", "N=4 K=32 block_size=32", REE_INVALID,
     "input scales is int32[4], expected float32, float16 or bfloat16"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4 f4", "N=4 K=32 block_size=32", REE_UNSUPPORTED,
     "zero_points of float32 are not supported"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4 u3", "N=4 K=32 block_size=32", REE_INVALID,
     "input zero_points is uint8[3], expected 4 elements of uint8"},
    {MS, "MatMulNBits", "f2,32 u4,1,16 f4 - - f3", "N=4 K=32 block_size=32", REE_INVALID,
     "input bias is float32[3], expected 4 elements"},

    {MS, "QLinearAdd", "u2 f", "", REE_INVALID, "input B (3) is required but omitted"},
    {MS, "QLinearAdd", "u2 - u u2 f u f u", "", REE_INVALID, "input 1 is required but omitted"},
    {MS, "QLinearAdd", "u2 f u u2 f u", "", REE_INVALID,
     "input C_scale (6) is required but omitted"},
    {MS, "QLinearAdd", "f2 f u u2 f u f u", "", REE_INVALID,
     "input A is float32[2], expected integers of 2, 4, 8 or 16 bits"},
    {MS, "QLinearAdd", "u2 f c u2 f u f u", "", REE_INVALID,
     "input A_zero_point is int8, expected uint8"},
    {MS, "QLinearAdd", "u2 f u c2 f c f u", "", REE_INVALID,
     "input B is int8, expected uint8 like input A"},
    {MS, "QLinearAdd", "u2 f u u2 f2 u f u", "", REE_INVALID,
     "input B_scale is float32[2], expected one element"},
    {MS, "QLinearMul", "u2 f u u2 f u f u2", "", REE_INVALID,
     "input C_zero_point is uint8[2], expected one element"},
    {MS, "QLinearMul", "u2 f u u2 f u i u", "", REE_INVALID,
     "input C_scale is int32[], expected float32, float16 or bfloat16"},
    {MS, "QLinearSigmoid", "u2 f", "", REE_INVALID, "input Y_scale (3) is required but omitted"},
    {MS, "QLinearLeakyRelu", "l2 f u f u", "", REE_INVALID,
     "input X is int64[2], expected integers of 2, 4, 8 or 16 bits"},
    {MS, "QLinearGlobalAveragePool", "u1,2 f u f u", "", REE_INVALID,
     "input X has rank 2, expected at least 3"},
    {MS, "QLinearAveragePool", "u1,2,4 f u", "kernel_shape=2", REE_INVALID,
     "input Y_scale (3) is required but omitted"},
    {MS, "QLinearConcat", "f u u2,3 f u c2,3 f c", "", REE_INVALID,
     "input X is int8, expected uint8 like input X"},
    {MS, "QLinearConcat", "f u u2,3 f - u2,3 f u", "", REE_INVALID,
     "input 4 is required but omitted"},
    {MS, "QLinearConcat", "f u u2,3 f u u3,3 f u", "", REE_INVALID,
     "dimension 0 is 3, expected 2 like in the first tensor"},
};

static void messages(void) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wrong *c = &cases[i];
        struct test_node n;
        test_node_start(&n, c->op, c->domain[0] ? 1 : 28);
        n.node.domain = c->domain;
        test_node_text(&n, c->inputs, c->attrs);
        n.err.message[0] = 0;
        enum ree_status got = test_node_run(&n, strcmp(c->op, "DynamicQuantizeLinear") ? 1 : 3);
        CHECK_MSG(got == c->status && strstr(n.err.message, c->message) &&
                      strstr(n.err.message, "node 'n' ("),
                  "%s(%s) %s: got %s: '%s', expected %s: '%s'", c->op, c->inputs, c->attrs,
                  ree_status_name(got), n.err.message, ree_status_name(c->status), c->message);
        test_node_finish(&n);
    }
}

int main(void) {
    messages();
    return test_finish();
}
