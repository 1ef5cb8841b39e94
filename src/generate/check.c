#include "generate/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"

// Logits held at a time, in elements: 64 MiB, but at least 16 rows.
#define MAX_LOGITS ((size_t)1 << 24)
#define MIN_ROWS 16

struct checker {
    struct ree_generator *g;
    const struct ree_check *check;
    struct ree_check_result *out;
    struct ree_hasher *hasher; // NULL: not requested
    int64_t *rows;
    size_t first_row; // position of the first token whose logits are needed
    size_t capacity;  // capacity of `rows`, in elements
    bool has_nan;     // a processed row contains a NaN
};

static enum ree_status check_ids(const struct checker *c, int64_t vocab, struct ree_error *err) {
    for (size_t i = 0; i < c->check->n; i++)
        if (c->check->ids[i] < 0 || (vocab && c->check->ids[i] >= vocab))
            return ree_fail(err, REE_INVALID,
                            "token %zu is %d, but the model's vocabulary has %lld tokens", i,
                            c->check->ids[i], (long long)vocab);
    return REE_OK;
}

static size_t most_rows(const struct checker *c) {
    int64_t vocab = c->g->info.vocab_size;
    size_t rows = vocab ? MAX_LOGITS / (size_t)vocab : 64;
    return rows > MIN_ROWS ? rows : MIN_ROWS;
}

static bool any_nan(const float *logits, size_t vocab) {
    for (size_t i = 0; i < vocab; i++)
        if (isnan(logits[i])) return true;
    return false;
}

// Hashes the logits of the token at `position` and compares the token they choose with the next
// token.
static void look(struct checker *c, size_t position, const float *logits, size_t vocab) {
    const struct ree_check *check = c->check;
    struct ree_check_result *out = c->out;
    size_t next = position + 1;
    struct ree_error why;
    c->has_nan = c->has_nan || any_nan(logits, vocab);
    if (c->hasher) ree_hasher_update(c->hasher, logits, vocab * sizeof *logits);
    if (next < check->n_prompt || next >= check->n || !out->agrees) return;
    int32_t id;
    bool chose = ree_sampling_choose(&check->sampling, logits, vocab, check->ids, next, next, &id,
                                     &why) == REE_OK;
    if (chose && id == check->ids[next]) return;
    out->agrees = false;
    out->position = next;
    out->given = check->ids[next];
    out->chosen = chose ? id : -1;
    if (!chose) snprintf(out->reason, sizeof out->reason, "%s", why.message);
}

static bool is_interrupted(const struct ree_check *check) {
    if (!check->is_interrupted) return false;
    REE_FLOAT_ENV_CALLBACK();
    return check->is_interrupted(check->user);
}

// Runs tokens from ... from + length - 1 and processes n_rows rows of logits, beginning with that
// of token `row`. If n_rows is 0, the last token's logits are computed anyway: every step has some.
static enum ree_status run(struct checker *c, size_t from, size_t length, size_t row, size_t n_rows,
                           struct ree_error *err) {
    const struct ree_check *check = c->check;
    int64_t start = (int64_t)from;
    if (is_interrupted(check)) return ree_fail(err, REE_UNAVAILABLE, "interrupted");
    if (n_rows > c->capacity) {
        int64_t *grown = ree_realloc(c->rows, n_rows * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        c->rows = grown;
        c->capacity = n_rows;
    }
    for (size_t r = 0; r < n_rows; r++)
        c->rows[r] = (int64_t)(row + r - from);
    int64_t last = (int64_t)length - 1;
    struct ree_step step = {.batch = 1,
                            .length = length,
                            .ids = check->ids + from,
                            .starts = &start,
                            .n_rows = n_rows ? n_rows : 1,
                            .rows = n_rows ? c->rows : &last};
    struct ree_tensor logits;
    REE_TRY(ree_generator_step(c->g, &step, &logits, err));
    c->out->n_runs++;
    size_t vocab = (size_t)logits.dims[2];
    enum ree_status status = check_ids(c, (int64_t)vocab, err);
    for (size_t r = 0; status == REE_OK && r < n_rows; r++)
        look(c, row + r, (const float *)logits.data + r * vocab, vocab);
    ree_tensor_finish(&logits);
    return status;
}

static bool is_done(const struct checker *c) {
    return !c->out->agrees && !c->hasher;
}

// With a kv cache: runs the text in chunks. A chunk whose logits are needed has at most as many
// tokens as rows of logits can be held.
static enum ree_status run_chunks(struct checker *c, size_t n, struct ree_error *err) {
    size_t chunk = c->g->options.prefill_chunk;
    for (size_t from = 0; from < n && !is_done(c);) {
        size_t rows = most_rows(c), length = chunk < n - from ? chunk : n - from;
        if (from + length > c->first_row && length > rows) {
            // Tokens before the first needed row are not limited.
            size_t before = c->first_row > from ? c->first_row - from : 0;
            length = before + rows < length ? before + rows : length;
        }
        size_t row = from > c->first_row ? from : c->first_row, end = from + length;
        REE_TRY(run(c, from, length, row, end > row ? end - row : 0, err));
        from = end;
    }
    return REE_OK;
}

// Without a kv cache, each run covers the whole text. Runs it once if the model computes all logits
// anyway; otherwise once for each block of rows that can be held.
static enum ree_status run_whole(struct checker *c, size_t n, struct ree_error *err) {
    for (size_t row = c->first_row; row < n && !is_done(c);) {
        size_t left = n - row, most = c->g->info.computes_one_row ? most_rows(c) : left;
        size_t n_rows = left < most ? left : most;
        REE_TRY(run(c, 0, n, row, n_rows, err));
        row += n_rows;
    }
    return REE_OK;
}

// One pass over all tokens.
static enum ree_status run_once(struct checker *c, size_t n, struct ree_error *err) {
    REE_TRY(ree_generator_begin(c->g, 0, 1, (int64_t)n, err));
    return c->g->info.has_cache ? run_chunks(c, n, err) : run_whole(c, n, err);
}

// Runs as ree_generate does: the prompt in chunks, then the answer token by token.
static enum ree_status run_steps(struct checker *c, size_t n, struct ree_error *err) {
    bool has_cache = c->g->info.has_cache;
    size_t n_prompt = c->check->n_prompt,
           chunk = has_cache ? c->g->options.prefill_chunk : n_prompt;
    REE_TRY(ree_generator_begin(c->g, 0, 1, (int64_t)n, err));
    for (size_t from = 0; from < n && !is_done(c);) {
        size_t left = from < n_prompt ? n_prompt - from : 1, length = left < chunk ? left : chunk;
        size_t row = from > c->first_row ? from : c->first_row, end = from + length;
        size_t n_rows = end > row ? end - row : 0;
        if (has_cache)
            REE_TRY(run(c, from, length, row, n_rows, err));
        else
            REE_TRY(run(c, 0, end, row, n_rows, err));
        from = end;
    }
    return REE_OK;
}

static enum ree_status run_all(struct checker *c, size_t n, bool one_pass, struct ree_error *err) {
    struct ree_check_result *out = c->out;
    out->agrees = true;
    out->chosen = -1;
    out->reason[0] = 0;
    c->has_nan = false;
    c->hasher = c->check->hash_logits ? ree_hasher_try_create("ree-logits/1") : NULL;
    if (c->check->hash_logits && !c->hasher) return ree_no_memory(err);
    enum ree_status status = one_pass ? run_once(c, n, err) : run_steps(c, n, err);
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
    REE_TRY(check_ids(&c, g->info.vocab_size, err));
    size_t n = check->n - 1; // the last token's logits are not needed
    if (n == 0 || (check->n == check->n_prompt && !check->hash_logits)) return REE_OK;
    bool has_steps = check->n > check->n_prompt + 1; // more than the prompt's run is needed
    char why[sizeof out->why_stepwise - 32];
    bool one_pass = ree_generator_is_causal(g, why, sizeof why);
    if (!one_pass && has_steps)
        snprintf(out->why_stepwise, sizeof out->why_stepwise, "causality is not proved: %s", why);
    enum ree_status status = run_all(&c, n, one_pass, err);
    // The proof holds up to the first NaN, which may come from a later token.
    if (status == REE_OK && one_pass && c.has_nan && has_steps) {
        snprintf(out->why_stepwise, sizeof out->why_stepwise,
                 "in one pass, a logit is NaN, perhaps because of a later token");
        status = run_all(&c, n, false, err);
    }
    ree_free(c.rows);
    return status;
}
