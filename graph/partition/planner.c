#include "graph/partition/planner.h"

static enum ree_status check(const struct ree_graph *graph,
                             const struct ree_partition_options *options, struct ree_error *err) {
    if (options->n_stages == 0)
        return ree_fail(err, REE_INVALID, "a plan requires at least one stage");
    if (options->n_stages > REE_MAX_STAGES)
        return ree_fail(err, REE_INVALID, "a plan has at most %d stages, not %zu", REE_MAX_STAGES,
                        options->n_stages);
    for (size_t i = 0; i < options->n_kv_caches; i++)
        if (options->kv_caches[i].input >= graph->n_inputs ||
            options->kv_caches[i].output >= graph->n_outputs)
            return ree_fail(err, REE_INVALID,
                            "kv cache %zu is not both an input and an output of the model", i);
    return REE_OK;
}

enum ree_status ree_planner_init(struct ree_planner *p, const struct ree_graph *graph,
                                 const struct ree_partition_options *options,
                                 struct ree_error *err) {
    *p = (struct ree_planner){
        .graph = graph,
        .options = options,
        .context = options->context ? options->context : REE_PARTITION_CONTEXT,
    };
    ree_arena_init(&p->arena);
    REE_TRY(check(graph, options, err));
    REE_TRY(ree_planner_find_uses(p, err));
    REE_TRY(ree_planner_find_control(p, err));
    REE_TRY(ree_planner_find_order(p, err));
    REE_TRY(ree_planner_find_cut_points(p, err));
    return ree_planner_find_costs(p, err);
}

void ree_planner_finish(struct ree_planner *p) {
    ree_arena_finish(&p->arena);
}
