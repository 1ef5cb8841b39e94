// From prompts to tokens: which sequences run together, prompts in pieces, then token by token.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "device/device.h"
#include "generate/generator.h"
#include "receipt/sha256.h"
#include "session/state.h"

#define MAX_LOGPROBS 100

const char *ree_finish_name(enum ree_finish finish) {
    static const char *const names[] = {"length", "eos", "stop", "interrupted"};
    return names[finish];
}

void ree_generation_finish(struct ree_generation *generation) {
    free(generation->ids);
    memset(generation, 0, sizeof *generation);
}

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Sequences that run together.
struct group {
    struct ree_generator *g;
    const struct ree_generate_options *options;
    struct ree_generate_stats *stats;
    double start;
    size_t batch;
    size_t *sequence; // numbers among the prompts
    struct ree_generation **out;
    struct ree_hasher **hashers; // of logits; NULL: not wanted
    bool *done;
    size_t n_done;
    int32_t *ids; // of the step
    int64_t *starts, *rows;
    size_t room; // elements of ids and of rows
    bool interrupted;
};

// The most tokens that a sequence may have.
static size_t limit_of(const struct group *group, size_t b) {
    int64_t context = group->g->info.context_length;
    size_t limit = context ? (size_t)context : (size_t)1 << 30;
    size_t wanted = group->options->max_new_tokens;
    size_t n = group->out[b]->n_prompt;
    if (wanted && wanted < limit && n + wanted < limit) limit = n + wanted;
    return limit;
}

static void end_sequence(struct group *group, size_t b, enum ree_finish finish) {
    if (group->done[b]) return;
    group->done[b] = true;
    group->n_done++;
    group->out[b]->finish = finish;
}

// The likeliest tokens by log softmax, through the RepOp itself.
static enum ree_status find_logprobs(const float *logits, size_t vocab, uint32_t n, float *logprobs,
                                     struct ree_logprob *top, struct ree_error *err) {
    struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX, .n_operands = 2, .n_outputs = 1};
    d.params.softmax =
        (struct ree_softmax_params){.log = 1, .outer = 1, .k = (uint32_t)vocab, .inner = 1};
    d.operands[0] = d.operands[1] = (struct ree_operand){0, 0, vocab * sizeof *logits};
    void *operands[2] = {(float *)(uintptr_t)logits, logprobs};
    REE_TRY(ree_cpu_execute(&d, operands, err));
    uint32_t kept = 0;
    for (size_t i = 0; i < vocab; i++) {
        uint32_t at = kept;
        while (at > 0 && top[at - 1].logprob < logprobs[i])
            at--;
        if (at == n) continue;
        if (kept < n) kept++;
        memmove(top + at + 1, top + at, (kept - at - 1) * sizeof *top);
        top[at] = (struct ree_logprob){(int32_t)i, logprobs[i]};
    }
    for (; kept < n; kept++)
        top[kept] = (struct ree_logprob){-1, -INFINITY};
    return REE_OK;
}

static enum ree_status report_token(struct group *group, size_t b, const float *logits,
                                    size_t vocab, struct ree_error *err) {
    const struct ree_generate_options *o = group->options;
    struct ree_generation *out = group->out[b];
    struct ree_token token = {group->sequence[b], out->n - 1, out->ids[out->n - 1], 0, NULL};
    struct ree_logprob *top = NULL;
    if (o->n_logprobs) {
        float *logprobs = malloc(vocab * sizeof *logprobs);
        top = malloc((o->n_logprobs + 1) * sizeof *top);
        enum ree_status status = logprobs && top ? REE_OK : no_memory(err);
        if (status == REE_OK)
            status = find_logprobs(logits, vocab, o->n_logprobs, logprobs, top, err);
        if (status == REE_OK) token.logprob = logprobs[token.id];
        token.top = top;
        free(logprobs);
        if (status != REE_OK) {
            free(top);
            return status;
        }
    }
    bool goes_on = !o->on_token || o->on_token(o->user, &token);
    free(top);
    for (size_t i = 0; i < o->n_eos; i++)
        if (token.id == o->eos[i]) end_sequence(group, b, REE_FINISH_EOS);
    if (!goes_on) end_sequence(group, b, REE_FINISH_STOP);
    if (out->n >= limit_of(group, b)) end_sequence(group, b, REE_FINISH_LENGTH);
    return REE_OK;
}

static enum ree_status add_token(struct group *group, size_t b, const float *logits, size_t vocab,
                                 struct ree_error *err) {
    struct ree_generation *out = group->out[b];
    int32_t id;
    enum ree_status status = ree_sampling_choose(&group->options->sampling, logits, vocab, out->ids,
                                                 out->n, out->n, &id, err);
    if (status != REE_OK) {
        ree_fail_prefix(err, "position %zu of sequence %zu", out->n, group->sequence[b]);
        return status;
    }
    int32_t *ids = realloc(out->ids, (out->n + 1) * sizeof *ids);
    if (!ids) return no_memory(err);
    out->ids = ids;
    ids[out->n++] = id;
    if (group->stats->new_tokens++ == 0) group->stats->first_token_seconds = now() - group->start;
    return report_token(group, b, logits, vocab, err);
}

static bool is_interrupted(struct group *group) {
    const struct ree_generate_options *o = group->options;
    if (!group->interrupted && o->is_interrupted && o->is_interrupted(o->user))
        group->interrupted = true;
    for (size_t b = 0; group->interrupted && b < group->batch; b++)
        end_sequence(group, b, REE_FINISH_INTERRUPTED);
    return group->interrupted;
}

// Rows of logits that count: those of real tokens, each once.
static void hash_rows(struct group *group, size_t b, const float *logits, size_t n, size_t vocab) {
    if (group->hashers) ree_hasher_update(group->hashers[b], logits, n * vocab * sizeof *logits);
}

static enum ree_status make_room(struct group *group, size_t n, struct ree_error *err) {
    if (n <= group->room) return REE_OK;
    size_t room = n + n / 2;
    int32_t *ids = realloc(group->ids, room * sizeof *ids);
    if (ids) group->ids = ids;
    int64_t *rows = realloc(group->rows, room * sizeof *rows);
    if (rows) group->rows = rows;
    if (!ids || !rows) return no_memory(err);
    group->room = room;
    return REE_OK;
}

// The prompt's tokens from `from` on, `length` of each sequence. Behind the end of a shorter one
// its last token is repeated: what that computes is masked, and overwritten later.
static enum ree_status prompt_piece(struct group *group, size_t from, size_t length,
                                    struct ree_error *err) {
    size_t batch = group->batch;
    bool all = group->hashers != NULL;
    size_t n_rows = all ? length : 1;
    for (size_t b = 0; b < batch; b++) {
        const struct ree_generation *out = group->out[b];
        size_t last = out->n_prompt - 1;
        for (size_t s = 0; s < length; s++)
            group->ids[b * length + s] = out->ids[from + s < last ? from + s : last];
        group->starts[b] = (int64_t)from;
        for (size_t r = 0; r < n_rows; r++)
            group->rows[b * n_rows + r] =
                (int64_t)(all                                    ? r
                          : last >= from && last < from + length ? last - from
                                                                 : 0);
    }
    struct ree_step step = {batch, length, group->ids, group->starts, n_rows, group->rows};
    struct ree_tensor logits;
    REE_TRY(ree_generator_step(group->g, &step, &logits, err));
    size_t vocab = (size_t)logits.dims[2];
    enum ree_status status = REE_OK;
    for (size_t b = 0; status == REE_OK && b < batch; b++) {
        size_t n_prompt = group->out[b]->n_prompt;
        if (n_prompt <= from) continue;
        const float *own = (const float *)logits.data + b * n_rows * vocab;
        size_t real = n_prompt - from < length ? n_prompt - from : length;
        hash_rows(group, b, own, real, vocab);
        if (n_prompt <= from + length)
            status = add_token(group, b, all ? own + (real - 1) * vocab : own, vocab, err);
    }
    ree_tensor_finish(&logits);
    return status;
}

// One more token of each sequence. Those that have ended take part with their last token again.
static enum ree_status single_step(struct group *group, struct ree_error *err) {
    size_t batch = group->batch;
    bool has_cache = group->g->info.has_cache;
    size_t length = has_cache ? 1 : 0;
    for (size_t b = 0; !has_cache && b < batch; b++)
        if (group->out[b]->n > length) length = group->out[b]->n;
    REE_TRY(make_room(group, batch * length, err)); // without a cache it takes whole sequences
    for (size_t b = 0; b < batch; b++) {
        const struct ree_generation *out = group->out[b];
        size_t last = out->n - 1;
        if (has_cache) group->ids[b] = out->ids[last];
        for (size_t s = 0; !has_cache && s < length; s++)
            group->ids[b * length + s] = out->ids[s < last ? s : last];
        group->starts[b] = has_cache ? (int64_t)last : 0;
        group->rows[b] = has_cache ? 0 : (int64_t)last;
    }
    // Without mixing, all stand where those stand that go on.
    for (size_t b = 0; has_cache && !group->g->info.mixes_lengths && b < batch; b++)
        group->starts[b] = ree_generator_cache_rows(group->g, 0);
    struct ree_step step = {batch, length, group->ids, group->starts, 1, group->rows};
    struct ree_tensor logits;
    REE_TRY(ree_generator_step(group->g, &step, &logits, err));
    size_t vocab = (size_t)logits.dims[2];
    enum ree_status status = REE_OK;
    for (size_t b = 0; status == REE_OK && b < batch; b++) {
        if (group->done[b]) continue;
        const float *own = (const float *)logits.data + b * vocab;
        hash_rows(group, b, own, 1, vocab);
        status = add_token(group, b, own, vocab, err);
    }
    ree_tensor_finish(&logits);
    return status;
}

static enum ree_status run_group(struct group *group, struct ree_error *err) {
    struct ree_generator *g = group->g;
    struct ree_generate_stats *stats = group->stats;
    size_t longest = 0, most = 0;
    for (size_t b = 0; b < group->batch; b++) {
        if (group->out[b]->n_prompt > longest) longest = group->out[b]->n_prompt;
        if (limit_of(group, b) > most) most = limit_of(group, b);
        stats->prompt_tokens += group->out[b]->n_prompt;
    }
    size_t piece = g->info.has_cache ? g->options.prefill_chunk : longest;
    if (piece > longest) piece = longest;
    group->starts = malloc((group->batch + 1) * sizeof *group->starts);
    if (!group->starts) return no_memory(err);
    REE_TRY(make_room(group, group->batch * piece, err));
    REE_TRY(ree_generator_begin(g, 0, group->batch, (int64_t)most, err));
    double start = now();
    for (size_t from = 0; from < longest && !is_interrupted(group); from += piece) {
        REE_TRY(prompt_piece(group, from, longest - from < piece ? longest - from : piece, err));
        stats->n_runs++;
    }
    double prompts = now();
    stats->prompt_seconds += prompts - start;
    while (group->n_done < group->batch && !is_interrupted(group)) {
        REE_TRY(single_step(group, err));
        stats->n_runs++;
    }
    stats->decode_seconds += now() - prompts;
    uint64_t bytes = ree_generator_cache_bytes(g, 0);
    if (bytes > stats->cache_bytes) stats->cache_bytes = bytes;
    return REE_OK;
}

static enum ree_status check_prompts(const struct ree_generator *g,
                                     const struct ree_prompt *prompts, size_t n,
                                     const struct ree_generate_options *o, struct ree_error *err) {
    int64_t context = g->info.context_length, vocab = g->info.vocab_size;
    REE_TRY(ree_sampling_check(&o->sampling, err));
    if (o->n_logprobs > MAX_LOGPROBS)
        return ree_fail(err, REE_INVALID, "%u log probabilities asked for; at most %d",
                        o->n_logprobs, MAX_LOGPROBS);
    for (size_t i = 0; i < n; i++) {
        if (prompts[i].n == 0) return ree_fail(err, REE_INVALID, "prompt %zu has no tokens", i);
        if (context && prompts[i].n >= (uint64_t)context)
            return ree_fail(err, REE_INVALID,
                            "prompt %zu has %zu tokens, and the model's context is %lld: no room "
                            "for an answer",
                            i, prompts[i].n, (long long)context);
        for (size_t k = 0; k < prompts[i].n; k++)
            if (prompts[i].ids[k] < 0 || (vocab && prompts[i].ids[k] >= vocab))
                return ree_fail(err, REE_INVALID,
                                "token %zu of prompt %zu is %d; the model's vocabulary has %lld", k,
                                i, prompts[i].ids[k], (long long)vocab);
    }
    return REE_OK;
}

static enum ree_status start_sequence(const struct ree_prompt *prompt, struct ree_generation *out,
                                      struct ree_error *err) {
    out->ids = malloc(prompt->n * sizeof *out->ids);
    if (!out->ids) return no_memory(err);
    memcpy(out->ids, prompt->ids, prompt->n * sizeof *out->ids);
    out->n = out->n_prompt = prompt->n;
    out->finish = REE_FINISH_INTERRUPTED;
    return REE_OK;
}

// The next sequences that may run together: any, or those as long as the first that is left.
static void choose(struct group *group, const struct ree_prompt *prompts, size_t n, bool *taken,
                   struct ree_generation *out) {
    const struct ree_generator *g = group->g;
    size_t most = g->roles.fixed_batch ? 1 : g->options.max_batch;
    group->batch = group->n_done = 0;
    for (size_t i = 0; i < n && group->batch < most; i++) {
        if (taken[i]) continue;
        if (group->batch && !g->info.mixes_lengths && prompts[i].n != prompts[group->sequence[0]].n)
            continue;
        taken[i] = true;
        group->sequence[group->batch] = i;
        group->out[group->batch] = &out[i];
        group->done[group->batch++] = false;
    }
}

static enum ree_status run_next(struct group *group, struct ree_error *err) {
    bool hashes = group->g->options.all_logits;
    group->hashers = hashes ? calloc(group->batch, sizeof(struct ree_hasher *)) : NULL;
    if (hashes && !group->hashers) return no_memory(err);
    for (size_t b = 0; hashes && b < group->batch; b++)
        group->hashers[b] = ree_hasher_create("ree-logits/1");
    enum ree_status status = run_group(group, err);
    for (size_t b = 0; hashes && b < group->batch; b++)
        ree_hasher_finish(group->hashers[b], group->out[b]->logits_sha256);
    free(group->hashers);
    free(group->ids);
    free(group->rows);
    free(group->starts);
    group->hashers = NULL;
    group->ids = NULL;
    group->rows = group->starts = NULL;
    group->room = 0;
    return status;
}

static void hash_tokens(struct ree_generation *out) {
    struct ree_hasher *hasher = ree_hasher_create("ree-tokens/1");
    ree_hasher_update(hasher, out->ids, out->n * sizeof *out->ids);
    ree_hasher_finish(hasher, out->tokens_sha256);
}

enum ree_status ree_generate(struct ree_generator *g, const struct ree_prompt *prompts, size_t n,
                             const struct ree_generate_options *options, struct ree_generation *out,
                             struct ree_generate_stats *out_stats, struct ree_error *err) {
    struct ree_error local;
    struct ree_generate_stats stats;
    if (!err) err = &local; // prefixes need the message that they prefix
    if (!out_stats) out_stats = &stats;
    memset(out_stats, 0, sizeof *out_stats);
    memset(out, 0, n * sizeof *out);
    REE_TRY(check_prompts(g, prompts, n, options, err));
    size_t most = g->options.max_batch;
    struct group group = {.g = g, .options = options, .stats = out_stats, .start = now()};
    bool *taken = calloc(n + 1, sizeof *taken);
    group.sequence = calloc(most, sizeof *group.sequence);
    group.out = calloc(most, sizeof(struct ree_generation *));
    group.done = calloc(most, sizeof *group.done);
    enum ree_status status =
        taken && group.sequence && group.out && group.done ? REE_OK : no_memory(err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        status = start_sequence(&prompts[i], &out[i], err);
    while (status == REE_OK && !group.interrupted) {
        choose(&group, prompts, n, taken, out);
        if (group.batch == 0) break;
        status = run_next(&group, err);
    }
    for (size_t i = 0; status == REE_OK && i < n; i++)
        hash_tokens(&out[i]);
    for (size_t i = 0; status != REE_OK && i < n; i++)
        ree_generation_finish(&out[i]);
    free(taken);
    free(group.sequence);
    free(group.out);
    free(group.done);
    return status;
}
