#include "generate/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "generate/pass.h"

struct checker {
    struct ree_generator *g;
    const struct ree_check *check;
    struct ree_check_result *out;
    struct ree_hasher *hasher; // NULL: not requested
    struct ree_pass pass;
    size_t first_row; // position of the first token whose logits are needed
    bool has_nan;     // a processed row contains a NaN
};

// How the tokens are divided into runs. CHUNKS: as ree_generate does, the prompt in chunks, then
// the answer token by token. SINGLY: the prompt token by token, too.
enum division { ONE_PASS, CHUNKS, SINGLY };

bool ree_logits_have_nan(const float *logits, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(logits[i])) return true;
    return false;
}

// Hashes the logits of the token at `position` and compares the token that they choose with the
// next token. Logits from which no token can be chosen are a difference; other errors, such as
// exhausted memory, say nothing about the token.
static enum ree_status look(struct checker *c, size_t position, const float *logits, size_t vocab,
                            struct ree_error *err) {
    const struct ree_check *check = c->check;
    struct ree_check_result *out = c->out;
    size_t next = position + 1;
    struct ree_error why;
    c->has_nan = c->has_nan || ree_logits_have_nan(logits, vocab);
    if (c->hasher) ree_hasher_update(c->hasher, logits, vocab * sizeof *logits);
    if (next < check->n_prompt || next >= check->n || !out->agrees) return REE_OK;
    int32_t id;
    enum ree_status status =
        ree_sampling_choose(&check->sampling, logits, vocab, check->ids, next, next, &id, &why);
    if (status != REE_OK && status != REE_INVALID) return ree_fail(err, status, "%s", why.message);
    const bool chose = status == REE_OK;
    if (chose && id == check->ids[next]) return REE_OK;
    out->agrees = false;
    out->position = next;
    out->given = check->ids[next];
    out->chosen = chose ? id : -1;
    if (!chose) snprintf(out->reason, sizeof out->reason, "%s", why.message);
    return REE_OK;
}

static bool is_interrupted(const struct ree_check *check) {
    if (!check->is_interrupted) return false;
    REE_FLOAT_ENV_CALLBACK();
    return check->is_interrupted(check->user);
}

static bool is_done(const struct checker *c) {
    return !c->out->agrees && !c->hasher;
}

static enum ree_status check_interrupt(const struct checker *c, struct ree_error *err) {
    return is_interrupted(c->check) ? ree_fail(err, REE_UNAVAILABLE, "interrupted") : REE_OK;
}

// Looks at the logits of n_rows tokens from the one at `row` on, and releases them.
static enum ree_status look_at_all(struct checker *c, size_t row, size_t n_rows,
                                   struct ree_tensor *logits, struct ree_error *err) {
    size_t vocab = (size_t)logits->dims[2];
    enum ree_status status = REE_OK;
    for (size_t r = 0; r < n_rows && status == REE_OK; r++)
        status = look(c, row + r, (const float *)logits->data + r * vocab, vocab, err);
    ree_tensor_finish(logits);
    return status;
}

// Runs all tokens in one pass (generate/pass.h).
static enum ree_status run_once(struct checker *c, struct ree_error *err) {
    while (!ree_pass_is_done(&c->pass) && !is_done(c)) {
        size_t row, n_rows;
        struct ree_tensor logits;
        REE_TRY(check_interrupt(c, err));
        REE_TRY(ree_pass_next(&c->pass, &row, &n_rows, &logits, err));
        REE_TRY(look_at_all(c, row, n_rows, &logits, err));
    }
    return REE_OK;
}

static enum ree_status run_steps(struct checker *c, enum division division, struct ree_error *err) {
    bool has_cache = c->g->info.has_cache;
    size_t n = c->pass.n, n_prompt = c->check->n_prompt,
           chunk = !has_cache           ? n_prompt
                   : division == SINGLY ? 1
                                        : c->g->options.prefill_chunk;
    for (size_t from = 0; from < n && !is_done(c);) {
        size_t left = from < n_prompt ? n_prompt - from : 1, length = left < chunk ? left : chunk;
        size_t row = from > c->first_row ? from : c->first_row, end = from + length;
        size_t n_rows = end > row ? end - row : 0;
        struct ree_tensor logits;
        REE_TRY(check_interrupt(c, err));
        if (has_cache)
            REE_TRY(ree_pass_run(&c->pass, from, length, row, n_rows, &logits, err));
        else
            REE_TRY(ree_pass_run(&c->pass, 0, end, row, n_rows, &logits, err));
        REE_TRY(look_at_all(c, row, n_rows, &logits, err));
        from = end;
    }
    return REE_OK;
}

static enum ree_status run_all(struct checker *c, size_t n, enum division division,
                               struct ree_error *err) {
    struct ree_check_result *out = c->out;
    out->agrees = true;
    out->chosen = -1;
    out->reason[0] = 0;
    c->has_nan = false;
    c->hasher = c->check->hash_logits ? ree_hasher_try_create("ree-logits/1") : NULL;
    if (c->check->hash_logits && !c->hasher) return ree_no_memory(err);
    enum ree_status status = ree_pass_begin(&c->pass, c->g, c->check->ids, n, c->first_row, err);
    if (status == REE_OK)
        status = division == ONE_PASS ? run_once(c, err) : run_steps(c, division, err);
    out->n_runs += c->pass.n_runs;
    ree_pass_finish(&c->pass);
    out->has_nan = c->has_nan;
    if (c->hasher) ree_hasher_finish(c->hasher, out->logits_sha256);
    if (status != REE_OK) out->logits_sha256[0] = 0;
    return status;
}

enum ree_status ree_generator_check(struct ree_generator *g, const struct ree_check *check,
                                    struct ree_check_result *out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = (struct ree_check_result){.agrees = true, .chosen = -1};
    if (check->n_prompt == 0 || check->n_prompt > check->n)
        return ree_fail(err, REE_INVALID, "a prompt of %zu tokens is longer than its text of %zu",
                        check->n_prompt, check->n);
    struct checker c = {.g = g, .check = check, .out = out};
    c.first_row = check->hash_logits ? 0 : check->n_prompt - 1;
    REE_TRY(ree_sampling_check(&check->sampling, err));
    // As ree_generate, which also accepts a model that computes more logits than it declares. An id
    // of the answer that the model does not choose is a difference.
    REE_TRY(ree_pass_check_ids(check->ids, check->n_prompt, g->info.vocab_size, err));
    REE_TRY(ree_pass_check_ids(check->ids + check->n_prompt, check->n - check->n_prompt, 0, err));
    size_t n = check->n - 1; // the last token's logits are not needed
    if (n == 0 || (check->n == check->n_prompt && !check->hash_logits)) return REE_OK;
    bool has_steps = check->n > check->n_prompt + 1; // a run over the prompt is not enough
    if (!g->causality.is_proved) {
        if (has_steps)
            snprintf(out->why_stepwise, sizeof out->why_stepwise, "causality is not proved: %s",
                     g->causality.why_not);
        return run_all(&c, n, CHUNKS, err);
    }
    enum ree_status status = run_all(&c, n, ONE_PASS, err);
    // One pass also computes what no step of a generation does, such as scores of later tokens. So
    // do longer pieces of a prompt, compared with shorter ones. What they compute in addition can
    // fail, or be a NaN, from which on the proof of causality does not hold.
    const bool has_pieces = g->info.has_cache && check->n_prompt > 1;
    enum division last = ONE_PASS;
    bool depends_on_chunks = false;
    while (last != SINGLY) {
        bool has_failed = status == REE_INVALID || status == REE_UNSUPPORTED;
        bool is_doubtful = status == REE_OK && out->has_nan && (last == ONE_PASS || !out->agrees);
        if (!has_failed && !is_doubtful) break;
        if (!has_pieces && (last == CHUNKS || (!has_failed && !has_steps))) break;
        // The hash of a prompt's logits is that of its chunks.
        bool wants_chunks = has_failed || check->hash_logits || !has_pieces;
        enum division next = last == ONE_PASS && wants_chunks ? CHUNKS : SINGLY;
        if (last == ONE_PASS && has_failed)
            snprintf(out->why_stepwise, sizeof out->why_stepwise, "in one pass: %s", err->message);
        else if (last == ONE_PASS)
            snprintf(out->why_stepwise, sizeof out->why_stepwise,
                     "in one pass, a logit is NaN, perhaps because of a later token");
        if (has_failed) ree_error_clear(err);
        // Chunks of the prover may have given a NaN where single tokens give none.
        depends_on_chunks = depends_on_chunks || last == CHUNKS;
        status = run_all(&c, n, next, err);
        last = next;
    }
    out->has_nan = out->has_nan || depends_on_chunks;
    return status;
}
