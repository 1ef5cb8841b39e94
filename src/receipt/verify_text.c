// Verifies text receipts: first what follows from the tokens, then the tokens themselves, by
// running the model.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "receipt/make_receipt.h"
#include "receipt/read_answer.h"
#include "receipt/verify_internal.h"
#include "generate/check.h"

// Maximum number of tokens of prompt and answer; the same limit as in ree_generate.
#define MAX_TOKENS ((size_t)1 << 30)
// Maximum number of tokens of an answer that the receipt does not list. Also the maximum of prompt
// and answer together if the model does not state its context length. Without this limit, a receipt
// of a few bytes could require any amount of work.
#define MAX_UNLISTED ((size_t)1 << 16)

struct text_check {
    struct ree_verification *v;
    const struct ree_verify_text *what;
    const struct ree_receipt *r;
    struct ree_arena arena;
    struct ree_prompt prompt;
    int32_t *ids;     // prompt and answer; NULL: the answer is not known
    bool knows_texts; // the verifier's tokenizer is the one of the receipt
};

static void hash(const char *tag, const void *bytes, size_t n, char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_create(tag);
    ree_hasher_update(hasher, bytes, n);
    ree_hasher_finish(hasher, hex);
}

// Sets c->prompt to the prompt that the verifier passed or, if there is none, to the receipt's.
// Returns false if neither exists or if the passed prompt is not the one of the receipt.
static bool find_prompt(struct text_check *c) {
    const struct ree_receipt_text *own = &c->r->prompt;
    const struct ree_prompt *given = c->what->prompt;
    char hex[65];
    if (!own->tokens && !given) {
        snprintf(c->v->cannot, sizeof c->v->cannot,
                 "this receipt has only the hash of its prompt: pass the prompt, for example with "
                 "--prompt-text");
        return false;
    }
    c->prompt = (struct ree_prompt){own->tokens, own->n_tokens};
    if (!given) return true;
    hash("ree-tokens/1", given->ids, given->n * sizeof *given->ids, hex);
    c->prompt = *given;
    ree_receipt_blind(c->r, hex);
    if (strcmp(hex, own->tokens_sha256) == 0 && given->n == own->n_tokens) {
        ree_verify_add(c->v, "prompt", REE_VERIFY_AGREES, "%s", "");
        return true;
    }
    ree_verify_add(
        c->v, "prompt", REE_VERIFY_DIFFERS,
        "the passed prompt has %zu tokens with SHA-256 %s, but the receipt's has %zu with %s",
        given->n, hex, own->n_tokens, own->tokens_sha256);
    return false;
}

static bool check_tokenizer(struct text_check *c) {
    char hex[65];
    if (!c->r->tokenizer_sha256[0]) return false;
    if (!c->what->tokenizer) {
        snprintf(c->v->cannot, sizeof c->v->cannot,
                 "the receipt has texts, but the model's folder has no tokenizer; name one with "
                 "--tokenizer");
        return false;
    }
    ree_receipt_tokenizer_sha256(c->r, c->what->tokenizer, hex);
    return ree_verify_hash(c->v, "tokenizer", hex, c->r->tokenizer_sha256);
}

// Copies whole characters, at most 40 bytes, beginning with the character that contains byte `at`.
static void excerpt(const char *text, size_t at, char out[64]) {
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    size_t n = strnlen(text + at, 40);
    while (n > 0 && ((unsigned char)text[at + n] & 0xc0) == 0x80)
        n--;
    memcpy(out, text + at, n);
    out[n] = 0;
}

static void compare_text(struct text_check *c, const char *name, const struct ree_strbuf *decoded,
                         const struct ree_receipt_text *stated) {
    char *here = ree_receipt_encode_text(&c->arena, decoded), hex[65];
    if (!here) {
        c->v->failed = true;
        return;
    }
    if (!stated->text_sha256[0]) {
        ree_verify_add(c->v, name, REE_VERIFY_DIFFERS, "the receipt has a tokenizer but no text");
        return;
    }
    size_t n = strlen(here), at = 0;
    hash("ree-text/1", here, n, hex);
    if (!stated->text || strcmp(here, stated->text) == 0) {
        ree_verify_blinded(c->v, c->r, name, hex, stated->text_sha256);
        return;
    }
    while (here[at] && here[at] == stated->text[at])
        at++;
    char ours[64], theirs[64];
    excerpt(here, at, ours);
    excerpt(stated->text, at, theirs);
    ree_verify_add(c->v, name, REE_VERIFY_DIFFERS,
                   "the tokens give another text from byte %zu on: \"%s\", the receipt has \"%s\"",
                   at, ours, theirs);
}

static void compare_finish(struct text_check *c, const char *reason) {
    const char *stated = c->r->finish_reason;
    if (!reason) reason = ree_finish_name(REE_FINISH_INTERRUPTED);
    if (strcmp(reason, stated) == 0) {
        c->v->is_prefix = strcmp(stated, ree_finish_name(REE_FINISH_INTERRUPTED)) == 0;
        ree_verify_add(c->v, "finish", REE_VERIFY_AGREES, "%s",
                       c->v->is_prefix ? "interrupted: the model would have continued" : "");
    } else
        ree_verify_add(c->v, "finish", REE_VERIFY_DIFFERS,
                       "tokens and parameters give \"%s\", but the receipt has \"%s\"", reason,
                       stated);
}

// Reports the bytes that ree-receipt/1 counts as part of the answer although the prompt's tokens
// produce them.
static enum ree_status note_boundary(struct text_check *c, const struct ree_answer *joined,
                                     struct ree_error *err) {
    struct ree_answer settled;
    enum ree_status status = ree_answer_begin(&settled, c->what->tokenizer, NULL, 0, c->prompt.ids,
                                              c->prompt.n, REE_BOUNDARY_SETTLED, err);
    if (status == REE_OK && settled.prompt.size != joined->prompt.size)
        ree_verify_add(
            c->v, "answer's beginning", REE_VERIFY_NOT_CHECKED,
            "ree-receipt/1 counts \"%.80s\" as text of the answer, but the prompt's tokens give it",
            settled.prompt.data + joined->prompt.size);
    ree_answer_finish(&settled);
    return status;
}

static enum ree_status compare_read(struct text_check *c, const struct ree_answer_read *read,
                                    struct ree_error *err) {
    const struct ree_receipt *r = c->r;
    if (c->knows_texts && r->version == 1) REE_TRY(note_boundary(c, &read->answer, err));
    if (!c->knows_texts && r->n_stops) {
        ree_verify_add(c->v, "finish", REE_VERIFY_NOT_CHECKED,
                       "checking stop texts requires the receipt's tokenizer");
        return REE_OK;
    }
    if (read->n_until_end < r->output.n_tokens)
        ree_verify_add(c->v, "finish", REE_VERIFY_DIFFERS,
                       "token %zu of the answer ends the text (%s), but the answer continues",
                       read->n_until_end - 1, read->reason);
    else
        compare_finish(c, read->reason);
    if (c->knows_texts) compare_text(c, "decoded prompt", &read->answer.prompt, &r->prompt);
    if (c->knows_texts && read->is_whole)
        compare_text(c, "decoded answer", &read->answer.text, &r->output);
    return REE_OK;
}

// Checks what follows from the tokens: the eos tokens, the texts and the finish reason.
static enum ree_status check_tokens(struct text_check *c, struct ree_error *err) {
    size_t n_answer = c->r->output.n_tokens;
    int64_t context = c->what->generator->info.context_length;
    struct ree_answer_question question = {
        .receipt = c->r,
        .tokenizer = c->knows_texts ? c->what->tokenizer : NULL,
        .ids = c->ids,
        .n_prompt = c->prompt.n,
        .n_answer = n_answer,
        // The context length of the verifier's copy takes precedence, if that copy states one.
        .context_length = (uint64_t)(context ? context : c->r->context_length)};
    struct ree_answer_read read;
    REE_TRY(ree_verify_ends(c->v, c->what, c->ids + c->prompt.n, n_answer, err));
    enum ree_status status = ree_answer_read(&question, &read, err);
    if (status == REE_OK) status = compare_read(c, &read, err);
    ree_answer_read_finish(&read);
    if (status != REE_INVALID) return status;
    // REE_INVALID: the tokenizer does not have one of the ids.
    ree_verify_add(c->v, "decoded answer", REE_VERIFY_DIFFERS, "%s", err->message);
    ree_error_clear(err);
    return REE_OK;
}

static void report_difference(struct text_check *c, size_t position, int32_t given, int32_t chosen,
                              const char *reason) {
    size_t i = position - c->prompt.n;
    if (chosen >= 0)
        ree_verify_add(c->v, "tokens", REE_VERIFY_DIFFERS,
                       "token %zu of the answer (position %zu) is %d, but the model chooses %d", i,
                       position, given, chosen);
    else
        ree_verify_add(
            c->v, "tokens", REE_VERIFY_DIFFERS,
            "token %zu of the answer (position %zu) is %d, but the model chooses none: %s", i,
            position, given, reason);
}

// A NaN may come from a later token of the same run (graph/causality/prove.h). Then the hash
// depends on how the prompt was divided. Only a run that is compared with a trace is divided as the
// prover's was.
static void check_logits(struct text_check *c, const char *here, bool has_nan) {
    char hex[65];
    if (!c->r->logits_sha256[0]) return;
    snprintf(hex, sizeof hex, "%s", here);
    ree_receipt_blind(c->r, hex);
    if (has_nan && !c->what->traced && strcmp(hex, c->r->logits_sha256) != 0)
        ree_verify_add(c->v, "logits", REE_VERIFY_NOT_CHECKED,
                       "a logit is NaN, and the hash depends on how the prompt was divided");
    else
        ree_verify_blinded(c->v, c->r, "logits", here, c->r->logits_sha256);
}

// Checks the tokens in one pass, or token by token if one pass is not proved to give the same
// result.
static enum ree_status run_given(struct text_check *c, struct ree_error *err) {
    struct ree_check check = {.ids = c->ids,
                              .n_prompt = c->prompt.n,
                              .n = c->prompt.n + c->r->output.n_tokens,
                              .sampling = c->r->sampling,
                              .hash_logits = c->r->logits_sha256[0]};
    struct ree_check_result result;
    REE_TRY(ree_generator_check(c->what->generator, &check, &result, err));
    c->v->n_runs += result.n_runs;
    snprintf(c->v->stepwise, sizeof c->v->stepwise, "%s", result.why_stepwise);
    if (result.agrees)
        ree_verify_add(c->v, "tokens", REE_VERIFY_AGREES, "%s", "");
    else
        report_difference(c, result.position, result.given, result.chosen, result.reason);
    check_logits(c, result.logits_sha256, result.has_nan);
    return REE_OK;
}

// Generates as many tokens as the receipt's answer has, without ending at eos tokens or stop texts.
// The reason why the answer ends is checked separately.
static enum ree_status regenerate(struct text_check *c, struct ree_generation *out,
                                  bool *out_hashed_nan, struct ree_error *err) {
    struct ree_generator *g = c->what->generator;
    struct ree_generate_options options = {.size = sizeof options,
                                           .sampling = c->r->sampling,
                                           .max_new_tokens = c->r->output.n_tokens};
    struct ree_generate_stats stats = {.size = sizeof stats};
    // Ignore the context length of this copy of the model: the receipt states the length that
    // applies.
    int64_t context = g->info.context_length;
    g->info.context_length = 0;
    enum ree_status status = ree_generate(g, &c->prompt, 1, &options, out, &stats, err);
    // If the prover divided the prompt otherwise, a NaN, an index out of range or a tensor that is
    // too large may come from a later token. Token by token there is none.
    const uint32_t chunk = g->options.prefill_chunk;
    bool is_repeated = false;
    if ((status == REE_INVALID || status == REE_UNSUPPORTED) && !c->what->traced &&
        g->info.has_cache && c->prompt.n > 1 && g->causality.is_proved) {
        ree_error_clear(err);
        is_repeated = true;
        g->options.prefill_chunk = 1;
        status = ree_generate(g, &c->prompt, 1, &options, out, &stats, err);
        g->options.prefill_chunk = chunk;
    }
    g->info.context_length = context;
    if (status == REE_OK) c->v->n_runs += stats.n_runs;
    // Chunks of the prover may have given a NaN where single tokens give none.
    *out_hashed_nan = stats.hashed_nan || is_repeated;
    return status;
}

static enum ree_status run_stepwise(struct text_check *c, struct ree_error *err) {
    struct ree_generation made;
    bool hashed_nan;
    REE_TRY(regenerate(c, &made, &hashed_nan, err));
    const int32_t *answer = made.ids + made.n_prompt;
    size_t n = made.n - made.n_prompt, at = made.n_prompt;
    char hex[65];
    hash("ree-tokens/1", answer, n * sizeof *answer, hex);
    if (!c->ids) {
        ree_verify_blinded(c->v, c->r, "tokens", hex, c->r->output.tokens_sha256);
        c->ids = ree_arena_alloc_array(&c->arena, made.n, sizeof *c->ids);
        if (c->ids) memcpy(c->ids, made.ids, made.n * sizeof *c->ids);
    } else {
        while (at < made.n && made.ids[at] == c->ids[at])
            at++;
        if (at == made.n)
            ree_verify_add(c->v, "tokens", REE_VERIFY_AGREES, "%s", "");
        else
            report_difference(c, at, c->ids[at], made.ids[at], "");
    }
    check_logits(c, made.logits_sha256, hashed_nan);
    ree_generation_finish(&made);
    return c->ids ? REE_OK : ree_no_memory(err);
}

static enum ree_status run(struct text_check *c, struct ree_error *err) {
    double start = ree_clock();
    enum ree_status status =
        c->what->stepwise || !c->ids ? run_stepwise(c, err) : run_given(c, err);
    c->v->run_seconds += ree_clock() - start;
    if (status != REE_INVALID) return status;
    // REE_INVALID: no run of this model can have produced these tokens.
    ree_verify_add(c->v, "tokens", REE_VERIFY_DIFFERS, "%s", err->message);
    ree_error_clear(err);
    return REE_OK;
}

static enum ree_status join(struct text_check *c, struct ree_error *err) {
    const struct ree_receipt_text *out = &c->r->output;
    size_t n = c->prompt.n + out->n_tokens;
    if (!out->tokens && out->n_tokens) return REE_OK;
    c->ids = ree_arena_alloc_array(&c->arena, n + 1, sizeof *c->ids);
    if (!c->ids) return ree_no_memory(err);
    memcpy(c->ids, c->prompt.ids, c->prompt.n * sizeof *c->ids);
    if (out->n_tokens) memcpy(c->ids + c->prompt.n, out->tokens, out->n_tokens * sizeof *c->ids);
    return REE_OK;
}

// Sets v->cannot if running the model would be too much work. The limit depends on the context
// length of the model, not on the one that the receipt states, because the prover chose the latter.
static void bound_work(struct text_check *c) {
    size_t n_answer = c->r->output.n_tokens, most = MAX_UNLISTED;
    size_t context = (size_t)c->what->generator->info.context_length;
    if (!context && (c->prompt.n > most || n_answer > most - c->prompt.n))
        snprintf(c->v->cannot, sizeof c->v->cannot,
                 "prompt and answer have %zu tokens; this copy of the model does not state its "
                 "context length, and then at most %zu are run",
                 c->prompt.n + n_answer, most);
    if (context && context < most) most = context;
    if (!c->r->output.tokens && n_answer > most)
        snprintf(c->v->cannot, sizeof c->v->cannot,
                 "the receipt does not contain its answer of %zu tokens, and at most %zu are "
                 "generated again with this model",
                 n_answer, most);
}

static enum ree_status verify(struct text_check *c, struct ree_error *err) {
    size_t n_answer = c->r->output.n_tokens;
    bool is_other = c->v->differs; // the receipt or the model already differs
    if (!find_prompt(c)) return REE_OK;
    if (c->prompt.n > MAX_TOKENS || n_answer > MAX_TOKENS - c->prompt.n) {
        ree_verify_add(c->v, "counts", REE_VERIFY_DIFFERS,
                       "there are more tokens than a text can have");
        return REE_OK;
    }
    ree_verify_context(c->v, c->what, c->prompt.n, n_answer);
    ree_verify_chunk(c->v, c->what, c->prompt.n);
    is_other = is_other || c->v->differs;
    bound_work(c);
    c->knows_texts = check_tokenizer(c);
    if (c->v->cannot[0]) return REE_OK;
    // A prompt that the verifier passed counts as correct, so only the receipt's prompt is checked.
    if (c->knows_texts && !c->what->prompt) {
        enum ree_status status =
            ree_verify_encoding(c->v, c->what->tokenizer, c->prompt.ids, c->prompt.n, err);
        if (status != REE_OK && status != REE_INVALID) return status;
        if (status == REE_INVALID) { // the tokenizer does not have one of the ids
            ree_verify_add(c->v, "prompt encoding", REE_VERIFY_DIFFERS, "%s", err->message);
            ree_error_clear(err);
        }
    }
    REE_TRY(join(c, err));
    bool was_listed = c->ids != NULL;
    // A text that does not fit the model's context differs already, and may be of any length.
    const size_t context = (size_t)c->what->generator->info.context_length;
    const bool fits = context == 0 || (c->prompt.n < context && n_answer <= context - c->prompt.n);
    if (was_listed && fits) REE_TRY(check_tokens(c, err));
    if (is_other) {
        ree_verify_add(c->v, "tokens", REE_VERIFY_NOT_CHECKED,
                       "the model was not run, because the receipt or the model already differs");
        return REE_OK;
    }
    if (c->prompt.n == 0) {
        ree_verify_add(c->v, "tokens", REE_VERIFY_DIFFERS, "a prompt without tokens cannot be run");
        return REE_OK;
    }
    if (n_answer == 0) {
        char hex[65];
        hash("ree-tokens/1", NULL, 0, hex);
        ree_verify_blinded(c->v, c->r, "tokens", hex, c->r->output.tokens_sha256);
        if (c->r->logits_sha256[0])
            ree_verify_add(c->v, "logits", REE_VERIFY_DIFFERS,
                           "an answer without tokens has no logits");
        return REE_OK;
    }
    REE_TRY(run(c, err));
    if (!was_listed && c->ids) REE_TRY(check_tokens(c, err));
    return REE_OK;
}

enum ree_status ree_verify_text(struct ree_verification *v, const struct ree_verify_text *what,
                                struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // checks use its message as their detail
    REE_TRY(ree_roles_check_bound(&what->generator->roles, err));
    struct text_check c = {.v = v, .what = what, .r = what->receipt};
    ree_arena_init(&c.arena);
    if (c.r->has_trace && !what->traced)
        ree_verify_add(v, "trace", REE_VERIFY_NOT_CHECKED, "checked only with --trace");
    enum ree_status status = verify(&c, err);
    ree_arena_finish(&c.arena);
    return status;
}
