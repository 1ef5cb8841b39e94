// Generation by steps: the caller decides which tokens of which sequences run next, and chooses the
// tokens.
#ifndef REE_DECODE_H
#define REE_DECODE_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// A set of sequences that a caller decodes with one generator. Their kv caches stay on the device
// from call to call, in pages of 16 positions. Sequences may share pages: a fork and its original
// share all pages, and a page is copied when one of them writes into it.
//
// Bits: the logits of a sequence depend only on its tokens, and are those that ree_generate
// computes. They do not depend on the other sequences in a call, on how the tokens are divided into
// calls, on forks, or on truncated tokens. (If the model is not proved to be causal, they may
// depend on how the tokens are divided into calls, as with ree_generate: then they may also depend
// on truncated tokens that were in one call with tokens that are kept. NUMERICS.md, "Attention",
// says when infinities in a kv cache make a difference.)
//
// Some models replace their kv caches in each run instead of appending to them, for example with
// past values times 0.5. If such a model is also not proved to be causal, then
// - ree_decoding_truncate keeps either all tokens of a sequence or none;
// - a failed ree_decoding_run may have replaced the kv caches of sequences in the call. Such a
//   sequence still has its earlier tokens, but must be truncated to 0 tokens before it can run.
//
// The generator must outlive the ree_decoding. Calls of ree_generate with the same generator may
// alternate with calls of these functions, but not within callbacks.
struct ree_decoding;

// The id of a sequence within one ree_decoding. It is never 0. After ree_decoding_remove, no other
// sequence gets the same id.
typedef uint64_t ree_sequence_id;

struct ree_decoding_options {
    size_t size;              // sizeof this struct
    uint64_t max_cache_bytes; // memory limit of all kv caches in bytes; 0: the device's memory
    // Receives a copy of the logits before ree_decoding_choose chooses from it, and may change it:
    // mask tokens with -INFINITY, add a bias. `position` is the index of the new token in the
    // sequence. An answer chosen in this way gets no ordinary receipt: see logits_changed in struct
    // ree_sequence_info. NULL: off.
    void (*on_logits)(void *user, ree_sequence_id sequence, size_t position, float *logits,
                      size_t vocab_size);
    void *user;
};

// Creates an empty set of sequences. `options` may be NULL. Fails with REE_UNSUPPORTED if the model
// has no kv caches, runs in several stages or processes, runs with a memory budget, or is recorded
// in a trace.
REE_API enum ree_status ree_decoding_create(struct ree_generator *generator,
                                            const struct ree_decoding_options *options,
                                            struct ree_decoding **out_decoding,
                                            struct ree_error *err);
REE_API void ree_decoding_destroy(struct ree_decoding *decoding);

// The functions below fail with REE_NOT_FOUND if an id that they receive belongs to no sequence.

// Adds a sequence without tokens; *out_sequence receives its id.
REE_API enum ree_status ree_decoding_add(struct ree_decoding *decoding,
                                         ree_sequence_id *out_sequence, struct ree_error *err);
// Adds a sequence with the same tokens as `sequence`; *out_fork receives its id. The two sequences
// share the pages of the kv caches, so nothing is computed again.
REE_API enum ree_status ree_decoding_fork(struct ree_decoding *decoding, ree_sequence_id sequence,
                                          ree_sequence_id *out_fork, struct ree_error *err);
// Removes all but the first n tokens of a sequence. Fails with REE_INVALID if it has fewer than n.
// Fails with REE_UNSUPPORTED if 0 < n < its number of tokens and earlier positions of the kv caches
// may depend on later tokens (see "replace their kv caches" above): truncate it to 0 tokens and
// decode the first n again. After a failure the sequence is unchanged.
REE_API enum ree_status ree_decoding_truncate(struct ree_decoding *decoding,
                                              ree_sequence_id sequence, size_t n,
                                              struct ree_error *err);
REE_API enum ree_status ree_decoding_remove(struct ree_decoding *decoding, ree_sequence_id sequence,
                                            struct ree_error *err);

// The new tokens of one sequence in a call of ree_decoding_run. This struct does not change between
// versions.
struct ree_decode {
    ree_sequence_id sequence;
    const int32_t *ids; // (n): the tokens to append to the sequence
    size_t n;           // at least 1
    // (n_logits): indices in `ids` of the tokens after which logits are requested, in any order.
    // NULL: only the last token; n_logits must then be 0 or 1.
    const size_t *at;
    size_t n_logits;
    // (n_logits, vocab_size), set by the call: row k has the logits after token ids[at[k]]. NULL if
    // n_logits is 0, and after a failure. Borrowed from the ree_decoding, valid until the next call
    // of ree_decoding_run. vocab_size is in struct ree_decoding_stats.
    const float *logits;
};

// Runs the model over the new tokens of n items and appends them to their sequences. A sequence may
// be in only one item. New tokens run in chunks of at most prefill_chunk tokens; up to max_batch
// items with chunks of equal length run together (both options are in struct
// ree_generator_options). After a failure all sequences have the tokens that they had before, and
// can go on with others, unless the model replaces kv caches (see above). Errors:
// - REE_NOT_FOUND: unknown sequence
// - REE_INVALID: an item without tokens, a sequence in two items, an id outside the vocabulary, an
//   index outside `ids`, more tokens than the model's context
// - REE_NO_MEMORY: max_cache_bytes or the device's memory is exhausted; truncate or remove
//   sequences, then try again
// - REE_UNSUPPORTED: an earlier call failed after it had replaced the kv caches of a sequence:
//   truncate it to 0 tokens and decode all its tokens again
REE_API enum ree_status ree_decoding_run(struct ree_decoding *decoding, struct ree_decode *items,
                                         size_t n, struct ree_error *err);
// Chooses the token that follows the sequence, as ree_sampling_choose does for the sequence's
// tokens. `logits` are the logits after its last token, vocab_size entries. on_logits may change a
// copy of them first. Does not append the token: pass it to the next ree_decoding_run.
REE_API enum ree_status ree_decoding_choose(struct ree_decoding *decoding, ree_sequence_id sequence,
                                            const float *logits,
                                            const struct ree_sampling *sampling, int32_t *out_id,
                                            struct ree_error *err);

struct ree_sequence_info {
    size_t size;        // sizeof this struct
    const int32_t *ids; // (n): token ids, borrowed until ree_decoding_run or ree_decoding_remove
    size_t n;           // number of tokens of the sequence
    size_t n_pages, n_shared_pages; // number of pages; number of pages shared with other sequences
    // on_logits was called before a choice for this sequence, or for the sequence from which it was
    // forked. Do not make an ordinary receipt of this sequence: it would state that every token
    // follows from the model's own logits.
    bool logits_changed;
};
// Describes a sequence. The caller sets out_info->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_decoding_sequence(const struct ree_decoding *decoding,
                                              ree_sequence_id sequence,
                                              struct ree_sequence_info *out_info,
                                              struct ree_error *err);

struct ree_decoding_stats {
    size_t size; // sizeof this struct
    size_t n_sequences;
    // Number of tokens in the vocabulary; 0 before the first run if the model does not declare it.
    size_t vocab_size;
    uint64_t n_tokens;       // tokens run so far; a token that several sequences share counts once
    uint64_t n_runs;         // runs of the model so far
    size_t page_positions;   // positions per page
    uint64_t page_bytes;     // bytes of one page in all kv caches together
    size_t n_pages;          // pages in use; a shared page counts once
    size_t n_shared_pages;   // pages that several sequences use
    uint64_t cache_bytes;    // bytes of the pages in use: n_pages * page_bytes
    uint64_t pool_bytes;     // memory of the kv caches on the device, with unused pages
    uint64_t n_copied_pages; // pages copied so far because a sequence wrote into a shared page
    // Number of dense copies of kv caches that the last run made; 0: attention read the pages in
    // place. A run makes copies if operators other than attention read the kv caches, or if the
    // device's attention does not read pages for so many new tokens.
    uint32_t n_page_copies;
    // The model writes whole kv caches instead of appending to them, so a run of a fork copies all
    // pages.
    bool copies_forks;
};
// Writes the statistics of all sequences together. The caller sets out_stats->size. Fails with
// REE_INVALID if it is 0.
REE_API enum ree_status ree_decoding_stats(const struct ree_decoding *decoding,
                                           struct ree_decoding_stats *out_stats,
                                           struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
