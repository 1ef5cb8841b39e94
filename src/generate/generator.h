// A language model ready to be run step by step. A step takes as many new tokens of each sequence
// of a batch, and gives the logits of those that are asked for.
//
// Two kinds of models. Those whose queries see the keys of positions up to their own, whatever lies
// behind (metadata ree.format, which ree's own exports have), may hold sequences of different
// lengths: their caches have rows beyond a sequence's end, which are masked, and a bind serves
// until the longest sequence passes a multiple of 256. All others hold sequences of one length, and
// are bound for each length anew.
#ifndef REE_GENERATE_GENERATOR_H
#define REE_GENERATE_GENERATOR_H

#include "generate/roles.h"
#include "ree.h"
#include "session/pipeline.h"

struct ree_remote;

struct ree_generator {
    struct ree_model *model;
    struct ree_pipeline *pipeline;
    struct ree_flight *flights; // per set
    struct ree_generator_options options;
    struct ree_model_source source;
    struct ree_roles roles;
    struct ree_generator_info info;
    const struct ree_remote *remote; // other processes that run stages (remote.h); NULL: none
};

struct ree_step {
    size_t batch;
    size_t length;         // new tokens of each sequence
    const int32_t *ids;    // (batch, length)
    const int64_t *starts; // (batch): position of each sequence's first new token; all equal unless
                           // the generator mixes lengths
    size_t n_rows;         // tokens of each sequence whose logits are wanted
    const int64_t *rows;   // (batch, n_rows): which, counted from the first new token
};

// An input of a step, made from the step alone: token ids, positions, masks, lengths. `input` must
// not be a cache. `total` is the number of tokens that the attention mask covers. Release *out with
// ree_tensor_finish, also on failure.
enum ree_status ree_step_input(const struct ree_model *model, const struct ree_roles *roles,
                               const struct ree_step *step, int64_t total, size_t input,
                               struct ree_tensor *out, struct ree_error *err);

// A step in flight.
struct ree_flight {
    struct ree_step step;
    size_t n_inputs;
    struct ree_tensor *inputs; // NULL: none is in flight here
    bool is_remote;            // one is in flight over several processes
};
void ree_flight_finish(struct ree_flight *flight);

// A set is a group of sequences with caches of its own, from 0 to options.n_sets - 1. Steps of
// different sets may be in flight at the same time, one of each set.

// Empties the caches of a set for `batch` sequences of at most `most` tokens.
enum ree_status ree_generator_begin(struct ree_generator *g, size_t set, size_t batch, int64_t most,
                                    struct ree_error *err);
// Begins a step; its arrays have to live until it is collected.
enum ree_status ree_generator_submit(struct ree_generator *g, size_t set,
                                     const struct ree_step *step, struct ree_error *err);
// Waits for the set's step. *out_logits is float32 (batch, n_rows, vocab_size), made by this call.
enum ree_status ree_generator_collect(struct ree_generator *g, size_t set,
                                      struct ree_tensor *out_logits, struct ree_error *err);
// The stages of a step that run in this process, now: for those who bring parcels from process to
// process. `in` is what the stage before gave (NULL for the first stage) and is used up; one of
// `out` and `out_logits` is made, the other NULL: logits by the process that has the last stage.
enum ree_status ree_generator_run_stages(struct ree_generator *g, size_t set,
                                         const struct ree_step *step, struct ree_parcel *in,
                                         struct ree_parcel *out, struct ree_tensor *out_logits,
                                         struct ree_error *err);
// Both, on set 0.
enum ree_status ree_generator_step(struct ree_generator *g, const struct ree_step *step,
                                   struct ree_tensor *out_logits, struct ree_error *err);

// The caches of a set, while it has no step in flight.
int64_t ree_generator_cache_rows(const struct ree_generator *g, size_t set); // filled ones
uint64_t ree_generator_cache_bytes(const struct ree_generator *g, size_t set);
// roles.n_states tensors as ree_pipeline_read_states makes them.
enum ree_status ree_generator_read_caches(struct ree_generator *g, size_t set, int64_t sequence,
                                          int64_t first, int64_t n, struct ree_tensor *out,
                                          struct ree_error *err);

#endif
