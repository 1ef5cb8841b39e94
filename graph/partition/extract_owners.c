// Finds the stage that keeps each kv cache, the stage that returns each output, and the first stage
// that contains each control node. One pass over the nodes finds all of a kind, because files may
// have very many.
#include <string.h>

#include "graph/partition/extract.h"

#define NO_STAGE UINT32_MAX

struct reader {
    const struct ree_graph *graph;
    uint32_t stage;
    uint32_t *stages; // by value id
    bool first_come;  // keep the stage of the first reader; false: keep the lowest stage
};

static void note_read(void *user, struct ree_value **use) {
    struct reader *r = user;
    if ((*use)->graph != r->graph) return;
    uint32_t *stage = &r->stages[(*use)->id];
    if (*stage == NO_STAGE || (!r->first_come && r->stage < *stage)) *stage = r->stage;
}

static uint32_t *alloc_stages(struct ree_arena *arena, size_t n) {
    uint32_t *stages = ree_arena_alloc_array(arena, n + 1, sizeof *stages);
    if (stages) memset(stages, 0xff, (n + 1) * sizeof *stages);
    return stages;
}

static enum ree_status find_kv_caches(const struct ree_graph *graph,
                                      const struct ree_partition *partition,
                                      const struct ree_partition_kv_cache *kv_caches, size_t n,
                                      size_t *out, struct ree_arena *scratch,
                                      struct ree_error *err) {
    struct reader r = {.graph = graph, .first_come = true};
    r.stages = alloc_stages(scratch, graph->n_values);
    if (!r.stages) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        r.stage = partition->stage_of[i];
        if (r.stage != REE_STAGE_CONTROL) ree_node_visit_uses(graph->nodes[i], note_read, &r);
    }
    for (size_t i = 0; i < n; i++) {
        const struct ree_node *maker = graph->outputs[kv_caches[i].output]->producer;
        uint32_t stage = maker ? partition->stage_of[maker->id] : REE_STAGE_CONTROL;
        if (stage == REE_STAGE_CONTROL) stage = r.stages[graph->inputs[kv_caches[i].input]->id];
        out[i] = stage == NO_STAGE ? partition->n_stages - 1 : stage;
    }
    return REE_OK;
}

enum ree_status ree_partition_stages_of_kv_caches(const struct ree_graph *graph,
                                                  const struct ree_partition *partition,
                                                  const struct ree_partition_kv_cache *kv_caches,
                                                  size_t n, size_t *out, struct ree_error *err) {
    struct ree_arena scratch;
    ree_arena_init(&scratch);
    enum ree_status status = find_kv_caches(graph, partition, kv_caches, n, out, &scratch, err);
    ree_arena_finish(&scratch);
    return status;
}

// Finds the stage that returns each output of the whole graph. For kv caches, including kv caches
// that are returned unchanged, this is the stage that keeps the kv cache.
static enum ree_status find_outputs(struct ree_extract *x) {
    const struct ree_graph *graph = x->graph;
    const struct ree_partition_options *o = x->options;
    uint32_t *kept = alloc_stages(&x->scratch, graph->n_values);
    x->output_stage =
        ree_arena_alloc_array(&x->scratch, graph->n_outputs + 1, sizeof *x->output_stage);
    if (!kept || !x->output_stage) return ree_no_memory(x->err);
    for (size_t i = o->n_kv_caches; i-- > 0;) // the first kv cache has priority
        kept[graph->inputs[o->kv_caches[i].input]->id] = (uint32_t)x->kv_cache_stage[i];
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct ree_value *value = graph->outputs[i];
        uint32_t stage = kept[value->id];
        if (stage == NO_STAGE && value->producer)
            stage = x->partition->stage_of[value->producer->id];
        x->output_stage[i] = stage == NO_STAGE ? x->partition->n_stages - 1 : stage;
    }
    for (size_t i = o->n_kv_caches; i-- > 0;)
        x->output_stage[o->kv_caches[i].output] = x->kv_cache_stage[i];
    return REE_OK;
}

// Finds the first stage that contains each node. Readers come after what they read, so one pass
// from the end finds all.
static enum ree_status find_first(struct ree_extract *x) {
    const struct ree_graph *graph = x->graph;
    struct reader r = {.graph = graph};
    r.stages = alloc_stages(&x->scratch, graph->n_values);
    x->first = alloc_stages(&x->scratch, graph->n_nodes);
    if (!r.stages || !x->first) return ree_no_memory(x->err);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        uint32_t *stage = &r.stages[graph->outputs[i]->id];
        if (x->output_stage[i] < *stage) *stage = (uint32_t)x->output_stage[i];
    }
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct ree_node *node = graph->nodes[i];
        r.stage = x->partition->stage_of[i];
        for (size_t k = 0; x->partition->stage_of[i] == REE_STAGE_CONTROL && k < node->n_outputs;
             k++)
            if (node->outputs[k] && r.stages[node->outputs[k]->id] < r.stage)
                r.stage = r.stages[node->outputs[k]->id];
        x->first[i] = r.stage;
        if (r.stage != NO_STAGE) ree_node_visit_uses(graph->nodes[i], note_read, &r);
    }
    return REE_OK;
}

enum ree_status ree_extract_find_owners(struct ree_extract *x) {
    const struct ree_partition_options *o = x->options;
    x->kv_cache_stage =
        ree_arena_alloc_array(&x->scratch, o->n_kv_caches + 1, sizeof *x->kv_cache_stage);
    x->kv_cache_at =
        ree_arena_alloc_array(&x->scratch, x->graph->n_inputs + 1, sizeof *x->kv_cache_at);
    if (!x->kv_cache_stage || !x->kv_cache_at) return ree_no_memory(x->err);
    REE_TRY(find_kv_caches(x->graph, x->partition, o->kv_caches, o->n_kv_caches, x->kv_cache_stage,
                           &x->scratch, x->err));
    for (size_t i = o->n_kv_caches; i-- > 0;)
        x->kv_cache_at[o->kv_caches[i].input] = i + 1;
    REE_TRY(find_outputs(x));
    return find_first(x);
}
