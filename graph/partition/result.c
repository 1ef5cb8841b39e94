// Turns end positions into stages, costs, cuts and the sentences that explain them.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

static const char *count_word(size_t n) {
    static const char *const words[] = {"no", "one", "two", "three", "four"};
    return n < sizeof words / sizeof *words ? words[n] : NULL;
}

#define MOST_NAMES 3

// Returns whether a is computed before b. Value ids are not in this order.
static bool is_before(const struct ree_planner *p, const struct ree_value *a,
                      const struct ree_value *b) {
    uint32_t x = p->position[a->producer->id], y = p->position[b->producer->id];
    if (x != y) return x < y;
    for (size_t k = 0; k < a->producer->n_outputs; k++)
        if (a->producer->outputs[k] == a || a->producer->outputs[k] == b)
            return a->producer->outputs[k] == a;
    return false;
}

// Sets `out` to the first live values, without sizes, in the order in which they are computed.
static void first_values(const struct ree_planner *p, const struct ree_cut *cut,
                         const struct ree_value *out[MOST_NAMES]) {
    size_t n = 0;
    for (size_t i = 0; i < cut->n_values; i++) {
        const struct ree_value *value = cut->values[i];
        if (ree_node_is_size(value->producer)) continue;
        size_t at = n < MOST_NAMES ? n++ : MOST_NAMES;
        for (; at > 0 && is_before(p, value, out[at - 1]); at--)
            if (at < MOST_NAMES) out[at] = out[at - 1];
        if (at < MOST_NAMES) out[at] = value;
    }
}

// Appends text such as "two live values, 'a' and 'b' (512 bytes a row)".
static void describe_values(const struct ree_planner *p, size_t place, const struct ree_cut *cut,
                            struct ree_strbuf *out) {
    const struct ree_value *values[MOST_NAMES] = {NULL};
    size_t n_live = p->n_live[place], n_sizes = p->n_sizes[place];
    first_values(p, cut, values);
    const char *word = count_word(n_live);
    if (word)
        ree_strbuf_printf(out, "%s live value%s", word, n_live == 1 ? "" : "s");
    else
        ree_strbuf_printf(out, "%zu live values", n_live);
    size_t shown = n_live > MOST_NAMES ? 2 : n_live;
    for (size_t i = 0; i < shown; i++) {
        const char *before = i == 0 ? ", " : i + 1 == n_live ? " and " : ", ";
        ree_strbuf_printf(out, "%s'%.200s'", before, values[i]->name);
    }
    if (shown < n_live) ree_strbuf_printf(out, " and %zu more", n_live - shown);
    if (n_sizes) ree_strbuf_printf(out, ", with %zu size%s", n_sizes, n_sizes == 1 ? "" : "s");
    if (cut->n_values)
        ree_strbuf_printf(out, " (%llu bytes per row)", (unsigned long long)cut->nbytes);
}

// The work of stage i in hundredths of the mean work.
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
    ree_free(s);
    if (partition->cuts[i].reason) return REE_OK;
    return ree_no_memory(err);
}

// Returns the first cut after a position; n_stages - 1 if there is none.
static size_t first_cut(const struct ree_partition *out, uint32_t position) {
    size_t low = 0, high = out->n_stages - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (out->ends[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Maximum number of values that cross cuts, summed over all cuts: bounds the memory.
#define MOST_CROSSING (UINT64_C(1) << 22)

static enum ree_status fill_cuts(const struct ree_planner *p, struct ree_partition *out,
                                 struct ree_error *err) {
    uint64_t n = 0;
    for (size_t k = 0; k + 1 < out->n_stages; k++)
        n += (uint64_t)p->n_live[out->ends[k]] + p->n_sizes[out->ends[k]];
    if (n > MOST_CROSSING)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%llu boundary tensors at the cuts of %zu stages are too many",
                        (unsigned long long)n, out->n_stages);
    for (size_t k = 0; k + 1 < out->n_stages; k++) {
        struct ree_cut *cut = &out->cuts[k];
        size_t place = out->ends[k];
        cut->nbytes = p->live_bytes[place];
        cut->values = ree_arena_alloc_array(&out->arena, p->n_live[place] + p->n_sizes[place] + 1,
                                            sizeof *cut->values);
        if (!cut->values) return ree_no_memory(err);
    }
    for (size_t i = 0; i < p->graph->n_values; i++) {
        const struct ree_value *value = p->graph->values[i];
        uint32_t at = value->producer ? p->position[value->producer->id] : REE_NO_POSITION;
        if (at == REE_NO_POSITION || p->last_read[i] <= at) continue;
        for (size_t k = first_cut(out, at);
             k + 1 < out->n_stages && ree_planner_is_live(p, value, out->ends[k]); k++)
            out->cuts[k].values[out->cuts[k].n_values++] = value;
    }
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
        return ree_no_memory(err);
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
    }
    REE_TRY(fill_cuts(p, out, err));
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
