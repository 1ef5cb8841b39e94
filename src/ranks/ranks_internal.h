// Internal state of a rank (ree/ranks.h), shared by the files of this folder.
#ifndef REE_RANKS_INTERNAL_H
#define REE_RANKS_INTERNAL_H

#include "ranks/codec.h"
#include "ranks/ranks.h"

// What a rank does during an interval (span) of its timeline: run its stages, send a message, or
// wait for a message.
enum ree_span_kind { REE_SPAN_RUN, REE_SPAN_SEND, REE_SPAN_WAIT, REE_N_SPAN_KINDS };

struct ree_span {
    double from, to;     // begin and end, in seconds on this rank's clock (ree_transport_clock)
    uint64_t step;       // number of the step, from 0 on; all cache slots together
    uint32_t slot, kind; // cache slot; enum ree_span_kind
};

// Maximum number of spans that a rank records; later spans are dropped.
#define REE_MAX_SPANS ((size_t)1 << 20)

struct ree_spans {
    struct ree_span *list; // (n), owned (ree_alloc)
    size_t n, capacity;
};

// What a rank knows about a cache slot.
struct ree_rank_cache_slot {
    bool begun;               // ranks above 0: rank 0 has begun a group of sequences in the slot
    struct ree_bounds bounds; // ranks above 0: limits for the slot's steps, valid if `begun`
    uint64_t number;          // rank 0: number of the slot's last step
    // rank 0: the message with the slot's logits, received and not yet collected; frame NULL: none
    struct ree_message arrived;
};

struct ree_ranks {
    struct ree_transport *transport;
    struct ree_generator *generator;
    const struct ree_partition *partition;
    size_t n_stages, first, n_local;
    uint32_t rank, n_ranks;
    bool timeline;
    size_t n_cache_slots;
    struct ree_rank_cache_slot *cache_slots;
    uint64_t n_submitted;       // rank 0: number of steps submitted so far
    struct ree_rank_report own; // statistics of this rank
    struct ree_spans spans;     // timeline of this rank
    // rank 0: when it submitted the first step and when it collected the last logits, in seconds
    double first_submit, last_collect;
    // rank 0: largest size in bytes that a message with the logits of any step so far may have
    size_t logits_limit;
    // The next four fields are arrays that only rank 0 uses, with one entry per rank.
    double *offsets;     // the rank's clock minus rank 0's clock, in seconds
    double *round_trips; // shortest time of a message to the rank and back, in seconds
    struct ree_rank_report *reports;
    struct ree_spans *all_spans;
    struct ree_remote *remote; // rank 0: the callbacks that its generator calls; owned
    bool has_ended;            // rank 0: the reports of all other ranks have arrived
};

// handshake.c: the handshake before the first step. Rank 0 calls ree_ranks_check_all, which
// compares what the other ranks send with its own values; the other ranks call ree_ranks_introduce.
enum ree_status ree_ranks_check_all(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options, struct ree_error *err);
enum ree_status ree_ranks_introduce(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options, struct ree_error *err);
// leader.c: called by rank 0; sets the callbacks with which its generator runs steps on all ranks.
enum ree_status ree_ranks_leader(struct ree_ranks *ranks, struct ree_error *err);

// report.c
void ree_ranks_note(struct ree_ranks *ranks, enum ree_span_kind kind, double from, uint64_t step,
                    uint32_t slot);
// Counts a run of this rank's stages that began at `from` (seconds) and has just ended, and adds it
// to the timeline.
void ree_ranks_ran(struct ree_ranks *ranks, const struct ree_step *step, double from,
                   uint64_t number, uint32_t slot);
// Sends a step and its boundary tensors to the next rank. Releases the boundary tensors, also on
// failure.
enum ree_status ree_ranks_pass_on(struct ree_ranks *ranks, const struct ree_step *step,
                                  struct ree_boundary *boundary, uint64_t number, uint32_t slot,
                                  struct ree_error *err);
void ree_ranks_fill_report(struct ree_ranks *ranks);
enum ree_status ree_ranks_send_report(struct ree_ranks *ranks, struct ree_error *err);
enum ree_status ree_ranks_take_report(struct ree_ranks *ranks, uint32_t rank,
                                      struct ree_error *err);

// Waits for a message of at most `limit` bytes from rank `from`; `kinds` has a bit 1 << kind for
// each accepted kind. Records the wait for a step or logits in the timeline. `step` is the step
// that error messages name. Release *out with ree_message_finish.
enum ree_status ree_ranks_receive(struct ree_ranks *ranks, uint32_t from, uint32_t kinds,
                                  size_t limit, uint64_t step, struct ree_message *out,
                                  struct ree_error *err);

#endif
