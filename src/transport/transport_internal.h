// What the files of this room share.
//
// Two threads use a transport: the one that sends and receives, and one that sends signs of life
// and listens for those of others while the first works (signs.c). `lock` is held round everything
// that touches the link or the fields below; links are used by one thread at a time.
#ifndef REE_TRANSPORT_INTERNAL_H
#define REE_TRANSPORT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "transport/transport.h"

// Longest frame of the control channel: an error with its text.
#define REE_CONTROL_LIMIT (REE_FRAME_HEADER + 8 + REE_ERROR_MAX)

struct ree_sending {
    void *request;
    unsigned char *frame;
    size_t nbytes;
    uint32_t to;
    enum ree_channel channel;
};

// What is known of another rank.
struct ree_peer {
    uint64_t sent[REE_N_CHANNELS], received[REE_N_CHANNELS]; // sequence numbers
    double heard;                                            // when anything came last
    double still;   // as it says: for how long it has been at one and the same thing
    size_t n_signs; // frames of control on their way
};

struct ree_transport {
    struct ree_link *link;
    struct ree_transport_options options;
    pthread_mutex_t lock;
    struct ree_peer *peers;
    struct ree_sending *sendings;
    size_t n_sendings, room;
    struct ree_transport_count sent[REE_N_MESSAGE_KINDS];
    uint64_t n_data; // messages of data sent
    uint64_t held, most_held;
    double waited;
    uint64_t step; // that this rank was last at
    // Signs of life.
    pthread_t thread;
    pthread_cond_t wake;
    bool has_thread, ends;
    bool waits;           // in a receive
    _Atomic double moved; // when this rank last got on with its work
    double last_sign, looked;
    double progress; // when any rank was last known to work
    // Failures.
    bool has_failed; // a rank said so
    struct ree_error failure;
    bool is_refused; // a receive has failed: nothing is to be waited for any more
    bool is_broken;  // that, or there was something wrong beside what is received
    double broken_since;
    struct ree_error broken;
};

// All with the lock held.

// Drops what has gone.
enum ree_status ree_transport_move_out(struct ree_transport *t, struct ree_error *err);
enum ree_status ree_transport_post(struct ree_transport *t, uint32_t to, enum ree_channel channel,
                                   struct ree_frame_fields fields, const struct ree_part *parts,
                                   struct ree_error *err);
// Opens a frame that has come and counts it; `frame` is the message's, also on failure.
enum ree_status ree_transport_open(struct ree_transport *t, uint32_t from, enum ree_channel channel,
                                   unsigned char *frame, size_t nbytes, struct ree_message *out,
                                   struct ree_error *err);
void ree_transport_note_broken(struct ree_transport *t, const struct ree_error *err);

void ree_transport_finish(struct ree_transport *t); // frees all but the link

// signs.c
enum ree_status ree_signs_begin(struct ree_transport *t, struct ree_error *err);
void ree_signs_end(struct ree_transport *t); // without the lock
// Takes what the others say, says what there is to say, and judges their silence.
enum ree_status ree_signs_exchange(struct ree_transport *t, struct ree_error *err);
// Signs of life and errors from all ranks: fails with the reason where one has failed.
enum ree_status ree_signs_take(struct ree_transport *t, struct ree_error *err);

// Soon at first, so that a step is not kept waiting; then seldom, so that an idle rank leaves its
// core to others.
void ree_transport_pause(double waited);

#endif
