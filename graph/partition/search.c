// The best cuts. Adding a piece to a stage never makes it cheaper, so how far a stage may reach
// from a given beginning grows with the beginning; with this the least largest work is found by
// bisection, and the best of the plans that keep to it by dynamic programming over a sliding
// minimum. Both are exact, and take time in proportion to the number of stages times that of
// places.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include <string.h>

// Stages times places: a bound on time (about a second) and memory.
#define MOST_STATES (UINT64_C(1) << 24)

struct tables {
    const struct ree_planner *p;
    const struct ree_partition_options *options;
    size_t n_stages, n_pieces;
    uint32_t *bounds; // n_pieces + 1: piece i is positions [bounds[i], bounds[i + 1])
    struct ree_window window;
    uint32_t *reach_work;    // per piece: how far a stage goes that begins with it
    uint32_t **reach_memory; // per stage likewise, or NULL; equal limits share one
    unsigned char *is_start; // per bound
    int32_t *starts;         // per bound, differences
    struct ree_arena arena;
};

static bool is_over(const struct tables *t, uint64_t most_work, uint64_t most_memory) {
    struct ree_stage_cost cost = ree_window_cost(&t->window);
    return cost.work > most_work || ree_stage_memory(t->p, &cost) > most_memory;
}

// out[i]: the last bound that a stage from bound i may end at; i where its first piece is too much.
static void find_reach(struct tables *t, uint64_t most_work, uint64_t most_memory, uint32_t *out) {
    size_t begin = 0;
    for (size_t end = 0; end < t->n_pieces; end++) {
        ree_window_add(&t->window, t->bounds[end], t->bounds[end + 1]);
        while (begin <= end && is_over(t, most_work, most_memory)) {
            ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
            out[begin++] = (uint32_t)end;
        }
    }
    while (begin < t->n_pieces) {
        ree_window_remove(&t->window, t->bounds[begin], t->bounds[begin + 1]);
        out[begin++] = (uint32_t)t->n_pieces;
    }
}

static uint32_t reach(const struct tables *t, size_t stage, size_t piece) {
    uint32_t end = t->reach_work[piece];
    if (t->options->memory && t->reach_memory[stage][piece] < end)
        end = t->reach_memory[stage][piece];
    return end;
}

// Without limits of memory: each stage as far as it goes. Fewer stages than n_stages will do, as
// there are places enough to cut them further, which makes none more expensive.
static bool is_greedily_feasible(const struct tables *t) {
    size_t at = 0;
    for (size_t k = 0; k < t->n_stages && at < t->n_pieces; k++)
        at = t->reach_work[at];
    return at == t->n_pieces;
}

// Whether n_stages stages with at most that much work each lead to the end.
static bool is_feasible(struct tables *t, uint64_t most_work) {
    find_reach(t, most_work, UINT64_MAX, t->reach_work);
    if (!t->options->memory) return is_greedily_feasible(t);
    memset(t->is_start, 0, t->n_pieces + 1);
    t->is_start[0] = 1;
    for (size_t k = 0; k < t->n_stages; k++) {
        memset(t->starts, 0, (t->n_pieces + 2) * sizeof *t->starts);
        for (size_t i = 0; i < t->n_pieces; i++) {
            uint32_t end = t->is_start[i] ? reach(t, k, i) : 0;
            if (end <= i) continue;
            t->starts[i + 1]++;
            t->starts[end + 1]--;
        }
        int32_t open = 0;
        for (size_t i = 0; i <= t->n_pieces; i++) {
            open += t->starts[i];
            t->is_start[i] = open > 0;
        }
    }
    return t->is_start[t->n_pieces];
}

// Of the rest of a plan: live values and bytes at its cuts.
struct toll {
    uint64_t n_live, live_bytes;
};

#define NO_WAY UINT64_MAX

static int compare(const struct toll *a, const struct toll *b) {
    if (a->n_live != b->n_live) return a->n_live < b->n_live ? -1 : 1;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes ? -1 : 1;
    return 0;
}

// From the last stage to the first: tolls[i] is the least toll of stages k... from bound i, and
// next[k][i] where stage k ends then, the smallest such. The ends in reach move down with i, so the
// queue holds the candidates, better ones farther from its head. (Queue: bounds, newest last; the
// window's far end leaves at its front.)
static void find_tolls(struct tables *t, size_t k, const struct toll *after, struct toll *tolls,
                       uint32_t *next, uint32_t *queue) {
    size_t head = 0, tail = 0;
    tolls[t->n_pieces] = (struct toll){NO_WAY, 0};
    for (size_t i = t->n_pieces; i-- > 0;) {
        size_t added = i + 1;
        // At ties the smaller bound stays, which is the new one.
        if (after[added].n_live != NO_WAY) {
            while (tail > head && compare(&after[queue[tail - 1]], &after[added]) >= 0)
                tail--;
            queue[tail++] = (uint32_t)added;
        }
        uint32_t end = reach(t, k, i);
        while (head < tail && queue[head] > end)
            head++;
        tolls[i] = head < tail ? after[queue[head]] : (struct toll){NO_WAY, 0};
        next[i] = head < tail ? queue[head] : 0;
    }
    // What a cut at i itself costs.
    for (size_t i = 1; i < t->n_pieces; i++) {
        if (tolls[i].n_live == NO_WAY) continue;
        tolls[i].n_live += t->p->n_live[t->bounds[i]];
        tolls[i].live_bytes += t->p->live_bytes[t->bounds[i]];
    }
}

static enum ree_status find_ends(struct tables *t, size_t *ends, struct ree_error *err) {
    size_t n = t->n_pieces + 1;
    struct toll *a = ree_arena_alloc_array(&t->arena, n, sizeof *a);
    struct toll *b = ree_arena_alloc_array(&t->arena, n, sizeof *b);
    uint32_t *queue = ree_arena_alloc_array(&t->arena, n, sizeof *queue);
    uint32_t *next = ree_arena_alloc_array(&t->arena, t->n_stages * n, sizeof *next);
    if (!a || !b || !queue || !next) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < t->n_pieces; i++)
        a[i].n_live = NO_WAY;
    for (size_t k = t->n_stages; k-- > 0;) {
        find_tolls(t, k, a, b, next + k * n, queue);
        struct toll *swap = a;
        a = b;
        b = swap;
    }
    size_t at = 0;
    for (size_t k = 0; k < t->n_stages; k++) {
        at = next[k * n + at];
        ends[k] = t->bounds[at];
    }
    return REE_OK;
}

static enum ree_status find_memory_reach(struct tables *t, struct ree_error *err) {
    const uint64_t *memory = t->options->memory;
    t->reach_memory = ree_arena_alloc_array(&t->arena, t->n_stages, sizeof *t->reach_memory);
    if (!t->reach_memory) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t k = 0; k < t->n_stages; k++) {
        for (size_t j = 0; j < k && !t->reach_memory[k]; j++)
            if (memory[j] == memory[k]) t->reach_memory[k] = t->reach_memory[j];
        if (t->reach_memory[k]) continue;
        t->reach_memory[k] = ree_arena_alloc_array(&t->arena, t->n_pieces, sizeof(uint32_t));
        if (!t->reach_memory[k]) return ree_fail(err, REE_NO_MEMORY, "out of memory");
        find_reach(t, UINT64_MAX, memory[k], t->reach_memory[k]);
    }
    return REE_OK;
}

static enum ree_status search(struct ree_search *search, struct tables *t, struct ree_error *err) {
    size_t n = t->n_pieces;
    t->reach_work = ree_arena_alloc_array(&t->arena, n, sizeof *t->reach_work);
    t->is_start = ree_arena_alloc(&t->arena, n + 1);
    t->starts = ree_arena_alloc_array(&t->arena, n + 2, sizeof *t->starts);
    if (!t->reach_work || !t->is_start || !t->starts)
        return ree_fail(err, REE_NO_MEMORY, "out of memory");
    if (t->options->memory) REE_TRY(find_memory_reach(t, err));
    ree_window_add(&t->window, 0, t->p->n_order);
    uint64_t most = ree_window_cost(&t->window).work, least = 0;
    ree_window_remove(&t->window, 0, t->p->n_order);
    search->found = is_feasible(t, most);
    if (!search->found) return REE_OK;
    while (least < most) {
        uint64_t middle = least + (most - least) / 2;
        if (is_feasible(t, middle))
            most = middle;
        else
            least = middle + 1;
    }
    is_feasible(t, least); // what is reached with it
    search->largest = least;
    return find_ends(t, search->ends, err);
}

enum ree_status ree_search_run(struct ree_search *out, struct ree_planner *p, uint32_t most_live,
                               struct ree_error *err) {
    size_t n_stages = p->options->n_stages, n = 0;
    *out = (struct ree_search){.planner = p};
    struct tables t = {.p = p, .options = p->options, .n_stages = n_stages};
    out->places = ree_arena_alloc_array(&p->arena, p->n_order + 2, sizeof *out->places);
    if (!out->places) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    // places[-1] and places[n] are the ends.
    t.bounds = out->places++;
    for (size_t i = 1; i < p->n_order; i++)
        if (p->is_place[i] && p->n_live[i] <= most_live) out->places[n++] = (uint32_t)i;
    out->n_places = n;
    out->places[n] = (uint32_t)p->n_order;
    t.n_pieces = n + 1;
    if (n_stages - 1 > n) return REE_OK;
    if (n_stages > MOST_STATES / (n + 2))
        return ree_fail(err, REE_UNSUPPORTED, "%zu stages out of %zu places to cut are too many",
                        n_stages, n);
    out->ends = ree_arena_alloc_array(&p->arena, n_stages, sizeof *out->ends);
    if (!out->ends) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    REE_TRY(ree_window_init(&t.window, p, err));
    ree_arena_init(&t.arena);
    enum ree_status status = search(out, &t, err);
    ree_arena_finish(&t.arena);
    ree_window_finish(&t.window);
    return status;
}
