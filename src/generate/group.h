// A group of sequences that run together, step by step: first chunks of the prompts, then one token
// of each sequence per step. Other groups may submit and collect steps while this group's step is
// in flight. Used by generate.c.
#ifndef REE_GENERATE_GROUP_H
#define REE_GENERATE_GROUP_H

#include "generate/generator.h"
#include "base/cache_digest.h"

// What all groups of one call of ree_generate share.
struct ree_generate_call {
    struct ree_generator *g;
    const struct ree_generate_options *options;
    struct ree_generate_stats *stats;
    double start;
};

struct ree_sequence {
    size_t number; // index of the sequence's prompt
    struct ree_generation *out;
    const struct ree_snapshot *from; // snapshot to resume from; NULL: start from the prompt
    // Number of tokens known at the start: those of the prompt, and of a resumed answer except its
    // last one. They run like a prompt.
    size_t n_prefill;
    size_t n_saved; // number of tokens at the last checkpoint
    // The sequence's last token comes from the snapshot and has not yet been compared with the
    // token that the model chooses.
    bool expects_last;
    bool is_done;
    struct ree_hasher *logits; // hash of the logits; NULL: not requested, or not running
    // Per kv cache: hash of its first n_hashed positions; NULL: none yet.
    struct ree_cache_digest *caches;
    int64_t n_hashed; // positions hashed in `caches`
    // Per kv cache: digest for the next checkpoint. NULL: not computed; the checkpoint then has the
    // digests of the snapshot `from`.
    ree_digest *digests;
};

struct ree_group {
    struct ree_generate_call *call;
    size_t slot;  // index of the generator's cache slot
    size_t batch; // number of sequences; 0: the group is not in use
    struct ree_sequence **sequences;
    // longest: largest n_prefill of the sequences. chunk: maximum number of these tokens that a
    // step runs per sequence.
    size_t longest, chunk;
    size_t from; // prompt tokens already run
    bool in_flight;
    bool runs_answers_singly; // tokens of resumed answers run one by one, as they were generated
    bool wants_check;         // kv caches must be compared with those of the snapshots
    struct ree_step step;
    int32_t *ids;
    int64_t *starts, *rows;
    size_t capacity; // capacity of ids and of rows, in elements
};

// Returns the maximum number of tokens of the sequence, prompt included.
size_t ree_sequence_limit(const struct ree_generate_call *call, const struct ree_sequence *s);
// Returns whether the token `id` ends an answer.
bool ree_sequence_is_eos(const struct ree_generate_call *call, int32_t id);

// Starts the group. The caller sets `slot`, `call`, `batch` and `sequences` first.
enum ree_status ree_group_begin(struct ree_group *group, struct ree_error *err);
bool ree_group_is_done(const struct ree_group *group);
// Submits the next step. The group must not be done.
enum ree_status ree_group_submit(struct ree_group *group, struct ree_error *err);
// Waits for the step in flight, processes its logits and chooses tokens. Calls the callbacks of
// ree_generate_options.
enum ree_status ree_group_collect(struct ree_group *group, struct ree_error *err);
// Completes the hashes of logits and empties the group, which may then be started again.
void ree_group_end(struct ree_group *group);

// Sets ree_sequence.digests of each sequence that is not done and whose prompt has run: digests of
// its kv caches, over all tokens except the last. The group must not have a step in flight.
enum ree_status ree_group_hash_kv_caches(struct ree_group *group, struct ree_error *err);
// Like ree_group_hash_kv_caches; also compares the digests with those of the snapshots that
// sequences resume from. Fails with REE_INVALID if they differ.
enum ree_status ree_group_check_kv_caches(struct ree_group *group, struct ree_error *err);

// How sequences are divided into groups: order[first[k]] to order[first[k + 1] - 1] are the
// sequences of group k.
struct ree_batching {
    size_t n_groups;
    size_t *first; // (n_groups + 1): where each group begins in `order`, then the end
    size_t *order; // indices of sequences, ordered by group
};
// Divides all sequences that are not done into groups. With several cache slots, groups have nearly
// equal size, so that all slots are used; with one slot, groups are as large as possible. Release
// *out with ree_batching_finish.
enum ree_status ree_batching(const struct ree_generator *g, const struct ree_sequence *sequences,
                             size_t n, struct ree_batching *out, struct ree_error *err);
void ree_batching_finish(struct ree_batching *batching);

// Chooses the sequence's next token from the logits of the last token that ran, and reports it.
// logits: `vocab` elements. If the sequence resumes from a snapshot and its last token has not been
// checked, compares that token with the model's choice instead; fails with REE_INVALID if they
// differ.
enum ree_status ree_sequence_add(struct ree_generate_call *call, struct ree_sequence *s,
                                 const float *logits, size_t vocab, struct ree_error *err);

#endif
