// Ends a run: successfully, or with a reason that all ranks print. Both functions first end the
// thread of heartbeat.c, so what follows needs no lock.
#include <string.h>
#include <time.h>

#include "base/float_env.h"
#include "transport/transport_internal.h"

// Seconds that other ranks get to print the reason.
#define GRACE 0.5

static void flush(struct ree_transport *t, double seconds) {
    double start = ree_transport_clock(), now = start;
    struct ree_error err;
    for (; t->n_sendings && now < start + seconds; now = ree_transport_clock()) {
        if (ree_transport_move_out(t, &err) != REE_OK) return;
        ree_transport_pause(now - start);
    }
}

void ree_transport_fail(struct ree_transport *t, const char *reason, int code) {
    REE_FLOAT_ENV_API();
    struct ree_error err;
    struct ree_part part = {reason, strnlen(reason, REE_ERROR_MAX - 1)};
    struct ree_frame_fields fields = {.kind = REE_MESSAGE_ERROR, .n_parts = 1};
    ree_heartbeat_end(t);
    // A rank that received a failure does not forward it: its sender has told all other ranks.
    for (uint32_t r = 0; !t->has_failed && r < t->link->n_ranks; r++)
        if (r != t->link->rank)
            (void)ree_transport_post(t, r, REE_CHANNEL_CONTROL, fields, &part, &err);
    // Only one rank should end the run, because mpirun may fail if several do so at once. So ranks
    // wait for different times. A rank that noticed the failure itself waits less than one that was
    // told; among equals, the one with the lowest number waits least. If the run then still goes
    // on, the next rank ends it.
    double wait =
        GRACE + (t->has_failed ? 1.5 : 0) + (t->link->rank < 8 ? t->link->rank : 8) * 0.25;
    double until = ree_transport_clock() + wait;
    flush(t, GRACE);
    double left = until - ree_transport_clock();
    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
    t->link->ops->abort(t->link, code);
    t->link->ops->close(t->link);
    ree_transport_finish(t);
}

void ree_transport_close(struct ree_transport *t) {
    REE_FLOAT_ENV_API();
    if (!t) return;
    ree_heartbeat_end(t);
    flush(t, t->options.deadline);
    t->link->ops->close(t->link);
    ree_transport_finish(t);
}
