// Runs one model in several processes, called ranks, on one machine or several. ree.h does not
// include this header. src/ranks/README.md in ree's source describes the protocol. The order of
// calls:
//
//     all      ree_transport_open_mpi, ree_generator_create, ree_ranks_join
//     rank 0   ree_generate, ...: as in a single process; it sends and receives messages
//              ree_ranks_end, ree_ranks_release
//     others   ree_ranks_serve, which returns after ree_ranks_release
//     all      ree_ranks_destroy, ree_transport_close
//
// Each rank has the whole model and runs its share of the stages. It sends the boundary tensors to
// the next rank; the last rank sends the logits to rank 0. Any failure ends the run on every rank.
#ifndef REE_RANKS_H
#define REE_RANKS_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_transport; // carries messages between the ranks
struct ree_ranks;
struct ree_ranks_testing; // testing.h

// The number of this process, counted from 0, and the number of processes; for `rank` of struct
// ree_generator_options. Each process runs its share of the model's stages. n_ranks 0 or 1: there
// is only one process. This struct does not change between versions.
struct ree_rank {
    uint32_t rank, n_ranks;
};

#define REE_TRANSPORT_DEADLINE 60       // default of `deadline`, in seconds
#define REE_TRANSPORT_WORK_DEADLINES 10 // default of `work_deadline`, as a multiple of `deadline`

struct ree_transport_open_options {
    size_t size; // sizeof(struct ree_transport_open_options)
    // Maximum seconds for which a rank may send nothing, and for MPI to start; 0 means
    // REE_TRANSPORT_DEADLINE.
    double deadline;
    // Maximum seconds for which a rank may report no progress (ree_transport_working); 0 means
    // REE_TRANSPORT_WORK_DEADLINES times the deadline.
    double work_deadline;
    // Called by the transport's thread if the run has failed and this rank does not notice, because
    // it is busy with a long operation. After the call returns, all ranks are ended. NULL: off.
    void (*on_lost)(void *user, const char *reason);
    void *user;
    const struct ree_ranks_testing *testing; // NULL: none
};

// Returns whether mpirun started this process as one of several. Checks only environment variables.
REE_API bool ree_transport_started(void);
// Starts MPI and connects the ranks. Loads the module ree_mpi.so, which is next to the program or
// libree.so, or in lib/ree of the installation. Fails with REE_UNAVAILABLE if ree was built without
// MPI. If starting or ending MPI takes longer than the deadline, the process ends with exit code 1
// and a message. `options` may be NULL. Release *out_transport with ree_transport_close or, after a
// failure of the run, ree_transport_fail.
REE_API enum ree_status ree_transport_open_mpi(const struct ree_transport_open_options *options,
                                               struct ree_transport **out_transport,
                                               struct ree_error *err);
REE_API uint32_t ree_transport_rank(const struct ree_transport *transport);
REE_API uint32_t ree_transport_n_ranks(const struct ree_transport *transport);
// Reports that this rank makes progress. Also sends and receives pending messages, without
// blocking. Call it from the progress callbacks of models and sessions; any thread may call it. If
// it finds an error, the next operation that receives a message returns it.
REE_API void ree_transport_working(struct ree_transport *transport);
// Call it after a failure: sends the reason to all ranks, waits some seconds so that they can print
// it, and ends all processes with exit code `code`. Over MPI it does not return; otherwise it
// releases the transport.
REE_API void ree_transport_fail(struct ree_transport *transport, const char *reason, int code);
// Call it after a success, on all ranks, when everything was sent and received: closes and releases
// the transport. Accepts NULL.
REE_API void ree_transport_close(struct ree_transport *transport);

struct ree_ranks_options {
    size_t size; // sizeof(struct ree_ranks_options)
    // The caller's options that must be equal on all ranks, because the output bits or the protocol
    // depend on them. One line per option: name, tab, value, newline. If values differ,
    // ree_ranks_join fails with the option's name. NULL: none.
    const char *agreed;
    bool timeline; // record when this rank runs, sends and waits, for ree_ranks_save_timeline
    const struct ree_ranks_testing *testing; // NULL: none
};

// Connects a generator with the generators of the other ranks. Rank 0 checks that all ranks have
// the same versions, model, plan and options, and that each rank's stages have the right weights.
// If not, the call fails on rank 0 with the reason, and on the other ranks when rank 0 then calls
// ree_transport_fail. The generator must have been created with this process in options.rank.
// Afterwards the generator of rank 0 runs the whole model: the other ranks run their stages for it.
// The transport and the generator must outlive *out_ranks, which is released with
// ree_ranks_destroy. `options` may be NULL.
REE_API enum ree_status ree_ranks_join(struct ree_transport *transport,
                                       struct ree_generator *generator,
                                       const struct ree_ranks_options *options,
                                       struct ree_ranks **out_ranks, struct ree_error *err);
// For all ranks except 0: runs this rank's stages for the steps of rank 0, until rank 0 has called
// ree_ranks_end and ree_ranks_release.
REE_API enum ree_status ree_ranks_serve(struct ree_ranks *ranks, struct ree_error *err);
// For rank 0: tells the other ranks that there are no more steps, and receives their reports.
REE_API enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err);
// For rank 0: lets the other ranks return from ree_ranks_serve. Call it after ree_ranks_end, when
// rank 0 has completed its own work on the result, such as a receipt, which may take long. Accepts
// NULL.
REE_API enum ree_status ree_ranks_release(struct ree_ranks *ranks, struct ree_error *err);
REE_API void ree_ranks_destroy(struct ree_ranks *ranks);

// Statistics of a rank. Numbers and bytes of messages count the messages that the rank sent, with
// their headers. Only the library makes this struct. Later versions may add fields at the end.
struct ree_rank_report {
    // Number of steps; of decode steps, which have one new token per sequence; of tokens in decode
    // steps.
    uint64_t n_steps, n_decode_steps, n_decode_tokens;
    uint64_t step_nbytes, n_step_messages;     // messages with steps and their boundary tensors
    uint64_t decode_nbytes;                    // the part of step_nbytes that decode steps sent
    uint64_t logits_nbytes, n_logits_messages; // messages with logits
    uint64_t heartbeat_nbytes, n_heartbeats;   // heartbeats
    uint64_t other_nbytes, n_other_messages;   // messages other than steps, logits, heartbeats
    uint64_t resident_nbytes;                  // resident memory of the process at the end
    uint64_t weight_nbytes;                    // size of the weights of the rank's stages
    uint64_t cache_nbytes;                     // size of the kv caches of the rank's stages
    uint64_t buffered_nbytes; // peak size of the messages that the rank held at one time
    double busy, waited;      // seconds running stages; seconds waiting for messages
    double round_trip;        // shortest time of a message from rank 0 and back, in seconds
};

// Rank 0 may call the functions below after ree_ranks_end.

// ree_ranks_n returns the number of ranks. ree_ranks_report returns the report of rank `rank`, less
// than ree_ranks_n, borrowed.
REE_API size_t ree_ranks_n(const struct ree_ranks *ranks);
REE_API const struct ree_rank_report *ree_ranks_report(const struct ree_ranks *ranks, size_t rank);
// Returns the sum of the `busy` times of all ranks, divided by the time from the first step to the
// last logits. The result is above 1 only if ranks worked at the same time.
REE_API double ree_ranks_overlap(const struct ree_ranks *ranks);
// Writes the timeline of all ranks (options.timeline) to the file `path`, in Chrome's trace format
// (chrome://tracing, ui.perfetto.dev).
REE_API enum ree_status ree_ranks_save_timeline(const struct ree_ranks *ranks, const char *path,
                                                struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
