#include "graph/partition/annotate.h"

#include <string.h>

#include "graph/partition/annotate_internal.h"

static enum ree_status annotate(struct ree_annotator *a, struct ree_error *err) {
    const struct ree_graph *graph = a->graph;
    struct ree_annotations *out = a->out;
    out->nodes = ree_arena_alloc_array(&out->arena, graph->n_nodes + 1, sizeof *out->nodes);
    out->values = ree_arena_alloc_array(&out->arena, graph->n_values + 1, sizeof *out->values);
    if (!out->nodes || !out->values || !ree_annotate_positions(a)) return ree_no_memory(err);
    uint32_t phases = REE_PHASE_PREFILL | (a->options->n_kv_caches ? REE_PHASE_DECODE : 0);
    for (size_t i = 0; i < graph->n_nodes; i++)
        out->nodes[i] = (struct ree_annotation){REE_NODE_ROLE_CONTROL, REE_NO_LAYER, phases};
    ree_annotate_values(a);
    ree_annotate_norms(a);
    if (!ree_annotate_layers(a)) return ree_no_memory(err);
    return REE_OK;
}

enum ree_status ree_annotate(const struct ree_graph *graph,
                             const struct ree_partition_options *options,
                             const struct ree_partition *partition, struct ree_annotations *out,
                             struct ree_error *err) {
    struct ree_annotator a = {
        .graph = graph, .options = options, .partition = partition, .out = out};
    *out = (struct ree_annotations){0};
    ree_arena_init(&out->arena);
    ree_arena_init(&a.scratch);
    enum ree_status status = annotate(&a, err);
    ree_arena_finish(&a.scratch);
    if (status != REE_OK) ree_annotations_finish(out);
    return status;
}

void ree_annotations_finish(struct ree_annotations *annotations) {
    ree_arena_finish(&annotations->arena);
    *annotations = (struct ree_annotations){0};
}

uint32_t ree_branch_phases(const struct ree_graph *graph, const struct ree_node *node,
                           const struct ree_attr *branch) {
    const uint32_t both = REE_PHASE_PREFILL | REE_PHASE_DECODE;
    if (strcmp(node->op_type, "If") != 0 || node->domain[0] || node->n_inputs != 1) return both;
    const struct ree_value *condition = node->inputs[0];
    if (!condition || condition->graph != graph || !condition->is_input ||
        condition->dtype != REE_BOOL)
        return both;
    if (strcmp(branch->name, "then_branch") == 0) return REE_PHASE_DECODE;
    return strcmp(branch->name, "else_branch") == 0 ? REE_PHASE_PREFILL : both;
}

const char *ree_node_role_name(enum ree_node_role role) {
    static const char *const names[] = {"other", "embedding", "attention", "feed_forward",
                                        "norm",  "head",      "control"};
    return names[role];
}

const char *ree_value_role_name(enum ree_value_role role) {
    static const char *const names[] = {"activation", "weight", "constant", "kv_cache"};
    return names[role];
}

const char *ree_phases_name(uint32_t phases) {
    static const char *const names[] = {"", "prefill", "decode", "prefill,decode"};
    return names[phases & 3];
}
