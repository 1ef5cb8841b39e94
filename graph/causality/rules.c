// The operators that have a rule. All other operators are not proved to be causal.
#include <string.h>

#include "graph/causality/facts.h"
#include "graph/causality/kinds.h"

#define MS "com.microsoft"
#define ALL_INPUTS 0xffffffffu
#define OF_REDUCTION "axes keepdims noop_with_empty_axes"
#define OF_NORM "axis epsilon stash_type"

// Each operator returns NaN wherever a float input is NaN, unless its rule states otherwise. A test
// runs all of them with NaN (causality/nan), except MatMul of ree.internal.
static const struct ree_causality_row rows[] = {
    // elementwise.c
    {"", "Abs", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Acos", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Asin", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Atan", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Ceil", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Cos", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Cosh", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Elu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "alpha"},
    {"", "Erf", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Exp", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Floor", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Gelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "approximate"},
    {"", "HardSigmoid", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "alpha beta"},
    {"", "HardSwish", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "LeakyRelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "alpha"},
    {"", "Log", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Mish", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Neg", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Reciprocal", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Relu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Round", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Sigmoid", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Sign", 0, 0, ree_causality_unary, REE_LOSES_NAN, ""},
    {"", "Sin", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Sinh", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Softplus", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Softsign", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Sqrt", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Swish", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "alpha"},
    {"", "Tan", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "Tanh", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {"", "IsNaN", 0, 0, ree_causality_unary, REE_IS_NAN, ""},
    {"", "IsInf", 0, 0, ree_causality_unary, REE_IS_NAN, "detect_negative detect_positive"},
    {MS, "Gelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, ""},
    {MS, "QuickGelu", 0, 0, ree_causality_unary, REE_KEEPS_NAN, "alpha"},
    {MS, "FastGelu", 0, 0, ree_causality_bias, 0, ""},
    {MS, "BiasGelu", 0, 0, ree_causality_bias, 0, ""},
    {MS, "BiasAdd", 0, 0, ree_causality_bias, 0, ""},
    {"", "Add", ALL_INPUTS, 0, ree_causality_arithmetic, REE_ADD, ""},
    {"", "Sum", 0, 0, ree_causality_arithmetic, REE_ADD, ""},
    {"", "Sub", ALL_INPUTS, 0, ree_causality_arithmetic, REE_SUB, ""},
    {"", "Mul", ALL_INPUTS, 0, ree_causality_arithmetic, REE_MUL, ""},
    {"", "Div", ALL_INPUTS, 0, ree_causality_arithmetic, REE_DIV, ""},
    {"", "Min", 0, 0, ree_causality_arithmetic, REE_MIN, ""},
    {"", "Max", 0, 0, ree_causality_arithmetic, REE_MAX, ""},
    {"", "Pow", 0, 0, ree_causality_power, 0, ""},
    {"", "Less", 0, 0, ree_causality_compare, REE_LESS, ""},
    {"", "LessOrEqual", 0, 0, ree_causality_compare, REE_LESS_OR_EQUAL, ""},
    {"", "Greater", 0, 0, ree_causality_compare, REE_GREATER, ""},
    {"", "GreaterOrEqual", 0, 0, ree_causality_compare, REE_GREATER_OR_EQUAL, ""},
    {"", "Equal", 0, 0, ree_causality_compare, REE_EQUAL, ""},
    {"", "And", 0, 0, ree_causality_logic, REE_AND, ""},
    {"", "Or", 0, 0, ree_causality_logic, REE_OR, ""},
    {"", "Xor", 0, 0, ree_causality_logic, REE_XOR, ""},
    {"", "Not", 0, 0, ree_causality_logic_not, 0, ""},
    {"", "Where", 0, 0, ree_causality_where, 0, ""},
    {"", "Cast", ALL_INPUTS, 0, ree_causality_cast, 0, "to saturate round_mode"},
    // products.c
    {"", "MatMul", 0, 0, ree_causality_matmul, 0, ""},
    {"ree.internal", "MatMul", 0, 0, ree_causality_internal_matmul, 0, "transB widened"},
    {"", "Gemm", 0, 0, ree_causality_gemm, 0, "alpha beta transA transB"},
    {MS, "MatMulNBits", 0, 0, ree_causality_matmul_nbits, 0,
     "K N accuracy_level bits block_size weight_prepacked"},
    {"ree", "MatMulNBits", 0, 0, ree_causality_matmul_nbits, 0,
     "K N accuracy_level activation_block_size bits block_size"},
    {"", "Softmax", 0, 0, ree_causality_softmax, 0, "axis"},
    {"", "ReduceSum", 0, 0, ree_causality_reduce, REE_REDUCE_TO_SUM, OF_REDUCTION},
    {"", "ReduceMean", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceMax", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceMin", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceProd", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceL1", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceL2", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "ReduceSumSquare", 0, 0, ree_causality_reduce, REE_REDUCE_OTHER, OF_REDUCTION},
    {"", "CumSum", 0, 0, ree_causality_cumsum, 0, "exclusive reverse"},
    {"", "Conv", 0, 0, ree_causality_conv, 0, "auto_pad dilations group kernel_shape pads strides"},
    {"", "LayerNormalization", 0, 0, ree_causality_norm, 0, OF_NORM},
    {"", "RMSNormalization", 0, 0, ree_causality_norm, 0, OF_NORM},
    {"", "SimplifiedLayerNormalization", 0, 0, ree_causality_norm, 0, OF_NORM},
    {MS, "SimplifiedLayerNormalization", 0, 0, ree_causality_norm, 0, OF_NORM},
    {MS, "SkipLayerNormalization", 0, 0, ree_causality_skip_norm, 0, "epsilon"},
    {MS, "SkipSimplifiedLayerNormalization", 0, 0, ree_causality_skip_norm, 0, "epsilon"},
    // movement.c
    {"", "Identity", ALL_INPUTS, 0, ree_causality_identity, 0, ""},
    {"", "Constant", 0, 0, ree_causality_constant_node, 0,
     "value value_float value_floats value_int value_ints value_string value_strings sparse_value"},
    {"", "Shape", 0, ALL_INPUTS, ree_causality_shape, 0, "start end"},
    {"", "ConstantOfShape", 0, ALL_INPUTS, ree_causality_constant_of_shape, 0, "value"},
    {"", "Range", 0, ALL_INPUTS, ree_causality_range, 0, ""},
    {"", "Reshape", 1u << 0, 1u << 1, ree_causality_reshape, 0, "allowzero shape"},
    {"", "Transpose", 0, 0, ree_causality_transpose, 0, "perm"},
    {"", "Squeeze", 1u << 0, 0, ree_causality_squeeze, 0, "axes"},
    {"", "Unsqueeze", 1u << 0, 0, ree_causality_unsqueeze, 0, "axes"},
    {"", "Expand", 0, 1u << 1, ree_causality_expand, 0, ""},
    {"", "Concat", ALL_INPUTS, 0, ree_causality_concat, 0, "axis"},
    {"", "Split", 0, 0, ree_causality_split, 0, "axis num_outputs split"},
    {"", "Slice", 1u << 0, 1u << 2, ree_causality_slice, 0, "axes ends starts"},
    {"", "Gather", 1u << 0, 0, ree_causality_gather, 0, "axis"},
    {"", "GatherND", 0, 1u << 1, ree_causality_gather_nd, 0, "batch_dims"},
    {MS, "GatherBlockQuantized", 0, 0, ree_causality_gather_block_quantized, 0,
     "bits block_size gather_axis quantize_axis"},
    {"", "Trilu", 0, 0, ree_causality_trilu, 0, "upper"},
    {MS, "Trilu", 0, 0, ree_causality_trilu, 0, "upper"},
    // attention.c
    {"", "Attention", 0, 0, ree_causality_attention, 0,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"", "RotaryEmbedding", 0, 0, ree_causality_rotary, 0,
     "interleaved num_heads rotary_embedding_dim"},
    {MS, "RotaryEmbedding", 0, 0, ree_causality_ms_rotary, 0,
     "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
    {MS, "GroupQueryAttention", 0, 1u << 5 | 1u << 6, ree_causality_group_query, 0,
     "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
     "qk_norm_epsilon qk_output rotary_interleaved scale smooth_softmax softcap v_quant_type"},
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
