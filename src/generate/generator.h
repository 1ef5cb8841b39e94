// A language model that runs step by step. A step runs the same number of new tokens for each
// sequence of a batch and returns the requested logits.
//
// There are two kinds of models. Models of the first kind have the metadata ree.format, as ree's
// own exports do, and are proved to be causal: queries see only keys of positions up to their own.
// They may batch sequences of different lengths: their kv caches have masked positions beyond a
// sequence's end, and a bind serves until the longest sequence passes a multiple of 256. All other
// models batch only sequences of one length, and are bound again for each length.
#ifndef REE_GENERATE_GENERATOR_H
#define REE_GENERATE_GENERATOR_H

#include "generate/causality.h"
#include "generate/roles.h"
#include "ree.h"
#include "ree/ranks.h"
#include "pipeline/pipeline.h"
#include "session/identity.h"

struct ree_remote;

struct ree_generator {
    struct ree_model *model;
    struct ree_pipeline *pipeline;
    struct ree_flight *flights; // per cache slot: its step in flight
    // The pointers model, session and rank of `options` point to the three structs after it.
    // more_devices and partition_plan are used only while the generator is created.
    struct ree_generator_options options;
    struct ree_model_options model_options;
    struct ree_session_options session_options;
    struct ree_rank rank;
    struct ree_model_source source;
    struct ree_roles roles;
    struct ree_generator_info info;
    struct ree_causality causality;  // of runs as info.mixes_lengths says
    const struct ree_remote *remote; // callbacks for stages in other processes; NULL: none
    char *device_names;              // names of all devices, separated by ", "
    enum ree_operation_set operation_set;
    struct ree_model_hashes hashes; // not yet computed if hashes.graph is ""
};

// Returns the maximum number of tokens of a sequence, prompt included. max_new_tokens 0: only the
// model's context limits it.
size_t ree_token_limit(const struct ree_generator *g, size_t n_prompt, size_t max_new_tokens);
// Returns the hashes of the generator's model in *out, which is borrowed. The first call computes
// them and reads all weights.
enum ree_status ree_generator_hashes(struct ree_generator *g, const struct ree_progress *progress,
                                     const struct ree_model_hashes **out, struct ree_error *err);

struct ree_step {
    size_t batch;
    size_t length;      // new tokens per sequence
    const int32_t *ids; // (batch, length)
    // (batch): position of each sequence's first new token; all equal unless the generator mixes
    // lengths
    const int64_t *starts;
    size_t n_rows;       // tokens per sequence for which logits are requested
    const int64_t *rows; // (batch, n_rows): tokens whose logits are requested; 0: first new token
};

// Makes the tensor for one input of the model from the step only: token ids, positions, masks,
// lengths. input: index among the model's inputs; must not be a kv cache. total: number of tokens
// that the attention mask covers. Release *out with ree_tensor_finish, even on failure.
enum ree_status ree_step_input(const struct ree_model *model, const struct ree_roles *roles,
                               const struct ree_step *step, int64_t total, size_t input,
                               struct ree_tensor *out, struct ree_error *err);

// Makes the tensors for all inputs of the model except kv caches. `out` must have roles.n_inputs
// elements, zeroed by the caller, and *n must be 0; *n receives the number of tensors. Release them
// with ree_tensor_finish, even on failure.
enum ree_status ree_step_inputs(const struct ree_generator *g, const struct ree_step *step,
                                int64_t total, struct ree_tensor *out, size_t *n,
                                struct ree_error *err);
// Takes the requested rows from the logits that the model computed in a step. Initialises *out:
// float32 (batch, n_rows, vocab_size). May move `logits` to *out.
enum ree_status ree_step_logits(const struct ree_generator *g, const struct ree_step *step,
                                struct ree_tensor *logits, struct ree_tensor *out,
                                struct ree_error *err);

// A step in flight: submitted and not yet collected.
struct ree_flight {
    struct ree_step step;
    int64_t total; // positions that the kv caches have after the step
    size_t n_inputs;
    struct ree_tensor *inputs; // NULL: no step in flight in this process
    bool is_remote;            // a step is in flight over several processes
};
void ree_flight_finish(struct ree_flight *flight);

// Cache slots are numbered from 0 to options.n_cache_slots - 1. Each has a group of sequences.
// Steps of different slots may be in flight at the same time; a slot has at most one in flight.

// Empties the kv caches of a slot and prepares them for `batch` sequences of at most `most` tokens.
enum ree_status ree_generator_begin(struct ree_generator *g, size_t slot, size_t batch,
                                    int64_t most, struct ree_error *err);
// Starts a step. The step's arrays must stay valid until it is collected.
enum ree_status ree_generator_submit(struct ree_generator *g, size_t slot,
                                     const struct ree_step *step, struct ree_error *err);
// Waits for the step of the slot that is in flight. Initialises *out_logits: float32 (batch,
// n_rows, vocab_size).
enum ree_status ree_generator_collect(struct ree_generator *g, size_t slot,
                                      struct ree_tensor *out_logits, struct ree_error *err);
// Runs the local stages of a step synchronously, for callers that move boundary tensors between
// processes. `in` holds the previous stage's tensors (NULL for the first stage) and is released by
// this call. Exactly one of `out` and `out_logits` is not NULL and is initialised: out_logits in
// the process with the last stage.
enum ree_status ree_generator_run_stages(struct ree_generator *g, size_t slot,
                                         const struct ree_step *step, struct ree_boundary *in,
                                         struct ree_boundary *out, struct ree_tensor *out_logits,
                                         struct ree_error *err);
// Runs a step of slot 0: submits and collects it. Initialises *out_logits like
// ree_generator_collect.
enum ree_status ree_generator_step(struct ree_generator *g, const struct ree_step *step,
                                   struct ree_tensor *out_logits, struct ree_error *err);

// The functions below read the kv caches of a slot, which must not have a step in flight.

uint64_t ree_generator_kv_cache_bytes(const struct ree_generator *g, size_t slot);
// Reads n positions of a sequence, from `first` on, from each kv cache. Initialises out[], which
// has roles.n_kv_caches elements, like ree_pipeline_read_kv_caches.
enum ree_status ree_generator_read_kv_caches(struct ree_generator *g, size_t slot, int64_t sequence,
                                             int64_t first, int64_t n, struct ree_tensor *out,
                                             struct ree_error *err);

#endif
