// Text generation with a causal language model: from token ids to token ids (ree_generate), and
// from texts to texts (struct ree_completion).
#ifndef REE_GENERATE_H
#define REE_GENERATE_H

#include "session.h"
#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

// A causal language model on one device or several, with its kv caches. It continues sequences of
// token ids.
struct ree_generator;
struct ree_rank; // ranks.h

// Largest prefill_chunk that a receipt may state for its trace.
#define REE_MAX_PREFILL_CHUNK (1 << 20)

struct ree_generator_options {
    size_t size;                               // sizeof(struct ree_generator_options)
    const struct ree_model_options *model;     // NULL: defaults
    const struct ree_session_options *session; // NULL: defaults
    // Maximum prompt tokens of a sequence in one run; 0 means 512. With a model that has a cache
    // and is not proved to be causal, the maximum is always 512, because its results may depend on
    // it.
    uint32_t prefill_chunk;
    uint32_t max_batch; // maximum sequences in a batch; 0 means 16
    bool all_logits;    // compute logits for every token of a prompt, not only for its last one
    // Batch only sequences of equal length, and keep kv caches exactly as long as their contents.
    // Slower; required for traces.
    bool exact_lengths;
    // Number of groups of sequences in flight at the same time, each with kv caches of its own; 0
    // means 1.
    uint32_t n_cache_slots;
    // Number of stages of the model, which run one after another. Stage i runs on device i modulo
    // the number of devices, where device 0 is the one that is passed to ree_generator_create, and
    // more_devices follow. The output bits do not depend on the stages. 0: one stage; with several
    // devices, the stages that the model's nodes name, or else one per device.
    uint32_t n_partitions;
    struct ree_device *const *more_devices; // (n_more_devices): additional devices
    size_t n_more_devices;
    // Path of a plan file (ree_plan_save, or `ree-run plan`) with the stage boundaries; NULL: ree
    // chooses the boundaries.
    const char *partition_plan;
    // Memory budget per device in bytes, for weights, kv caches and intermediate results; 0: no
    // limit. With a budget the model is split into n_partitions stages, or as many as needed, and a
    // stage's weights are on the device only while it runs.
    uint64_t max_device_memory;
    const struct ree_rank *rank; // which of several processes this is (ranks.h); NULL: the only one
};

// Describes a generator's model. Only the library makes this struct. Later versions may add fields
// at the end.
struct ree_generator_info {
    const char *model_path; // path of the ONNX file, or of the checkpoint folder
    const char *folder;     // folder with the model's tokenizer, if it has one
    const char *model_type; // "llama", ...; "" if unknown
    int64_t context_length; // maximum tokens of prompt and answer together; 0: unknown
    int64_t vocab_size;     // number of tokens in the vocabulary; 0: the model does not declare it
    int32_t bos;            // id of the token that begins a text; -1: unknown
    size_t n_eos;
    const int32_t *eos; // (n_eos): ids of the tokens that end a text
    bool has_cache;     // the model has kv caches, which stay on the device between runs
    bool mixes_lengths; // sequences of different lengths may share a batch
    // A run computes logits only for the requested tokens, usually the last one of each sequence.
    bool computes_one_row;
};

// Loads a language model onto a device. `path` is one of
// - an ONNX file whose inputs are token ids and, if the model has kv caches, past keys and values,
//   with the new keys and values among its outputs
// - a folder with such an ONNX file and genai_config.json
// - a folder with such an ONNX file
// - the folder of a Hugging Face checkpoint
//
// The devices must outlive the generator. `options` may be NULL. Fails like ree_model_load, and
// also with
// - REE_INVALID if the devices were opened with different operation sets
// - REE_UNSUPPORTED if the model is not such a language model; the message names the input or
// output
REE_API enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                             const struct ree_generator_options *options,
                                             struct ree_generator **out_generator,
                                             struct ree_error *err);
REE_API void ree_generator_destroy(struct ree_generator *generator);
REE_API const struct ree_generator_info *ree_generator_info(const struct ree_generator *generator);
// Returns the generator's model, in the form in which it runs. Borrowed from the generator.
REE_API const struct ree_model *ree_generator_model(const struct ree_generator *generator);
// Returns the session that runs the generator's model, borrowed; NULL if the model runs in stages.
REE_API struct ree_session *ree_generator_session(struct ree_generator *generator);
// Writes the statistics of the generator's sessions, summed over the stages that this process runs.
// The caller sets out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_generator_stats(const struct ree_generator *generator,
                                            struct ree_session_stats *out_stats,
                                            struct ree_error *err);

// How to choose a token from logits. NUMERICS.md, "Sampling", defines each parameter to the bit.
// Start from ree_greedy: a struct of zeros is not valid.
struct ree_sampling {
    // 1e-6 to 1e6; 0: no random choice, but the token with the largest logit (the first such token)
    float temperature;
    uint32_t top_k;           // 0: off
    float top_p;              // above 0, at most 1; 1: off
    float min_p;              // 0 to 1; 0: off
    float repetition_penalty; // above 0, at most 1e6; 1: off
    uint64_t seed;            // seed of the random draws
};
// Greedy sampling: temperature 0, all other parameters off.
REE_API extern const struct ree_sampling ree_greedy;

// Checks the parameters. Fails with REE_INVALID if one is out of range; the message says which one
// ("top_p is 1.5, expected more than 0 and at most 1").
REE_API enum ree_status ree_sampling_check(const struct ree_sampling *sampling,
                                           struct ree_error *err);
// Chooses the token that follows the n tokens `ids`. `position` is the index of the new token in
// the sequence, from 0. `logits` has vocab_size entries. Fails with REE_INVALID if a parameter is
// out of range, a logit is a NaN, or no logit is above -infinity; *out_id is then -1.
REE_API enum ree_status ree_sampling_choose(const struct ree_sampling *sampling,
                                            const float *logits, size_t vocab_size,
                                            const int32_t *ids, size_t n, uint64_t position,
                                            int32_t *out_id, struct ree_error *err);

enum ree_finish {
    REE_FINISH_LENGTH,      // max_new_tokens reached, or the context is full
    REE_FINISH_EOS,         // a token of `eos` was chosen
    REE_FINISH_STOP,        // ree_generate: on_token returned false; completion: a stop text
    REE_FINISH_INTERRUPTED, // is_interrupted returned true; completion: or on_token returned false
};
REE_API const char *
ree_finish_name(enum ree_finish finish); // "length", "eos", "stop", "interrupted"

struct ree_prompt {
    const int32_t *ids;
    size_t n; // at least 1
};

struct ree_logprob {
    int32_t id;
    float logprob; // log probability of token `id`: log softmax of the model's own logits
};

struct ree_token {
    size_t sequence; // index of the sequence's prompt
    size_t position; // index of the token in the sequence, which begins with the prompt
    int32_t id;
    float logprob; // log probability of `id`; 0 if n_logprobs is 0
    // (n_logprobs): the most likely tokens, the most likely first; NULL if n_logprobs is 0.
    const struct ree_logprob *top;
};

// The state of a sequence during generation. Checkpoints store it, and ree_generate can resume from
// it.
struct ree_snapshot {
    const int32_t *ids; // (n): the tokens of the prompt, then those of the answer so far
    size_t n_prompt, n; // tokens of the prompt; of prompt and answer so far; 1 <= n_prompt <= n
    bool is_done;
    enum ree_finish finish;    // valid if is_done is set
    const char *logits_sha256; // hash of the logits if is_done and all_logits; otherwise NULL or ""
    // One digest per kv cache, in the order of the model's inputs (NUMERICS.md, "Checkpoints"), if
    // the sequence is not done and has answer tokens; otherwise n_caches is 0. The digest of a kv
    // cache that another process keeps is all zeros.
    size_t n_caches;
    const unsigned char (*caches)[32];
};

struct ree_generate_options {
    size_t size;                  // sizeof(struct ree_generate_options)
    struct ree_sampling sampling; // must be set; ree_greedy: no random choice
    size_t max_new_tokens;        // maximum per sequence; 0: until the context is full
    const int32_t *eos;           // (n_eos): a sequence ends after one of these ids is chosen
    size_t n_eos;
    uint32_t n_logprobs; // number of log probabilities that on_token receives; at most 100; 0: none
    // Called with each new token, but not with tokens of `resume`. If it returns false, the
    // sequence ends after this token. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run. If it returns true, the generation ends and keeps the tokens made so
    // far. NULL: off.
    bool (*is_interrupted)(void *user);
    // Receives the states of all n sequences, valid only during the call. If it fails, it must fill
    // *err; the generation then fails with its status. NULL: off. Called
    // - before the first run
    // - when a sequence has `checkpoint_every` tokens more than at the last call
    // - at the end, and after an interruption
    enum ree_status (*on_checkpoint)(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *err);
    size_t checkpoint_every; // new tokens of a sequence between calls of on_checkpoint; 0 means 32
    // One snapshot per prompt, from which the generation resumes; its ids must begin with the
    // prompt. The snapshot's tokens are compared with those that the model chooses. The kv caches
    // are computed again from the tokens and compared with the snapshot's digests. NULL: start from
    // the prompts.
    const struct ree_snapshot *resume;
    // Receives a copy of the logits before the token at `position` of a sequence is chosen, and may
    // change it: mask tokens with -INFINITY, add a bias. Log probabilities and logits_sha256 stay
    // those of the model. No ordinary receipt can be made of the answer, because a verifier cannot
    // repeat the change. Must be NULL if `resume` is set. NULL: off.
    void (*on_logits)(void *user, size_t sequence, size_t position, float *logits,
                      size_t vocab_size);
    void *user;
};

struct ree_generation {
    int32_t *ids;       // (n): prompt and answer; ree_generation_finish releases them
    size_t n_prompt, n; // number of tokens of the prompt; of prompt and answer together
    enum ree_finish finish;
    char tokens_sha256[65]; // hash of `ids` (NUMERICS.md, "Hashes")
    char logits_sha256[65]; // hash of the logits if all_logits is set; otherwise ""
    bool logits_changed;    // on_logits was called before at least one choice
};
REE_API void ree_generation_finish(struct ree_generation *generation); // releases ids
// Computes the tokens_sha256 of a generation with these ids: 64 hexadecimal digits and a NUL.
REE_API void ree_tokens_sha256(const int32_t *ids, size_t n, char hex[65]);

struct ree_generate_stats {
    size_t size; // sizeof(struct ree_generate_stats)
    // Number of tokens in all sequences together. Tokens of `resume` count as prompt tokens.
    size_t prompt_tokens, new_tokens;
    size_t decode_tokens; // new tokens from runs over one token per sequence
    // Time in runs over prompts; time in decode steps.
    double prompt_seconds, decode_seconds;
    double first_token_seconds; // time from the call to the first new token
    size_t n_runs;              // number of runs of the model
    uint64_t cache_bytes;       // peak memory of the kv caches, in bytes
    bool hashed_nan;            // all_logits: a logit that was hashed is a NaN
};

// Generates an answer to each of n prompts. The tokens of a sequence do not depend on the other
// sequences in its batch, nor on how prompts are divided into runs. `out` has n entries, which this
// call initialises; release each with ree_generation_finish. After a failure they are zeroed.
// `options` must not be NULL; `out_stats` may be NULL. Fails with REE_INVALID if an option is out
// of range, if a prompt has no tokens or an id outside the vocabulary, or if a prompt fills the
// model's context.
REE_API enum ree_status ree_generate(struct ree_generator *generator,
                                     const struct ree_prompt *prompts, size_t n,
                                     const struct ree_generate_options *options,
                                     struct ree_generation *out,
                                     struct ree_generate_stats *out_stats, struct ree_error *err);

// A list of prompts, made from texts, conversations or token ids, and stored as token ids.
struct ree_prompts;

struct ree_prompts_options {
    size_t size; // sizeof(struct ree_prompts_options)
    // Encodes texts and conversations; must outlive the prompts. NULL: only token ids can be added.
    const struct ree_tokenizer *tokenizer;
    // one of ree_chat_families; NULL: the family of the tokenizer's chat template
    const char *chat_family;
    // For prompts from texts: do not add special tokens (BOS), and encode the names of special
    // tokens in a text as these tokens.
    bool raw;
};

// Creates an empty list. `options` may be NULL. The options' strings are copied.
REE_API enum ree_status ree_prompts_create(const struct ree_prompts_options *options,
                                           struct ree_prompts **out_prompts, struct ree_error *err);
REE_API void ree_prompts_destroy(struct ree_prompts *prompts);
// Each of the next three functions appends one prompt and copies its arguments. They fail with
// REE_INVALID, and append nothing, if the prompt has no tokens, or if the list has no tokenizer to
// encode a text or a conversation.
REE_API enum ree_status ree_prompts_add_text(struct ree_prompts *prompts, const char *text,
                                             size_t nbytes, struct ree_error *err);
REE_API enum ree_status ree_prompts_add_ids(struct ree_prompts *prompts, const int32_t *ids,
                                            size_t n, struct ree_error *err);
// Appends a conversation, which is written as JSON in the form of ree_chat_prompt.
REE_API enum ree_status ree_prompts_add_messages(struct ree_prompts *prompts, const char *messages,
                                                 size_t nbytes, struct ree_error *err);
// Appends one prompt for each line of a file; skips empty lines. A line that begins with { or "
// must be a JSON value: "text", {"prompt": "text"}, {"ids": [1, 2]} or {"messages": [...]}. Other
// lines are texts. Fails with REE_INVALID if the file contains no prompts. After a failure, prompts
// of earlier lines may be in the list.
REE_API enum ree_status ree_prompts_add_file(struct ree_prompts *prompts, const char *path,
                                             struct ree_error *err);
// Returns the number of prompts in the list. *out_list is borrowed and valid until the next prompt
// is added.
REE_API size_t ree_prompts_list(const struct ree_prompts *prompts,
                                const struct ree_prompt **out_list);
// Returns whether prompt i is a conversation. i must be less than the number of prompts.
REE_API bool ree_prompts_is_chat(const struct ree_prompts *prompts, size_t i);

// A completion: prompts, and the texts with which a model continues them.
//
//     ree_completion_create -> ree_completion_run -> ree_completion_text, ... -> _destroy
//
// The tokens of an answer are all generated tokens, including those that completed a stop text. The
// text of an answer ends before this stop text. Special tokens produce no text. receipt.h has
// receipts of completions, and checkpoints from which completions continue.
struct ree_completion;

struct ree_completion_options {
    size_t size;                         // sizeof(struct ree_completion_options)
    const struct ree_sampling *sampling; // copied; NULL: ree_greedy
    size_t max_new_tokens;               // maximum per answer; 0: until the context is full
    // Stop texts: texts that end an answer. They must not be empty, require a tokenizer, and are
    // copied. If one token completes several, the one that begins first ends the answer's text.
    size_t n_stops;
    const char *const *stops;
    // Continue after eos tokens. If it is not set, an answer ends after any eos token that the
    // model's files or the tokenizer name.
    bool ignores_eos;
    uint32_t n_logprobs; // number of log probabilities that on_token receives; at most 100; 0: none
    // Receives parts of an answer's text as soon as later tokens cannot change them: text that may
    // be the beginning of a stop text comes later, and an incomplete character never comes.
    // `sequence` is the prompt's index. The parts of a sequence, in order, are the text of its
    // answer. `text` is NUL-terminated and may contain NULs. Not called without a tokenizer. NULL:
    // off.
    void (*on_text)(void *user, size_t sequence, const char *text, size_t nbytes);
    // Called with each new token, before its text. If it returns false, the sequence ends after
    // this token, with REE_FINISH_INTERRUPTED unless the token is the last one in any case. With a
    // checkpoint, returning false interrupts all sequences, so that a later run can continue them.
    // A completion that continues from a checkpoint first calls it with the checkpoint's tokens,
    // without log probabilities, and ignores the result. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run. If it returns true, the completion ends and keeps the tokens made so
    // far. NULL: off.
    bool (*is_interrupted)(void *user);
    void *user;
};

// Creates a completion of n prompts, at least 1, which ree_completion_run will run in batches. The
// prompts are copied. `tokenizer` decodes texts; NULL: there are no texts, only tokens. Generator
// and tokenizer must outlive the completion. `options` may be NULL. Fails with REE_INVALID if the
// tokenizer does not have a token of a prompt, a prompt has no tokens, or an option is out of
// range.
REE_API enum ree_status ree_completion_create(struct ree_generator *generator,
                                              const struct ree_tokenizer *tokenizer,
                                              const struct ree_prompt *prompts, size_t n,
                                              const struct ree_completion_options *options,
                                              struct ree_completion **out_completion,
                                              struct ree_error *err);
REE_API void ree_completion_destroy(struct ree_completion *completion);
// Generates the answers. May be called only once. After a failure, ree_completion_text returns the
// text generated so far.
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

// The functions below return the results, all borrowed from the completion. i must be less than the
// number of prompts. `out_nbytes` may be NULL; texts are NUL-terminated.

REE_API size_t ree_completion_n_prompts(const struct ree_completion *completion);
// Returns the text of prompt i as the tokenizer decodes it, before the run too; "" without a
// tokenizer.
REE_API const char *ree_completion_prompt_text(const struct ree_completion *completion, size_t i,
                                               size_t *out_nbytes);
// Returns the text of the answer to prompt i; "" without a tokenizer.
REE_API const char *ree_completion_text(const struct ree_completion *completion, size_t i,
                                        size_t *out_nbytes);
// Returns the tokens of prompt i and its answer, their hashes, and why the answer ended. NULL
// before the run, and after a failed run.
REE_API const struct ree_generation *
ree_completion_generation(const struct ree_completion *completion, size_t i);
// Returns the statistics of the run; all zeros before the run.
REE_API const struct ree_generate_stats *
ree_completion_stats(const struct ree_completion *completion);

#ifdef __cplusplus
}
#endif
#endif
