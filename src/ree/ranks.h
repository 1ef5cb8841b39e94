// One text over several processes, called ranks, on one or more machines. ree.h does not include
// this header. src/ranks/README.md in ree's source describes the protocol.
//
//     rank 0   ree_transport_open_mpi, ree_generator_create, ree_ranks_join; generates as usual
//              (ree_generate sends and receives); ree_ranks_end, ree_ranks_release
//     others   the same up to ree_ranks_join; ree_ranks_serve, which returns when rank 0 ends the
//              run
//     all      ree_ranks_destroy, ree_transport_close
//
// Each rank has the model and runs its own stages. It sends their boundary tensors to the next
// rank, and the last rank sends the logits to rank 0. Any failure ends the run on every rank.
#ifndef REE_RANKS_H
#define REE_RANKS_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_transport; // messages between the ranks
struct ree_ranks;
struct ree_ranks_testing; // testing.h

// In struct ree_generator_options: the number of this process, from 0, and the number of processes.
// Each runs its share of the model's stages. n_ranks 0 or 1: a single process. This struct does not
// change between versions.
struct ree_rank {
    uint32_t rank, n_ranks;
};

#define REE_TRANSPORT_DEADLINE 60       // seconds
#define REE_TRANSPORT_WORK_DEADLINES 10 // deadlines

struct ree_transport_open_options {
    size_t size; // sizeof(struct ree_transport_open_options)
    // Seconds that a rank may be silent, and that MPI may take to start; 0: REE_TRANSPORT_DEADLINE.
    double deadline;
    // Seconds that a rank may take between two calls of ree_transport_working; 0:
    // REE_TRANSPORT_WORK_DEADLINES times the deadline.
    double work_deadline;
    // The transport's thread calls this if the run has failed while this rank is busy with a long
    // operation and does not notice. When it returns, all ranks are ended. NULL: off.
    void (*on_lost)(void *user, const char *reason);
    void *user;
    const struct ree_ranks_testing *testing; // NULL: none
};

// Whether mpirun started this process as one of several; checks only environment variables.
REE_API bool ree_transport_started(void);
// Starts MPI and connects the ranks. Loads the module ree_mpi.so, which is next to the program or
// libree.so, or in lib/ree of the installation. Fails with REE_UNAVAILABLE if ree was built without
// MPI. If starting or ending MPI takes longer than the deadline, the process ends with exit code 1
// and a message. `options` may be NULL. Release with ree_transport_close or ree_transport_fail.
REE_API enum ree_status ree_transport_open_mpi(const struct ree_transport_open_options *options,
                                               struct ree_transport **out_transport,
                                               struct ree_error *err);
REE_API uint32_t ree_transport_rank(const struct ree_transport *transport);
REE_API uint32_t ree_transport_n_ranks(const struct ree_transport *transport);
// Reports that this rank makes progress, and sends and receives pending messages without blocking.
// Call it from the progress callbacks of models and sessions, from any thread. Errors are returned
// by the next operation that receives.
REE_API void ree_transport_working(struct ree_transport *transport);
// After a failure: sends the reason to all ranks, waits some seconds so that they can print it, and
// ends all processes with exit code `code`. Over MPI it does not return; otherwise it releases the
// transport.
REE_API void ree_transport_fail(struct ree_transport *transport, const char *reason, int code);
// After a success: closes and releases the transport. Call it on all ranks after everything was
// sent and received. Accepts NULL.
REE_API void ree_transport_close(struct ree_transport *transport);

struct ree_ranks_options {
    size_t size; // sizeof(struct ree_ranks_options)
    // Options that affect the output bits or the protocol and must be equal on all ranks. One line
    // per option: name, tab, value. A difference is reported by its name. NULL: none.
    const char *agreed;
    bool timeline;                           // rank 0: record the activity of every rank over time
    const struct ree_ranks_testing *testing; // NULL: none
};

// Checks before the first step that all ranks agree: versions, model, plan, options, and the
// SHA-256 of the weights of each rank's stages. If they do not, fails on every rank with the
// reason. The generator must have been created with this process in options.rank. Afterwards the
// generator of rank 0 runs the whole model: the other ranks run their stages for it. The transport
// and the generator must outlive the result. `options` may be NULL.
REE_API enum ree_status ree_ranks_join(struct ree_transport *transport,
                                       struct ree_generator *generator,
                                       const struct ree_ranks_options *options,
                                       struct ree_ranks **out_ranks, struct ree_error *err);
// All ranks except 0: runs steps until rank 0 ends the run.
REE_API enum ree_status ree_ranks_serve(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0: ends the run on the other ranks and receives their reports.
REE_API enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0: lets the other ranks return from ree_ranks_serve. Call it after ree_ranks_end, when rank
// 0 has done all its work on the result; that may take long. Accepts NULL.
REE_API enum ree_status ree_ranks_release(struct ree_ranks *ranks, struct ree_error *err);
REE_API void ree_ranks_destroy(struct ree_ranks *ranks);

// Statistics of a rank. Message counts and bytes are of sent messages, headers included. Made by
// the library. Later versions may add fields at the end.
struct ree_rank_report {
    // Steps; decode steps, which have one new token per sequence; tokens of decode steps.
    uint64_t n_steps, n_decode_steps, n_decode_tokens;
    uint64_t step_nbytes, n_step_messages; // all messages with boundary tensors
    uint64_t decode_nbytes;                // part of step_nbytes that belongs to decode steps
    uint64_t logits_nbytes, n_logits_messages;
    uint64_t heartbeat_nbytes, n_heartbeats;
    uint64_t other_nbytes, n_other_messages; // handshake, reports
    uint64_t resident_nbytes;                // resident memory of the process at the end
    uint64_t weight_nbytes;                  // weights of its stages
    uint64_t cache_nbytes;                   // kv caches of its stages
    uint64_t buffered_nbytes;                // peak bytes of messages held at once
    double busy, waited;                     // seconds running stages; seconds in receives
    double round_trip; // shortest round trip of a message to rank 0, in seconds
};

// The following functions are valid on rank 0 after ree_ranks_end.

// The number of ranks, and the report of one of them (rank < ree_ranks_n), borrowed.
REE_API size_t ree_ranks_n(const struct ree_ranks *ranks);
REE_API const struct ree_rank_report *ree_ranks_report(const struct ree_ranks *ranks, size_t rank);
// The sum of all ranks' busy time divided by the time from the first step to the last logits. Above
// 1 only if ranks worked at the same time.
REE_API double ree_ranks_overlap(const struct ree_ranks *ranks);
// Writes the timeline, if it was requested, in Chrome's trace format (chrome://tracing,
// ui.perfetto.dev).
REE_API enum ree_status ree_ranks_save_timeline(const struct ree_ranks *ranks, const char *path,
                                                struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
