// Generation by steps: the caller decides which tokens of which sequences run next, and chooses the
// tokens.
#ifndef REE_DECODE_H
#define REE_DECODE_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// The sequences that a caller decodes with one generator. Their kv caches stay on the device from
// call to call, in pages of 16 positions. Sequences may share pages: a fork and its original share
// all pages, and a page is copied when one of them writes into it.
//
// Bits: the logits of a sequence depend only on its tokens, and are those that ree_generate
// computes. They do not depend on other sequences in a call, on how its tokens are divided into
// calls, on forks, or on what was truncated. (If the model is not proved to be causal, they may
// depend on how the tokens are divided into calls, as with ree_generate. NUMERICS.md, "Attention",
// says when infinities among the values of a cache make a difference.)
//
// The generator must outlive the ree_decoding. Calls of ree_generate with the same generator may
// alternate with calls of these functions, but not within callbacks.
struct ree_decoding;

// Names a sequence within one ree_decoding. Never 0; not used again after ree_decoding_remove.
typedef uint64_t ree_sequence_id;

struct ree_decoding_options {
    size_t size;              // sizeof this struct
    uint64_t max_cache_bytes; // memory limit of the kv caches; 0: only the device's
    // Receives a copy of the logits before ree_decoding_choose chooses from them, and may change
    // it: mask tokens with -INFINITY, add a bias. `position` is the index of the new token in the
    // sequence. Answers chosen in this way have no ordinary receipt: see logits_changed. NULL: off.
    void (*on_logits)(void *user, ree_sequence_id sequence, size_t position, float *logits,
                      size_t vocab_size);
    void *user;
};

// Fails with REE_UNSUPPORTED if the model has no kv caches, or runs in several stages or processes,
// with a memory budget, or is recorded in a trace. `options` may be NULL.
REE_API enum ree_status ree_decoding_create(struct ree_generator *generator,
                                            const struct ree_decoding_options *options,
                                            struct ree_decoding **out_decoding,
                                            struct ree_error *err);
REE_API void ree_decoding_destroy(struct ree_decoding *decoding);

// The functions below fail with REE_NOT_FOUND if there is no sequence of that id.

// Adds a sequence without tokens.
REE_API enum ree_status ree_decoding_add(struct ree_decoding *decoding,
                                         ree_sequence_id *out_sequence, struct ree_error *err);
// Adds a sequence with the same tokens as `sequence`. Both share its kv caches; nothing is computed
// again.
REE_API enum ree_status ree_decoding_fork(struct ree_decoding *decoding, ree_sequence_id sequence,
                                          ree_sequence_id *out_fork, struct ree_error *err);
// Keeps only the first n tokens. Fails with REE_INVALID if the sequence has fewer.
REE_API enum ree_status ree_decoding_truncate(struct ree_decoding *decoding,
                                              ree_sequence_id sequence, size_t n,
                                              struct ree_error *err);
REE_API enum ree_status ree_decoding_remove(struct ree_decoding *decoding, ree_sequence_id sequence,
                                            struct ree_error *err);

// New tokens of one sequence in a call of ree_decoding_run. This struct does not change between
// versions.
struct ree_decode {
    ree_sequence_id sequence;
    const int32_t *ids; // appended to the sequence
    size_t n;           // at least 1
    // (n_logits): indices in ids of the tokens after which logits are requested, in any order. NULL
    // with n_logits 1: the last token.
    const size_t *at;
    size_t n_logits;
    // (n_logits, vocab_size), set by the call: row k has the logits after ids[at[k]]. NULL if
    // n_logits is 0, and after a failure. Borrowed from the ree_decoding, valid until the next call
    // of ree_decoding_run. struct ree_decoding_stats has vocab_size.
    const float *logits;
};

// Runs the model over the new tokens of n items and appends them to their sequences. A sequence may
// be in only one item. Up to max_batch items run together if they have one new token, or chunks of
// equal length; prefill_chunk is the longest chunk (struct ree_generator_options). On failure no
// sequence has changed. Errors:
// - REE_NOT_FOUND: unknown sequence
// - REE_INVALID: an item without tokens, a sequence in two items, an id outside the vocabulary, an
//   index outside `ids`, more tokens than the model's context
// - REE_NO_MEMORY: max_cache_bytes or the device's memory is exhausted; truncate or remove
//   sequences, then try again
REE_API enum ree_status ree_decoding_run(struct ree_decoding *decoding, struct ree_decode *items,
                                         size_t n, struct ree_error *err);
// Chooses the token that follows the sequence, as ree_sampling_choose does with the sequence's
// tokens. `logits` are those after its last token (vocab_size entries). on_logits may change a copy
// of them first. Does not append the token: pass it to the next ree_decoding_run.
REE_API enum ree_status ree_decoding_choose(struct ree_decoding *decoding, ree_sequence_id sequence,
                                            const float *logits,
                                            const struct ree_sampling *sampling, int32_t *out_id,
                                            struct ree_error *err);

struct ree_sequence_info {
    size_t size;                    // sizeof this struct
    const int32_t *ids;             // valid until ree_decoding_run or ree_decoding_remove is called
    size_t n;                       // tokens of the sequence
    size_t n_pages, n_shared_pages; // pages of its kv caches; those shared with other sequences
    // on_logits was called before a choice for this sequence, or for the one it was forked from. An
    // ordinary receipt states that every token follows from the model's own logits, so it must not
    // be made of this sequence.
    bool logits_changed;
};
// The caller sets out_info->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_decoding_sequence(const struct ree_decoding *decoding,
                                              ree_sequence_id sequence,
                                              struct ree_sequence_info *out_info,
                                              struct ree_error *err);

struct ree_decoding_stats {
    size_t size; // sizeof this struct
    size_t n_sequences;
    size_t vocab_size;       // 0: unknown before the first run
    uint64_t n_tokens;       // tokens run so far; a token that several sequences share counts once
    uint64_t n_runs;         // runs of the model
    size_t page_positions;   // positions per page
    uint64_t page_bytes;     // bytes of one page, all kv caches together
    size_t n_pages;          // pages in use; a shared page counts once
    size_t n_shared_pages;   // pages in use by several sequences
    uint64_t cache_bytes;    // n_pages * page_bytes
    uint64_t pool_bytes;     // memory of the kv caches on the device, unused pages included
    uint64_t n_copied_pages; // pages copied before a write, because they were shared
    // Dense copies of kv caches that the last run made. 0: attention read the pages in place. A run
    // makes copies if other operators read the kv caches, or if the device's attention does not
    // read pages for a prompt of this length.
    uint32_t n_page_copies;
    // The model writes whole kv caches instead of appending to them, so forks copy all pages.
    bool copies_forks;
};
// The caller sets out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_decoding_stats(const struct ree_decoding *decoding,
                                           struct ree_decoding_stats *out_stats,
                                           struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
