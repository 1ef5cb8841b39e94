// Constant folding. A node whose inputs are all constant is lowered, and the CPU backend's kernels
// run its RepOps. So the folded value has the bits that every device would have computed.
#include <string.h>

#include "base/progress.h"
#include "device/device.h"
#include "graph/lower/core/lower.h"
#include "session/model.h"

// Maximum bytes of a folded value. The device computes larger ones in each run, because folding
// must not inflate a model.
#define FOLD_LIMIT ((uint64_t)256 << 20)

static enum ree_status no_device(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    return ree_lower_fail(lower, REE_INTERNAL,
                          "a constant depends on a value that is not constant");
}

// Returns whether the value is the default of an input, which the caller of a run, or the node
// whose body it belongs to, may replace.
static bool is_default(const struct ree_graph *graph, const struct ree_value *value) {
    return value->is_input && (value->graph->parent || graph->ir_version >= 4);
}

static bool is_foldable(const struct ree_graph *graph, const struct ree_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == REE_ATTR_GRAPH) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && (!node->inputs[i]->data || is_default(graph, node->inputs[i])))
            return false;
    return true;
}

// Whether a result is so much larger than its inputs (Expand, ConstantOfShape) that storing it
// costs more than computing it.
static bool is_inflated(const struct ree_node *node, uint64_t nbytes) {
    uint64_t in = 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) in += node->inputs[i]->nbytes;
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].tensor) in += node->attrs[i].tensor->nbytes;
    return nbytes > ((uint64_t)1 << 20) && nbytes / 4 > in;
}

// Replaces the numbers that stand for strings in the lowering by pointers to copies of the strings
// in the graph's arena.
static enum ree_status resolve_strings(struct ree_graph *graph, const struct ree_lower *lower,
                                       void *strings, size_t n, struct ree_error *err) {
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        memcpy(&number, (char *)strings + 8 * i, 8);
        const char *text = ree_lower_text(lower, number);
        const char *copy = text ? ree_arena_strdup(graph->arena, text) : NULL;
        if (!copy) return ree_no_memory(err);
        memcpy((char *)strings + 8 * i, &copy, 8);
    }
    return REE_OK;
}

// Makes the results of a lowered node constants of the graph and sets *out_folded. Leaves the graph
// unchanged if the host does not know a result, or if a result is too large or not a tensor.
static enum ree_status store_results(struct ree_graph *graph, struct ree_lower *lower,
                                     struct ree_node *node, struct ree_view **values,
                                     bool *out_folded, struct ree_error *err) {
    const void *data[64];
    *out_folded = false;
    if (node->n_outputs > 64) return REE_OK;
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i]) continue;
        struct ree_view *t = values[node->outputs[i]->id];
        if (t->kind != REE_TENSOR) return REE_OK;
        uint64_t nbytes = (uint64_t)ree_view_count(t) * ree_dtype_size(t->dtype);
        if (!ree_lower_is_host(t) || nbytes > FOLD_LIMIT || is_inflated(node, nbytes))
            return REE_OK;
        enum ree_status status = ree_lower_host(lower, t, &data[i]);
        if (status == REE_NO_MEMORY) return ree_no_memory(err);
        if (status != REE_OK) return REE_OK;
    }
    void *copies[64];
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i]) continue;
        const struct ree_view *t = values[node->outputs[i]->id];
        size_t nbytes = (size_t)ree_view_count(t) * ree_dtype_size(t->dtype);
        copies[i] = ree_arena_alloc(graph->arena, nbytes + 64); // padded for whole-word kernels
        if (!copies[i]) return ree_no_memory(err);
        memcpy(copies[i], data[i], nbytes);
        if (t->dtype == REE_STRING)
            REE_TRY(resolve_strings(graph, lower, copies[i], nbytes / 8, err));
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct ree_value *value = node->outputs[i];
        if (!value) continue;
        const struct ree_view *t = values[value->id];
        // A hint of another kind without a type of its items says nothing about the value.
        if (value->dtype != REE_DTYPE_NONE &&
            (value->dtype != t->dtype || value->kind != REE_TENSOR))
            value->has_two_types = true;
        value->kind = REE_TENSOR;
        value->nullable = false;
        memset(value->symbols, 0, sizeof value->symbols);
        value->dtype = t->dtype;
        value->has_shape = true;
        value->rank = t->rank;
        memcpy(value->dims, t->dims, sizeof value->dims);
        value->data = copies[i];
        value->nbytes = (size_t)ree_view_count(t) * ree_dtype_size(t->dtype);
        value->producer = NULL;
    }
    *out_folded = true;
    return REE_OK;
}

enum ree_status ree_model_fold(struct ree_graph *graph, const struct ree_progress *progress,
                               struct ree_error *err) {
    struct ree_arena scratch;
    ree_arena_init(&scratch);
    size_t to = 0;
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        bool folded = false;
        if (is_foldable(graph, node)) {
            status = ree_progress_report(progress, "folding", i, graph->n_nodes, err);
            if (status != REE_OK) break;
            struct ree_error ignored;
            struct ree_lower lower = {
                .arena = &scratch,
                .err = &ignored,
                .graph = graph,
                .fuse = true,
                .fold = true,
                // They are in no hash, so they must not decide what is folded.
                .ignores_declared = true,
                .fold_limit = FOLD_LIMIT,
                .host_execute = ree_cpu_execute,
                .read_storage = no_device,
            };
            struct ree_view **values =
                ree_arena_alloc_array(&scratch, graph->n_values + 1, sizeof *values);
            if (!values) {
                status = ree_no_memory(err);
                break;
            }
            // A node that cannot be folded is left to the device. Exhausted memory is an error
            // instead: the graph must be the same in every process.
            status = ree_lower_node(&lower, node, values);
            if (status == REE_NO_MEMORY)
                ree_fail(err, status, "%s", ignored.message);
            else
                status = status == REE_OK ? store_results(graph, &lower, node, values, &folded, err)
                                          : REE_OK;
            ree_arena_finish(&scratch);
            if (status != REE_OK) break;
        }
        if (!folded) {
            node->id = (uint32_t)to;
            graph->nodes[to++] = node;
        }
    }
    ree_arena_finish(&scratch);
    if (status != REE_OK) return status;
    graph->n_nodes = to;
    // Fold subgraphs after the graph itself, so that its constants are known in them.
    for (size_t i = 0; i < to; i++)
        for (size_t j = 0; j < graph->nodes[i]->n_attrs; j++)
            if (graph->nodes[i]->attrs[j].graph)
                REE_TRY(ree_model_fold(graph->nodes[i]->attrs[j].graph, progress, err));
    return REE_OK;
}
