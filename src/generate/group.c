#include "generate/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/check.h"

static enum ree_status reserve_ids(struct ree_group *group, size_t n, struct ree_error *err) {
    if (n <= group->capacity) return REE_OK;
    size_t capacity = n + n / 2;
    int32_t *ids = ree_realloc(group->ids, capacity * sizeof *ids);
    if (ids) group->ids = ids;
    int64_t *rows = ree_realloc(group->rows, capacity * sizeof *rows);
    if (rows) group->rows = rows;
    if (!ids || !rows) return ree_no_memory(err);
    group->capacity = capacity;
    return REE_OK;
}

enum ree_status ree_group_begin(struct ree_group *group, struct ree_error *err) {
    struct ree_generate_call *call = group->call;
    struct ree_generator *g = call->g;
    size_t most = 0;
    bool goes_on = false;
    group->longest = group->from = 0;
    group->wants_check = false;
    for (size_t b = 0; b < group->batch; b++) {
        struct ree_sequence *s = group->sequences[b];
        size_t limit = ree_sequence_limit(call, s);
        if (s->n_prefill > group->longest) group->longest = s->n_prefill;
        if (limit > most) most = limit;
        goes_on = goes_on || s->n_prefill > s->out->n_prompt;
        call->stats->prompt_tokens += s->n_prefill;
        if (g->options.all_logits) s->logits = ree_hasher_try_create("ree-logits/1");
        if (g->options.all_logits && !s->logits) return ree_no_memory(err);
    }
    group->runs_answers_singly = goes_on && !g->causality.is_proved;
    // Without a cache each step runs over all tokens so far. A resumed run does not repeat these
    // steps, whose logits the hash has.
    if (group->runs_answers_singly && !g->info.has_cache && g->options.all_logits)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a run with a hash of its logits cannot be resumed with this model, which "
                        "has no kv cache and is not proved to be causal: %s",
                        g->causality.why_not);
    group->runs_answers_singly = group->runs_answers_singly && g->info.has_cache;
    group->chunk = g->info.has_cache ? g->options.prefill_chunk : group->longest;
    if (group->chunk > group->longest) group->chunk = group->longest;
    ree_free(group->starts);
    group->starts = ree_alloc((group->batch + 1) * sizeof *group->starts);
    if (!group->starts) return ree_no_memory(err);
    REE_TRY(reserve_ids(group, group->batch * group->chunk, err));
    return ree_generator_begin(g, group->slot, group->batch, (int64_t)most, err);
}

static bool in_prompts(const struct ree_group *group) {
    return group->from < group->longest;
}

bool ree_group_is_done(const struct ree_group *group) {
    if (in_prompts(group)) return false;
    for (size_t b = 0; b < group->batch; b++)
        if (!group->sequences[b]->is_done) return false;
    return true;
}

// Returns the length of the next chunk. If the model is not proved to be causal, the tokens of a
// resumed answer run one by one, as they were generated.
static size_t chunk_length(const struct ree_group *group) {
    size_t from = group->from, left = group->longest - from;
    size_t length = left < group->chunk ? left : group->chunk;
    for (size_t b = 0; group->runs_answers_singly && b < group->batch; b++) {
        const struct ree_sequence *s = group->sequences[b];
        size_t n_prompt = s->out->n_prompt;
        if (s->n_prefill <= n_prompt) continue;
        size_t most = from < n_prompt ? n_prompt - from : 1;
        if (most < length) length = most;
    }
    return length;
}

// Prepares the next chunk of prompt tokens of each sequence, beginning with token group->from.
// After the end of a shorter prompt its last token is repeated: the results are masked and
// overwritten later.
static void prepare_chunk(struct ree_group *group) {
    size_t batch = group->batch, from = group->from, length = chunk_length(group);
    bool all = group->call->g->options.all_logits;
    size_t n_rows = all ? length : 1;
    for (size_t b = 0; b < batch; b++) {
        const struct ree_sequence *seq = group->sequences[b];
        size_t last = seq->n_prefill - 1;
        for (size_t s = 0; s < length; s++)
            group->ids[b * length + s] = seq->out->ids[from + s < last ? from + s : last];
        group->starts[b] = (int64_t)from;
        for (size_t r = 0; r < n_rows; r++)
            group->rows[b * n_rows + r] =
                (int64_t)(all                                    ? r
                          : last >= from && last < from + length ? last - from
                                                                 : 0);
    }
    group->step = (struct ree_step){batch, length, group->ids, group->starts, n_rows, group->rows};
}

// Prepares one more token of each sequence. Sequences that have ended repeat their last token.
static enum ree_status prepare_single(struct ree_group *group, struct ree_error *err) {
    const struct ree_generator *g = group->call->g;
    size_t batch = group->batch;
    bool has_cache = g->info.has_cache;
    size_t length = has_cache ? 1 : 0;
    for (size_t b = 0; !has_cache && b < batch; b++)
        if (group->sequences[b]->out->n > length) length = group->sequences[b]->out->n;
    // Without a kv cache, a step has whole sequences, so it may need more memory for ids.
    REE_TRY(reserve_ids(group, batch * length, err));
    for (size_t b = 0; b < batch; b++) {
        const struct ree_generation *out = group->sequences[b]->out;
        size_t last = out->n - 1;
        if (has_cache) group->ids[b] = out->ids[last];
        for (size_t s = 0; !has_cache && s < length; s++)
            group->ids[b * length + s] = out->ids[s < last ? s : last];
        group->starts[b] = has_cache ? (int64_t)last : 0;
        group->rows[b] = has_cache ? 0 : (int64_t)last;
    }
    // Without mixed lengths a step has one position, that of the sequences that continue. It is a
    // number of tokens, as in verification (generate/pass.h), not the length of a cache.
    int64_t position = 0;
    for (size_t b = 0; b < batch; b++)
        if (!group->sequences[b]->is_done) position = group->starts[b];
    for (size_t b = 0; has_cache && !g->info.mixes_lengths && b < batch; b++)
        group->starts[b] = position;
    group->step = (struct ree_step){batch, length, group->ids, group->starts, 1, group->rows};
    return REE_OK;
}

enum ree_status ree_group_submit(struct ree_group *group, struct ree_error *err) {
    if (in_prompts(group))
        prepare_chunk(group);
    else
        REE_TRY(prepare_single(group, err));
    REE_TRY(ree_generator_submit(group->call->g, group->slot, &group->step, err));
    group->in_flight = true;
    return REE_OK;
}

// Adds n rows of logits to the sequence's hash, if it is requested. Callers pass the row of each
// token once, and no rows of repeated tokens.
static void hash_rows(const struct ree_group *group, struct ree_sequence *s, const float *logits,
                      size_t n, size_t vocab) {
    if (!s->logits) return;
    ree_hasher_update(s->logits, logits, n * vocab * sizeof *logits);
    struct ree_generate_stats *stats = group->call->stats;
    stats->hashed_nan = stats->hashed_nan || ree_logits_have_nan(logits, n * vocab);
}

static enum ree_status take_chunk(struct ree_group *group, const struct ree_tensor *logits,
                                  struct ree_error *err) {
    size_t from = group->from, length = group->step.length, n_rows = group->step.n_rows;
    size_t vocab = (size_t)logits->dims[2];
    bool all = group->call->g->options.all_logits;
    group->from += length;
    for (size_t b = 0; b < group->batch; b++) {
        struct ree_sequence *s = group->sequences[b];
        if (s->n_prefill <= from) continue;
        const float *own = (const float *)logits->data + b * n_rows * vocab;
        size_t real = s->n_prefill - from < length ? s->n_prefill - from : length;
        // The first run computed these rows one by one, where later tokens could add no NaN.
        if (s->logits && s->n_prefill > s->out->n_prompt && !group->runs_answers_singly &&
            ree_logits_have_nan(own, real * vocab))
            return ree_fail(err, REE_UNSUPPORTED,
                            "a run with a hash of its logits cannot be resumed: a logit of the "
                            "text so far is NaN");
        hash_rows(group, s, own, real, vocab);
        if (s->n_prefill > from + length) continue;
        group->wants_check = group->wants_check || s->expects_last;
        REE_TRY(ree_sequence_add(group->call, s, all ? own + (real - 1) * vocab : own, vocab, err));
    }
    return REE_OK;
}

static enum ree_status take_single(struct ree_group *group, const struct ree_tensor *logits,
                                   struct ree_error *err) {
    size_t vocab = (size_t)logits->dims[2];
    for (size_t b = 0; b < group->batch; b++) {
        struct ree_sequence *s = group->sequences[b];
        if (s->is_done) continue;
        const float *own = (const float *)logits->data + b * vocab;
        hash_rows(group, s, own, 1, vocab);
        REE_TRY(ree_sequence_add(group->call, s, own, vocab, err));
    }
    return REE_OK;
}

enum ree_status ree_group_collect(struct ree_group *group, struct ree_error *err) {
    struct ree_tensor logits;
    group->in_flight = false;
    REE_TRY(ree_generator_collect(group->call->g, group->slot, &logits, err));
    group->call->stats->n_runs++;
    enum ree_status status;
    if (in_prompts(group)) {
        status = take_chunk(group, &logits, err);
    } else {
        size_t before = group->call->stats->new_tokens;
        status = take_single(group, &logits, err);
        group->call->stats->decode_tokens += group->call->stats->new_tokens - before;
    }
    ree_tensor_finish(&logits);
    return status;
}

void ree_group_end(struct ree_group *group) {
    for (size_t b = 0; b < group->batch; b++) {
        struct ree_sequence *s = group->sequences[b];
        if (s->logits) ree_hasher_finish(s->logits, s->out->logits_sha256);
        s->logits = NULL;
        ree_free(s->caches);
        s->caches = NULL;
        s->n_hashed = 0;
    }
    ree_free(group->ids);
    ree_free(group->starts);
    ree_free(group->rows);
    group->ids = NULL;
    group->starts = group->rows = NULL;
    group->capacity = group->batch = 0;
}
