// A group of sequences that run together, as a machine that is driven step by step: pieces of the
// prompts, then a token of each at a time. Between submitting a step and collecting it other groups
// may do the same. For generate.c.
#ifndef REE_GENERATE_GROUP_H
#define REE_GENERATE_GROUP_H

#include "generate/generator.h"
#include "receipt/trace.h"

// What all groups of a call share.
struct ree_generate_call {
    struct ree_generator *g;
    const struct ree_generate_options *options;
    struct ree_generate_stats *stats;
    double start;
};

struct ree_sequence {
    size_t number; // among the prompts
    struct ree_generation *out;
    const struct ree_snapshot *from; // where it goes on; NULL: a prompt
    size_t n_prefill;                // tokens that run as a prompt: all but an answer's last
    size_t n_saved;                  // tokens at the last checkpoint
    bool expects_last;               // its last token is compared with the one that is chosen
    bool is_done;
    struct ree_hasher *logits;     // NULL: not wanted, or not running
    struct ree_trace_rows *caches; // per state, of its first rows; NULL: none yet
    int64_t n_hashed;              // rows in `caches`
    ree_digest *digests;           // per state, of `caches` or of `from`; NULL: none
};

struct ree_group {
    struct ree_generate_call *call;
    size_t set;   // of the generator
    size_t batch; // 0: no sequences
    struct ree_sequence **sequences;
    size_t longest, piece; // tokens of prompts: of the longest, of a step
    size_t from;           // of them are done
    bool in_flight;
    bool runs_answers_singly; // see piece_length in group.c
    bool wants_check;         // its prompts are done, and caches are to be compared
    struct ree_step step;
    int32_t *ids;
    int64_t *starts, *rows;
    size_t room; // elements of ids and of rows
};

// The most tokens that the sequence may have.
size_t ree_sequence_limit(const struct ree_generate_call *call, const struct ree_sequence *s);
// Whether a token of the answer ends it.
bool ree_sequence_is_eos(const struct ree_generate_call *call, int32_t id);

// With set, call and sequences set.
enum ree_status ree_group_begin(struct ree_group *group, struct ree_error *err);
bool ree_group_is_done(const struct ree_group *group);
// The next step of one that is not done.
enum ree_status ree_group_submit(struct ree_group *group, struct ree_error *err);
// Waits for it, takes its logits in and chooses tokens: callbacks are called here.
enum ree_status ree_group_collect(struct ree_group *group, struct ree_error *err);
// Ends what hashing is going on and empties the group, which may be begun again.
void ree_group_end(struct ree_group *group);

// Digests of the caches of its sequences that are not done, over all tokens but the last, in their
// `digests`. While no step is in flight.
enum ree_status ree_group_hash_caches(struct ree_group *group, struct ree_error *err);
// The same, and compares them with those that sequences go on from.
enum ree_status ree_group_check_caches(struct ree_group *group, struct ree_error *err);

// Which sequences run together: order[first[k]] to order[first[k + 1] - 1] are group k.
struct ree_deal {
    size_t n_groups;
    size_t *first; // n_groups + 1
    size_t *order; // numbers of sequences
};
// All sequences that are not done. Groups have near equal size where there are several sets, so
// that as many run at a time; with one set they are as large as may be.
enum ree_status ree_deal(const struct ree_generator *g, const struct ree_sequence *sequences,
                         size_t n, struct ree_deal *out, struct ree_error *err);
void ree_deal_finish(struct ree_deal *deal);

// Chooses its next token from the logits after the last that was run, and reports it. Of a sequence
// that goes on, where that is its last token: compares.
enum ree_status ree_sequence_add(struct ree_generate_call *call, struct ree_sequence *s,
                                 const float *logits, size_t vocab, struct ree_error *err);

#endif
