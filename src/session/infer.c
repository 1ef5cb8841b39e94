// Type and shape inference for people: what `ree-run inspect` and printed graphs show. (A run needs
// none of it: it lowers the model for the shapes it is given.)
//
// The rules that lower a node also say what comes out of it, so inference is lowering without a
// device: once with every unknown size set to one number, once to another. What agrees is static;
// what differs depends on the inputs.
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "graph/lower/lower.h"
#include "session/model.h"

// Loops are followed so far, and no farther.
#define STEP_LIMIT 4096

static const int64_t trial_sizes[2] = {4, 8};

static enum ree_status value_unknown(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape that depends on data");
}

// Lowers what can be lowered; values of failing nodes, and of those after them, stay NULL.
static bool trial(struct ree_graph *graph, int64_t size, struct ree_arena *arena,
                  struct ree_tval ***out_values) {
    struct ree_error ignored;
    struct ree_lower lower = {
        .arena = arena,
        .err = &ignored,
        .graph = graph,
        .fuse = true,
        .fold = true,
        .fold_limit = 64 << 10,
        .step_limit = STEP_LIMIT,
        .host_execute = ree_cpu_execute,
        .read_storage = value_unknown,
    };
    struct ree_tval **values = ree_arena_alloc_array(arena, graph->n_values + 1, sizeof *values);
    if (!values) return false;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        bool tensor = value->kind == REE_TENSOR && !value->nullable && value->dtype != REE_STRING;
        if (value->data || !value->has_shape || !tensor) continue;
        int64_t dims[REE_MAX_RANK];
        for (uint32_t d = 0; d < value->rank; d++)
            dims[d] = value->dims[d] < 0 ? size : value->dims[d];
        if (ree_lower_value(&lower, value, REE_STORAGE_INPUT, dims, &values[value->id]) != REE_OK)
            values[value->id] = NULL;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (ree_lower_node(&lower, graph->nodes[i], values) != REE_OK)
            for (size_t k = 0; k < graph->nodes[i]->n_outputs; k++)
                if (graph->nodes[i]->outputs[k]) values[graph->nodes[i]->outputs[k]->id] = NULL;
    *out_values = values;
    return true;
}

void ree_model_infer(struct ree_graph *graph) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    struct ree_tval **a, **b;
    if (trial(graph, trial_sizes[0], &arena, &a) && trial(graph, trial_sizes[1], &arena, &b)) {
        for (size_t i = 0; i < graph->n_values; i++) {
            struct ree_value *value = graph->values[i];
            const struct ree_tval *x = a[value->id], *y = b[value->id];
            if (value->data || value->is_input || !x || !y || x->rank != y->rank) continue;
            if (x->kind != REE_TENSOR || y->kind != REE_TENSOR) continue;
            bool declared = value->has_shape && value->rank == x->rank;
            value->dtype = x->dtype;
            value->has_shape = true;
            value->rank = x->rank;
            for (uint32_t d = 0; d < x->rank; d++) {
                // The name of an unknown size comes from the file alone.
                if (!declared) value->symbols[d] = NULL;
                value->dims[d] = x->dims[d] == y->dims[d] ? x->dims[d] : -1;
            }
        }
    }
    ree_arena_finish(&arena);
}
