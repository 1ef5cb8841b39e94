// A group of sequences that run together, driven step by step: chunks of the prompts first, then
// one token of each sequence per step. Other groups may submit and collect steps while this group's
// step is in flight. For generate.c.
#ifndef REE_GENERATE_GROUP_H
#define REE_GENERATE_GROUP_H

#include "generate/generator.h"
#include "base/cache_digest.h"

// Shared by all groups of a call.
struct ree_generate_call {
    struct ree_generator *g;
    const struct ree_generate_options *options;
    struct ree_generate_stats *stats;
    double start;
};

struct ree_sequence {
    size_t number; // index of the prompt
    struct ree_generation *out;
    const struct ree_snapshot *from; // snapshot to resume from; NULL: start from the prompt
    size_t n_prefill;  // tokens to run as a prompt: all except the last token of an answer
    size_t n_saved;    // number of tokens at the last checkpoint
    bool expects_last; // compare the last token with the model's choice
    bool is_done;
    struct ree_hasher *logits; // NULL: not requested, or not running
    // Per kv cache: hash of its first n_hashed positions; NULL: none yet.
    struct ree_cache_digest *caches;
    int64_t n_hashed;    // positions hashed in `caches`
    ree_digest *digests; // per kv cache: digest of `caches`, or the snapshot's; NULL: none
};

struct ree_group {
    struct ree_generate_call *call;
    size_t slot;  // cache slot of the generator
    size_t batch; // 0: no sequences
    struct ree_sequence **sequences;
    size_t longest, chunk; // prompt tokens of the longest sequence; prompt tokens per step
    size_t from;           // prompt tokens already run
    bool in_flight;
    bool runs_answers_singly; // see chunk_length in group.c
    bool wants_check;         // the prompts are done, and kv caches must be compared
    struct ree_step step;
    int32_t *ids;
    int64_t *starts, *rows;
    size_t capacity; // capacity of ids and of rows, in elements
};

// Returns the maximum number of tokens of the sequence.
size_t ree_sequence_limit(const struct ree_generate_call *call, const struct ree_sequence *s);
// Whether the token ends an answer.
bool ree_sequence_is_eos(const struct ree_generate_call *call, int32_t id);

// Starts the group. The caller sets `slot`, `call`, `batch` and `sequences` first.
enum ree_status ree_group_begin(struct ree_group *group, struct ree_error *err);
bool ree_group_is_done(const struct ree_group *group);
// Submits the next step. The group must not be done.
enum ree_status ree_group_submit(struct ree_group *group, struct ree_error *err);
// Waits for the step, processes its logits and chooses tokens. Calls the callbacks.
enum ree_status ree_group_collect(struct ree_group *group, struct ree_error *err);
// Ends pending hashes and empties the group, which may then be started again.
void ree_group_end(struct ree_group *group);

// Computes digests of the kv caches of sequences that are not done, over all tokens except the
// last, into `digests`. No step may be in flight.
enum ree_status ree_group_hash_kv_caches(struct ree_group *group, struct ree_error *err);
// Like ree_group_hash_kv_caches; also compares the digests with those of the snapshots that
// sequences resume from.
enum ree_status ree_group_check_kv_caches(struct ree_group *group, struct ree_error *err);

// How sequences are divided into groups: order[first[k]] to order[first[k + 1] - 1] are the
// sequences of group k.
struct ree_batching {
    size_t n_groups;
    size_t *first; // n_groups + 1 elements
    size_t *order; // indices of sequences
};
// Batches all sequences that are not done. With several cache slots, groups have nearly equal size,
// so that all slots are used; with one slot, groups are as large as possible.
enum ree_status ree_batching(const struct ree_generator *g, const struct ree_sequence *sequences,
                             size_t n, struct ree_batching *out, struct ree_error *err);
void ree_batching_finish(struct ree_batching *batching);

// Chooses the sequence's next token from the logits of the last token that ran, and reports it. If
// the sequence resumes from a snapshot and its last token has not been checked, compares that token
// with the model's choice instead.
enum ree_status ree_sequence_add(struct ree_generate_call *call, struct ree_sequence *s,
                                 const float *logits, size_t vocab, struct ree_error *err);

#endif
