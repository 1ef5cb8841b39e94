// Messages between the ranks of a run: checked, in order, with deadlines. README.md describes the
// protocol, frame.h the bytes.
//
// A thread of the transport sends heartbeats, whatever else the rank does. So every rank notices if
// another rank is silent (dead, stopped, or cut off), even if it does not wait for that rank, and
// can name it. A heartbeat also states for how long the rank's work has made no progress.
//
// Any failure ends the run on every rank: the rank that detects it calls ree_transport_fail, which
// sends the reason to the others, and they fail with the same reason.
//
// The public part of the interface is in ree/ranks.h.
#ifndef REE_TRANSPORT_TRANSPORT_H
#define REE_TRANSPORT_TRANSPORT_H

#include "ree/ranks.h"
#include "transport/frame.h"
#include "transport/link.h"

// The kinds of messages. The transport itself sends REE_MESSAGE_ALIVE and REE_MESSAGE_ERROR, on the
// control channel.
enum ree_message_kind {
    REE_MESSAGE_HANDSHAKE = 1, // any rank to rank 0: the rank's description
    REE_MESSAGE_WELCOME,       // rank 0 to each rank: all ranks agree
    REE_MESSAGE_CLOCK,         // rank 0 to a rank and back: the rank's clock
    REE_MESSAGE_BEGIN,         // rank to next rank: empty the kv caches of a cache slot
    REE_MESSAGE_STEP,          // rank to next rank: a step and its boundary tensors
    REE_MESSAGE_LOGITS,        // last rank to rank 0: the logits of a step
    REE_MESSAGE_READ,          // rank to next rank: request for positions of the kv caches
    REE_MESSAGE_POSITIONS,     // any rank to rank 0: positions of its kv caches
    REE_MESSAGE_END,           // rank to next rank: there are no more steps
    REE_MESSAGE_REPORT,        // any rank to rank 0: its statistics
    REE_MESSAGE_BYE,           // rank 0 to each rank: close
    REE_MESSAGE_ALIVE,         // a heartbeat
    REE_MESSAGE_ERROR,         // the reason why a rank has failed
    // Trainings (src/train/shared_sums.c):
    REE_MESSAGE_TERMS,  // rank to next rank: the terms of a chunk that the next rank completes
    REE_MESSAGE_TOTAL,  // rank to next rank: a sum over the samples up to here
    REE_MESSAGE_RESULT, // rank to next rank, from the last one on: a sum over all samples
    REE_N_MESSAGE_KINDS,
};
// Returns the name of a kind for error messages, for example "step"; "?" if the kind is unknown.
const char *ree_message_kind_name(uint32_t kind);

struct ree_message {
    uint32_t kind, from;
    uint64_t step;
    uint32_t slot, n_parts;
    struct ree_part *parts; // [n_parts]; their data is in `frame`
    unsigned char *frame;
    size_t nbytes; // size of the frame
    // Transport that received the message and counts its bytes until it is finished.
    struct ree_transport *holder;
};
// Releases a message. Call it before closing the transport that received it.
void ree_message_finish(struct ree_message *message);

struct ree_transport_options {
    double deadline; // seconds that a rank may be silent; 0: REE_TRANSPORT_DEADLINE
    // Seconds that a rank may work between two calls of this interface or of
    // ree_transport_working; 0: REE_TRANSPORT_WORK_DEADLINES times `deadline`.
    double work_deadline;
    // The transport's thread calls it if the run has failed and this rank has not noticed for some
    // seconds, because it is busy with a long operation. Then the thread aborts the link. May be
    // NULL.
    void (*on_lost)(void *user, const char *reason);
    void *user;
    bool quiet; // for tests: start no thread, so send no heartbeats while working
    // For tests: 1-based index of the data message that this rank corrupts before sending; 0: none.
    uint64_t corrupt;
};

// Counts of the messages of one kind that this rank has sent. The bytes include headers.
struct ree_transport_count {
    uint64_t n_messages, nbytes;
};

// Creates a transport over a link. It owns the link, which is closed even if this call fails.
enum ree_status ree_transport_create(struct ree_link *link,
                                     const struct ree_transport_options *options,
                                     struct ree_transport **out, struct ree_error *err);
struct ree_transport_count ree_transport_sent(struct ree_transport *t, enum ree_message_kind kind);
double ree_transport_waited(const struct ree_transport *t); // seconds in ree_transport_receive
// Returns the maximum so far of the bytes of frames in memory: frames being sent, and received
// messages until ree_message_finish.
uint64_t ree_transport_buffered(struct ree_transport *t);

// Starts sending a message to rank `to` on the data channel. Copies the parts; returns before the
// message is sent.
enum ree_status ree_transport_send(struct ree_transport *t, uint32_t to, enum ree_message_kind kind,
                                   uint64_t step, uint32_t slot, const struct ree_part *parts,
                                   size_t n_parts, struct ree_error *err);

// The messages that a receiver accepts.
struct ree_expected {
    uint32_t kinds; // set of accepted kinds: bits 1 << kind
    size_t limit;   // maximum bytes of a whole frame
    uint64_t step;  // the awaited step; only used in error messages
};
// Waits for the next data message from rank `from`; *out must be released with ree_message_finish.
// Fails if
// - the message is corrupt, lost, of another kind, or longer than expected
// - a rank is silent for longer than the deadline, or makes no progress for longer than the work
//   deadline
// - all ranks wait for one another
// - another rank has failed; then *err is that rank's error
// - an earlier call of this function has failed
enum ree_status ree_transport_receive(struct ree_transport *t, uint32_t from,
                                      const struct ree_expected *expected, struct ree_message *out,
                                      struct ree_error *err);
// Monotonic seconds since an unspecified moment, on this rank's clock.
double ree_transport_clock(void);

#endif
