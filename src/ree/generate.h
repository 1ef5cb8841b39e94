// Text generation: a causal language model and its kv caches, on tokens (ree_generate) and on texts
// (struct ree_completion).
#ifndef REE_GENERATE_H
#define REE_GENERATE_H

#include "session.h"
#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

// A causal language model on a device, with its kv caches. Maps token ids to token ids.
struct ree_generator;
struct ree_rank; // ranks.h

// Maximum of prefill_chunk in a receipt's trace.
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
// The generator's model, in the form in which it runs. Borrowed from the generator.
REE_API const struct ree_model *ree_generator_model(const struct ree_generator *generator);
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
    // Receives a copy of the logits before the token at `position` of a sequence is chosen, and may
    // change it: mask tokens with -INFINITY, add a bias. Log probabilities and logits_sha256 stay
    // those of the model. The answer has no ordinary receipt, because a verifier cannot repeat the
    // change. Not with `resume`. NULL: off.
    void (*on_logits)(void *user, size_t sequence, size_t position, float *logits,
                      size_t vocab_size);
    void *user;
};

struct ree_generation {
    int32_t *ids; // prompt and answer; owned; ree_generation_finish releases them
    size_t n_prompt, n;
    enum ree_finish finish;
    char tokens_sha256[65]; // NUMERICS.md, "Hashes"
    char logits_sha256[65]; // with all_logits; otherwise ""
    bool logits_changed;    // on_logits was called before a choice
};
REE_API void ree_generation_finish(struct ree_generation *generation); // frees ids
// The hash of tokens that tokens_sha256 of a generation has: 64 hexadecimal digits.
REE_API void ree_tokens_sha256(const int32_t *ids, size_t n, char hex[65]);

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

// Prompts: texts, conversations and token ids, all as token ids

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

// `options` may be NULL. The options' strings are copied.
REE_API enum ree_status ree_prompts_create(const struct ree_prompts_options *options,
                                           struct ree_prompts **out_prompts, struct ree_error *err);
REE_API void ree_prompts_destroy(struct ree_prompts *prompts);
// Each of these appends one prompt. They fail with REE_INVALID, and append nothing, if the prompt
// has no tokens, or if it is a text and there is no tokenizer.
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
// *out_list is borrowed and valid until the next prompt is added.
REE_API size_t ree_prompts_list(const struct ree_prompts *prompts,
                                const struct ree_prompt **out_list);
// true: prompt i is a conversation.
REE_API bool ree_prompts_is_chat(const struct ree_prompts *prompts, size_t i);

// Completions: prompts, and the texts with which a model continues them
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
    // Continue after eos tokens. Otherwise an answer ends with a token that the model's files or
    // its tokenizer name as one.
    bool ignores_eos;
    uint32_t n_logprobs; // for on_token; at most 100
    // Receives the text of an answer as soon as later tokens cannot change it: not the beginning of
    // what may become a stop text, and never part of a character. `sequence` is the prompt's index.
    // The concatenation for a sequence is the text of its answer. `text` is NUL-terminated and may
    // contain NULs. Not called without a tokenizer. NULL: off.
    void (*on_text)(void *user, size_t sequence, const char *text, size_t nbytes);
    // Called with each new token, before its text. Returning false ends its sequence at that token;
    // it is then interrupted, like an answer that is_interrupted ended. With a checkpoint, it ends
    // all sequences, and each can be continued. A completion that continues from a checkpoint calls it first with the tokens that it has, and
    // ignores what it returns. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run; returning true ends the completion and keeps the tokens made so far.
    // NULL: off.
    bool (*is_interrupted)(void *user);
    void *user;
};

// Prepares the continuation of n prompts, which run as one batch; at least 1. The prompts are
// copied. `tokenizer` decodes texts; NULL: there are no texts, only tokens. Generator and tokenizer
// must outlive the completion. `options` may be NULL. Fails with REE_INVALID if the tokenizer lacks
// a token of a prompt.
REE_API enum ree_status ree_completion_create(struct ree_generator *generator,
                                              const struct ree_tokenizer *tokenizer,
                                              const struct ree_prompt *prompts, size_t n,
                                              const struct ree_completion_options *options,
                                              struct ree_completion **out_completion,
                                              struct ree_error *err);
REE_API void ree_completion_destroy(struct ree_completion *completion);
// Generates the answers. May be called once.
REE_API enum ree_status ree_completion_run(struct ree_completion *completion,
                                           struct ree_error *err);
// Continues one text in one call: encodes it with the generator's tokenizer (that of its folder),
// creates a completion and runs it. Release *out_completion with ree_completion_destroy.
REE_API enum ree_status ree_complete_text(struct ree_generator *generator, const char *text,
                                          size_t nbytes,
                                          const struct ree_completion_options *options,
                                          struct ree_completion **out_completion,
                                          struct ree_error *err);

// The results, all borrowed from the completion.

REE_API size_t ree_completion_n_prompts(const struct ree_completion *completion);
// The text of prompt i as the tokenizer decodes it; also before the run. "" without a tokenizer.
REE_API const char *ree_completion_prompt_text(const struct ree_completion *completion, size_t i,
                                               size_t *out_nbytes);
// The text of answer i; "" without a tokenizer.
REE_API const char *ree_completion_text(const struct ree_completion *completion, size_t i,
                                        size_t *out_nbytes);
// Tokens of prompt i and its answer, why it ended, and their hashes. NULL before the run.
REE_API const struct ree_generation *
ree_completion_generation(const struct ree_completion *completion, size_t i);
REE_API const struct ree_generate_stats *
ree_completion_stats(const struct ree_completion *completion);

#ifdef __cplusplus
}
#endif
#endif
