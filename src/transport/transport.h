// Messages between the ranks of a run: checked, in order, with deadlines. README.md describes the
// protocol, frame.h the bytes.
//
// A thread of the transport sends heartbeats, whatever the rank is doing. So all other ranks can
// name a rank that is silent (dead, stopped, or cut off), even if they do not wait for it directly.
// If a rank's thread lives but its work makes no progress, its heartbeats show this.
//
// Any failure ends the run on every rank: the rank that detects it calls ree_transport_fail, which
// sends the reason to the others, and they fail with the same reason.
// The public part is in ree/ranks.h.
#ifndef REE_TRANSPORT_TRANSPORT_H
#define REE_TRANSPORT_TRANSPORT_H

#include "ree/ranks.h"
#include "transport/frame.h"
#include "transport/link.h"

// The kinds of messages. Only the transport itself sends the last two.
enum ree_message_kind {
    REE_MESSAGE_HANDSHAKE = 1, // any rank to rank 0: the rank's description
    REE_MESSAGE_WELCOME,       // rank 0 to each rank: all ranks agree
    REE_MESSAGE_CLOCK,         // rank 0 to a rank and back: the rank's clock
    REE_MESSAGE_BEGIN,         // rank to next rank: empty the kv caches of a slot
    REE_MESSAGE_STEP,          // rank to next rank: a step and its boundary tensors
    REE_MESSAGE_LOGITS,        // last rank to rank 0
    REE_MESSAGE_READ,          // rank to next rank: request for positions of the kv caches
    REE_MESSAGE_POSITIONS,     // any rank to rank 0: positions of its kv caches
    REE_MESSAGE_END,           // rank to next rank: there are no more steps
    REE_MESSAGE_REPORT,        // any rank to rank 0: its statistics
    REE_MESSAGE_BYE,           // rank 0 to each rank: close
    REE_MESSAGE_ALIVE,
    REE_MESSAGE_ERROR,
    REE_N_MESSAGE_KINDS,
};
const char *ree_message_kind_name(uint32_t kind); // "hello", ...; "?": unknown

struct ree_message {
    uint32_t kind, from;
    uint64_t step;
    uint32_t slot, n_parts;
    struct ree_part *parts; // in `frame`
    unsigned char *frame;
    size_t nbytes; // size of the frame
    // Transport that received the message and counts its bytes until it is finished.
    struct ree_transport *holder;
};
// Releases a message. Call it before closing the transport that received it.
void ree_message_finish(struct ree_message *message);

struct ree_transport_options {
    double deadline; // seconds that a rank may be silent; 0: REE_TRANSPORT_DEADLINE
    // Seconds that a rank may take between two calls of this interface; 0:
    // REE_TRANSPORT_WORK_DEADLINES times the deadline.
    double work_deadline;
    // Called by the transport's thread if the run has failed and this rank, busy with a long
    // operation, does not notice. Afterwards the link is aborted.
    void (*on_lost)(void *user, const char *reason);
    void *user;
    bool quiet; // for tests: do not start that thread
    // For tests: 1-based index of the data message that this rank corrupts before sending; 0: none.
    uint64_t corrupt;
};

// Messages sent by this rank; bytes include headers.
struct ree_transport_count {
    uint64_t n_messages, nbytes;
};

// Takes ownership of the link, even on failure.
enum ree_status ree_transport_create(struct ree_link *link,
                                     const struct ree_transport_options *options,
                                     struct ree_transport **out, struct ree_error *err);
struct ree_transport_count ree_transport_sent(struct ree_transport *t, enum ree_message_kind kind);
double ree_transport_waited(const struct ree_transport *t); // seconds spent in all receives
// Peak bytes of frames held at once: frames being sent, and received frames until they are
// finished.
uint64_t ree_transport_buffered(struct ree_transport *t);

// Copies the parts and returns; the message is sent while this rank continues.
enum ree_status ree_transport_send(struct ree_transport *t, uint32_t to, enum ree_message_kind kind,
                                   uint64_t step, uint32_t slot, const struct ree_part *parts,
                                   size_t n_parts, struct ree_error *err);

// The messages that a receiver accepts.
struct ree_expected {
    uint32_t kinds; // bits 1 << kind
    size_t limit;   // maximum bytes of a whole frame
    uint64_t step;  // for error messages: the step that is waited for
};
// Waits for the next data message from `from`. Fails if
// - the message is corrupt, lost, of another kind, or longer than expected
// - a rank is silent for longer than the deadline, or makes no progress for longer than the work
//   deadline
// - all ranks wait for one another
// - a rank has failed; the reason is then that rank's
enum ree_status ree_transport_receive(struct ree_transport *t, uint32_t from,
                                      const struct ree_expected *expected, struct ree_message *out,
                                      struct ree_error *err);
// Monotonic seconds since an unspecified moment, on this rank's clock.
double ree_transport_clock(void);

#endif
