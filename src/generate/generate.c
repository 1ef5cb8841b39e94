// Generates tokens from prompts: groups of sequences, each driven step by step, several in flight
// at the same time. Checkpoints are taken while no step is in flight.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/check.h"
#include "generate/group.h"

#define MAX_LOGPROBS 100
#define CHECKPOINT_EVERY 32

const char *ree_finish_name(enum ree_finish finish) {
    static const char *const names[] = {"length", "eos", "stop", "interrupted"};
    return names[finish];
}

void ree_generation_finish(struct ree_generation *generation) {
    ree_free(generation->ids);
    memset(generation, 0, sizeof *generation);
}

// The state of a call of ree_generate.
struct driver {
    struct ree_generate_call call;
    size_t n;
    struct ree_sequence *sequences;
    struct ree_batching batching;
    size_t next;              // next group of the batching to start
    struct ree_group *groups; // one per cache slot
    uint64_t *cache_bytes;    // per cache slot
    bool interrupted;
    bool pauses; // no step is submitted until those in flight are collected
    double mark; // all seconds before this time are already counted
};

// Prompts and snapshots

// vocab: 0: not known.
static enum ree_status check_ids(int64_t vocab, size_t i, const int32_t *ids, size_t n,
                                 struct ree_error *err) {
    for (size_t k = 0; k < n; k++)
        if (ids[k] < 0 || (vocab && ids[k] >= vocab))
            return ree_fail(
                err, REE_INVALID,
                "token %zu of prompt %zu is %d, but the model's vocabulary has %lld tokens", k, i,
                ids[k], (long long)vocab);
    return REE_OK;
}

static enum ree_status check_prompts(const struct ree_generator *g,
                                     const struct ree_prompt *prompts, size_t n,
                                     const struct ree_generate_options *o, struct ree_error *err) {
    int64_t context = g->info.context_length;
    REE_TRY(ree_sampling_check(&o->sampling, err));
    if (o->n_logprobs > MAX_LOGPROBS)
        return ree_fail(err, REE_INVALID, "%u log probabilities requested; the maximum is %d",
                        o->n_logprobs, MAX_LOGPROBS);
    if (o->on_logits && o->resume)
        return ree_fail(err, REE_UNSUPPORTED,
                        "an answer whose logits are changed cannot be resumed: its tokens do not "
                        "follow from the model");
    for (size_t i = 0; i < n; i++) {
        if (prompts[i].n == 0) return ree_fail(err, REE_INVALID, "prompt %zu has no tokens", i);
        if (context && prompts[i].n >= (uint64_t)context)
            return ree_fail(err, REE_INVALID,
                            "prompt %zu has %zu tokens, but the model's context is %lld: no "
                            "position is left for an answer",
                            i, prompts[i].n, (long long)context);
        REE_TRY(check_ids(g->info.vocab_size, i, prompts[i].ids, prompts[i].n, err));
    }
    return REE_OK;
}

// Returns why the snapshot cannot come from these options; NULL: it can.
static const char *why_not(const struct ree_generate_call *call, const struct ree_sequence *s,
                           const struct ree_prompt *prompt) {
    const struct ree_snapshot *from = s->from;
    size_t n = from->n, limit = ree_sequence_limit(call, s);
    bool has_answer = n > from->n_prompt;
    if (from->n_prompt != prompt->n || n < from->n_prompt ||
        memcmp(from->ids, prompt->ids, prompt->n * sizeof *prompt->ids) != 0)
        return "its prompt is not the prompt of this run";
    if (n > limit) return "it has more than the maximum number of tokens";
    for (size_t k = from->n_prompt; k + 1 < n; k++)
        if (ree_sequence_is_eos(call, from->ids[k]))
            return "it continues after a token that ends it";
    bool eos = has_answer && ree_sequence_is_eos(call, from->ids[n - 1]);
    if (!from->is_done) {
        if (eos || n == limit) return "it has ended, but is not marked as done";
        return from->n_caches == (has_answer ? call->g->roles.n_kv_caches : 0)
                   ? NULL
                   : "its number of caches differs from the model's";
    }
    if (!has_answer) return "it is marked as done, but has no answer";
    if (from->finish == REE_FINISH_INTERRUPTED) return "it is marked as done, but was interrupted";
    if ((from->finish == REE_FINISH_EOS) != eos)
        return eos ? "its last token ends it, but its recorded finish is another one"
                   : "its last token does not end it";
    if (from->finish == REE_FINISH_LENGTH && n != limit)
        return "its recorded finish is the maximum number of tokens, but it has fewer";
    bool has_hash = from->logits_sha256 && strlen(from->logits_sha256) == 64;
    if (call->g->options.all_logits && !has_hash) return "the hash of its logits is missing";
    return NULL;
}

static enum ree_status check_snapshot(const struct ree_generate_call *call,
                                      const struct ree_sequence *s, const struct ree_prompt *prompt,
                                      struct ree_error *err) {
    const char *reason = why_not(call, s, prompt);
    if (reason)
        return ree_fail(err, REE_INVALID, "sequence %zu cannot continue: %s", s->number, reason);
    // A model may choose ids beyond the number of logits that it declares. Those of the prompt are
    // the prompt's own, which is checked. The others are chosen again.
    return check_ids(0, s->number, s->from->ids, s->from->n, err);
}

static enum ree_status start_sequence(struct driver *d, size_t i, const struct ree_prompt *prompt,
                                      struct ree_generation *out, struct ree_error *err) {
    const struct ree_generate_call *call = &d->call;
    struct ree_sequence *s = &d->sequences[i];
    const struct ree_snapshot *from = call->options->resume ? &call->options->resume[i] : NULL;
    *s = (struct ree_sequence){.number = i, .out = out, .from = from};
    out->n_prompt = prompt->n;
    out->finish = REE_FINISH_INTERRUPTED;
    if (from) REE_TRY(check_snapshot(call, s, prompt, err));
    const int32_t *ids = from ? from->ids : prompt->ids;
    size_t n = from ? from->n : prompt->n;
    out->ids = ree_alloc(n * sizeof *out->ids);
    if (!out->ids) return ree_no_memory(err);
    memcpy(out->ids, ids, n * sizeof *out->ids);
    out->n = s->n_saved = n;
    s->expects_last = n > prompt->n;
    s->n_prefill = n - s->expects_last;
    s->is_done = from && from->is_done;
    if (!s->is_done) return REE_OK;
    out->finish = from->finish;
    if (call->g->options.all_logits)
        memcpy(out->logits_sha256, from->logits_sha256, sizeof out->logits_sha256);
    return REE_OK;
}

// Checks that the model chooses a snapshot's tokens and, if the snapshot is done, that the hash of
// its logits is right. A file may contain anything, and its contents would go into a receipt.
static enum ree_status check_answer(struct driver *d, size_t i, struct ree_error *err) {
    const struct ree_snapshot *from = d->sequences[i].from;
    const struct ree_generate_options *o = d->call.options;
    struct ree_generator *g = d->call.g;
    size_t n_prompt = d->sequences[i].out->n_prompt;
    if (!from || from->n == n_prompt) return REE_OK;
    struct ree_check check = {
        .ids = from->ids,
        .n_prompt = n_prompt,
        .n = from->n,
        .sampling = o->sampling,
        .hash_logits = from->is_done && g->options.all_logits,
    };
    struct ree_check_result result;
    REE_TRY(ree_generator_check(g, &check, &result, err));
    if (!result.agrees)
        return ree_fail(err, REE_INVALID,
                        "sequence %zu cannot continue: token %zu is %d, but the model chooses %d",
                        i, result.position, result.given, result.chosen);
    if (check.hash_logits && strcmp(result.logits_sha256, from->logits_sha256) != 0)
        return ree_fail(err, REE_INVALID,
                        "sequence %zu cannot continue: the hash of its logits is not the hash of "
                        "the model's logits",
                        i);
    return REE_OK;
}

// Checkpoints

static bool is_due(const struct driver *d) {
    const struct ree_generate_options *o = d->call.options;
    size_t every = o->checkpoint_every ? o->checkpoint_every : CHECKPOINT_EVERY;
    for (size_t i = 0; o->on_checkpoint && i < d->n; i++)
        if (d->sequences[i].out->n - d->sequences[i].n_saved >= every) return true;
    return false;
}

static enum ree_status checkpoint(struct driver *d, struct ree_error *err) {
    const struct ree_generate_options *o = d->call.options;
    if (!o->on_checkpoint) return REE_OK;
    size_t n_kv_caches = d->call.g->roles.n_kv_caches;
    for (size_t slot = 0; slot < d->call.g->options.n_cache_slots; slot++)
        REE_TRY(ree_group_hash_kv_caches(&d->groups[slot], err));
    struct ree_snapshot *snapshots = ree_alloc_zeroed(d->n + 1, sizeof *snapshots);
    if (!snapshots) return ree_no_memory(err);
    for (size_t i = 0; i < d->n; i++) {
        struct ree_sequence *s = &d->sequences[i];
        const struct ree_generation *out = s->out;
        struct ree_snapshot *to = &snapshots[i];
        *to = (struct ree_snapshot){.ids = out->ids,
                                    .n_prompt = out->n_prompt,
                                    .n = out->n,
                                    .is_done = s->is_done,
                                    .finish = out->finish};
        s->n_saved = out->n;
        if (s->is_done) {
            to->logits_sha256 = out->logits_sha256;
        } else if (n_kv_caches && out->n > out->n_prompt) {
            to->n_caches = n_kv_caches;
            // A sequence that has not run yet keeps the snapshot's digests.
            to->caches = s->digests ? (const unsigned char(*)[32])s->digests : s->from->caches;
        }
    }
    enum ree_status status;
    {
        REE_FLOAT_ENV_CALLBACK();
        status = o->on_checkpoint(o->user, snapshots, d->n, err);
    }
    ree_free(snapshots);
    return status;
}

// The groups

static bool is_interrupted(struct driver *d) {
    const struct ree_generate_options *o = d->call.options;
    if (d->interrupted || !o->is_interrupted) return d->interrupted;
    REE_FLOAT_ENV_CALLBACK();
    d->interrupted = o->is_interrupted(o->user);
    return d->interrupted;
}

static enum ree_status begin_next(struct driver *d, struct ree_group *group,
                                  struct ree_error *err) {
    const struct ree_batching *batching = &d->batching;
    size_t first = batching->first[d->next], end = batching->first[++d->next];
    group->batch = end - first;
    for (size_t b = 0; b < group->batch; b++)
        group->sequences[b] = &d->sequences[batching->order[first + b]];
    return ree_group_begin(group, err);
}

static enum ree_status collect(struct driver *d, struct ree_group *group, struct ree_error *err) {
    struct ree_generate_stats *stats = d->call.stats;
    double *seconds =
        group->from < group->longest ? &stats->prompt_seconds : &stats->decode_seconds;
    REE_TRY(ree_group_collect(group, err));
    // Steps may overlap: count only the time since the last step was collected.
    double t = ree_clock();
    *seconds += t - d->mark;
    d->mark = t;
    d->cache_bytes[group->slot] = ree_generator_kv_cache_bytes(d->call.g, group->slot);
    uint64_t bytes = 0;
    for (size_t i = 0; i < d->call.g->options.n_cache_slots; i++)
        bytes += d->cache_bytes[i];
    if (bytes > stats->cache_bytes) stats->cache_bytes = bytes;
    // kv caches can be read only while no step is in flight.
    d->pauses = d->pauses || group->wants_check || is_due(d);
    return REE_OK;
}

// Advances a group: collects the step in flight and submits the next one.
static enum ree_status turn(struct driver *d, struct ree_group *group, struct ree_error *err) {
    if (group->in_flight) REE_TRY(collect(d, group, err));
    if (d->pauses) return REE_OK;
    if (group->batch && ree_group_is_done(group)) ree_group_end(group);
    if (is_interrupted(d)) return REE_OK;
    if (!group->batch && d->next < d->batching.n_groups) REE_TRY(begin_next(d, group, err));
    return group->batch ? ree_group_submit(group, err) : REE_OK;
}

static enum ree_status take_pause(struct driver *d, struct ree_error *err) {
    d->pauses = false;
    for (size_t slot = 0; slot < d->call.g->options.n_cache_slots; slot++)
        if (d->groups[slot].wants_check) REE_TRY(ree_group_check_kv_caches(&d->groups[slot], err));
    return is_due(d) ? checkpoint(d, err) : REE_OK;
}

static enum ree_status drive(struct driver *d, struct ree_error *err) {
    size_t n_cache_slots = d->call.g->options.n_cache_slots;
    d->mark = ree_clock();
    for (bool any = true; any;) {
        any = false;
        for (size_t slot = 0; slot < n_cache_slots; slot++) {
            REE_TRY(turn(d, &d->groups[slot], err));
            any = any || d->groups[slot].in_flight;
        }
        if (!any && d->pauses) {
            REE_TRY(take_pause(d, err));
            any = true;
        }
    }
    return checkpoint(d, err);
}

static enum ree_status make_groups(struct driver *d, struct ree_error *err) {
    const struct ree_generator *g = d->call.g;
    d->groups = ree_alloc_zeroed(g->options.n_cache_slots, sizeof *d->groups);
    d->cache_bytes = ree_alloc_zeroed(g->options.n_cache_slots, sizeof *d->cache_bytes);
    if (!d->groups || !d->cache_bytes) return ree_no_memory(err);
    for (size_t slot = 0; slot < g->options.n_cache_slots; slot++) {
        struct ree_group *group = &d->groups[slot];
        group->call = &d->call;
        group->slot = slot;
        group->sequences = ree_alloc_zeroed(g->options.max_batch, sizeof(struct ree_sequence *));
        if (!group->sequences) return ree_no_memory(err);
    }
    return ree_batching(g, d->sequences, d->n, &d->batching, err);
}

static void finish(struct driver *d) {
    size_t n_cache_slots = d->call.g->options.n_cache_slots;
    for (size_t slot = 0; d->groups && slot < n_cache_slots; slot++) {
        struct ree_group *group = &d->groups[slot];
        struct ree_tensor logits;
        // After a failure of another group a step may still be in flight. Wait for it, because the
        // data that it reads must stay valid until it is done.
        if (group->in_flight &&
            ree_generator_collect(d->call.g, slot, &logits, &(struct ree_error){0}) == REE_OK)
            ree_tensor_finish(&logits);
        ree_group_end(group);
        ree_free(group->sequences);
    }
    for (size_t i = 0; d->sequences && i < d->n; i++)
        ree_free(d->sequences[i].digests);
    ree_batching_finish(&d->batching);
    ree_free(d->groups);
    ree_free(d->cache_bytes);
    ree_free(d->sequences);
}

void ree_tokens_sha256(const int32_t *ids, size_t n, char hex[65]) {
    REE_FLOAT_ENV_API();
    struct ree_hasher *hasher = ree_hasher_create("ree-tokens/1");
    ree_hasher_update(hasher, ids, n * sizeof *ids);
    ree_hasher_finish(hasher, hex);
}

enum ree_status ree_generate(struct ree_generator *g, const struct ree_prompt *prompts, size_t n,
                             const struct ree_generate_options *options, struct ree_generation *out,
                             struct ree_generate_stats *out_stats, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_generate_stats stats = {.size = sizeof stats};
    struct ree_generate_options own;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    memset(out, 0, n * sizeof *out);
    if (out_stats) REE_TRY(ree_stats_check(out_stats, sizeof stats, "ree_generate_stats", err));
    if (out_stats) ree_stats_fill(out_stats, &stats, sizeof stats);
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_generate_options", err));
    REE_TRY(check_prompts(g, prompts, n, &own, err));
    struct driver d = {.call = {.g = g, .options = &own, .stats = &stats, .start = ree_clock()},
                       .n = n};
    d.sequences = ree_alloc_zeroed(n + 1, sizeof *d.sequences);
    enum ree_status status = d.sequences ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        status = start_sequence(&d, i, &prompts[i], &out[i], err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        status = check_answer(&d, i, err);
    if (status == REE_OK) status = make_groups(&d, err);
    if (status == REE_OK) status = checkpoint(&d, err);
    if (status == REE_OK) status = drive(&d, err);
    finish(&d);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        ree_tokens_sha256(out[i].ids, out[i].n, out[i].tokens_sha256);
    for (size_t i = 0; status != REE_OK && i < n; i++)
        ree_generation_finish(&out[i]);
    if (out_stats) ree_stats_fill(out_stats, &stats, sizeof stats);
    return status;
}
