// Declarations shared by the files of this module.
//
// Two threads use a transport: one sends and receives; the other exchanges heartbeats while the
// first works (heartbeat.c). `lock` must be held for every access to the link or to the fields
// below; so only one thread at a time uses the link.
#ifndef REE_TRANSPORT_INTERNAL_H
#define REE_TRANSPORT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/float_env.h"
#include "base/status.h"
#include "transport/transport.h"

// Maximum size in bytes of a frame on the control channel: an error with its text.
#define REE_CONTROL_LIMIT (REE_FRAME_HEADER + 8 + REE_ERROR_MAX)

struct ree_sending {
    void *request;
    unsigned char *frame;
    size_t nbytes;
    uint32_t to;
    enum ree_channel channel;
};

// The state of another rank.
struct ree_peer {
    // sequence numbers of the next messages
    uint64_t sent[REE_N_CHANNELS], received[REE_N_CHANNELS];
    double heard;        // time of the last message
    double still;        // seconds without progress, as its last heartbeat states
    size_t n_heartbeats; // control frames being sent
};

struct ree_transport {
    struct ree_link *link;
    struct ree_transport_options options;
    pthread_mutex_t lock;
    struct ree_peer *peers;
    struct ree_sending *sendings;
    size_t n_sendings, capacity;
    struct ree_transport_count sent[REE_N_MESSAGE_KINDS];
    uint64_t n_data; // number of data messages sent
    uint64_t held, most_held;
    double waited;
    uint64_t step; // last step of this rank
    // Heartbeats.
    pthread_t thread;
    pthread_cond_t wake;
    bool has_thread, ends;
    struct ree_float_env caller_env; // of on_lost
    bool waits;                      // inside a receive
    _Atomic double moved;            // time of this rank's last progress
    double last_heartbeat, looked;
    double progress; // last time at which any rank was known to work
    // Failures.
    bool has_failed; // a rank reported a failure
    struct ree_error failure;
    bool is_refused; // a receive has failed: all further receives fail
    bool is_broken;  // a receive or an exchange of heartbeats has failed
    double broken_since;
    struct ree_error broken;
};

// The lock must be held for all functions below unless stated otherwise.

// Releases frames that have been sent.
enum ree_status ree_transport_move_out(struct ree_transport *t, struct ree_error *err);
enum ree_status ree_transport_post(struct ree_transport *t, uint32_t to, enum ree_channel channel,
                                   struct ree_frame_fields fields, const struct ree_part *parts,
                                   struct ree_error *err);
// Checks and counts a received frame. The message owns `frame`, even on failure.
enum ree_status ree_transport_open(struct ree_transport *t, uint32_t from, enum ree_channel channel,
                                   unsigned char *frame, size_t nbytes, struct ree_message *out,
                                   struct ree_error *err);
void ree_transport_note_broken(struct ree_transport *t, const struct ree_error *err);

void ree_transport_finish(struct ree_transport *t); // frees everything except the link

// heartbeat.c
enum ree_status ree_heartbeat_begin(struct ree_transport *t, struct ree_error *err);
void ree_heartbeat_end(struct ree_transport *t); // the lock must not be held
// Receives and sends pending heartbeats, and fails if a rank is silent too long.
enum ree_status ree_heartbeat_exchange(struct ree_transport *t, struct ree_error *err);
// Receives heartbeats and errors from all ranks. Fails with the reason if a rank has failed.
enum ree_status ree_heartbeat_take(struct ree_transport *t, struct ree_error *err);

// Pauses shortly at first, so that a step is not delayed; later longer, so that an idle rank leaves
// its core to others. `waited` is in seconds.
void ree_transport_pause(double waited);

#endif
