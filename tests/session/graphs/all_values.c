#include "all_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_values(const struct ree_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
            n += g->nodes[i]->outputs[k] != NULL;
    return n;
}

void expose_all(struct ree_model *model) {
    struct ree_graph *g = model->graph;
    size_t n = count_values(g);
    g->outputs = ree_arena_alloc_array(g->arena, n + 1, sizeof(struct ree_value *));
    g->n_outputs = 0;
    free(model->outputs);
    model->outputs = calloc(n + 1, sizeof *model->outputs);
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
            struct ree_value *value = g->nodes[i]->outputs[k];
            if (!value) continue;
            value->is_output = true;
            model->outputs[g->n_outputs].name = value->name;
            g->outputs[g->n_outputs++] = value;
        }
    model->n_outputs = n;
}

static enum ree_status on_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err) {
    struct all_values *all = user;
    (void)inputs, (void)err;
    all->n_inputs = n;
    all->n = 0;
    all->n_runs++;
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *value,
                                struct ree_error *err) {
    struct all_values *all = user;
    (void)err;
    struct all_value *v = &all->values[all->n++];
    v->node = value->node;
    v->output = value->output;
    ree_tensor_digest(value->tensor, v->digest);
    return REE_OK;
}

static enum ree_status on_end(void *user, struct ree_error *err) {
    struct all_values *all = user;
    (void)err;
    all->n_ends++;
    return REE_OK;
}

void all_values_init(struct all_values *all, const struct ree_model *model) {
    *all = (struct all_values){.graph = model->graph};
    all->values = calloc(count_values(model->graph) + 1, sizeof *all->values);
}

struct ree_observer all_values_observer(struct all_values *all) {
    return (struct ree_observer){on_inputs, on_value, on_end, all, false};
}

void all_values_finish(struct all_values *all) {
    free(all->values);
    all->values = NULL;
}

bool all_values_match(const struct all_values *all, const struct ree_tensor *outputs, size_t n) {
    if (n != all->n || n != count_values(all->graph)) {
        fprintf(stderr, "%zu values were told of, and there are %zu\n", all->n, n);
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < all->graph->n_nodes; i++)
        for (size_t k = 0; k < all->graph->nodes[i]->n_outputs; k++) {
            if (!all->graph->nodes[i]->outputs[k]) continue;
            const struct all_value *v = &all->values[at];
            ree_digest digest;
            ree_tensor_digest(&outputs[at++], digest);
            if (v->node == i && v->output == k && !memcmp(digest, v->digest, sizeof digest))
                continue;
            char label[256];
            fprintf(stderr, "%s: output %zu was told otherwise\n",
                    ree_node_label(all->graph->nodes[i], label, sizeof label), k);
            return false;
        }
    return true;
}
