// Text generation: a causal language model and its kv caches.
#ifndef REE_GENERATE_H
#define REE_GENERATE_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// A causal language model on a device, with its kv caches. Maps token ids to token ids.
struct ree_generator;
struct ree_rank; // ranks.h

struct ree_generator_options {
    size_t size;                               // sizeof(struct ree_generator_options)
    const struct ree_model_options *model;     // NULL: defaults
    const struct ree_session_options *session; // NULL: defaults
    uint32_t prefill_chunk;                    // prompt tokens per run; 0: 512
    uint32_t max_batch;                        // sequences per batch; 0: 16
    bool all_logits; // compute logits for every token of a prompt, not only for its last
    // Batch only sequences of equal length, and keep kv caches exactly as long as their contents.
    // Slower; for traces.
    bool exact_lengths;
    // Groups of sequences in flight at the same time, each with kv caches of its own; 0: 1.
    uint32_t n_cache_slots;
    // Stages of the model, which run one after another: stage i runs on device i modulo the number
    // of devices. `device` is device 0, more_devices follow. The output bits do not depend on it.
    // 0: one stage per device.
    uint32_t n_partitions;
    struct ree_device *const *more_devices;
    size_t n_more_devices;
    // File of `ree-run plan` with the stage boundaries; NULL: ree chooses them.
    const char *partition_plan;
    // Memory budget per device in bytes, for weights, kv caches and intermediate results; 0: no
    // limit. The model is then split into n_partitions stages, or as many as needed, and a stage's
    // weights are on the device only while it runs.
    uint64_t max_device_memory;
    const struct ree_rank *rank; // one of several processes, ranks.h; NULL: a single process
};

// Made by the library. Later versions may add fields at the end.
struct ree_generator_info {
    const char *model_path; // the ONNX file, or the checkpoint folder
    const char *folder;     // folder in which a tokenizer is looked up
    const char *model_type; // "llama", ...; "" if unknown
    int64_t context_length; // maximum tokens of prompt and answer together; 0: unknown
    int64_t vocab_size;     // 0: unknown before the first run
    int32_t bos;            // -1: unknown
    size_t n_eos;
    const int32_t *eos; // ids that end a text
    bool has_cache;     // keys and values stay on the device between steps
    bool mixes_lengths; // sequences of different lengths may share a batch
    // Computes only the last token's logits, unless others are requested.
    bool computes_one_row;
};

// `path` is an ONNX file or a folder:
// - an ONNX file whose inputs are token ids and, if the model has a kv cache, past keys and values,
//   with the new keys and values among its outputs
// - a folder with genai_config.json
// - a folder with an ONNX file as above
// - a Hugging Face checkpoint
//
// `options` may be NULL.
REE_API enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                             const struct ree_generator_options *options,
                                             struct ree_generator **out_generator,
                                             struct ree_error *err);
REE_API void ree_generator_destroy(struct ree_generator *generator);
REE_API const struct ree_generator_info *ree_generator_info(const struct ree_generator *generator);
// NULL if the model runs in several stages. Borrowed from the generator.
REE_API struct ree_session *ree_generator_session(struct ree_generator *generator);
// Sums over all stages.
REE_API enum ree_status ree_generator_stats(const struct ree_generator *generator,
                                            struct ree_session_stats *out_stats,
                                            struct ree_error *err);

// How to choose a token from logits. NUMERICS.md, "Sampling", defines each parameter to the bit.
struct ree_sampling {
    // 0: the largest logit, the first one if several are equal; otherwise 1e-6 to 1e6
    float temperature;
    uint32_t top_k;           // 0: off
    float top_p;              // 1: off
    float min_p;              // 0: off
    float repetition_penalty; // 1: off
    uint64_t seed;
};
REE_API extern const struct ree_sampling ree_greedy;

// Fails with REE_INVALID and the reason if a parameter is out of range ("top_p is 1.5, expected
// more than 0 and at most 1").
REE_API enum ree_status ree_sampling_check(const struct ree_sampling *sampling,
                                           struct ree_error *err);
// Chooses the token that follows ids[0 ... n-1]. `position` is the index of the new token in the
// sequence, from 0. Fails if a logit is not a number.
REE_API enum ree_status ree_sampling_choose(const struct ree_sampling *sampling,
                                            const float *logits, size_t vocab_size,
                                            const int32_t *ids, size_t n, uint64_t position,
                                            int32_t *out_id, struct ree_error *err);

enum ree_finish {
    REE_FINISH_LENGTH,      // max_new_tokens reached, or the context is full
    REE_FINISH_EOS,         // a token of `eos` was chosen
    REE_FINISH_STOP,        // on_token returned false
    REE_FINISH_INTERRUPTED, // is_interrupted returned true
};
REE_API const char *
ree_finish_name(enum ree_finish finish); // "length", "eos", "stop", "interrupted"

struct ree_prompt {
    const int32_t *ids;
    size_t n; // at least 1
};

struct ree_logprob {
    int32_t id;
    float logprob; // log softmax of the model's unmodified logits
};

struct ree_token {
    size_t sequence; // index of the prompt
    size_t position; // index in the sequence, prompt included
    int32_t id;
    float logprob;                 // only with n_logprobs
    const struct ree_logprob *top; // n_logprobs entries, the most likely first
};

// The progress of a sequence: its contents in a checkpoint, from which it can resume.
struct ree_snapshot {
    const int32_t *ids; // prompt and answer so far
    size_t n_prompt, n; // 1 <= n_prompt <= n
    bool is_done;
    enum ree_finish finish;    // if is_done
    const char *logits_sha256; // if is_done, with all_logits; otherwise NULL or ""
    // Only if the sequence is not done and has answer tokens: one digest per kv cache, in the order
    // of the model's inputs (NUMERICS.md, "Checkpoints"). The digests of caches that another
    // process keeps are all zeros. Otherwise empty.
    size_t n_caches;
    const unsigned char (*caches)[32];
};

struct ree_generate_options {
    size_t size; // sizeof(struct ree_generate_options)
    struct ree_sampling sampling;
    size_t max_new_tokens; // per sequence; 0: until the context is full
    const int32_t *eos;    // ids that end a sequence; the id becomes its last token
    size_t n_eos;
    uint32_t n_logprobs; // at most 100
    // Called with each new token, but not with those of `resume`; returning false ends its sequence
    // at that token. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run; returning true ends the generation and keeps the tokens made so far.
    // NULL: off.
    bool (*is_interrupted)(void *user);
    // Receives the sequences of all prompts, which are valid only during the call. NULL: off. A
    // failure ends the generation. Called
    // - before the first run
    // - when a sequence has `checkpoint_every` tokens more than at the last call
    // - at the end, and after an interruption
    enum ree_status (*on_checkpoint)(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *err);
    size_t checkpoint_every; // 0: 32
    // One snapshot per prompt, whose ids must begin with that prompt; generation resumes from it.
    // The snapshot's tokens are compared with those that the model chooses. The kv caches are
    // recomputed from the tokens and compared with the snapshot's digests. NULL: start from the
    // prompts.
    const struct ree_snapshot *resume;
    void *user;
};

struct ree_generation {
    int32_t *ids; // prompt and answer; allocated with malloc, owned
    size_t n_prompt, n;
    enum ree_finish finish;
    char tokens_sha256[65]; // NUMERICS.md, "Hashes"
    char logits_sha256[65]; // with all_logits; otherwise ""
};
REE_API void ree_generation_finish(struct ree_generation *generation); // frees ids

struct ree_generate_stats {
    size_t size; // sizeof(struct ree_generate_stats)
    // Totals over all sequences. Tokens of `resume` count as prompt tokens.
    size_t prompt_tokens, new_tokens;
    size_t decode_tokens;                  // new tokens that decode steps produced
    double prompt_seconds, decode_seconds; // time in runs over prompts; time in decode steps
    double first_token_seconds;            // time from the call to the first token
    size_t n_runs;
    uint64_t cache_bytes;
};

// Continues each prompt. The tokens of a sequence do not depend on the other sequences in its
// batch, nor on how prompts are divided into runs. `out` has n entries, which this call initialises
// even on failure; release each with ree_generation_finish. `options` must not be NULL; `out_stats`
// may be NULL.
REE_API enum ree_status ree_generate(struct ree_generator *generator,
                                     const struct ree_prompt *prompts, size_t n,
                                     const struct ree_generate_options *options,
                                     struct ree_generation *out,
                                     struct ree_generate_stats *out_stats, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
