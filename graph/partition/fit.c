#include "graph/partition/fit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/partition/planner.h"

// 1 / MARGIN of the limit is reserved for intermediate results, whose size is unknown before a run.
#define MARGIN 16
// Maximum number of plans tried before each device is assumed to keep all caches.
#define MOST_ROUNDS 8

static uint64_t add(uint64_t a, uint64_t b) {
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    ree_sum n = (ree_sum)a * b;
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

// Bytes available for weights and caches.
static uint64_t usable_memory(uint64_t limit) {
    return limit - limit / MARGIN;
}

// The smallest limit that leaves this many bytes; 2^64 - 1 if there is none.
static uint64_t limit_for(uint64_t capacity) {
    ree_sum limit = (ree_sum)capacity * MARGIN / (MARGIN - 1);
    if (limit >= UINT64_MAX) return UINT64_MAX;
    uint64_t n = (uint64_t)limit;
    while (usable_memory(n) < capacity)
        n++;
    while (n > 0 && usable_memory(n - 1) >= capacity)
        n--;
    return n;
}

// Devices

void ree_partition_share(size_t n_stages, uint32_t n_ranks, uint32_t rank, size_t *out_first,
                         size_t *out_n) {
    size_t each = n_stages / n_ranks, more = n_stages % n_ranks;
    *out_first = rank * each + (rank < more ? rank : more);
    *out_n = each + (rank < more);
}

static size_t one_at_least(size_t n) {
    return n ? n : 1;
}

// Returns the largest number of cache bytes that any device keeps. `at` (by stage; may be NULL)
// receives the cache bytes of the stage's device. The stages of a device are those of one process
// that are n_devices apart. So the sums need no table of devices, whose number is not bounded.
static uint64_t caches_of_devices(const struct ree_partition *partition,
                                  const struct ree_partition_devices *d, uint64_t *at) {
    size_t n_devices = one_at_least(d->n_devices), n = partition->n_stages;
    uint32_t n_ranks = (uint32_t)one_at_least(d->n_ranks);
    uint64_t rows = multiply(partition->context, one_at_least(d->n_cache_slots)), most = 0;
    for (uint32_t rank = 0; rank < n_ranks && rank < n; rank++) {
        size_t first, n_own;
        ree_partition_share(n, n_ranks, rank, &first, &n_own);
        for (size_t k = 0; k < n_devices && k < n_own; k++) {
            uint64_t caches = 0;
            for (size_t i = first + k; i < first + n_own; i += n_devices)
                caches = add(caches, multiply(partition->costs[i].kv_cache_bytes, rows));
            for (size_t i = first + k; at && i < first + n_own; i += n_devices)
                at[i] = caches;
            if (caches > most) most = caches;
        }
    }
    return most;
}

// Finds the stage whose device needs the most bytes: for the stage's weights and for all caches
// that the device keeps.
static enum ree_status find_tightest(const struct ree_partition *partition,
                                     const struct ree_partition_devices *devices, size_t *out_stage,
                                     uint64_t *out_caches, uint64_t *out_bytes,
                                     struct ree_error *err) {
    uint64_t *caches = ree_alloc_zeroed(partition->n_stages, sizeof *caches);
    if (!caches) return ree_no_memory(err);
    caches_of_devices(partition, devices, caches);
    *out_stage = 0;
    *out_bytes = *out_caches = 0;
    for (size_t i = 0; i < partition->n_stages; i++) {
        uint64_t bytes = add(partition->costs[i].weight_bytes, caches[i]);
        if (bytes <= *out_bytes && i > 0) continue;
        *out_stage = i;
        *out_bytes = bytes;
        *out_caches = caches[i];
    }
    ree_free(caches);
    return REE_OK;
}

enum ree_status ree_partition_check_fit(const struct ree_partition *partition,
                                        const struct ree_partition_devices *devices,
                                        struct ree_error *err) {
    size_t stage = 0;
    uint64_t caches = 0, bytes = 0;
    REE_TRY(find_tightest(partition, devices, &stage, &caches, &bytes, err));
    if (bytes <= usable_memory(devices->max_memory)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "a device limit of %llu bytes is too small for stage %zu of %zu: its weights "
                    "take %llu bytes, caches of %llu tokens take %llu on this device, and a "
                    "sixteenth is reserved for intermediate results; %llu bytes are enough",
                    (unsigned long long)devices->max_memory, stage, partition->n_stages,
                    (unsigned long long)partition->costs[stage].weight_bytes,
                    (unsigned long long)partition->context, (unsigned long long)caches,
                    (unsigned long long)limit_for(bytes));
}

// Plans

struct fit {
    const struct ree_partition_devices *devices;
    struct ree_partition_options options; // the planner has a pointer to them
    struct ree_planner planner;
    struct ree_window window;
    size_t n_cut_points;
    uint64_t weights, caches; // bytes, summed over all stages
    uint64_t *limits;         // weight limit of each stage, REE_MAX_STAGES entries
};

// Returns the smallest number of stages with at most `most` bytes of weights each; 0 if a part that
// cannot be cut exceeds `most`. Each stage extends as far as possible, because a stage that begins
// later never has to end earlier.
static size_t count_stages(struct fit *f, uint64_t most) {
    const struct ree_planner *p = &f->planner;
    struct ree_window *w = &f->window;
    size_t n = 1, begin = 0, from = 0;
    for (size_t t = 1; t <= p->n_order && n; t++) {
        if (t < p->n_order && !p->is_cut_point[t]) continue;
        ree_window_add(w, from, t);
        if (ree_window_cost(w).weight_bytes > most) {
            ree_window_remove(w, begin, from);
            begin = from;
            n = ree_window_cost(w).weight_bytes > most ? 0 : n + 1;
        }
        from = t;
    }
    ree_window_remove(w, begin, from);
    return n;
}

// The smallest weight limit for which n_stages stages suffice.
static uint64_t least_weights(struct fit *f, size_t n_stages) {
    uint64_t least = 0, most = f->weights;
    while (least < most) {
        uint64_t middle = least + (most - least) / 2;
        size_t n = count_stages(f, middle);
        if (n && n <= n_stages)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}

// Fails with a message that names a sufficient limit. With that limit, each round of the search
// would have a plan even with all caches on one device.
static enum ree_status cannot_fit(struct fit *f, size_t n_stages, struct ree_error *err) {
    uint64_t weights = least_weights(f, n_stages);
    return ree_fail(err, REE_INVALID,
                    "a device limit of %llu bytes is too small: the weights of the largest of "
                    "%s%zu stage%s take at least %llu bytes, caches of %llu tokens take %llu, and "
                    "a sixteenth is reserved for intermediate results; %llu bytes are enough",
                    (unsigned long long)f->devices->max_memory,
                    f->options.n_stages ? "" : "at most ", n_stages, n_stages == 1 ? "" : "s",
                    (unsigned long long)weights, (unsigned long long)f->planner.context,
                    (unsigned long long)f->caches,
                    (unsigned long long)limit_for(add(weights, f->caches)));
}

static enum ree_status plan_with(struct fit *f, size_t n_stages, uint64_t limit,
                                 struct ree_partition *out, struct ree_error *err) {
    size_t asked = f->options.n_stages;
    for (size_t i = 0; i < n_stages; i++)
        f->limits[i] = limit;
    f->options.n_stages = n_stages;
    f->options.weight_limits = f->limits;
    enum ree_status status = ree_planner_plan(&f->planner, out, err);
    f->options.n_stages = asked;
    f->options.weight_limits = NULL;
    return status;
}

// Finds a plan that fits. The caches of a device depend on the plan, and the plan depends on the
// memory that the caches leave for weights. So each device is assumed to keep a given number of
// cache bytes: first an equal share, then the largest number in the previous plan, finally all
// caches.
static enum ree_status search(struct fit *f, size_t least, struct ree_partition *out,
                              struct ree_error *err) {
    size_t asked = f->options.n_stages, most = ree_search_most_stages(f->n_cut_points);
    if (most > f->n_cut_points + 1) most = f->n_cut_points + 1;
    if (asked) least = most = asked;
    if (least > f->n_cut_points + 1 || least > REE_MAX_STAGES) { // for the planner's error message
        f->options.n_stages = least;
        return ree_planner_plan(&f->planner, out, err);
    }
    uint64_t capacity = usable_memory(f->devices->max_memory);
    uint64_t n_devices =
        multiply(one_at_least(f->devices->n_devices), one_at_least(f->devices->n_ranks));
    uint64_t caches = f->caches / n_devices + (f->caches % n_devices != 0);
    for (int round = 0; round <= MOST_ROUNDS + 1; round++) {
        size_t n = caches <= capacity ? count_stages(f, capacity - caches) : 0;
        if (n == 0 || n > most) break;
        n = asked ? asked : n < least ? least : n;
        REE_TRY(plan_with(f, n, capacity - caches, out, err));
        if (ree_partition_check_fit(out, f->devices, NULL) == REE_OK) return REE_OK;
        // This is more than was assumed, otherwise the plan would fit.
        caches = round < MOST_ROUNDS ? caches_of_devices(out, f->devices, NULL) : f->caches;
        ree_partition_finish(out);
    }
    return cannot_fit(f, most, err);
}

static enum ree_status begin(struct fit *f, struct ree_error *err) {
    const struct ree_planner *p = &f->planner;
    for (size_t t = 1; t < p->n_order; t++)
        f->n_cut_points += p->is_cut_point[t];
    ree_window_add(&f->window, 0, p->n_order);
    struct ree_stage_cost all = ree_window_cost(&f->window);
    ree_window_remove(&f->window, 0, p->n_order);
    f->weights = all.weight_bytes;
    f->caches =
        multiply(multiply(all.kv_cache_bytes, p->context), one_at_least(f->devices->n_cache_slots));
    f->limits = ree_alloc_zeroed(REE_MAX_STAGES, sizeof *f->limits);
    return f->limits ? REE_OK : ree_no_memory(err);
}

enum ree_status ree_partition_fit(const struct ree_graph *graph,
                                  const struct ree_partition_options *options,
                                  const struct ree_partition_devices *devices, size_t least,
                                  struct ree_partition *out, struct ree_error *err) {
    struct fit f = {.devices = devices, .options = *options};
    size_t asked = options->n_stages;
    *out = (struct ree_partition){.n_stages = 0};
    f.options.weight_limits = NULL;
    f.options.n_stages = asked ? asked : 1; // the planner checks this number
    enum ree_status status = ree_planner_init(&f.planner, graph, &f.options, err);
    f.options.n_stages = asked;
    if (status == REE_OK) status = ree_window_init(&f.window, &f.planner, err);
    if (status == REE_OK) status = begin(&f, err);
    if (status == REE_OK) status = search(&f, one_at_least(least), out, err);
    ree_free(f.limits);
    ree_window_finish(&f.window); // accepts a zeroed window
    ree_planner_finish(&f.planner);
    return status;
}
