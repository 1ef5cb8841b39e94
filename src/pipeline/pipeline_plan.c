// Divides a pipeline's model into stages: collects the planner's inputs from the model and calls
// the planner.
#include <stdlib.h>

#include "graph/partition/choose.h"
#include "base/memory.h"
#include "pipeline/pipeline_internal.h"

// Maps the model's inputs to the graph's inputs and back. The graph's inputs may include weights.
static enum ree_status number_inputs(struct ree_pipeline *p, struct ree_error *err) {
    const struct ree_graph *graph = p->model->graph;
    p->graph_inputs = ree_alloc_zeroed(p->model->n_inputs + 1, sizeof *p->graph_inputs);
    p->model_inputs = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *p->model_inputs);
    // per value: index among the graph's inputs
    size_t *at = ree_alloc_zeroed(graph->n_values + 1, sizeof *at);
    for (size_t i = graph->n_inputs; at && p->model_inputs && i-- > 0;) {
        at[graph->inputs[i]->id] = i;
        p->model_inputs[i] = REE_NO_PORT;
    }
    bool done = at && p->graph_inputs && p->model_inputs;
    for (size_t i = 0; done && i < p->model->n_inputs; i++) {
        p->graph_inputs[i] = at[p->model->input_values[i]->id];
        p->model_inputs[p->graph_inputs[i]] = i;
    }
    ree_free(at);
    return done ? REE_OK : ree_no_memory(err);
}

enum ree_status ree_pipeline_set_kv_caches(struct ree_pipeline *p,
                                           const struct ree_kv_cache_spec *kv_caches, size_t n,
                                           struct ree_error *err) {
    REE_TRY(number_inputs(p, err));
    p->specs = ree_alloc_zeroed(n + 1, sizeof *p->specs);
    p->graph_kv_caches = ree_alloc_zeroed(n + 1, sizeof *p->graph_kv_caches);
    p->owner = ree_alloc_zeroed(n + 1, sizeof *p->owner);
    if (!p->specs || !p->graph_kv_caches || !p->owner) return ree_no_memory(err);
    p->n_kv_caches = n;
    for (size_t i = 0; i < n; i++) {
        p->specs[i] = kv_caches[i];
        if (kv_caches[i].input >= p->model->n_inputs || kv_caches[i].output >= p->model->n_outputs)
            return ree_fail(
                err, REE_INVALID,
                "a cache refers to input %zu or output %zu, but the model does not have both",
                kv_caches[i].input, kv_caches[i].output);
        p->graph_kv_caches[i].input = p->graph_inputs[kv_caches[i].input];
        p->graph_kv_caches[i].output = kv_caches[i].output;
    }
    return REE_OK;
}

struct ree_partition_options ree_pipeline_plan_options(const struct ree_pipeline *p,
                                                       uint64_t context) {
    return (struct ree_partition_options){.n_stages = p->n_stages,
                                          .n_kv_caches = p->n_kv_caches,
                                          .kv_caches = p->graph_kv_caches,
                                          .context = context};
}

static bool is_divided(const struct ree_pipeline *p, const struct ree_pipeline_options *o) {
    if (o->plan_path || o->ends || o->max_memory || o->n_stages > 1) return true;
    return o->n_stages == 0 && (p->n_workers > 1 || o->n_ranks > 1);
}

enum ree_status ree_pipeline_divide(struct ree_pipeline *p, const struct ree_pipeline_options *o,
                                    struct ree_error *err) {
    if (!is_divided(p, o)) return REE_OK;
    struct ree_partition_options options = ree_pipeline_plan_options(p, o->context);
    struct ree_partition_request request = {
        .plan_path = o->plan_path,
        .ends = o->ends,
        .n_stages = o->n_stages,
        .devices = {p->n_workers, o->n_ranks, p->n_cache_slots, p->max_memory},
        .context_length = o->context_length,
    };
    enum ree_plan_origin origin;
    char sha256[65];
    if (o->plan_path) {
        REE_TRY(ree_model_graph_sha256(p->model, sha256, err));
        request.graph_sha256 = sha256;
    }
    REE_TRY(ree_model_infer(p->model->graph, err));
    enum ree_status status =
        ree_partition_choose(p->model->graph, &options, &request, &p->partition, &origin, err);
    if (status != REE_OK) {
        // Messages about a plan file already name the file.
        if (!o->plan_path && p->model->graph->file[0])
            ree_fail_prefix(err, "%s", p->model->graph->file);
        return status;
    }
    p->n_stages = p->partition.n_stages;
    p->divided = p->n_stages > 1 || p->max_memory;
    if (!p->divided) ree_partition_finish(&p->partition);
    if (!p->divided) return REE_OK;
    return ree_partition_stages_of_kv_caches(p->model->graph, &p->partition, p->graph_kv_caches,
                                             p->n_kv_caches, p->owner, err);
}
