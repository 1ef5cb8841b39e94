// Heartbeats: a thread sends them and receives those of other ranks while this rank works, however
// long an operator or the loading of a model takes. A stopped or dead process sends none. A process
// may also hang while this thread still runs; so each heartbeat states for how long the process has
// made no progress.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/float_env.h"
#include "transport/transport_internal.h"

// Maximum number of control frames that wait to be sent to one rank; further heartbeats are
// skipped. A rank that does not take these is stopped or dead, so more of them would be of no use.
#define MAX_HEARTBEATS 16
// Maximum number of control frames taken from one rank at a time: a rank that floods must not keep
// the others from checking their deadlines.
#define MAX_FRAMES 64
// Seconds that the rank has to notice a failure itself after this thread has detected it. Then the
// thread ends the run, because the rank may be busy with a long operation.
#define PATIENCE 5

static double interval(const struct ree_transport *t) {
    return t->options.deadline / 4 < 1 ? t->options.deadline / 4 : 1;
}

static enum ree_status send_heartbeat(struct ree_transport *t, double now, struct ree_error *err) {
    if (now - t->last_heartbeat < 0.9 * interval(t)) return REE_OK;
    t->last_heartbeat = now;
    double still = t->waits ? 0 : now - t->moved;
    // A heartbeat contains only whether the rank works, and for how many milliseconds it has made
    // no progress.
    struct ree_frame_fields fields = {.kind = REE_MESSAGE_ALIVE,
                                      .slot = !t->waits,
                                      .step = still > 0 ? (uint64_t)(1000 * still) : 0};
    for (uint32_t r = 0; r < t->link->n_ranks; r++)
        if (r != t->link->rank && t->peers[r].n_heartbeats < MAX_HEARTBEATS)
            REE_TRY(ree_transport_post(t, r, REE_CHANNEL_CONTROL, fields, NULL, err));
    return REE_OK;
}

static void take_failure(struct ree_transport *t, const struct ree_message *m) {
    size_t n = m->n_parts == 1 ? m->parts[0].nbytes : 0;
    if (n >= REE_ERROR_MAX) n = REE_ERROR_MAX - 1;
    if (t->has_failed) return;
    t->has_failed = true;
    t->failure.status = REE_IO;
    if (n) memcpy(t->failure.message, m->parts[0].data, n);
    t->failure.message[n] = 0;
    // The text comes from the network and is shown to a user: replace control characters.
    for (char *c = t->failure.message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

static void receive_heartbeat(struct ree_transport *t, const struct ree_message *m) {
    double now = ree_transport_clock();
    struct ree_peer *peer = &t->peers[m->from];
    peer->heard = now;
    if (m->kind == REE_MESSAGE_ERROR) take_failure(t, m);
    if (m->kind != REE_MESSAGE_ALIVE) return;
    peer->still = (double)m->step / 1000;
    if (m->slot) t->progress = now;
}

enum ree_status ree_heartbeat_take(struct ree_transport *t, struct ree_error *err) {
    for (uint32_t r = 0; r < t->link->n_ranks; r++) {
        if (r == t->link->rank) continue;
        for (int i = 0; i < MAX_FRAMES && !t->has_failed; i++) {
            unsigned char *frame;
            size_t nbytes;
            struct ree_message m;
            REE_TRY(t->link->ops->take(t->link, r, REE_CHANNEL_CONTROL, REE_CONTROL_LIMIT, &frame,
                                       &nbytes, err));
            if (!frame) break;
            enum ree_status status =
                ree_transport_open(t, r, REE_CHANNEL_CONTROL, frame, nbytes, &m, err);
            if (status == REE_OK) receive_heartbeat(t, &m);
            ree_message_finish(&m);
            if (status != REE_OK) {
                ree_fail_prefix(err, "a message from rank %u is", r);
                return status;
            }
        }
    }
    if (!t->has_failed) return REE_OK;
    return ree_fail(err, t->failure.status, "%s", t->failure.message);
}

static enum ree_status check_deadlines(const struct ree_transport *t, double now,
                                       struct ree_error *err) {
    uint32_t me = t->link->rank, worst = me;
    double longest = t->options.deadline;
    for (uint32_t r = 0; r < t->link->n_ranks; r++) {
        if (r == me || now - t->peers[r].heard <= longest) continue;
        worst = r;
        longest = now - t->peers[r].heard;
    }
    if (worst != me)
        return ree_fail(err, REE_IO, "rank %u has sent nothing for %.3g s (step %llu)", worst,
                        t->options.deadline, (unsigned long long)t->step);
    for (uint32_t r = 0; r < t->link->n_ranks; r++)
        if (r != me && t->peers[r].still > t->options.work_deadline)
            return ree_fail(
                err, REE_IO,
                "rank %u sends heartbeats, but has made no progress for %.3g s (step %llu)", r,
                t->options.work_deadline, (unsigned long long)t->step);
    if (t->waits && now - t->progress > 2 * t->options.deadline)
        return ree_fail(err, REE_IO, "all ranks have waited for one another for %.3g s (step %llu)",
                        2 * t->options.deadline, (unsigned long long)t->step);
    return REE_OK;
}

enum ree_status ree_heartbeat_exchange(struct ree_transport *t, struct ree_error *err) {
    REE_TRY(ree_transport_move_out(t, err));
    REE_TRY(ree_heartbeat_take(t, err));
    double now = ree_transport_clock();
    // If this rank has not checked for a long time, it cannot judge the silence of others: this
    // process or all of them were stopped and continued, or the machine is overloaded.
    if (now - t->looked > t->options.deadline / 2) {
        for (uint32_t r = 0; r < t->link->n_ranks; r++)
            t->peers[r].heard = now;
        t->progress = now;
    }
    t->looked = now;
    REE_TRY(send_heartbeat(t, now, err));
    return check_deadlines(t, now, err);
}

// The thread

static void sleep_until(struct ree_transport *t, double when) {
    struct timespec until = {.tv_sec = (time_t)when};
    until.tv_nsec = (long)((when - (double)until.tv_sec) * 1e9);
    while (!t->ends && ree_transport_clock() < when)
        if (pthread_cond_timedwait(&t->wake, &t->lock, &until) != 0) break;
}

static void *give_heartbeat(void *user) {
    struct ree_transport *t = user;
    REE_FLOAT_ENV_THREAD(&t->caller_env);
    struct ree_error err;
    pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        if (!t->is_broken && ree_heartbeat_exchange(t, &err) != REE_OK)
            ree_transport_note_broken(t, &err);
        double now = ree_transport_clock();
        if (t->is_broken && now - t->broken_since > PATIENCE) {
            if (t->options.on_lost) {
                REE_FLOAT_ENV_CALLBACK();
                t->options.on_lost(t->options.user, t->broken.message);
            }
            t->link->ops->abort(t->link, 1);
            break;
        }
        sleep_until(t, now + interval(t));
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

enum ree_status ree_heartbeat_begin(struct ree_transport *t, struct ree_error *err) {
    if (t->options.quiet) return REE_OK;
    ree_float_call_caller(&t->caller_env);
    int code = pthread_create(&t->thread, NULL, give_heartbeat, t);
    if (code)
        return ree_fail(err, REE_IO, "cannot start the thread that sends heartbeats: %s",
                        strerror(code));
    t->has_thread = true;
    return REE_OK;
}

void ree_heartbeat_end(struct ree_transport *t) {
    pthread_mutex_lock(&t->lock);
    t->ends = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread) pthread_join(t->thread, NULL);
    t->has_thread = false;
}
