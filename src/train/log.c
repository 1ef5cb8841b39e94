// Records the points of a receipt while a training runs.
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "trace/model_header.h"
#include "train/training.h"

static enum ree_status add_point(struct ree_training_log *log,
                                 const struct ree_training_point *point, struct ree_error *err) {
    if (log->n_points == log->capacity) {
        size_t capacity = log->capacity ? 2 * log->capacity : 64;
        struct ree_training_point *points = ree_realloc(log->points, capacity * sizeof *points);
        if (!points) return ree_no_memory(err);
        log->points = points;
        log->capacity = capacity;
    }
    log->points[log->n_points++] = *point;
    return REE_OK;
}

static void set_point(struct ree_training_point *point, uint64_t step, const ree_digest states,
                      const ree_digest chain) {
    point->step = step;
    ree_hex(states, point->states_sha256);
    ree_hex(chain, point->chain_sha256);
}

enum ree_status ree_training_record(struct ree_training *t, uint64_t interval,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    ree_digest states;
    if (!interval || interval > REE_TRAINING_MAX_STEPS)
        return ree_fail(err, REE_INVALID,
                        "the interval of a receipt is %llu, expected 1 to 2^32 - 1",
                        (unsigned long long)interval);
    if (t->log.interval)
        return ree_fail(err, REE_INVALID, "the training already records a receipt");
    REE_TRY(ree_training_hash(t, err));
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    REE_TRY(ree_states_root(t->states, t->step.n_states, states, err));
    ree_chain_begin(t->n_steps, states, t->log.chain);
    set_point(&t->log.last, t->n_steps, states, t->log.chain);
    REE_TRY(add_point(&t->log, &t->log.last, err));
    t->log.interval = interval;
    return REE_OK;
}

enum ree_status ree_training_log_step(struct ree_training *t, const struct ree_tensor *loss,
                                      struct ree_error *err) {
    struct ree_training_log *log = &t->log;
    struct ree_training_point point;
    ree_digest states, chain, digest;
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    REE_TRY(ree_states_root(t->states, t->step.n_states, states, err));
    memcpy(chain, log->chain, sizeof chain);
    ree_trace_tensor_digest(loss, digest);
    ree_chain_next(chain, digest, states);
    uint64_t step = t->n_steps + 1;
    set_point(&point, step, states, chain);
    bool is_due = (step - log->points[0].step) % log->interval == 0;
    if (is_due) REE_TRY(add_point(log, &point, err));
    log->last = point;
    memcpy(log->chain, chain, sizeof chain);
    return REE_OK;
}

enum ree_status ree_training_log_check(const struct ree_training *t, struct ree_error *err) {
    if (!t->log.interval || t->log.n_points < REE_TRAINING_MAX_POINTS) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the receipt would have more than %d points; a larger interval has fewer",
                    REE_TRAINING_MAX_POINTS);
}
