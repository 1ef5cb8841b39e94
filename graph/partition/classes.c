// The planner's knowledge of operators: what kind of work they do, and which of their inputs are
// tables that they read only in part. The kind of work does not depend on the domain: an operator
// of the same name in another domain does the same kind of work.
#include "graph/partition/planner.h"

#include <string.h>

static const struct {
    const char *op_type;
    enum ree_node_class class;
} classes[] = {
    {"MatMul", REE_NODE_PRODUCT},
    {"Gemm", REE_NODE_PRODUCT},
    {"Einsum", REE_NODE_PRODUCT},
    {"FusedMatMul", REE_NODE_PRODUCT},
    {"TransposeMatMul", REE_NODE_PRODUCT},
    {"FusedGemm", REE_NODE_PRODUCT},
    {"MatMulNBits", REE_NODE_PRODUCT},
    {"MatMulInteger", REE_NODE_PRODUCT},
    {"QLinearMatMul", REE_NODE_PRODUCT},
    {"MatMulIntegerToFloat", REE_NODE_PRODUCT},
    {"DynamicQuantizeMatMul", REE_NODE_PRODUCT},
    {"QGemm", REE_NODE_PRODUCT},
    {"RNN", REE_NODE_PRODUCT},
    {"GRU", REE_NODE_PRODUCT},
    {"LSTM", REE_NODE_PRODUCT},
    // Attention of com.microsoft multiplies by weights; ONNX's has no weights.
    {"Attention", REE_NODE_ATTENTION},
    {"Conv", REE_NODE_CONV},
    {"FusedConv", REE_NODE_CONV},
    {"ConvInteger", REE_NODE_CONV},
    {"QLinearConv", REE_NODE_CONV},
    {"DeformConv", REE_NODE_CONV},
    {"CausalConvWithState", REE_NODE_CONV},
    {"ConvTranspose", REE_NODE_CONV_TRANSPOSE},
    {"MultiHeadAttention", REE_NODE_ATTENTION},
    {"DecoderMaskedMultiHeadAttention", REE_NODE_ATTENTION},
    {"GroupQueryAttention", REE_NODE_ATTENTION},
    {"FlexAttention", REE_NODE_ATTENTION},
    {"LinearAttention", REE_NODE_ATTENTION},
    {"DFT", REE_NODE_HEAVY},
    {"STFT", REE_NODE_HEAVY},
};

enum ree_node_class ree_node_classify(const struct ree_node *node) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(node->op_type, classes[i].op_type) == 0) return classes[i].class;
    return REE_NODE_LIGHT;
}

bool ree_node_has_factor(const struct ree_node *node) {
    enum ree_node_class class = ree_node_classify(node);
    if (class == REE_NODE_LIGHT || class == REE_NODE_HEAVY) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && node->inputs[i]->data && node->inputs[i]->rank >= 2) return true;
    return false;
}

bool ree_node_is_size(const struct ree_node *node) {
    return !node->domain[0] &&
           (strcmp(node->op_type, "Shape") == 0 || strcmp(node->op_type, "Size") == 0);
}

bool ree_node_has_subgraph(const struct ree_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].graph) return true;
    return false;
}

static const struct {
    const char *domain, *op_type;
    uint32_t first, last; // first and last input that is a table
    uint32_t positions;   // the input that selects rows
} tables[] = {
    {"", "Gather", 0, 0, 1},
    {"com.microsoft", "GatherBlockQuantized", 0, 0, 1},
    {"com.microsoft", "GatherBlockQuantized", 2, 3, 1},
    {"", "RotaryEmbedding", 1, 2, 3},
    {"com.microsoft", "RotaryEmbedding", 2, 3, 1},
    {"com.microsoft", "GroupQueryAttention", 7, 8, 5},
    {"com.microsoft", "EmbedLayerNormalization", 2, 4, 0},
};

bool ree_node_reads_rows(const struct ree_node *node, uint32_t input) {
    if (input >= node->n_inputs) return false;
    const struct ree_value *table = node->inputs[input];
    if (!table || !table->has_shape || table->rank == 0 || table->dims[0] <= 0) return false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (input < tables[i].first || input > tables[i].last) continue;
        if (strcmp(node->op_type, tables[i].op_type) || strcmp(node->domain, tables[i].domain))
            continue;
        const struct ree_value *rows =
            tables[i].positions < node->n_inputs ? node->inputs[tables[i].positions] : NULL;
        int64_t axis = ree_node_int(node, "axis", ree_node_int(node, "gather_axis", 0));
        return rows && !rows->data && (axis == 0 || axis == -(int64_t)table->rank);
    }
    return false;
}

uint64_t ree_node_attr_bytes(const struct ree_node *node) {
    ree_sum n = 0;
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct ree_attr *attr = &node->attrs[i];
        if (attr->tensor) n += attr->tensor->nbytes;
        if (attr->ints) n += (ree_sum)attr->n * sizeof *attr->ints;
        if (attr->floats) n += (ree_sum)attr->n * sizeof *attr->floats;
    }
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}
