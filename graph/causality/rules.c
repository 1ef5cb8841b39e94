// The operators that have a rule. All other operators are not proved to be causal.
#include <string.h>

#include "graph/causality/facts.h"
#include "graph/causality/kinds.h"

#define MS "com.microsoft"
#define ALL_INPUTS 0xffffffffu

// Each operator returns NaN wherever a float input is NaN, unless its rule states otherwise. A test
// runs all of them with NaN (causality/nan), except MatMul of ree.internal.
static const struct ree_causality_row rows[] = {
    // elementwise.c
    {"", "Abs", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Acos", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Asin", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Atan", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Ceil", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Cos", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Cosh", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Elu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Erf", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Exp", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Floor", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Gelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "HardSigmoid", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "HardSwish", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "LeakyRelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Log", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Mish", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Neg", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Reciprocal", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Relu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Round", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Sigmoid", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Sign", 0, 0, ree_causality_unary, REE_LOSES_NAN},
    {"", "Sin", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Sinh", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Softplus", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Softsign", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Sqrt", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Swish", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Tan", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "Tanh", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {"", "IsNaN", 0, 0, ree_causality_unary, REE_IS_NAN},
    {"", "IsInf", 0, 0, ree_causality_unary, REE_IS_NAN},
    {MS, "Gelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {MS, "QuickGelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN},
    {MS, "FastGelu", 0, 0, ree_causality_bias, 0},
    {MS, "BiasGelu", 0, 0, ree_causality_bias, 0},
    {MS, "BiasAdd", 0, 0, ree_causality_bias, 0},
    {"", "Add", ALL_INPUTS, 0, ree_causality_arithmetic, REE_ADD},
    {"", "Sum", 0, 0, ree_causality_arithmetic, REE_ADD},
    {"", "Sub", ALL_INPUTS, 0, ree_causality_arithmetic, REE_SUB},
    {"", "Mul", ALL_INPUTS, 0, ree_causality_arithmetic, REE_MUL},
    {"", "Div", ALL_INPUTS, 0, ree_causality_arithmetic, REE_DIV},
    {"", "Min", 0, 0, ree_causality_arithmetic, REE_MIN},
    {"", "Max", 0, 0, ree_causality_arithmetic, REE_MAX},
    {"", "Pow", 0, 0, ree_causality_power, 0},
    {"", "Less", 0, 0, ree_causality_compare, REE_LESS},
    {"", "LessOrEqual", 0, 0, ree_causality_compare, REE_LESS_OR_EQUAL},
    {"", "Greater", 0, 0, ree_causality_compare, REE_GREATER},
    {"", "GreaterOrEqual", 0, 0, ree_causality_compare, REE_GREATER_OR_EQUAL},
    {"", "Equal", 0, 0, ree_causality_compare, REE_EQUAL},
    {"", "And", 0, 0, ree_causality_logic, REE_AND},
    {"", "Or", 0, 0, ree_causality_logic, REE_OR},
    {"", "Xor", 0, 0, ree_causality_logic, REE_XOR},
    {"", "Not", 0, 0, ree_causality_logic_not, 0},
    {"", "Where", 0, 0, ree_causality_where, 0},
    {"", "Cast", ALL_INPUTS, 0, ree_causality_cast, 0},
    // products.c
    {"", "MatMul", 0, 0, ree_causality_matmul, 0},
    {"ree.internal", "MatMul", 0, 0, ree_causality_internal_matmul, 0},
    {"", "Gemm", 0, 0, ree_causality_gemm, 0},
    {MS, "MatMulNBits", 0, 0, ree_causality_matmul_nbits, 0},
    {"ree", "MatMulNBits", 0, 0, ree_causality_matmul_nbits, 0},
    {"", "Softmax", 0, 0, ree_causality_softmax, 0},
    {"", "ReduceSum", 0, 0, ree_causality_reduce, REE_REDUCE_TO_SUM},
    {"", "ReduceMean", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceMax", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceMin", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceProd", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceL1", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceL2", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "ReduceSumSquare", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER},
    {"", "CumSum", 0, 0, ree_causality_cumsum, 0},
    {"", "Conv", 0, 0, ree_causality_conv, 0},
    {"", "LayerNormalization", 0, 0, ree_causality_norm, 0},
    {"", "RMSNormalization", 0, 0, ree_causality_norm, 0},
    {"", "SimplifiedLayerNormalization", 0, 0, ree_causality_norm, 0},
    {MS, "SimplifiedLayerNormalization", 0, 0, ree_causality_norm, 0},
    {MS, "SkipLayerNormalization", 0, 0, ree_causality_skip_norm, 0},
    {MS, "SkipSimplifiedLayerNormalization", 0, 0, ree_causality_skip_norm, 0},
    // movement.c
    {"", "Identity", ALL_INPUTS, 0, ree_causality_identity, 0},
    {"", "Constant", 0, 0, ree_causality_constant_node, 0},
    {"", "Shape", 0, ALL_INPUTS, ree_causality_shape, 0},
    {"", "ConstantOfShape", 0, ALL_INPUTS, ree_causality_constant_of_shape, 0},
    {"", "Range", 0, ALL_INPUTS, ree_causality_range, 0},
    {"", "Reshape", 1u << 0, 1u << 1, ree_causality_reshape, 0},
    {"", "Transpose", 0, 0, ree_causality_transpose, 0},
    {"", "Squeeze", 1u << 0, 0, ree_causality_squeeze, 0},
    {"", "Unsqueeze", 1u << 0, 0, ree_causality_unsqueeze, 0},
    {"", "Expand", 0, 1u << 1, ree_causality_expand, 0},
    {"", "Concat", ALL_INPUTS, 0, ree_causality_concat, 0},
    {"", "Split", 0, 0, ree_causality_split, 0},
    {"", "Slice", 1u << 0, 1u << 2, ree_causality_slice, 0},
    {"", "Gather", 1u << 0, 0, ree_causality_gather, 0},
    {"", "GatherND", 0, 1u << 1, ree_causality_gather_nd, 0},
    {MS, "GatherBlockQuantized", 0, 0, ree_causality_gather_block_quantized, 0},
    {"", "Trilu", 0, 0, ree_causality_trilu, 0},
    {MS, "Trilu", 0, 0, ree_causality_trilu, 0},
    // attention.c
    {"", "Attention", 0, 0, ree_causality_attention, 0},
    {"", "RotaryEmbedding", 0, 0, ree_causality_rotary, 0},
    {MS, "RotaryEmbedding", 0, 0, ree_causality_ms_rotary, 0},
    {MS, "GroupQueryAttention", 0, 1u << 5 | 1u << 6, ree_causality_group_query, 0},
};

const struct ree_causality_row *ree_causality_find(const struct ree_node *node) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op_type, node->op_type) && !strcmp(rows[i].domain, node->domain))
            return &rows[i];
    return NULL;
}

int ree_causality_arg(const struct ree_derivation *d) {
    return ree_causality_find(d->node)->arg;
}
