// Finds the readers and the role of each value.
#include <string.h>

#include "graph/partition/annotate_internal.h"

const struct ree_node *ree_annotator_node(const struct ree_annotator *a, uint32_t position) {
    return a->graph->nodes[a->partition->order[position]];
}

bool ree_op_among(const struct ree_node *node, const char *const *ops) {
    for (; *ops; ops++)
        if (strcmp(node->op_type, *ops) == 0) return true;
    return false;
}

struct counting {
    struct ree_annotator *a;
    uint32_t position;
    size_t *next; // by value id; while counting, [id + 1] holds the number of readers
    bool fills;
};

static void count_reader(void *user, struct ree_value **use) {
    struct counting *c = user;
    const struct ree_value *value = *use;
    if (value->graph != c->a->graph) return;
    if (!c->fills)
        c->next[value->id + 1]++;
    else
        c->a->readers[c->next[value->id]++] = c->position;
}

bool ree_annotate_positions(struct ree_annotator *a) {
    const struct ree_graph *graph = a->graph;
    struct ree_arena *scratch = &a->scratch;
    size_t n = a->partition->n_order;
    a->position_of = ree_arena_alloc_array(scratch, graph->n_nodes + 1, sizeof *a->position_of);
    a->reader_starts = ree_arena_alloc_array(scratch, graph->n_values + 2, sizeof(size_t));
    a->is_norm = ree_arena_alloc_array(scratch, n + 1, sizeof *a->is_norm);
    size_t *next = ree_arena_alloc_array(scratch, graph->n_values + 2, sizeof *next);
    if (!a->position_of || !a->reader_starts || !a->is_norm || !next) return false;
    for (size_t i = 0; i < graph->n_nodes; i++)
        a->position_of[i] = REE_NO_POSITION;
    struct counting c = {.a = a, .next = a->reader_starts};
    for (size_t i = 0; i < n; i++) {
        a->position_of[a->partition->order[i]] = (uint32_t)i;
        ree_node_visit_uses(graph->nodes[a->partition->order[i]], count_reader, &c);
    }
    for (size_t i = 0; i < graph->n_values; i++)
        a->reader_starts[i + 1] += a->reader_starts[i];
    a->readers =
        ree_arena_alloc_array(scratch, a->reader_starts[graph->n_values] + 1, sizeof *a->readers);
    if (!a->readers) return false;
    memcpy(next, a->reader_starts, (graph->n_values + 1) * sizeof *next);
    c = (struct counting){.a = a, .next = next, .fills = true};
    for (size_t i = 0; i < n; i++) {
        c.position = (uint32_t)i;
        ree_node_visit_uses(graph->nodes[a->partition->order[i]], count_reader, &c);
    }
    return true;
}

// Kinds

static bool is_constant_kind(enum ree_value_role role) {
    return role == REE_VALUE_WEIGHT || role == REE_VALUE_CONSTANT;
}

bool ree_annotator_constant(const struct ree_annotator *a, const struct ree_value *value) {
    return value->graph == a->graph && is_constant_kind(a->out->values[value->id]);
}

// Quantised weights have 8 bits or fewer, so int32 and int64 constants are not weights.
static enum ree_value_role constant_kind(const struct ree_value *value) {
    int64_t n = 1;
    for (uint32_t i = 0; i < value->rank; i++)
        if (value->dims[i] > 1) n = 2; // only whether there is more than one element matters
    switch (value->dtype) {
    case REE_I64:
    case REE_I32:
    case REE_BOOL:
    case REE_STRING: return REE_VALUE_CONSTANT;
    default: return n > 1 ? REE_VALUE_WEIGHT : REE_VALUE_CONSTANT;
    }
}

// Operators whose result has the elements of their first input: all or some of them, in any order,
// or together with others.
static bool moves(const struct ree_node *node) {
    static const char *const ops[] = {
        "Transpose", "Reshape",         "Expand",    "Unsqueeze",     "Squeeze",  "Slice",
        "Cast",      "Concat",          "Split",     "Gather",        "Identity", "Flatten",
        "Tile",      "ScatterElements", "ScatterND", "TensorScatter", "Pad",      NULL};
    return ree_op_among(node, ops);
}

static enum ree_value_role result_kind(const struct ree_annotator *a, const struct ree_node *node) {
    bool constant = true, cache = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *input = node->inputs[i];
        if (!input) continue;
        enum ree_value_role kind =
            input->graph == a->graph ? a->out->values[input->id] : REE_VALUE_ACTIVATION;
        constant = constant && is_constant_kind(kind);
        cache = cache || kind == REE_VALUE_KV_CACHE;
    }
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].graph) constant = false;
    if (cache && moves(node)) return REE_VALUE_KV_CACHE;
    return constant && !(node->n_inputs == 0 && node->n_attrs == 0) ? REE_VALUE_WEIGHT
                                                                    : REE_VALUE_ACTIVATION;
}

void ree_annotate_values(struct ree_annotator *a) {
    const struct ree_graph *graph = a->graph;
    enum ree_value_role *kinds = a->out->values;
    for (size_t i = 0; i < graph->n_values; i++)
        if (graph->values[i]->data && !(graph->values[i]->is_input && graph->ir_version >= 4))
            kinds[i] = constant_kind(graph->values[i]);
    for (size_t i = 0; i < a->options->n_kv_caches; i++)
        kinds[graph->inputs[a->options->kv_caches[i].input]->id] = REE_VALUE_KV_CACHE;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        enum ree_value_role kind = result_kind(a, node);
        // A node without a position is a control node, or no output depends on it. Its results are
        // no caches.
        if (a->position_of[i] == REE_NO_POSITION && kind == REE_VALUE_KV_CACHE)
            kind = REE_VALUE_ACTIVATION;
        for (size_t j = 0; j < node->n_outputs; j++) {
            const struct ree_value *output = node->outputs[j];
            if (!output || output->graph != graph || output->data) continue;
            enum ree_value_role own = kind == REE_VALUE_WEIGHT ? constant_kind(output) : kind;
            kinds[output->id] = own;
        }
        for (size_t j = 0; j < node->n_outputs; j++)
            if (node->outputs[j] && node->outputs[j]->is_output)
                for (size_t k = 0; k < a->options->n_kv_caches; k++)
                    if (graph->outputs[a->options->kv_caches[k].output] == node->outputs[j])
                        kinds[node->outputs[j]->id] = REE_VALUE_KV_CACHE;
    }
}

bool ree_annotator_product(const struct ree_annotator *a, const struct ree_node *node) {
    static const char *const ops[] = {"MatMul",
                                      "Gemm",
                                      "Conv",
                                      "MatMulInteger",
                                      "QLinearMatMul",
                                      "QGemm",
                                      "MatMulNBits",
                                      "FusedMatMul",
                                      "Einsum",
                                      "ConvInteger",
                                      "QLinearConv",
                                      "DynamicQuantizeMatMul",
                                      NULL};
    if (!ree_op_among(node, ops)) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && node->inputs[i]->rank >= 2 &&
            ree_annotator_constant(a, node->inputs[i]))
            return true;
    return false;
}
