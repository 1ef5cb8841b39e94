// Functions over all stages of a pipeline: kv caches, observation, fault injection, statistics.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "session/observe.h"
#include "session/kv_cache.h"
#include "pipeline/pipeline_internal.h"

// Kv caches

static bool is_elsewhere(const struct ree_kv_cache *cache) {
    return cache->spec.output == REE_NO_OUTPUT;
}

enum ree_status ree_pipeline_reset_kv_caches(struct ree_pipeline *p, size_t slot, int64_t batch,
                                             struct ree_error *err) {
    enum ree_status status = REE_OK;
    p->batches[slot] = batch;
    p->positions_elsewhere[slot] = 0;
    for (size_t i = 0; i < p->n_stages && status == REE_OK; i++) {
        if (!p->stages[i].session) continue;
        status = ree_session_reset_kv_caches(ree_pipeline_hold(p, i, slot), batch, err);
        ree_pipeline_release(p, i);
    }
    return status;
}

// Estimates the peak memory of a device, in bytes, while the cache slot's caches on it grow to
// `positions`.
static uint64_t estimate(const struct ree_pipeline *p, size_t device, size_t slot,
                         int64_t positions) {
    uint64_t used = p->workers[device].memory.used, peak = used;
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct ree_session *s = p->stages[i].session;
        if (s && s->n_kv_caches && p->stages[i].device == device)
            ree_session_estimate_growth(s, s->cache_slots[slot], positions, &used, &peak);
    }
    return peak;
}

// Checks that the device's memory suffices. Called for all devices before any cache grows, because
// the caches of one stage are useless without those of the others.
static enum ree_status check_memory(struct ree_pipeline *p, size_t device, size_t slot,
                                    int64_t positions, struct ree_error *err) {
    const struct ree_pipeline_worker *worker = &p->workers[device];
    uint64_t most = worker->device->memory_size;
    if (worker->memory.limit < most) most = worker->memory.limit;
    uint64_t peak = estimate(p, device, slot, positions);
    for (size_t i = 0; peak > most && i < p->n_stages; i++)
        if (p->stages[i].session && p->stages[i].device == device &&
            ree_session_drop_copies(p->stages[i].session))
            peak = estimate(p, device, slot, positions);
    if (peak <= most) return REE_OK;
    return ree_fail(
        err, REE_NO_MEMORY,
        "growing caches to %lld tokens requires a total of %.1f MiB of %s, whose limit is %.1f MiB",
        (long long)positions, (double)peak / (1 << 20), worker->device->name,
        (double)most / (1 << 20));
}

enum ree_status ree_pipeline_reserve_kv_caches(struct ree_pipeline *p, size_t slot,
                                               int64_t positions, struct ree_error *err) {
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < p->n_workers && status == REE_OK; i++) {
        pthread_mutex_lock(&p->workers[i].lock);
        status = check_memory(p, i, slot, positions, err);
        pthread_mutex_unlock(&p->workers[i].lock);
    }
    for (size_t i = 0; i < p->n_stages && status == REE_OK; i++) {
        if (!p->stages[i].session || !p->stages[i].session->n_kv_caches) continue;
        status = ree_session_reserve_kv_caches(ree_pipeline_hold(p, i, slot), positions, err);
        ree_pipeline_release(p, i);
    }
    return status;
}

static void set_positions(struct ree_pipeline *p, size_t slot, int64_t positions, bool elsewhere) {
    for (size_t i = 0; i < p->n_stages; i++) {
        struct ree_session *s = p->stages[i].session;
        for (size_t k = 0; s && k < s->n_kv_caches; k++) {
            struct ree_kv_cache *cache = &s->cache_slots[slot][k];
            bool owner_here =
                p->stages[p->owner[p->divided ? p->stages[i].kv_cache_of[k] : k]].session != NULL;
            if (!elsewhere || (is_elsewhere(cache) && !owner_here))
                cache->dims[cache->spec.axis] = positions;
        }
    }
}

void ree_pipeline_set_filled_positions(struct ree_pipeline *p, size_t slot, int64_t positions) {
    set_positions(p, slot, positions, false);
}

void ree_pipeline_set_positions_elsewhere(struct ree_pipeline *p, size_t slot, int64_t positions) {
    p->positions_elsewhere[slot] = positions;
    set_positions(p, slot, positions, true);
}

// Finds a kv cache of the pipeline in the session that keeps it. Returns NULL if another process
// keeps it.
static const struct ree_kv_cache *find_kv_cache(const struct ree_pipeline *p, size_t slot,
                                                size_t number) {
    const struct ree_pipeline_stage *stage = &p->stages[p->owner[number]];
    const struct ree_session *s = stage->session;
    for (size_t k = 0; s && k < s->n_kv_caches; k++)
        if ((p->divided ? stage->kv_cache_of[k] : k) == number) return &s->cache_slots[slot][k];
    return NULL;
}

void ree_pipeline_set_shapes(struct ree_pipeline *p, size_t slot) {
    for (size_t i = 0; p->divided && i < p->n_stages; i++) {
        struct ree_session *s = p->stages[i].session;
        for (size_t k = 0; s && k < s->n_kv_caches; k++) {
            struct ree_kv_cache *cache = &s->cache_slots[slot][k];
            if (!is_elsewhere(cache)) continue;
            const struct ree_kv_cache *kept = find_kv_cache(p, slot, p->stages[i].kv_cache_of[k]);
            if (kept) memcpy(cache->dims, kept->dims, sizeof cache->dims);
        }
    }
}

enum ree_status ree_pipeline_check_positions(const struct ree_pipeline *p, size_t slot,
                                             int64_t positions, struct ree_error *err) {
    for (size_t i = 0; i < p->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = find_kv_cache(p, slot, i);
        const int64_t found = cache ? cache->dims[cache->spec.axis] : positions;
        if (found == positions) continue;
        return ree_fail(err, REE_UNSUPPORTED,
                        "the cache '%s' has %lld positions after %lld tokens; ree runs models "
                        "whose caches get one position for each token",
                        p->model->inputs[p->specs[i].input].name, (long long)found,
                        (long long)positions);
    }
    return REE_OK;
}

// Returns the minimum over all kv caches, because some may have grown before memory for the others
// was exhausted.
int64_t ree_pipeline_kv_cache_capacity(const struct ree_pipeline *p, size_t slot) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < p->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = find_kv_cache(p, slot, i);
        if (cache && cache->capacity < least) least = cache->capacity;
    }
    return least == INT64_MAX ? 0 : least;
}

uint64_t ree_pipeline_kv_cache_bytes(const struct ree_pipeline *p, size_t slot) {
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct ree_session *s = p->stages[i].session;
        if (s && s->n_kv_caches) n += ree_session_cache_slot_bytes(s, s->cache_slots[slot]);
    }
    return n;
}

enum ree_status ree_pipeline_read_kv_caches(struct ree_pipeline *p, size_t slot, int64_t sequence,
                                            int64_t first, int64_t n, struct ree_tensor *out,
                                            struct ree_error *err) {
    memset(out, 0, p->n_kv_caches * sizeof *out);
    struct ree_tensor *own = ree_alloc_zeroed(p->n_kv_caches + 1, sizeof *own);
    enum ree_status status = own ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; i < p->n_stages && status == REE_OK; i++) {
        if (!p->stages[i].session || !p->stages[i].session->n_kv_caches) continue;
        struct ree_session *s = ree_pipeline_hold(p, i, slot);
        size_t n_own = s->n_kv_caches;
        status = ree_session_read_kv_caches(s, sequence, first, n, own, err);
        ree_pipeline_release(p, i);
        // Entries of caches that another stage keeps have no name.
        for (size_t k = 0; status == REE_OK && k < n_own; k++)
            if (own[k].name) out[p->divided ? p->stages[i].kv_cache_of[k] : k] = own[k];
    }
    for (size_t i = 0; status != REE_OK && i < p->n_kv_caches; i++)
        ree_tensor_finish(&out[i]);
    ree_free(own);
    return status;
}

// Observing

// Reports a stage's value to the pipeline's observer, with the numbers of its node and kv cache in
// the whole model. A control node is reported only by the first stage that has it.
static enum ree_status pass_on(void *user, const struct ree_observed *value,
                               struct ree_error *err) {
    const struct ree_pipeline_stage *stage = user;
    const struct ree_observer *to = &stage->pipeline->observer;
    if (stage->graph.is_copy[value->node]) return REE_OK;
    struct ree_observed whole = *value;
    whole.node = stage->graph.node_of[value->node];
    if (value->kv_cache >= 0) whole.kv_cache = (ptrdiff_t)stage->kv_cache_of[value->kv_cache];
    return to->on_value(to->user, &whole, err);
}

enum ree_status ree_pipeline_observe(struct ree_pipeline *p, const struct ree_observer *observer,
                                     struct ree_error *err) {
    for (size_t i = 0; i < p->n_cache_slots; i++)
        if (ree_pipeline_is_in_flight(p, i))
            return ree_fail(err, REE_INVALID,
                            "observing a pipeline must start before its first run");
    if (!p->divided) {
        REE_TRY(ree_session_observe(p->stages[0].session, observer, err));
        p->has_observer = true;
        return REE_OK;
    }
    if (p->n_local < p->n_stages)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a pipeline over several processes cannot be observed");
    for (size_t i = 0; i < p->n_stages; i++) {
        struct ree_observer own = {.on_value = observer->on_value ? pass_on : NULL,
                                   .user = &p->stages[i],
                                   .concurrent = observer->concurrent};
        REE_TRY(ree_session_observe(p->stages[i].session, &own, err));
    }
    p->observer = *observer;
    p->has_observer = true;
    return REE_OK;
}

void ree_pipeline_end_observation(struct ree_pipeline *p) {
    p->observer = (struct ree_observer){0};
    for (size_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].session) ree_session_end_observation(p->stages[i].session);
}

enum ree_status ree_pipeline_inject(struct ree_pipeline *p, const struct ree_fault *fault,
                                    struct ree_error *err) {
    if (!p->divided) return ree_session_inject(p->stages[0].session, fault, err);
    bool found = false;
    // Inject into all copies of a control node, so that every reader of its value sees the fault.
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct ree_pipeline_stage *stage = &p->stages[i];
        for (size_t k = 0; stage->session && k < stage->model->graph->n_nodes; k++) {
            if (stage->graph.node_of[k] != fault->node) continue;
            struct ree_fault own = *fault;
            own.node = k;
            REE_TRY(ree_session_inject(stage->session, &own, err));
            found = true;
        }
    }
    if (found) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "cannot inject a fault into node %zu; the graph has %zu nodes", fault->node,
                    p->model->graph->n_nodes);
}

void ree_pipeline_sum_stats(const struct ree_pipeline *p, struct ree_session_stats *out) {
    *out = (struct ree_session_stats){.size = sizeof *out};
    for (size_t i = 0; i < p->n_stages; i++) {
        struct ree_session_stats own = {.size = sizeof own};
        if (!p->stages[i].session) continue;
        pthread_mutex_t *lock = &p->workers[p->stages[i].device].lock;
        pthread_mutex_lock(lock); // a run may be in flight
        enum ree_status status = ree_session_stats(p->stages[i].session, &own, NULL);
        assert(status == REE_OK);
        (void)status;
        pthread_mutex_unlock(lock);
        out->weight_bytes += own.weight_bytes;
        out->arena_bytes += own.arena_bytes;
        out->n_dispatches += own.n_dispatches;
        out->n_segments += own.n_segments;
        out->n_binds += own.n_binds;
        out->n_bind_hits += own.n_bind_hits;
        out->bind_seconds += own.bind_seconds;
        out->run_seconds += own.run_seconds;
    }
    for (size_t i = 0; p->max_memory && i < p->n_workers; i++) {
        pthread_mutex_lock(&p->workers[i].lock);
        if (p->workers[i].memory.peak > out->peak_bytes)
            out->peak_bytes = p->workers[i].memory.peak;
        pthread_mutex_unlock(&p->workers[i].lock);
    }
}

enum ree_status ree_pipeline_stats(const struct ree_pipeline *p, struct ree_session_stats *out,
                                   struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_session_stats stats;
    REE_TRY(ree_stats_check(out, sizeof stats, "ree_session_stats", err));
    ree_pipeline_sum_stats(p, &stats);
    ree_stats_fill(out, &stats, sizeof stats);
    return REE_OK;
}
