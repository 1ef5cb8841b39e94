// From positions to stages, costs, cuts and the sentences that explain them.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include <string.h>

static const char *count_word(size_t n) {
    static const char *const words[] = {"no", "one", "two", "three", "four"};
    return n < sizeof words / sizeof *words ? words[n] : NULL;
}

#define MOST_NAMES 3

// The first of the live values, in the order in which they are made: ids do not show.
static void first_values(const struct ree_planner *p, size_t place,
                         const struct ree_value *out[MOST_NAMES]) {
    size_t n = 0;
    for (size_t i = 0; i < place && n < MOST_NAMES; i++) {
        const struct ree_node *node = p->graph->nodes[p->order[i]];
        for (size_t k = 0; k < node->n_outputs && n < MOST_NAMES; k++)
            if (node->outputs[k] && ree_planner_is_live(p, node->outputs[k], place))
                out[n++] = node->outputs[k];
    }
}

// "two live values, 'a' and 'b' (512 bytes a row)"
static void describe_values(const struct ree_planner *p, size_t place, const struct ree_cut *cut,
                            struct ree_strbuf *out) {
    const struct ree_value *values[MOST_NAMES] = {NULL};
    first_values(p, place, values);
    const char *word = count_word(cut->n_values);
    if (word)
        ree_strbuf_printf(out, "%s live value%s", word, cut->n_values == 1 ? "" : "s");
    else
        ree_strbuf_printf(out, "%zu live values", cut->n_values);
    size_t shown = cut->n_values > MOST_NAMES ? 2 : cut->n_values;
    for (size_t i = 0; i < shown; i++) {
        const char *before = i == 0 ? ", " : i + 1 == cut->n_values ? " and " : ", ";
        ree_strbuf_printf(out, "%s'%.200s'", before, values[i]->name);
    }
    if (shown < cut->n_values) ree_strbuf_printf(out, " and %zu more", cut->n_values - shown);
    if (cut->n_values)
        ree_strbuf_printf(out, " (%llu bytes a row)", (unsigned long long)cut->nbytes);
}

// The work of stage i in hundredths of the mean.
static uint64_t share(const struct ree_partition *partition, size_t i) {
    ree_sum total = 0;
    for (size_t k = 0; k < partition->n_stages; k++)
        total += partition->costs[k].work;
    if (total == 0) return 100;
    ree_sum n = (ree_sum)partition->costs[i].work * partition->n_stages * 100 + total / 2;
    return (uint64_t)(n / total);
}

static enum ree_status explain(const struct ree_planner *p, struct ree_partition *partition,
                               size_t i, const char *reason, const char *remark,
                               struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "%s", reason);
    describe_values(p, partition->ends[i], &partition->cuts[i], &text);
    uint64_t hundredths = share(partition, i);
    ree_strbuf_printf(&text, "; stage work %llu.%02u of the mean%s",
                      (unsigned long long)(hundredths / 100), (unsigned)(hundredths % 100), remark);
    char *s = ree_strbuf_take(&text);
    partition->cuts[i].reason = s ? ree_arena_strdup(&partition->arena, s) : NULL;
    free(s);
    if (partition->cuts[i].reason) return REE_OK;
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

static enum ree_status fill_cut(const struct ree_planner *p, size_t place,
                                struct ree_partition *out, struct ree_cut *cut,
                                struct ree_error *err) {
    cut->n_values = p->n_live[place];
    cut->nbytes = p->live_bytes[place];
    cut->values = ree_arena_alloc_array(&out->arena, cut->n_values + 1, sizeof *cut->values);
    if (!cut->values) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    size_t n = 0;
    for (size_t i = 0; i < p->graph->n_values && n < cut->n_values; i++)
        if (ree_planner_is_live(p, p->graph->values[i], place))
            cut->values[n++] = p->graph->values[i];
    return REE_OK;
}

static enum ree_status fill(const struct ree_planner *p, struct ree_window *window,
                            const size_t *ends, const char *reason, const char *remark,
                            struct ree_partition *out, struct ree_error *err) {
    size_t n = p->options->n_stages, begin = 0;
    out->n_stages = n;
    out->context = p->context;
    out->n_order = p->n_order;
    out->order = ree_arena_alloc_array(&out->arena, p->n_order + 1, sizeof *out->order);
    out->stage_of =
        ree_arena_alloc_array(&out->arena, p->graph->n_nodes + 1, sizeof *out->stage_of);
    out->ends = ree_arena_alloc_array(&out->arena, n, sizeof *out->ends);
    out->costs = ree_arena_alloc_array(&out->arena, n, sizeof *out->costs);
    out->cuts = ree_arena_alloc_array(&out->arena, n, sizeof *out->cuts);
    if (!out->order || !out->stage_of || !out->ends || !out->costs || !out->cuts)
        return ree_fail(err, REE_NO_MEMORY, "out of memory");
    memcpy(out->order, p->order, p->n_order * sizeof *out->order);
    for (size_t i = 0; i < p->graph->n_nodes; i++)
        out->stage_of[i] = REE_STAGE_CONTROL;
    for (size_t k = 0; k < n; begin = ends[k++]) {
        out->ends[k] = ends[k];
        for (size_t i = begin; i < ends[k]; i++)
            out->stage_of[p->order[i]] = (uint32_t)k;
        ree_window_add(window, begin, ends[k]);
        out->costs[k] = ree_window_cost(window);
        ree_window_remove(window, begin, ends[k]);
        if (k + 1 < n) REE_TRY(fill_cut(p, ends[k], out, &out->cuts[k], err));
    }
    for (size_t k = 0; k + 1 < n; k++)
        REE_TRY(explain(p, out, k, reason, remark, err));
    return REE_OK;
}

enum ree_status ree_planner_result(const struct ree_planner *p, const size_t *ends,
                                   const char *reason, const char *remark,
                                   struct ree_partition *out, struct ree_error *err) {
    *out = (struct ree_partition){.n_stages = 0};
    ree_arena_init(&out->arena);
    struct ree_window window;
    REE_TRY(ree_window_init(&window, p, err));
    enum ree_status status = fill(p, &window, ends, reason, remark, out, err);
    ree_window_finish(&window);
    if (status != REE_OK) ree_partition_finish(out);
    return status;
}

void ree_partition_finish(struct ree_partition *partition) {
    ree_arena_finish(&partition->arena);
    *partition = (struct ree_partition){.n_stages = 0};
}
