// A generator whose stages run in several processes, "ranks", on as many machines. Rank 0 has the
// tokenizer, samples and prints; each of the others has the model, too, runs its stages and passes
// on what crosses the cut behind them; the last gives rank 0 the logits. README.md.
//
// Rank 0:   join, generate as ever (the generator sends and receives), end.
// Others:   join, serve until rank 0 ends.
#ifndef REE_RANKS_RANKS_H
#define REE_RANKS_RANKS_H

#include "base/strbuf.h"
#include "generate/generator.h"
#include "transport/transport.h"

struct ree_ranks_options {
    // What shapes the bits or the protocol and has to be the same on all ranks, as lines of a name,
    // a tab and a value; a difference is reported by its name.
    const char *agreed;
    const char *numerics; // claimed in place of ree_numerics_version: for tests; NULL: the truth
    bool timeline;        // rank 0: keep what every rank does when
};

struct ree_ranks;

// Shows all ranks to be of one mind before anything runs: versions, model, plan, options, and the
// SHA-256 of the weights of each rank's stages. Fails on every rank with the reason. The generator
// has been made with the stages of this rank; rank 0's runs with the other ranks' from here on. The
// transport and the generator have to outlive the result.
enum ree_status ree_ranks_join(struct ree_transport *transport, struct ree_generator *generator,
                               const struct ree_ranks_options *options, struct ree_ranks **out,
                               struct ree_error *err);
// Ranks other than 0: runs steps until rank 0 ends.
enum ree_status ree_ranks_serve(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0: ends the others and takes their reports.
enum ree_status ree_ranks_end(struct ree_ranks *ranks, struct ree_error *err);
// Rank 0, after that, when it has done everything that it does with the result, which may take
// long: lets the others go, who wait until then. Accepts NULL.
enum ree_status ree_ranks_dismiss(struct ree_ranks *ranks, struct ree_error *err);
void ree_ranks_destroy(struct ree_ranks *ranks);
// For on_progress of models and sessions: signs of life, while a rank loads or runs for long.
// `user` is a struct ree_transport.
void ree_ranks_progress(void *user, const char *what, uint64_t done, uint64_t total);

// What a rank did. Of the wire: what it sent, headers included.
struct ree_rank_report {
    uint64_t n_steps, n_decode_steps, n_decode_tokens; // decode: steps of one token of each
                                                       // sequence; their tokens
    uint64_t step_nbytes, n_step_messages;             // all messages that carry parcels
    uint64_t decode_nbytes;                            // of these, of decode steps
    uint64_t logits_nbytes, n_logits_messages;
    uint64_t sign_nbytes, n_signs;           // signs of life
    uint64_t other_nbytes, n_other_messages; // handshake, reports
    uint64_t resident_nbytes;                // of the process, at the end
    uint64_t weight_nbytes;                  // of its stages
    uint64_t cache_nbytes;
    uint64_t buffered_nbytes; // most bytes of messages held at once
    double busy, waited;      // seconds: running stages; in receives
    double round_trip;        // seconds, of the shortest message to rank 0 and back
};

// After ree_ranks_end, on rank 0.
size_t ree_ranks_n(const struct ree_ranks *ranks);
const struct ree_rank_report *ree_ranks_report(const struct ree_ranks *ranks, size_t rank);
// The sum of all ranks' busy time by the time from the first step to the last logits: above 1 only
// where ranks work at the same time.
double ree_ranks_overlap(const struct ree_ranks *ranks);
// The picture of the run as Chrome's trace format (chrome://tracing, ui.perfetto.dev).
enum ree_status ree_ranks_save_timeline(const struct ree_ranks *ranks, const char *path,
                                        struct ree_error *err);

#endif
