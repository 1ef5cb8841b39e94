// Declarations that the source files of this folder share.
//
// Two threads use a transport: one sends and receives data; the other exchanges heartbeats while
// the first works (heartbeat.c). While the second thread exists, every access to the link or to a
// field of struct ree_transport requires ree_transport.lock, unless the field is atomic or only the
// first thread uses it.
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
    // Per channel: sequence number of the next message to and from that rank.
    uint64_t sent[REE_N_CHANNELS], received[REE_N_CHANNELS];
    double heard;        // when the last message from that rank arrived (ree_transport_clock)
    double still;        // seconds without progress, as its last heartbeat states
    size_t n_heartbeats; // number of control frames being sent to that rank
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
    uint64_t step; // step of the last message sent or awaited, for error messages
    // The thread that exchanges heartbeats, and its state. Times are from ree_transport_clock.
    pthread_t thread;
    pthread_cond_t wake;
    bool has_thread, ends;
    struct ree_float_env caller_env; // floating-point environment in which on_lost runs
    bool waits;                      // this rank is in ree_transport_receive
    _Atomic double moved;            // time of this rank's last progress
    double last_heartbeat, looked;
    double progress; // last time at which any rank was known to work
    // Failures of this rank or of another.
    bool has_failed; // another rank has reported a failure, which is `failure`
    struct ree_error failure;
    bool is_refused; // a receive has failed: all further receives fail
    bool is_broken;  // a receive or an exchange of heartbeats failed with `broken`
    double broken_since;
    struct ree_error broken;
};

// The caller must hold the lock for the functions below, except for ree_transport_finish,
// ree_heartbeat_begin, ree_heartbeat_end and ree_transport_pause. After ree_heartbeat_end no
// function requires it.

// Releases frames that have been sent.
enum ree_status ree_transport_move_out(struct ree_transport *t, struct ree_error *err);
enum ree_status ree_transport_post(struct ree_transport *t, uint32_t to, enum ree_channel channel,
                                   struct ree_frame_fields fields, const struct ree_part *parts,
                                   struct ree_error *err);
// Checks a received frame, its recipient and its sequence number, and makes a message of it. The
// message *out owns `frame`, even on failure.
enum ree_status ree_transport_open(struct ree_transport *t, uint32_t from, enum ree_channel channel,
                                   unsigned char *frame, size_t nbytes, struct ree_message *out,
                                   struct ree_error *err);
void ree_transport_note_broken(struct ree_transport *t, const struct ree_error *err);

void ree_transport_finish(struct ree_transport *t); // frees everything except the link

// heartbeat.c: start and end the thread that exchanges heartbeats.
enum ree_status ree_heartbeat_begin(struct ree_transport *t, struct ree_error *err);
void ree_heartbeat_end(struct ree_transport *t); // the caller must not hold the lock
// Receives heartbeats, sends this rank's if they are due, and fails if a rank has been silent or
// without progress for too long, or if all ranks wait.
enum ree_status ree_heartbeat_exchange(struct ree_transport *t, struct ree_error *err);
// Receives heartbeats and errors from all ranks. Fails with the reason if a rank has failed.
enum ree_status ree_heartbeat_take(struct ree_transport *t, struct ree_error *err);

// Pauses between two looks for a message; `waited` is the time waited so far, in seconds. Pauses
// are short at first, so that a step is not delayed, and longer later, so that an idle rank leaves
// its core to others.
void ree_transport_pause(double waited);

#endif
