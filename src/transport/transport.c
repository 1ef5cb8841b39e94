#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/float_env.h"
#include "base/clock.h"
#include "base/memory.h"
#include "transport/transport_internal.h"

const char *ree_message_kind_name(uint32_t kind) {
    static const char *const names[] = {"?",      "handshake", "welcome", "clock",     "begin",
                                        "step",   "logits",    "read",    "positions", "end",
                                        "report", "bye",       "alive",   "error",     "terms",
                                        "total",  "result"};
    return kind < REE_N_MESSAGE_KINDS ? names[kind] : "?";
}

void ree_message_finish(struct ree_message *message) {
    struct ree_transport *t = message->holder;
    if (t) {
        pthread_mutex_lock(&t->lock);
        t->held -= message->nbytes;
        pthread_mutex_unlock(&t->lock);
    }
    ree_free(message->parts);
    ree_free(message->frame);
    memset(message, 0, sizeof *message);
}

double ree_transport_clock(void) {
    return ree_clock();
}

void ree_transport_finish(struct ree_transport *t) {
    for (size_t i = 0; i < t->n_sendings; i++)
        ree_free(t->sendings[i].frame);
    ree_free(t->sendings);
    ree_free(t->peers);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    ree_free(t);
}

static void begin(struct ree_transport *t, const struct ree_transport_options *options) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&t->lock, NULL);
    if (options) t->options = *options;
    if (t->options.deadline <= 0) t->options.deadline = REE_TRANSPORT_DEADLINE;
    if (t->options.work_deadline <= 0)
        t->options.work_deadline = REE_TRANSPORT_WORK_DEADLINES * t->options.deadline;
    double now = ree_transport_clock();
    t->last_heartbeat = t->looked = t->progress = now;
    atomic_store(&t->moved, now);
    for (uint32_t r = 0; r < t->link->n_ranks; r++)
        t->peers[r].heard = now;
}

enum ree_status ree_transport_create(struct ree_link *link,
                                     const struct ree_transport_options *options,
                                     struct ree_transport **out, struct ree_error *err) {
    struct ree_transport *t = ree_alloc_zeroed(1, sizeof *t);
    struct ree_peer *peers = ree_alloc_zeroed(link->n_ranks + 1, sizeof *peers);
    *out = NULL;
    if (!t || !peers) {
        ree_free(t);
        ree_free(peers);
        link->ops->close(link);
        return ree_no_memory(err);
    }
    t->link = link;
    t->peers = peers;
    begin(t, options);
    enum ree_status status = ree_heartbeat_begin(t, err);
    if (status != REE_OK) {
        link->ops->close(link);
        ree_transport_finish(t);
        return status;
    }
    // By default the kernel may prolong a sleep by 50 us, which matters because a step has several
    // short sleeps.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    *out = t;
    return REE_OK;
}

uint32_t ree_transport_rank(const struct ree_transport *t) {
    return t->link->rank;
}

uint32_t ree_transport_n_ranks(const struct ree_transport *t) {
    return t->link->n_ranks;
}

struct ree_transport_count ree_transport_sent(struct ree_transport *t, enum ree_message_kind kind) {
    pthread_mutex_lock(&t->lock);
    struct ree_transport_count count = t->sent[kind];
    pthread_mutex_unlock(&t->lock);
    return count;
}

double ree_transport_waited(const struct ree_transport *t) {
    return t->waited;
}

uint64_t ree_transport_buffered(struct ree_transport *t) {
    pthread_mutex_lock(&t->lock);
    uint64_t most = t->most_held;
    pthread_mutex_unlock(&t->lock);
    return most;
}

static void hold(struct ree_transport *t, size_t nbytes) {
    t->held += nbytes;
    if (t->held > t->most_held) t->most_held = t->held;
}

void ree_transport_note_broken(struct ree_transport *t, const struct ree_error *err) {
    if (t->is_broken) return;
    t->is_broken = true;
    t->broken = *err;
    t->broken_since = ree_transport_clock();
}

// Sending

enum ree_status ree_transport_move_out(struct ree_transport *t, struct ree_error *err) {
    size_t kept = 0;
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < t->n_sendings; i++) {
        struct ree_sending *s = &t->sendings[i];
        bool done = false;
        if (status == REE_OK) status = t->link->ops->test(t->link, s->request, &done, err);
        if (!done) {
            t->sendings[kept++] = *s;
            continue;
        }
        if (s->channel == REE_CHANNEL_CONTROL) t->peers[s->to].n_heartbeats--;
        t->held -= s->nbytes;
        ree_free(s->frame);
    }
    t->n_sendings = kept;
    return status;
}

enum ree_status ree_transport_post(struct ree_transport *t, uint32_t to, enum ree_channel channel,
                                   struct ree_frame_fields fields, const struct ree_part *parts,
                                   struct ree_error *err) {
    struct ree_sending s = {.to = to, .channel = channel};
    if (t->n_sendings == t->capacity) {
        size_t capacity = 2 * t->capacity + 16;
        struct ree_sending *grown = ree_realloc(t->sendings, capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        t->sendings = grown;
        t->capacity = capacity;
    }
    fields.from = t->link->rank;
    fields.to = to;
    fields.sequence = t->peers[to].sent[channel];
    REE_TRY(ree_frame_make(&fields, parts, &s.frame, &s.nbytes, err));
    if (channel == REE_CHANNEL_DATA && ++t->n_data == t->options.corrupt)
        s.frame[s.nbytes - 1 - s.nbytes / 3] ^= 0x10;
    enum ree_status status =
        t->link->ops->start(t->link, to, channel, s.frame, s.nbytes, &s.request, err);
    if (status != REE_OK) {
        if (!s.request) ree_free(s.frame);
        return status;
    }
    t->peers[to].sent[channel]++;
    if (channel == REE_CHANNEL_CONTROL) t->peers[to].n_heartbeats++;
    t->sent[fields.kind].n_messages++;
    t->sent[fields.kind].nbytes += s.nbytes;
    hold(t, s.nbytes);
    t->sendings[t->n_sendings++] = s;
    return REE_OK;
}

enum ree_status ree_transport_send(struct ree_transport *t, uint32_t to, enum ree_message_kind kind,
                                   uint64_t step, uint32_t slot, const struct ree_part *parts,
                                   size_t n_parts, struct ree_error *err) {
    if (n_parts > REE_FRAME_MAX_PARTS)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%zu values cross a cut; a message can hold at most %d", n_parts,
                        REE_FRAME_MAX_PARTS);
    const struct ree_frame_fields fields = {
        .kind = kind, .step = step, .slot = slot, .n_parts = (uint32_t)n_parts};
    atomic_store(&t->moved, ree_transport_clock());
    pthread_mutex_lock(&t->lock);
    t->step = step;
    enum ree_status status = ree_transport_post(t, to, REE_CHANNEL_DATA, fields, parts, err);
    if (status == REE_OK) status = ree_transport_move_out(t, err);
    pthread_mutex_unlock(&t->lock);
    return status;
}

// Receiving

enum ree_status ree_transport_open(struct ree_transport *t, uint32_t from, enum ree_channel channel,
                                   unsigned char *frame, size_t nbytes, struct ree_message *out,
                                   struct ree_error *err) {
    struct ree_frame_fields f;
    *out = (struct ree_message){.frame = frame};
    REE_TRY(ree_frame_open(frame, nbytes, &f, &out->parts, err));
    uint64_t next = t->peers[from].received[channel];
    if (f.from != from || f.to != t->link->rank)
        return ree_fail(err, REE_INVALID, "from rank %u to rank %u, which is the wrong recipient",
                        f.from, f.to);
    if (f.sequence != next)
        return ree_fail(err, REE_INVALID, "number %llu, expected %llu: a message was %s",
                        (unsigned long long)f.sequence, (unsigned long long)next,
                        f.sequence > next ? "lost" : "sent twice");
    t->peers[from].received[channel]++;
    out->kind = f.kind;
    out->from = f.from;
    out->step = f.step;
    out->slot = f.slot;
    out->n_parts = f.n_parts;
    return REE_OK;
}

void ree_transport_pause(double waited) {
    if (waited < 0.0002)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, waited < 0.01 ? 20000
                                        : waited < 1  ? 100000
                                                      : 500000},
                  NULL);
}

static enum ree_status check_expected(const struct ree_expected *expected, uint32_t from,
                                      const struct ree_message *m, struct ree_error *err) {
    if (m->kind < 32 && expected->kinds >> m->kind & 1) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "rank %u sent a message of the unexpected kind '%s' (step %llu)", from,
                    ree_message_kind_name(m->kind), (unsigned long long)m->step);
}

// Checks once whether a message has arrived; out->frame stays NULL if none has.
static enum ree_status look(struct ree_transport *t, uint32_t from,
                            const struct ree_expected *expected, struct ree_message *out,
                            struct ree_error *err) {
    unsigned char *frame;
    size_t nbytes;
    // Check data first: the connection of a rank that ends successfully may end right after its
    // last message.
    enum ree_status status =
        t->link->ops->take(t->link, from, REE_CHANNEL_DATA, expected->limit, &frame, &nbytes, err);
    if (status == REE_OK && frame) {
        status = ree_transport_open(t, from, REE_CHANNEL_DATA, frame, nbytes, out, err);
        out->holder = t;
        out->nbytes = nbytes;
        hold(t, nbytes);
        t->peers[from].heard = ree_transport_clock();
    }
    if (status == REE_INVALID)
        ree_fail_prefix(err, "the message from rank %u (step %llu) is", from,
                        (unsigned long long)expected->step);
    if (status == REE_IO) {
        // A failed rank sends the reason before its connection ends.
        struct ree_error why;
        if (ree_heartbeat_take(t, &why) != REE_OK && t->has_failed) *err = why;
    }
    if (status != REE_OK || frame) return status;
    if (t->is_broken) return ree_fail(err, t->broken.status, "%s", t->broken.message);
    return ree_heartbeat_exchange(t, err);
}

static enum ree_status wait_for(struct ree_transport *t, uint32_t from,
                                const struct ree_expected *expected, struct ree_message *out,
                                struct ree_error *err) {
    double start = ree_transport_clock();
    for (;;) {
        pthread_mutex_lock(&t->lock);
        enum ree_status status = look(t, from, expected, out, err);
        pthread_mutex_unlock(&t->lock);
        if (status != REE_OK) return status;
        if (out->frame) return check_expected(expected, from, out, err);
        ree_transport_pause(ree_transport_clock() - start);
    }
}

// Records whether this rank waits. Returns false, with the reason in *err, if a receive has failed
// before.
static bool set_waits(struct ree_transport *t, bool waits, uint64_t step, struct ree_error *err) {
    double now = ree_transport_clock();
    pthread_mutex_lock(&t->lock);
    t->waits = waits;
    t->step = step;
    t->progress = now;
    atomic_store(&t->moved, now);
    bool goes_on = !t->is_refused;
    if (!goes_on) ree_fail(err, t->broken.status, "%s", t->broken.message);
    pthread_mutex_unlock(&t->lock);
    return goes_on;
}

enum ree_status ree_transport_receive(struct ree_transport *t, uint32_t from,
                                      const struct ree_expected *expected, struct ree_message *out,
                                      struct ree_error *err) {
    struct ree_error local, unused;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    memset(out, 0, sizeof *out);
    double start = ree_transport_clock();
    if (!set_waits(t, true, expected->step, err)) return err->status;
    enum ree_status status = wait_for(t, from, expected, out, err);
    t->waited += ree_transport_clock() - start;
    (void)set_waits(t, false, expected->step, &unused);
    if (status == REE_OK) return REE_OK;
    ree_message_finish(out);
    pthread_mutex_lock(&t->lock);
    ree_transport_note_broken(t, err);
    t->is_refused = true;
    pthread_mutex_unlock(&t->lock);
    return status;
}

void ree_transport_working(struct ree_transport *t) {
    REE_FLOAT_ENV_API();
    struct ree_error err;
    atomic_store(&t->moved, ree_transport_clock());
    // Whoever holds the lock exchanges heartbeats itself.
    if (pthread_mutex_trylock(&t->lock) != 0) return;
    if (!t->is_broken && ree_heartbeat_exchange(t, &err) != REE_OK)
        ree_transport_note_broken(t, &err);
    pthread_mutex_unlock(&t->lock);
}
