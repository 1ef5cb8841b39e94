// Declarations shared by the files of this module.
#ifndef REE_RANKS_INTERNAL_H
#define REE_RANKS_INTERNAL_H

#include "ranks/codec.h"
#include "ranks/ranks.h"

// An interval of a rank's activity in the timeline.
enum ree_span_kind { REE_SPAN_RUN, REE_SPAN_SEND, REE_SPAN_WAIT, REE_N_SPAN_KINDS };

struct ree_span {
    double from, to; // seconds on this rank's clock
    uint64_t step;
    uint32_t slot, kind;
};

// Maximum number of spans recorded.
#define REE_MAX_SPANS ((size_t)1 << 20)

struct ree_spans {
    struct ree_span *list; // malloc
    size_t n, capacity;
};

// A cache slot that is in use.
struct ree_rank_cache_slot {
    bool begun;
    struct ree_bounds bounds;
    int64_t positions;          // rank 0: positions filled in the kv caches
    uint64_t number;            // rank 0: number of the step in flight
    struct ree_message arrived; // rank 0: logits received and not yet collected
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
    uint64_t n_submitted; // rank 0: steps submitted
    struct ree_rank_report own;
    struct ree_spans spans;
    double first_submit, last_collect; // rank 0: times in seconds
    size_t logits_limit;               // rank 0: maximum for all steps so far
    // Rank 0: one entry per rank.
    double *offsets; // the rank's clock minus rank 0's
    double *round_trips;
    struct ree_rank_report *reports;
    struct ree_spans *all_spans;
    struct ree_remote *remote; // rank 0: the generator's callbacks
    bool has_ended;            // rank 0: the others have reported
};

// handshake.c: the two sides of the handshake.
enum ree_status ree_ranks_check_all(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options, struct ree_error *err);
enum ree_status ree_ranks_introduce(struct ree_ranks *ranks,
                                    const struct ree_ranks_options *options, struct ree_error *err);
// leader.c: makes rank 0's generator run with the other ranks.
enum ree_status ree_ranks_leader(struct ree_ranks *ranks, struct ree_error *err);

// report.c
void ree_ranks_note(struct ree_ranks *ranks, enum ree_span_kind kind, double from, uint64_t step,
                    uint32_t slot);
// Records a run of the local stages that has just ended.
void ree_ranks_ran(struct ree_ranks *ranks, const struct ree_step *step, double from,
                   uint64_t number, uint32_t slot);
// Sends the step and its boundary tensors to the next rank; releases the boundary tensors.
enum ree_status ree_ranks_pass_on(struct ree_ranks *ranks, const struct ree_step *step,
                                  struct ree_boundary *boundary, uint64_t number, uint32_t slot,
                                  struct ree_error *err);
void ree_ranks_fill_report(struct ree_ranks *ranks);
enum ree_status ree_ranks_send_report(struct ree_ranks *ranks, struct ree_error *err);
enum ree_status ree_ranks_take_report(struct ree_ranks *ranks, uint32_t rank,
                                      struct ree_error *err);

// Waits for a message of one of these kinds (bits 1 << kind) and records the waiting time.
enum ree_status ree_ranks_receive(struct ree_ranks *ranks, uint32_t from, uint32_t kinds,
                                  size_t limit, uint64_t step, struct ree_message *out,
                                  struct ree_error *err);

#endif
