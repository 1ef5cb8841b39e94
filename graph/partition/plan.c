// The planner: one live value at each cut if that costs little, else the most even plan.
#include "graph/partition/planner.h"

#include <stdio.h>

static enum ree_status too_few_cut_points(const struct ree_planner *p, size_t n_cut_points,
                                          struct ree_error *err) {
    if (n_cut_points == 0)
        return ree_fail(err, REE_INVALID,
                        "the model cannot be cut, so it runs as one stage, not %zu",
                        p->options->n_stages);
    return ree_fail(
        err, REE_INVALID, "the model has %zu possible cut%s, enough for %zu stages, not for %zu",
        n_cut_points, n_cut_points == 1 ? "" : "s", n_cut_points + 1, p->options->n_stages);
}

struct range {
    size_t begin, end; // positions
    uint64_t bytes;
};

static enum ree_status largest_range(const struct ree_planner *p, const struct ree_search *search,
                                     struct range *out, uint64_t *out_total,
                                     struct ree_error *err) {
    struct ree_window window;
    REE_TRY(ree_window_init(&window, p, err));
    *out = (struct range){0, 0, 0};
    size_t begin = 0;
    for (size_t i = 0; i <= search->n_cut_points; i++) {
        size_t end = search->cut_points[i];
        ree_window_add(&window, begin, end);
        struct ree_stage_cost cost = ree_window_cost(&window);
        uint64_t bytes = cost.weight_bytes;
        if (bytes > out->bytes || out->end == 0) *out = (struct range){begin, end, bytes};
        ree_window_remove(&window, begin, end);
        begin = end;
    }
    ree_window_add(&window, 0, p->n_order);
    struct ree_stage_cost all = ree_window_cost(&window);
    *out_total = all.weight_bytes;
    ree_window_finish(&window);
    return REE_OK;
}

static enum ree_status limits_too_small(const struct ree_planner *p,
                                        const struct ree_search *search, struct ree_error *err) {
    struct range range;
    uint64_t total, most = 0;
    REE_TRY(largest_range(p, search, &range, &total, err));
    ree_sum sum = 0;
    for (size_t i = 0; i < p->options->n_stages; i++) {
        sum += p->options->weight_limits[i];
        if (p->options->weight_limits[i] > most) most = p->options->weight_limits[i];
    }
    if (range.bytes > most && range.end > range.begin) {
        char first[320], last[320];
        ree_node_label(p->graph->nodes[p->order[range.begin]], first, sizeof first);
        ree_node_label(p->graph->nodes[p->order[range.end - 1]], last, sizeof last);
        if (range.end == range.begin + 1)
            return ree_fail(err, REE_INVALID,
                            "%s takes %llu bytes of weights, but no stage may take more than %llu",
                            first, (unsigned long long)range.bytes, (unsigned long long)most);
        return ree_fail(err, REE_INVALID,
                        "%s to %s cannot be cut and takes %llu bytes of weights, but no stage may "
                        "take more than %llu",
                        first, last, (unsigned long long)range.bytes, (unsigned long long)most);
    }
    uint64_t together = sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
    return ree_fail(
        err, REE_INVALID,
        "no plan of %zu stages is within the limits: weights take %llu bytes, the stages may take "
        "%llu in total, and the largest range of nodes that cannot be cut takes %llu",
        p->options->n_stages, (unsigned long long)total, (unsigned long long)together,
        (unsigned long long)range.bytes);
}

// Explains why a cut of the plan has more than one live value.
static void remark_on(const struct ree_planner *p, const struct ree_search *one,
                      const struct ree_search *any, char *out, size_t size) {
    if (one->n_cut_points < p->options->n_stages - 1)
        snprintf(out, size, "; only %zu possible cut%s with one live value", one->n_cut_points,
                 one->n_cut_points == 1 ? "" : "s");
    else if (!one->found)
        snprintf(out, size, "; with one live value at each cut, the limits would be exceeded");
    else
        snprintf(out, size,
                 "; with one live value at each cut, the largest stage would have work %llu "
                 "instead of %llu",
                 (unsigned long long)one->largest, (unsigned long long)any->largest);
}

enum ree_status ree_planner_plan(struct ree_planner *p, struct ree_partition *out,
                                 struct ree_error *err) {
    struct ree_search one, any;
    char remark[160] = "";
    REE_TRY(ree_search_run(&any, p, UINT32_MAX, err));
    if (any.n_cut_points < p->options->n_stages - 1)
        return too_few_cut_points(p, any.n_cut_points, err);
    if (!any.found) return limits_too_small(p, &any, err);
    REE_TRY(ree_search_run(&one, p, 1, err));
    // 4 * one <= 5 * any, without overflow.
    if (one.found && one.largest <= any.largest + (ree_sum)(any.largest / 4))
        return ree_planner_result(p, one.ends, "", "", out, err);
    remark_on(p, &one, &any, remark, sizeof remark);
    return ree_planner_result(p, any.ends, "", remark, out, err);
}

enum ree_status ree_partition_plan(const struct ree_graph *graph,
                                   const struct ree_partition_options *options,
                                   struct ree_partition *out, struct ree_error *err) {
    struct ree_planner p;
    *out = (struct ree_partition){.n_stages = 0};
    enum ree_status status = ree_planner_init(&p, graph, options, err);
    if (status == REE_OK) status = ree_planner_plan(&p, out, err);
    ree_planner_finish(&p);
    return status;
}
