// A generator whose stages run in several processes, called ranks, on one or more machines. Rank 0
// has the tokenizer, samples and prints. Each other rank also has the model, runs its own stages
// and sends their boundary tensors to the next rank. The last rank sends the logits to rank 0.
// README.md.
//
//     rank 0   join, generate as usual (the generator sends and receives), end
//     others   join, serve until rank 0 ends the run
#ifndef REE_RANKS_RANKS_H
#define REE_RANKS_RANKS_H

#include "base/strbuf.h"
#include "generate/generator.h"
#include "transport/transport.h"

struct ree_ranks_options {
    // Options that affect the output bits or the protocol and must be equal on all ranks. One line
    // per option: name, tab, value. A difference is reported by its name.
    const char *agreed;
    // for tests: claimed instead of ree_numerics_version; NULL: the real version
    const char *numerics;
    bool timeline; // rank 0: record the activity of every rank over time
};

struct ree_ranks;

// Checks before the first step that all ranks agree: versions, model, plan, options, and the
// SHA-256 of the weights of each rank's stages. Fails on every rank with the reason. The generator
// must have been created with this rank's stages. Afterwards rank 0's generator also runs the
// stages of the other ranks. The transport and the generator must outlive the result.
enum ree_status ree_ranks_join(struct ree_transport *transport, struct ree_generator *generator,
                               const struct ree_ranks_options *options, struct ree_ranks **out,
                               struct ree_error *err);
// All ranks except 0: runs steps until rank 0 ends the run.
enum ree_status ree_ranks_serve(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0: ends the run on the other ranks and receives their reports.
enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0: releases the other ranks, which wait for this call before they exit. Call it after
// ree_ranks_end, when all work on the result is done, which may take long. Accepts NULL.
enum ree_status ree_ranks_release(struct ree_ranks *ranks, struct ree_error *err);
void ree_ranks_destroy(struct ree_ranks *ranks);
// For on_progress of models and sessions: reports to the transport that this rank makes progress
// during a long load or run. `user` is a struct ree_transport.
void ree_ranks_progress(void *user, const char *what, uint64_t done, uint64_t total);

// Statistics of a rank. Message counts and bytes are of sent messages, headers included.
struct ree_rank_report {
    // Steps; decode steps, which have one new token per sequence; tokens of decode steps.
    uint64_t n_steps, n_decode_steps, n_decode_tokens;
    uint64_t step_nbytes, n_step_messages; // all messages with boundary tensors
    uint64_t decode_nbytes;                // part of step_nbytes that belongs to decode steps
    uint64_t logits_nbytes, n_logits_messages;
    uint64_t heartbeat_nbytes, n_heartbeats; // heartbeats
    uint64_t other_nbytes, n_other_messages; // handshake, reports
    uint64_t resident_nbytes;                // resident memory of the process at the end
    uint64_t weight_nbytes;                  // weights of its stages
    uint64_t cache_nbytes;
    uint64_t buffered_nbytes; // peak bytes of messages held at once
    double busy, waited;      // seconds running stages; seconds in receives
    double round_trip;        // shortest round trip of a message to rank 0, in seconds
};

// Valid on rank 0 after ree_ranks_end.
size_t ree_ranks_n(const struct ree_ranks *ranks);
const struct ree_rank_report *ree_ranks_report(const struct ree_ranks *ranks, size_t rank);
// The sum of all ranks' busy time divided by the time from the first step to the last logits. Above
// 1 only if ranks worked at the same time.
double ree_ranks_overlap(const struct ree_ranks *ranks);
// Writes the timeline in Chrome's trace format (chrome://tracing, ui.perfetto.dev).
enum ree_status ree_ranks_save_timeline(const struct ree_ranks *ranks, const char *path,
                                        struct ree_error *err);

#endif
