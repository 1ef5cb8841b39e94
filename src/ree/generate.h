// Text generation: a causal language model and its kv caches, on tokens (ree_generate) and on texts
// (struct ree_completion).
#ifndef REE_GENERATE_H
#define REE_GENERATE_H

#include "session.h"
#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

// A causal language model on one or more devices, with its kv caches. Maps token ids to token ids.
struct ree_generator;
struct ree_rank; // ranks.h

// Largest prefill_chunk that the trace of a receipt may state.
#define REE_MAX_PREFILL_CHUNK (1 << 20)

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
    // of devices. `device` is device 0, more_devices follow. The output bits do not depend on the
    // stages. 0: one stage; with several devices, the stages that the nodes name, or one per
    // device.
    uint32_t n_partitions;
    struct ree_device *const *more_devices;
    size_t n_more_devices;
    // Plan file (ree_plan_save, or `ree-run plan`) with the stage boundaries; NULL: ree chooses
    // them.
    const char *partition_plan;
    // Memory budget per device in bytes, for weights, kv caches and intermediate results; 0: no
    // limit. With a budget the model is split into n_partitions stages, or as many as needed, and a
    // stage's weights are on the device only while it runs.
    uint64_t max_device_memory;
    const struct ree_rank *rank; // one of several processes, ranks.h; NULL: a single process
};

// Made by the library. Later versions may add fields at the end.
struct ree_generator_info {
    const char *model_path; // the ONNX file, or the checkpoint folder
    const char *folder;     // folder in which a tokenizer is looked up
    const char *model_type; // "llama", ...; "" if unknown
    int64_t context_length; // maximum tokens of prompt and answer together; 0: unknown
    int64_t vocab_size;     // 0: the model's output does not declare it
    int32_t bos;            // -1: unknown
    size_t n_eos;
    const int32_t *eos; // ids that end a text
    bool has_cache;     // keys and values stay on the device between steps
    bool mixes_lengths; // sequences of different lengths may share a batch
    // The model computes logits only for the requested tokens: usually the last one of a run.
    bool computes_one_row;
};

// `path` is an ONNX file or a folder:
// - an ONNX file whose inputs are token ids and, if the model has a kv cache, past keys and values,
//   with the new keys and values among its outputs
// - a folder with genai_config.json
// - a folder with an ONNX file as above
// - a Hugging Face checkpoint
//
// The devices must outlive the generator. `options` may be NULL. Fails like ree_model_load, and
// with
// - REE_INVALID if the devices are opened with different operation sets
// - REE_UNSUPPORTED, naming the input or output, if the model is not such a language model
REE_API enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                             const struct ree_generator_options *options,
                                             struct ree_generator **out_generator,
                                             struct ree_error *err);
REE_API void ree_generator_destroy(struct ree_generator *generator);
REE_API const struct ree_generator_info *ree_generator_info(const struct ree_generator *generator);
// The generator's model, in the form in which it runs. Borrowed from the generator.
REE_API const struct ree_model *ree_generator_model(const struct ree_generator *generator);
// The session that runs the generator's model, borrowed; NULL if the model runs in several stages.
REE_API struct ree_session *ree_generator_session(struct ree_generator *generator);
// Sums over all stages. The caller sets out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_generator_stats(const struct ree_generator *generator,
                                            struct ree_session_stats *out_stats,
                                            struct ree_error *err);

// How to choose a token from logits. NUMERICS.md, "Sampling", defines each parameter to the bit.
// Start from ree_greedy: a struct of zeros is not valid.
struct ree_sampling {
    // 0: the largest logit, the first one if several are equal; otherwise 1e-6 to 1e6
    float temperature;
    uint32_t top_k;           // 0: off
    float top_p;              // above 0, at most 1; 1: off
    float min_p;              // 0 to 1; 0: off
    float repetition_penalty; // above 0, at most 1e6; 1: off
    uint64_t seed;            // of the random draws
};
// Temperature 0, all other parameters off.
REE_API extern const struct ree_sampling ree_greedy;

// Fails with REE_INVALID and the reason if a parameter is out of range ("top_p is 1.5, expected
// more than 0 and at most 1").
REE_API enum ree_status ree_sampling_check(const struct ree_sampling *sampling,
                                           struct ree_error *err);
// Chooses the token that follows ids[0 ... n-1]. `position` is the index of the new token in the
// sequence, from 0. `logits` has vocab_size entries. Fails with REE_INVALID if a parameter is out
// of range, a logit is a NaN, or no logit is above -infinity; *out_id is then -1.
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
    float logprob;                 // of id; only with n_logprobs
    const struct ree_logprob *top; // n_logprobs entries, the most likely first; NULL: none
};

// A sequence in progress, as a checkpoint holds it and a generation can resume it.
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
    size_t size;                  // sizeof(struct ree_generate_options)
    struct ree_sampling sampling; // must be set; ree_greedy: no random choice
    size_t max_new_tokens;        // per sequence; 0: until the context is full
    const int32_t *eos;           // ids that end a sequence; the id becomes its last token
    size_t n_eos;
    uint32_t n_logprobs; // at most 100
    // Called with each new token, but not with those of `resume`; returning false ends its sequence
    // at that token. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run; returning true ends the generation and keeps the tokens made so far.
    // NULL: off.
    bool (*is_interrupted)(void *user);
    // Receives the sequences of all prompts, which are valid only during the call. NULL: off. If it
    // fails, it must fill *err; the generation then fails with its status. Called
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
    // Receives a copy of the logits before the token at `position` of a sequence is chosen, and may
    // change it: mask tokens with -INFINITY, add a bias. Log probabilities and logits_sha256 stay
    // those of the model. The answer has no ordinary receipt, because a verifier cannot repeat the
    // change. Not with `resume`. NULL: off.
    void (*on_logits)(void *user, size_t sequence, size_t position, float *logits,
                      size_t vocab_size);
    void *user;
};

struct ree_generation {
    int32_t *ids;       // prompt and answer; owned; ree_generation_finish releases them
    size_t n_prompt, n; // tokens of the prompt; tokens of prompt and answer
    enum ree_finish finish;
    char tokens_sha256[65]; // NUMERICS.md, "Hashes"
    char logits_sha256[65]; // with all_logits; otherwise ""
    bool logits_changed;    // on_logits was called before a choice
};
REE_API void ree_generation_finish(struct ree_generation *generation); // frees ids
// Computes the hash that is tokens_sha256 of a generation with these ids: 64 hexadecimal digits and
// a NUL.
REE_API void ree_tokens_sha256(const int32_t *ids, size_t n, char hex[65]);

struct ree_generate_stats {
    size_t size; // sizeof(struct ree_generate_stats)
    // Totals over all sequences. Tokens of `resume` count as prompt tokens.
    size_t prompt_tokens, new_tokens;
    size_t decode_tokens;                  // new tokens that decode steps produced
    double prompt_seconds, decode_seconds; // time in runs over prompts; time in decode steps
    double first_token_seconds;            // time from the call to the first token
    size_t n_runs;                         // runs of the model
    uint64_t cache_bytes;                  // highest memory of the kv caches, in bytes
};

// Continues each of n prompts. The tokens of a sequence do not depend on the other sequences in its
// batch, nor on how prompts are divided into runs. `out` has n entries, which this call
// initialises; release each with ree_generation_finish. After a failure they are zeroed. `options`
// must not be NULL; `out_stats` may be NULL. Fails with REE_INVALID if an option is out of range, a
// prompt has no tokens, an id outside the vocabulary, or no space for an answer in the model's
// context.
REE_API enum ree_status ree_generate(struct ree_generator *generator,
                                     const struct ree_prompt *prompts, size_t n,
                                     const struct ree_generate_options *options,
                                     struct ree_generation *out,
                                     struct ree_generate_stats *out_stats, struct ree_error *err);

// A list of prompts, made from texts, conversations and token ids. All are stored as token ids.
struct ree_prompts;

struct ree_prompts_options {
    size_t size; // sizeof(struct ree_prompts_options)
    // Encodes texts and conversations; must outlive the prompts. NULL: only token ids can be added.
    const struct ree_tokenizer *tokenizer;
    const char *chat_family; // as for ree_chat_prompt; NULL: that of the tokenizer
    // Texts: add no special tokens (BOS), and encode special tokens that are written in the text as
    // special tokens.
    bool raw;
};

// Creates an empty list. `options` may be NULL. The options' strings are copied.
REE_API enum ree_status ree_prompts_create(const struct ree_prompts_options *options,
                                           struct ree_prompts **out_prompts, struct ree_error *err);
REE_API void ree_prompts_destroy(struct ree_prompts *prompts);
// Each of the next three functions appends one prompt and copies what it is passed. They fail with
// REE_INVALID, and append nothing, if the prompt has no tokens, or if a text or a conversation has
// no tokenizer.
REE_API enum ree_status ree_prompts_add_text(struct ree_prompts *prompts, const char *text,
                                             size_t nbytes, struct ree_error *err);
REE_API enum ree_status ree_prompts_add_ids(struct ree_prompts *prompts, const int32_t *ids,
                                            size_t n, struct ree_error *err);
// A conversation, in the JSON form of ree_chat_prompt.
REE_API enum ree_status ree_prompts_add_messages(struct ree_prompts *prompts, const char *messages,
                                                 size_t nbytes, struct ree_error *err);
// Appends one prompt for each line of a file; skips empty lines. A line that begins with { or "
// must be a JSON value: "text", {"prompt": "text"}, {"ids": [1, 2]} or {"messages": [...]}. Other
// lines are texts. Fails with REE_INVALID if the file contains no prompts. A failure may leave
// prompts of earlier lines.
REE_API enum ree_status ree_prompts_add_file(struct ree_prompts *prompts, const char *path,
                                             struct ree_error *err);
// Returns the number of prompts. *out_list is borrowed and valid until the next prompt is added.
REE_API size_t ree_prompts_list(const struct ree_prompts *prompts,
                                const struct ree_prompt **out_list);
// Whether prompt i is a conversation. i must be less than the number of prompts.
REE_API bool ree_prompts_is_chat(const struct ree_prompts *prompts, size_t i);

// A completion: prompts, and the texts with which a model continues them.
//
//     ree_completion_create -> ree_completion_run -> ree_completion_text, ... -> _destroy
//
// The tokens of an answer are all that were generated, including those that completed a stop text.
// The text of an answer ends before that stop text. Special tokens produce no text. receipt.h makes
// receipts of completions, and checkpoints from which they continue.
struct ree_completion;

struct ree_completion_options {
    size_t size;                         // sizeof(struct ree_completion_options)
    const struct ree_sampling *sampling; // copied; NULL: ree_greedy
    size_t max_new_tokens;               // per prompt; 0: until the context is full
    // Texts that end an answer: not empty, copied. They require a tokenizer. If one token completes
    // several, the one that begins first ends the text.
    size_t n_stops;
    const char *const *stops;
    // Continue after eos tokens. Otherwise an answer ends with any eos token that the model's files
    // or its tokenizer name.
    bool ignores_eos;
    uint32_t n_logprobs; // for on_token; at most 100
    // Receives the text of an answer as soon as later tokens cannot change it: text that may be the
    // beginning of a stop text comes later, and part of a character never comes. `sequence` is the
    // prompt's index. The texts of a sequence, one after the other, are the text of its answer.
    // `text` is NUL-terminated and may contain NULs. Not called without a tokenizer. NULL: off.
    void (*on_text)(void *user, size_t sequence, const char *text, size_t nbytes);
    // Called with each new token, before its text. Returning false ends its sequence at that token;
    // the finish is then REE_FINISH_INTERRUPTED, unless that token was the last one anyway. With a
    // checkpoint, returning false interrupts all sequences, and a later run can continue each. A
    // completion that continues from a checkpoint first calls it with the checkpoint's tokens,
    // without probabilities, and ignores the result. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run; returning true ends the completion and keeps the tokens made so far.
    // NULL: off.
    bool (*is_interrupted)(void *user);
    void *user;
};

// Prepares the continuation of n prompts, at least 1, which run in batches. The prompts are copied.
// `tokenizer` decodes texts; NULL: there are no texts, only tokens. Generator and tokenizer must
// outlive the completion. `options` may be NULL. Fails with REE_INVALID if the tokenizer does not
// have a token of a prompt, a prompt has no tokens, or an option is out of range.
REE_API enum ree_status ree_completion_create(struct ree_generator *generator,
                                              const struct ree_tokenizer *tokenizer,
                                              const struct ree_prompt *prompts, size_t n,
                                              const struct ree_completion_options *options,
                                              struct ree_completion **out_completion,
                                              struct ree_error *err);
REE_API void ree_completion_destroy(struct ree_completion *completion);
// Generates the answers. May be called once. After a failure, ree_completion_text returns the text
// generated so far.
REE_API enum ree_status ree_completion_run(struct ree_completion *completion,
                                           struct ree_error *err);
// Continues one text in one call: encodes it with the tokenizer in the generator's folder, creates
// a completion and runs it. The completion owns the tokenizer. Release *out_completion with
// ree_completion_destroy. Fails with REE_NOT_FOUND if the folder has no tokenizer.
REE_API enum ree_status ree_complete_text(struct ree_generator *generator, const char *text,
                                          size_t nbytes,
                                          const struct ree_completion_options *options,
                                          struct ree_completion **out_completion,
                                          struct ree_error *err);

// The results, all borrowed from the completion. i must be less than the number of prompts.
// `out_nbytes` may be NULL; texts are NUL-terminated.

REE_API size_t ree_completion_n_prompts(const struct ree_completion *completion);
// The text of prompt i as the tokenizer decodes it; also before the run. "" without a tokenizer.
REE_API const char *ree_completion_prompt_text(const struct ree_completion *completion, size_t i,
                                               size_t *out_nbytes);
// The text of answer i; "" without a tokenizer.
REE_API const char *ree_completion_text(const struct ree_completion *completion, size_t i,
                                        size_t *out_nbytes);
// Tokens of prompt i and its answer, why it ended, and their hashes. NULL before the run, and after
// a run that failed.
REE_API const struct ree_generation *
ree_completion_generation(const struct ree_completion *completion, size_t i);
// The statistics of the run; all zeros before it.
REE_API const struct ree_generate_stats *
ree_completion_stats(const struct ree_completion *completion);

#ifdef __cplusplus
}
#endif
#endif
