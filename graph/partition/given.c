// Cuts that are given by the names of values.
#include "graph/partition/planner.h"

#include <string.h>

static const struct ree_value *find_value(const struct ree_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n_values; i++)
        if (strcmp(graph->values[i]->name, name) == 0) return graph->values[i];
    return NULL;
}

static enum ree_status find_end(const struct ree_planner *p, const char *name, size_t begin,
                                size_t *out, struct ree_error *err) {
    const struct ree_value *value = find_value(p->graph, name);
    if (!value)
        return ree_fail(err, REE_INVALID, "the plan names '%.200s', which the model lacks", name);
    if (!value->producer)
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s', which no node makes: it is %s", name,
                        value->data ? "a constant" : "an input");
    uint32_t position = p->position[value->producer->id];
    if (position == REE_NO_POSITION)
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s', which belongs to no stage: %s", name,
                        p->is_control[value->producer->id]
                            ? "each stage computes such values for itself"
                            : "no output needs it");
    size_t place = (size_t)position + 1;
    if (place <= begin)
        return ree_fail(err, REE_INVALID,
                        "the stage that ends with '%.200s' would be empty: the values of a plan "
                        "stand in the order of the model",
                        name);
    if (place == p->n_order)
        return ree_fail(err, REE_INVALID, "nothing is left for the stage behind '%.200s'", name);
    if (!p->is_place[place])
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s': a state would be cut off from what uses "
                        "it, or what crosses would grow with the context",
                        name);
    *out = place;
    return REE_OK;
}

static enum ree_status cut(struct ree_planner *p, const char *const *names,
                           struct ree_partition *out, struct ree_error *err) {
    size_t n = p->options->n_stages, begin = 0;
    size_t *ends = ree_arena_alloc_array(&p->arena, n, sizeof *ends);
    if (!ends) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i + 1 < n; begin = ends[i++])
        REE_TRY(find_end(p, names[i], begin, &ends[i], err));
    ends[n - 1] = p->n_order;
    return ree_planner_result(p, ends, "given: ", "", out, err);
}

enum ree_status ree_partition_from_cuts(const struct ree_graph *graph,
                                        const struct ree_partition_options *options,
                                        const char *const *ends, struct ree_partition *out,
                                        struct ree_error *err) {
    struct ree_planner p;
    *out = (struct ree_partition){.n_stages = 0};
    enum ree_status status = ree_planner_init(&p, graph, options, err);
    if (status == REE_OK) status = cut(&p, ends, out, err);
    ree_planner_finish(&p);
    return status;
}
