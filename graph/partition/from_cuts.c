// Divides a model at given cuts. A cut is given by the name of a value that the last node before it
// computes.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

struct end {
    const char *name;
    size_t stage;
    const struct ree_value *value; // the first value of that name; NULL: there is none
};

static int compare(const void *a, const void *b) {
    const struct end *x = a, *y = b;
    return strcmp(x->name, y->name);
}

// Finds the values of all names in one pass over the values.
static enum ree_status find_values(const struct ree_planner *p, const char *const *names, size_t n,
                                   const struct ree_value **out, struct ree_error *err) {
    struct end *ends = ree_alloc_zeroed(n + 1, sizeof *ends);
    if (!ends) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++)
        ends[i] = (struct end){.name = names[i], .stage = i};
    qsort(ends, n, sizeof *ends, compare);
    for (size_t i = 0; i < p->graph->n_values; i++) {
        const struct end wanted = {.name = p->graph->values[i]->name};
        struct end *found = bsearch(&wanted, ends, n, sizeof *ends, compare);
        if (found && !found->value) found->value = p->graph->values[i];
    }
    // If `names` contains a name more than once, bsearch found any one of its entries.
    for (size_t i = 1; i < n; i++)
        if (!ends[i].value && compare(&ends[i - 1], &ends[i]) == 0)
            ends[i].value = ends[i - 1].value;
    for (size_t i = n; i-- > 1;)
        if (!ends[i - 1].value && compare(&ends[i - 1], &ends[i]) == 0)
            ends[i - 1].value = ends[i].value;
    for (size_t i = 0; i < n; i++)
        out[ends[i].stage] = ends[i].value;
    ree_free(ends);
    return REE_OK;
}

static enum ree_status find_end(const struct ree_planner *p, const char *name,
                                const struct ree_value *value, size_t begin, size_t *out,
                                struct ree_error *err) {
    if (!value)
        return ree_fail(err, REE_INVALID,
                        "the plan names '%.200s', but the model has no such value", name);
    if (!value->producer)
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s', which no node computes: it is %s", name,
                        value->data ? "a constant" : "an input");
    uint32_t position = p->position[value->producer->id];
    if (position == REE_NO_POSITION)
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s', which belongs to no stage: %s", name,
                        p->is_control[value->producer->id]
                            ? "each stage computes such values itself"
                            : "no output depends on it");
    size_t place = (size_t)position + 1;
    if (place <= begin)
        return ree_fail(err, REE_INVALID,
                        "the stage that ends with '%.200s' is empty: a plan must list values in "
                        "the order of the model",
                        name);
    if (place == p->n_order)
        return ree_fail(err, REE_INVALID, "the stage after '%.200s' is empty", name);
    if (!p->is_cut_point[place])
        return ree_fail(err, REE_INVALID,
                        "a stage cannot end with '%.200s': a kv cache would be in another stage "
                        "than the nodes that use it, or a boundary tensor would grow with the "
                        "context",
                        name);
    *out = place;
    return REE_OK;
}

static enum ree_status cut(struct ree_planner *p, const char *const *names,
                           struct ree_partition *out, struct ree_error *err) {
    size_t n = p->options->n_stages, begin = 0;
    size_t *ends = ree_arena_alloc_array(&p->arena, n, sizeof *ends);
    const struct ree_value **values = ree_arena_alloc_array(&p->arena, n, sizeof *values);
    if (!ends || !values) return ree_no_memory(err);
    REE_TRY(find_values(p, names, n - 1, values, err));
    for (size_t i = 0; i + 1 < n; begin = ends[i++])
        REE_TRY(find_end(p, names[i], values[i], begin, &ends[i], err));
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
