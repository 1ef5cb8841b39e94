// Finds the best cuts. A range is the nodes between two neighbouring cut points. Adding a
// range to a stage never makes the stage cheaper, so the later a stage begins, the later it may or
// must end. This allows an exact search:
//
// - bisection finds the smallest possible value of the largest stage's work;
// - with that limit, dynamic programming over a sliding minimum finds the fewest live values;
// - with both, bisection again finds the largest possible value of the smallest stage's work.
//
// The time is proportional to the number of stages times the number of cut points.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include <string.h>

// Maximum of stages times cut points: bounds time (to some seconds) and memory.
#define MAX_TABLE_ENTRIES (UINT64_C(1) << 22)

// Sums over the cuts of the rest of a plan: number of live values, and their bytes.
struct toll {
    uint64_t n_live, live_bytes;
};

struct tables {
    const struct ree_planner *p;
    const struct ree_partition_options *options;
    size_t n_stages, n_ranges;
    uint32_t *bounds; // n_ranges + 1: range i is positions [bounds[i], bounds[i + 1])
    struct ree_window window;
    uint32_t *floor;      // by range: the first bound at which a stage that begins with it may end
    uint32_t *reach_work; // by range: the last bound at which a stage that begins with it may end
    // By stage: the same as reach_work, for the stage's weight limit; equal limits share one array.
    // NULL without limits.
    uint32_t **reach_weights;
    unsigned char *is_start; // by bound: whether the next stage may begin there
    int32_t *starts;         // by bound: differences of the number of stages that may end there
    struct toll *tolls[2];   // by bound
    uint32_t *queue;         // by bound: scratch
    struct ree_arena arena;
};

static bool is_over(const struct tables *t, uint64_t most_work, uint64_t most_weights) {
    struct ree_stage_cost cost = ree_window_cost(&t->window);
    return cost.work > most_work || cost.weight_bytes > most_weights;
}

// Sets out[i] to the last bound at which a stage from bound i may end; i if its first range is too
// expensive.
static void find_reach(struct tables *t, uint64_t most_work, uint64_t most_weights, uint32_t *out) {
    size_t begin = 0;
    for (size_t end = 0; end < t->n_ranges; end++) {
        ree_window_add(&t->window, t->bounds[end], t->bounds[end + 1]);
        while (begin <= end && is_over(t, most_work, most_weights)) {
            ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
            out[begin++] = (uint32_t)end;
        }
    }
    while (begin < t->n_ranges) {
        ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
        out[begin++] = (uint32_t)t->n_ranges;
    }
}

// Sets floor[i] to the first bound at which a stage from bound i has at least least_work; n_ranges
// + 1 if there is none.
static void find_floor(struct tables *t, uint64_t least_work) {
    size_t begin = 0;
    for (size_t end = 0; end < t->n_ranges; end++) {
        ree_window_add(&t->window, t->bounds[end], t->bounds[end + 1]);
        while (begin <= end && ree_window_cost(&t->window).work >= least_work) {
            ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
            t->floor[begin++] = (uint32_t)end + 1;
        }
    }
    while (begin < t->n_ranges) {
        ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
        t->floor[begin++] = (uint32_t)t->n_ranges + 1;
    }
}

static uint32_t reach(const struct tables *t, size_t stage, size_t range) {
    uint32_t end = t->reach_work[range];
    if (t->options->weight_limits && t->reach_weights[stage][range] < end)
        end = t->reach_weights[stage][range];
    return end;
}

// Without weight limits: extends each stage as far as possible. Fewer than n_stages stages also
// pass, because there are enough cut points to cut them further, which makes no stage more
// expensive.
static bool is_greedily_feasible(const struct tables *t) {
    size_t at = 0;
    for (size_t k = 0; k < t->n_stages && at < t->n_ranges; k++)
        at = t->reach_work[at];
    return at == t->n_ranges;
}

// Returns whether n_stages stages with at most this much work each reach the end.
static bool is_feasible(struct tables *t, uint64_t most_work) {
    find_reach(t, most_work, UINT64_MAX, t->reach_work);
    if (!t->options->weight_limits) return is_greedily_feasible(t);
    memset(t->is_start, 0, t->n_ranges + 1);
    t->is_start[0] = 1;
    for (size_t k = 0; k < t->n_stages; k++) {
        memset(t->starts, 0, (t->n_ranges + 2) * sizeof *t->starts);
        for (size_t i = 0; i < t->n_ranges; i++) {
            uint32_t end = t->is_start[i] ? reach(t, k, i) : 0;
            if (end <= i) continue;
            t->starts[i + 1]++;
            t->starts[end + 1]--;
        }
        int32_t open = 0;
        for (size_t i = 0; i <= t->n_ranges; i++) {
            open += t->starts[i];
            t->is_start[i] = open > 0;
        }
    }
    return t->is_start[t->n_ranges];
}

#define NO_WAY UINT64_MAX

static int compare(const struct toll *a, const struct toll *b) {
    if (a->n_live != b->n_live) return a->n_live < b->n_live ? -1 : 1;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes ? -1 : 1;
    return 0;
}

// One step of the dynamic programming, called from the last stage to the first. tolls[i] becomes
// the smallest toll of the stages k... from bound i, and next[i] the smallest bound at which stage
// k then ends. A stage may end from its floor to its reach. Both decrease with i, so a queue holds
// the candidates: the newest, which is the smallest bound, at the tail, and the best at the head.
static void find_tolls(struct tables *t, size_t k, const struct toll *after, struct toll *tolls,
                       uint32_t *next) {
    uint32_t *queue = t->queue;
    size_t head = 0, tail = 0, added = t->n_ranges + 1;
    tolls[t->n_ranges] = (struct toll){NO_WAY, 0};
    for (size_t i = t->n_ranges; i-- > 0;) {
        while (added > t->floor[i]) {
            if (after[--added].n_live == NO_WAY) continue;
            // On ties keep the smaller bound, which is the new one.
            while (tail > head && compare(&after[queue[tail - 1]], &after[added]) >= 0)
                tail--;
            queue[tail++] = (uint32_t)added;
        }
        uint32_t end = reach(t, k, i);
        while (head < tail && queue[head] > end)
            head++;
        tolls[i] = head < tail ? after[queue[head]] : (struct toll){NO_WAY, 0};
        if (next) next[i] = head < tail ? queue[head] : 0;
    }
    // Add the toll of the cut at i itself.
    for (size_t i = 1; i < t->n_ranges; i++) {
        if (tolls[i].n_live == NO_WAY) continue;
        tolls[i].n_live += t->p->n_live[t->bounds[i]];
        tolls[i].live_bytes += t->p->live_bytes[t->bounds[i]];
    }
}

// Returns the smallest toll of all plans whose stages each have at least this much work, and at
// most the work for which reach_work was computed. `next`, if not NULL, receives by stage and bound
// the bound at which the stage ends.
static struct toll find_least_toll(struct tables *t, uint64_t least_work, uint32_t *next) {
    struct toll *after = t->tolls[0], *tolls = t->tolls[1];
    find_floor(t, least_work);
    for (size_t i = 0; i < t->n_ranges; i++)
        after[i].n_live = NO_WAY;
    after[t->n_ranges] = (struct toll){0, 0};
    for (size_t k = t->n_stages; k-- > 0;) {
        find_tolls(t, k, after, tolls, next ? next + k * (t->n_ranges + 1) : NULL);
        struct toll *swap = after;
        after = tolls;
        tolls = swap;
    }
    return after[0];
}

static enum ree_status find_ends(struct tables *t, uint64_t largest, size_t *ends,
                                 struct ree_error *err) {
    size_t n = t->n_ranges + 1;
    uint32_t *next = ree_arena_alloc_array(&t->arena, t->n_stages * n, sizeof *next);
    if (!next) return ree_no_memory(err);
    uint64_t n_live = find_least_toll(t, 0, NULL).n_live, least = 0, most = largest;
    // First in growing steps from the upper end: the smallest work is rarely far below the largest.
    uint64_t probe = most;
    for (uint64_t step = 1; probe > 0 && find_least_toll(t, probe, NULL).n_live != n_live;
         step = step < UINT64_MAX / 2 ? 2 * step : step) {
        most = probe - 1;
        probe = most > step ? most - step : 0;
    }
    least = probe;
    while (least < most) {
        uint64_t middle = most - (most - least) / 2;
        if (find_least_toll(t, middle, NULL).n_live == n_live)
            least = middle;
        else
            most = middle - 1;
    }
    find_least_toll(t, least, next);
    size_t at = 0;
    for (size_t k = 0; k < t->n_stages; k++) {
        at = next[k * n + at];
        ends[k] = t->bounds[at];
    }
    return REE_OK;
}

static enum ree_status find_weights_reach(struct tables *t, struct ree_error *err) {
    const uint64_t *limits = t->options->weight_limits;
    t->reach_weights = ree_arena_alloc_array(&t->arena, t->n_stages, sizeof *t->reach_weights);
    if (!t->reach_weights) return ree_no_memory(err);
    for (size_t k = 0; k < t->n_stages; k++) {
        for (size_t j = 0; j < k && !t->reach_weights[k]; j++)
            if (limits[j] == limits[k]) t->reach_weights[k] = t->reach_weights[j];
        if (t->reach_weights[k]) continue;
        t->reach_weights[k] = ree_arena_alloc_array(&t->arena, t->n_ranges, sizeof(uint32_t));
        if (!t->reach_weights[k]) return ree_no_memory(err);
        find_reach(t, UINT64_MAX, limits[k], t->reach_weights[k]);
    }
    return REE_OK;
}

static enum ree_status search(struct ree_search *search, struct tables *t, struct ree_error *err) {
    size_t n = t->n_ranges;
    t->floor = ree_arena_alloc_array(&t->arena, n, sizeof *t->floor);
    t->queue = ree_arena_alloc_array(&t->arena, n + 1, sizeof *t->queue);
    t->tolls[0] = ree_arena_alloc_array(&t->arena, n + 1, sizeof(struct toll));
    t->tolls[1] = ree_arena_alloc_array(&t->arena, n + 1, sizeof(struct toll));
    t->reach_work = ree_arena_alloc_array(&t->arena, n, sizeof *t->reach_work);
    t->is_start = ree_arena_alloc(&t->arena, n + 1);
    t->starts = ree_arena_alloc_array(&t->arena, n + 2, sizeof *t->starts);
    if (!t->floor || !t->queue || !t->tolls[0] || !t->tolls[1] || !t->reach_work || !t->is_start ||
        !t->starts)
        return ree_no_memory(err);
    if (t->options->weight_limits) REE_TRY(find_weights_reach(t, err));
    ree_window_add(&t->window, 0, t->p->n_order);
    uint64_t most = ree_window_cost(&t->window).work, least = 0;
    ree_window_remove(&t->window, 0, t->p->n_order);
    search->found = is_feasible(t, most);
    if (!search->found) return REE_OK;
    // The largest stage has at least the mean of the total work, except for what each stage's flops
    // / 16 loses by rounding. First in growing steps from there: the result is rarely far above.
    if (most > t->n_stages) least = (most - t->n_stages) / t->n_stages;
    uint64_t probe = least;
    for (uint64_t step = 1; probe < most && !is_feasible(t, probe);
         step = step < UINT64_MAX / 2 ? 2 * step : step) {
        least = probe + 1;
        probe = most - least > step ? least + step : most;
    }
    most = probe;
    while (least < most) {
        uint64_t middle = least + (most - least) / 2;
        if (is_feasible(t, middle))
            most = middle;
        else
            least = middle + 1;
    }
    is_feasible(t, least); // recomputes reach_work for the result
    search->largest = least;
    return find_ends(t, least, search->ends, err);
}

size_t ree_search_most_stages(size_t n_cut_points) {
    size_t most = MAX_TABLE_ENTRIES / (n_cut_points + 2);
    return most < REE_MAX_STAGES ? most : REE_MAX_STAGES;
}

enum ree_status ree_search_run(struct ree_search *out, struct ree_planner *p, uint32_t most_live,
                               struct ree_error *err) {
    size_t n_stages = p->options->n_stages, n = 0;
    *out = (struct ree_search){.planner = p};
    struct tables t = {.p = p, .options = p->options, .n_stages = n_stages};
    out->cut_points = ree_arena_alloc_array(&p->arena, p->n_order + 2, sizeof *out->cut_points);
    if (!out->cut_points) return ree_no_memory(err);
    // cut_points[-1] and cut_points[n] are the two ends of the order.
    t.bounds = out->cut_points++;
    for (size_t i = 1; i < p->n_order; i++)
        if (p->is_cut_point[i] && p->n_live[i] <= most_live) out->cut_points[n++] = (uint32_t)i;
    out->n_cut_points = n;
    out->cut_points[n] = (uint32_t)p->n_order;
    t.n_ranges = n + 1;
    if (n_stages - 1 > n) return REE_OK;
    if (n_stages > ree_search_most_stages(n))
        return ree_fail(err, REE_UNSUPPORTED, "%zu stages are too many for %zu possible cuts",
                        n_stages, n);
    out->ends = ree_arena_alloc_array(&p->arena, n_stages, sizeof *out->ends);
    if (!out->ends) return ree_no_memory(err);
    REE_TRY(ree_window_init(&t.window, p, err));
    ree_arena_init(&t.arena);
    enum ree_status status = search(out, &t, err);
    ree_arena_finish(&t.arena);
    ree_window_finish(&t.window);
    return status;
}
