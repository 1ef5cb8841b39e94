// Messages between the ranks of a run: checked, in order, with deadlines. README.md has the
// protocol; frame.h the bytes.
//
// A thread of the transport sends signs of life, whatever the rank is doing. So a rank from which
// nothing comes (it is dead, stopped, or cut off) is named by all the others, however far behind it
// they wait. One whose thread lives, but which does not get on with its work, is found by what its
// signs say.
//
// Any failure ends the run on every rank: whoever meets one calls ree_transport_fail, which tells
// the others why, and they fail with the same reason.
#ifndef REE_TRANSPORT_TRANSPORT_H
#define REE_TRANSPORT_TRANSPORT_H

#include "transport/frame.h"
#include "transport/link.h"

// What messages carry. The last two kinds are transport.c's own.
enum ree_message_kind {
    REE_MESSAGE_HELLO = 1, // a rank to rank 0: what it is and has
    REE_MESSAGE_WELCOME,   // rank 0 to a rank: all agree
    REE_MESSAGE_CLOCK,     // rank 0 to a rank and back: what time is it
    REE_MESSAGE_BEGIN,     // down the line: empty the caches of a set
    REE_MESSAGE_STEP,      // down the line: a step and the values that cross the cut
    REE_MESSAGE_LOGITS,    // the last rank to rank 0
    REE_MESSAGE_READ,      // down the line: rows of the caches are wanted
    REE_MESSAGE_ROWS,      // a rank to rank 0: those of its caches
    REE_MESSAGE_END,       // down the line: there are no more steps
    REE_MESSAGE_REPORT,    // a rank to rank 0: what it did
    REE_MESSAGE_BYE,       // rank 0 to a rank: close
    REE_MESSAGE_ALIVE,
    REE_MESSAGE_ERROR,
    REE_N_MESSAGE_KINDS,
};
const char *ree_message_kind_name(uint32_t kind); // "hello", ...; "?"

struct ree_message {
    uint32_t kind, from;
    uint64_t step;
    uint32_t set, n_parts;
    struct ree_part *parts; // in `frame`
    unsigned char *frame;
    size_t nbytes;                // of the frame
    struct ree_transport *holder; // that it came by, which counts it until it is finished
};
// Those of a transport: before that is closed.
void ree_message_finish(struct ree_message *message);

struct ree_transport_options {
    double deadline; // seconds that a rank may be silent; 0: REE_TRANSPORT_DEADLINE
    // Seconds that a rank may be at one and the same thing, between two calls of this interface;
    // 0: so many deadlines.
    double work_deadline;
    // Called by the transport's thread when the run is lost and this rank does not notice, since it
    // is in the midst of something; then the link is aborted.
    void (*on_lost)(void *user, const char *reason);
    void *user;
    bool quiet; // for tests: without that thread
    // For tests: the how manieth message (from 1) of data this rank damages before sending; 0:
    // none.
    uint64_t corrupt;
};
#define REE_TRANSPORT_DEADLINE 60
#define REE_TRANSPORT_WORK_DEADLINES 10

// What went over the wire, from this rank, headers included.
struct ree_transport_count {
    uint64_t n_messages, nbytes;
};

struct ree_transport;

// Takes over the link, also on failure.
enum ree_status ree_transport_create(struct ree_link *link,
                                     const struct ree_transport_options *options,
                                     struct ree_transport **out, struct ree_error *err);
uint32_t ree_transport_rank(const struct ree_transport *t);
uint32_t ree_transport_n_ranks(const struct ree_transport *t);
struct ree_transport_count ree_transport_sent(struct ree_transport *t, enum ree_message_kind kind);
double ree_transport_waited(const struct ree_transport *t); // seconds, in all receives
// Most bytes of frames held at once: of those on their way, and of those received until they are
// finished.
uint64_t ree_transport_buffered(struct ree_transport *t);

// Takes a copy of the parts and returns; the message goes while this rank does other things.
enum ree_status ree_transport_send(struct ree_transport *t, uint32_t to, enum ree_message_kind kind,
                                   uint64_t step, uint32_t set, const struct ree_part *parts,
                                   size_t n_parts, struct ree_error *err);

// What a receiver is ready for.
struct ree_expected {
    uint32_t kinds; // bits 1 << kind
    size_t limit;   // bytes of a whole frame
    uint64_t step;  // named in messages about what is missing
};
// Waits for the next message of data from `from`. Fails where it is damaged, lost, of another kind
// or longer than expected, where a rank is silent for longer than the deadline, and with its
// reason where a rank has failed.
enum ree_status ree_transport_receive(struct ree_transport *t, uint32_t from,
                                      const struct ree_expected *expected, struct ree_message *out,
                                      struct ree_error *err);
// This rank gets on with its work; lets messages go and arrive, without waiting. For ranks at work:
// call it now and then, from any thread. Errors are left to the next receive.
void ree_transport_working(struct ree_transport *t);

// Tells all ranks why this one ends, gives them a moment to say so, and ends them with `code`. Over
// MPI it does not return.
void ree_transport_fail(struct ree_transport *t, const char *reason, int code);
// When all has been sent and received, on all ranks. Accepts NULL.
void ree_transport_close(struct ree_transport *t);

// Seconds since some moment, on this rank's clock.
double ree_transport_clock(void);

#endif
