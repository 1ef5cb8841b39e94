#include "transport/transport.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/status.h"

// Longest frame of the control channel: an error with its text.
#define CONTROL_LIMIT (REE_FRAME_HEADER + 8 + REE_ERROR_MAX)
// Frames waiting to go to one rank's control channel: more are not sent. A rank that takes none of
// these is silent anyway.
#define MAX_SIGNS 16
// How long others get to print why the run ends.
#define GRACE 0.5

struct sending {
    void *request;
    unsigned char *frame;
    size_t nbytes;
    uint32_t to;
    enum ree_channel channel;
};

// What is known of another rank.
struct peer {
    uint64_t sent[REE_N_CHANNELS], received[REE_N_CHANNELS]; // sequence numbers
    double heard;                                            // when anything came last
    size_t n_signs;                                          // frames of control on their way
};

struct ree_transport {
    struct ree_link *link;
    pthread_t owner;
    struct ree_transport_options options;
    struct peer *peers;
    struct sending *sendings;
    size_t n_sendings, room;
    struct ree_transport_count sent[REE_N_MESSAGE_KINDS];
    uint64_t n_data; // messages of data sent
    uint64_t held, most_held;
    double waited, last_sign;
    double progress; // when any rank was last known to work
    bool has_failed; // a rank said so
    struct ree_error failure;
    bool is_broken; // a receive or a sign of life failed: what comes after it is not to be waited
                    // for
    struct ree_error broken;
};

const char *ree_message_kind_name(uint32_t kind) {
    static const char *const names[] = {"?",      "hello",  "welcome", "clock", "begin",
                                        "step",   "logits", "read",    "rows",  "end",
                                        "report", "bye",    "alive",   "error"};
    return kind < REE_N_MESSAGE_KINDS ? names[kind] : "?";
}

void ree_message_finish(struct ree_message *message) {
    free(message->parts);
    free(message->frame);
    memset(message, 0, sizeof *message);
}

double ree_transport_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum ree_status ree_transport_create(struct ree_link *link,
                                     const struct ree_transport_options *options,
                                     struct ree_transport **out, struct ree_error *err) {
    struct ree_transport *t = calloc(1, sizeof *t);
    struct peer *peers = calloc(link->n_ranks + 1, sizeof *peers);
    *out = NULL;
    if (!t || !peers) {
        free(t);
        free(peers);
        link->ops->close(link);
        return ree_fail(err, REE_NO_MEMORY, "out of memory");
    }
    t->link = link;
    t->owner = pthread_self();
    t->peers = peers;
    if (options) t->options = *options;
    if (t->options.deadline <= 0) t->options.deadline = REE_TRANSPORT_DEADLINE;
    t->last_sign = ree_transport_clock();
    // Short pauses are otherwise prolonged by 50 us; a step has some.
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

const struct ree_transport_count *ree_transport_sent(const struct ree_transport *t) {
    return t->sent;
}

double ree_transport_waited(const struct ree_transport *t) {
    return t->waited;
}

uint64_t ree_transport_buffered(const struct ree_transport *t) {
    return t->most_held;
}

static void hold(struct ree_transport *t, size_t nbytes) {
    t->held += nbytes;
    if (t->held > t->most_held) t->most_held = t->held;
}

// Sending

// Drops what has gone.
static enum ree_status move_out(struct ree_transport *t, struct ree_error *err) {
    size_t kept = 0;
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < t->n_sendings; i++) {
        struct sending *s = &t->sendings[i];
        bool done = false;
        if (status == REE_OK) status = t->link->ops->test(t->link, s->request, &done, err);
        if (!done) {
            t->sendings[kept++] = *s;
            continue;
        }
        if (s->channel == REE_CHANNEL_CONTROL) t->peers[s->to].n_signs--;
        t->held -= s->nbytes;
        free(s->frame);
    }
    t->n_sendings = kept;
    return status;
}

static enum ree_status post(struct ree_transport *t, uint32_t to, enum ree_channel channel,
                            struct ree_frame_fields fields, const struct ree_part *parts,
                            struct ree_error *err) {
    struct sending s = {.to = to, .channel = channel};
    if (t->n_sendings == t->room) {
        size_t room = 2 * t->room + 16;
        struct sending *grown = realloc(t->sendings, room * sizeof *grown);
        if (!grown) return ree_fail(err, REE_NO_MEMORY, "out of memory");
        t->sendings = grown;
        t->room = room;
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
        free(s.frame);
        return status;
    }
    t->peers[to].sent[channel]++;
    if (channel == REE_CHANNEL_CONTROL) t->peers[to].n_signs++;
    t->sent[fields.kind].n_messages++;
    t->sent[fields.kind].nbytes += s.nbytes;
    hold(t, s.nbytes);
    t->sendings[t->n_sendings++] = s;
    return REE_OK;
}

enum ree_status ree_transport_send(struct ree_transport *t, uint32_t to, enum ree_message_kind kind,
                                   uint64_t step, uint32_t set, const struct ree_part *parts,
                                   size_t n_parts, struct ree_error *err) {
    if (n_parts > REE_FRAME_MAX_PARTS)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%zu values cross a cut; at most %d go into a message", n_parts,
                        REE_FRAME_MAX_PARTS);
    REE_TRY(post(t, to, REE_CHANNEL_DATA,
                 (struct ree_frame_fields){
                     .kind = kind, .step = step, .set = set, .n_parts = (uint32_t)n_parts},
                 parts, err));
    t->owner = pthread_self();
    return move_out(t, err);
}

// A sign of life to all that take them, at most every second.
static enum ree_status send_sign(struct ree_transport *t, double now, bool works,
                                 struct ree_error *err) {
    double every = t->options.deadline / 4 < 1 ? t->options.deadline / 4 : 1;
    if (now - t->last_sign < every) return REE_OK;
    t->last_sign = now;
    // Whether it works is all that there is to say.
    struct ree_frame_fields fields = {.kind = REE_MESSAGE_ALIVE, .set = works};
    for (uint32_t r = 0; r < t->link->n_ranks; r++)
        if (r != t->link->rank && t->peers[r].n_signs < MAX_SIGNS)
            REE_TRY(post(t, r, REE_CHANNEL_CONTROL, fields, NULL, err));
    return REE_OK;
}

// Receiving

static enum ree_status open_frame(struct ree_transport *t, uint32_t from, enum ree_channel channel,
                                  unsigned char *frame, size_t nbytes, struct ree_message *out,
                                  struct ree_error *err) {
    struct ree_frame_fields f;
    *out = (struct ree_message){.frame = frame};
    REE_TRY(ree_frame_open(frame, nbytes, &f, &out->parts, err));
    uint64_t next = t->peers[from].received[channel];
    if (f.from != from || f.to != t->link->rank)
        return ree_fail(err, REE_INVALID, "one of rank %u to rank %u, which does not belong here",
                        f.from, f.to);
    if (f.sequence != next)
        return ree_fail(err, REE_INVALID, "number %llu where %llu was expected: one was %s",
                        (unsigned long long)f.sequence, (unsigned long long)next,
                        f.sequence > next ? "lost" : "sent twice");
    t->peers[from].received[channel]++;
    out->kind = f.kind;
    out->from = f.from;
    out->step = f.step;
    out->set = f.set;
    out->n_parts = f.n_parts;
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
    // What comes over a wire is shown to a person.
    for (char *c = t->failure.message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

static void note_broken(struct ree_transport *t, const struct ree_error *err) {
    if (t->is_broken) return;
    t->is_broken = true;
    t->broken = *err;
}

// Signs of life and errors from all ranks.
static enum ree_status take_control(struct ree_transport *t, struct ree_error *err) {
    for (uint32_t r = 0; r < t->link->n_ranks; r++) {
        if (r == t->link->rank) continue;
        while (!t->has_failed) {
            unsigned char *frame;
            size_t nbytes;
            struct ree_message m;
            enum ree_status status = t->link->ops->take(t->link, r, REE_CHANNEL_CONTROL,
                                                        CONTROL_LIMIT, &frame, &nbytes, err);
            if (status == REE_OK && !frame) break;
            if (status == REE_OK) {
                status = open_frame(t, r, REE_CHANNEL_CONTROL, frame, nbytes, &m, err);
                double now = ree_transport_clock();
                t->peers[r].heard = now;
                if (status == REE_OK && m.kind == REE_MESSAGE_ALIVE && m.set) t->progress = now;
                if (status == REE_OK && m.kind == REE_MESSAGE_ERROR) take_failure(t, &m);
                ree_message_finish(&m);
                if (status != REE_OK) ree_fail_prefix(err, "a message from rank %u is", r);
            }
            if (status != REE_OK) return status;
        }
    }
    if (!t->has_failed) return REE_OK;
    return ree_fail(err, t->failure.status, "%s", t->failure.message);
}

static enum ree_status judge_silence(const struct ree_transport *t, double now, uint64_t step,
                                     struct ree_error *err) {
    uint32_t worst = t->link->rank;
    double longest = t->options.deadline;
    for (uint32_t r = 0; r < t->link->n_ranks; r++) {
        if (r == t->link->rank || now - t->peers[r].heard <= longest) continue;
        worst = r;
        longest = now - t->peers[r].heard;
    }
    if (worst != t->link->rank)
        return ree_fail(err, REE_IO, "rank %u has sent nothing for %.3g s (step %llu)", worst,
                        t->options.deadline, (unsigned long long)step);
    if (now - t->progress > 2 * t->options.deadline)
        return ree_fail(err, REE_IO, "all ranks wait for one another for %.3g s (step %llu)",
                        2 * t->options.deadline, (unsigned long long)step);
    return REE_OK;
}

// Soon at first, so that a step is not kept waiting; then seldom, so that an idle rank leaves its
// core to others.
static void pause_a_moment(double waited) {
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
                    "rank %u sent a message of kind '%s' (step %llu), which is "
                    "not expected there",
                    from, ree_message_kind_name(m->kind), (unsigned long long)m->step);
}

static enum ree_status wait_for(struct ree_transport *t, uint32_t from,
                                const struct ree_expected *expected, struct ree_message *out,
                                struct ree_error *err) {
    double now = ree_transport_clock();
    for (uint32_t r = 0; r < t->link->n_ranks; r++)
        t->peers[r].heard = now;
    double start = t->progress = now;
    for (;;) {
        unsigned char *frame;
        size_t nbytes;
        // Data first: a rank that ends well may be followed by the end of its connection.
        enum ree_status status = t->link->ops->take(t->link, from, REE_CHANNEL_DATA,
                                                    expected->limit, &frame, &nbytes, err);
        if (status == REE_OK && frame)
            status = open_frame(t, from, REE_CHANNEL_DATA, frame, nbytes, out, err);
        if (status == REE_INVALID)
            ree_fail_prefix(err, "the message from rank %u (step %llu) is", from,
                            (unsigned long long)expected->step);
        if (status != REE_OK) {
            // A rank that has failed says why before its connection ends.
            struct ree_error why;
            if (status == REE_IO && take_control(t, &why) != REE_OK && t->has_failed) *err = why;
            return status;
        }
        if (frame) return check_expected(expected, from, out, err);
        REE_TRY(move_out(t, err));
        REE_TRY(take_control(t, err));
        now = ree_transport_clock();
        REE_TRY(send_sign(t, now, false, err));
        REE_TRY(judge_silence(t, now, expected->step, err));
        pause_a_moment(now - start);
    }
}

enum ree_status ree_transport_receive(struct ree_transport *t, uint32_t from,
                                      const struct ree_expected *expected, struct ree_message *out,
                                      struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    memset(out, 0, sizeof *out);
    double start = ree_transport_clock();
    t->owner = pthread_self();
    if (t->is_broken) return ree_fail(err, t->broken.status, "%s", t->broken.message);
    enum ree_status status = wait_for(t, from, expected, out, err);
    t->waited += ree_transport_clock() - start;
    if (status != REE_OK) {
        ree_message_finish(out);
        note_broken(t, err);
    }
    return status;
}

void ree_transport_working(struct ree_transport *t) {
    struct ree_error err;
    // Links are used by one thread; what others report is not worth a lock.
    if (!pthread_equal(pthread_self(), t->owner)) return;
    if (move_out(t, &err) != REE_OK || take_control(t, &err) != REE_OK ||
        send_sign(t, ree_transport_clock(), true, &err) != REE_OK)
        note_broken(t, &err);
}

// The end

static void flush(struct ree_transport *t, double seconds) {
    double start = ree_transport_clock(), now = start;
    struct ree_error err;
    for (; t->n_sendings && now < start + seconds; now = ree_transport_clock()) {
        if (move_out(t, &err) != REE_OK) return;
        pause_a_moment(now - start);
    }
}

static void finish(struct ree_transport *t) {
    for (size_t i = 0; i < t->n_sendings; i++)
        free(t->sendings[i].frame);
    free(t->sendings);
    free(t->peers);
    free(t);
}

void ree_transport_fail(struct ree_transport *t, const char *reason, int code) {
    struct ree_error err;
    struct ree_part part = {reason, strnlen(reason, REE_ERROR_MAX - 1)};
    struct ree_frame_fields fields = {.kind = REE_MESSAGE_ERROR, .n_parts = 1};
    // Who was told why needs not tell the others, who have been told, too.
    for (uint32_t r = 0; !t->has_failed && r < t->link->n_ranks; r++)
        if (r != t->link->rank) (void)post(t, r, REE_CHANNEL_CONTROL, fields, &part, &err);
    // One rank is to end the run, the first of those that noticed by themselves: mpirun may stumble
    // over several at a time. The next one does it where that is not enough.
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
    finish(t);
}

void ree_transport_close(struct ree_transport *t) {
    if (!t) return;
    flush(t, t->options.deadline);
    t->link->ops->close(t->link);
    finish(t);
}
