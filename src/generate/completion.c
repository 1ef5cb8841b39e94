// Completions: prompts, and the texts with which a model continues them.
#include "generate/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/eos.h"
#include "text/utf8.h"

static enum ree_status copy_stops(struct ree_completion *c, struct ree_error *err) {
    size_t n = c->options.n_stops;
    if (n && !c->tokenizer) return ree_fail(err, REE_INVALID, "stop texts require a tokenizer");
    const char **stops = ree_arena_alloc_array(&c->arena, n + 1, sizeof *stops);
    if (!stops) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (!c->options.stops[i][0]) return ree_fail(err, REE_INVALID, "a stop text is empty");
        size_t size = strlen(c->options.stops[i]);
        if (ree_utf8_valid_prefix(c->options.stops[i], size) != size)
            return ree_fail(err, REE_INVALID, "stop text %zu is not UTF-8", i + 1);
        stops[i] = ree_arena_strdup(&c->arena, c->options.stops[i]);
        if (!stops[i]) return ree_no_memory(err);
    }
    c->options.stops = stops;
    return REE_OK;
}

static enum ree_status copy_prompts(struct ree_completion *c, const struct ree_prompt *prompts,
                                    struct ree_error *err) {
    c->prompts = ree_arena_alloc_array(&c->arena, c->n, sizeof *c->prompts);
    if (!c->prompts) return ree_no_memory(err);
    for (size_t i = 0; i < c->n; i++) {
        int32_t *ids = ree_arena_alloc_array(&c->arena, prompts[i].n + 1, sizeof *ids);
        if (!ids) return ree_no_memory(err);
        if (prompts[i].n == 0)
            return ree_fail(err, REE_INVALID, "prompt %zu is empty: it has no tokens", i);
        memcpy(ids, prompts[i].ids, prompts[i].n * sizeof *ids);
        c->prompts[i] = (struct ree_prompt){ids, prompts[i].n};
    }
    return REE_OK;
}

static enum ree_status begin_answers(struct ree_completion *c, struct ree_error *err) {
    c->generations = ree_alloc_zeroed(c->n, sizeof *c->generations);
    c->streamed = ree_alloc_zeroed(c->n, sizeof *c->streamed);
    c->answers = ree_alloc_zeroed(c->n, sizeof *c->answers);
    if (!c->generations || !c->streamed || !c->answers) return ree_no_memory(err);
    for (size_t i = 0; c->tokenizer && i < c->n; i++)
        REE_TRY(ree_answer_begin(&c->answers[i], c->tokenizer, c->options.stops, c->options.n_stops,
                                 c->prompts[i].ids, c->prompts[i].n, REE_BOUNDARY_SETTLED, err));
    return REE_OK;
}

static void stream(struct ree_completion *c, size_t i, const char *text, size_t nbytes) {
    if (!c->options.on_text) return;
    // on_text promises a NUL after the text, but the answer may have more text there.
    char *piece = ree_alloc(nbytes + 1);
    if (!piece) {
        c->status = ree_no_memory(&c->error);
        return;
    }
    memcpy(piece, text, nbytes);
    piece[nbytes] = 0;
    {
        REE_FLOAT_ENV_CALLBACK();
        c->options.on_text(c->options.user, i, piece, nbytes);
    }
    ree_free(piece);
}

// Passes the answer's text up to byte `certain` to on_text.
static void stream_until(struct ree_completion *c, size_t i, size_t certain) {
    size_t from = c->streamed[i];
    if (certain <= from) return;
    stream(c, i, c->answers[i].text.data + from, certain - from);
    c->streamed[i] = certain;
}

// Adds a token to an answer, and streams the text that is certain. Returns false if the token
// completed a stop text, or after a failure.
static bool push(struct ree_completion *c, size_t i, int32_t id) {
    struct ree_answer *a = &c->answers[i];
    if (!c->tokenizer) return true;
    c->status = ree_answer_push(a, id, &c->error);
    if (c->status != REE_OK) return false;
    stream_until(c, i, a->text.size - (a->stopped ? 0 : ree_answer_held_back(a)));
    return !a->stopped && c->status == REE_OK;
}

static bool take_token(void *user, const struct ree_token *token) {
    REE_FLOAT_ENV_API();
    struct ree_completion *c = user;
    bool goes_on = true;
    if (c->status != REE_OK) return false;
    if (c->options.on_token) {
        REE_FLOAT_ENV_CALLBACK();
        goes_on = c->options.on_token(c->options.user, token);
    }
    // A checkpoint cannot record that the caller ended one answer: it would contradict the tokens.
    // So with checkpoints the whole completion ends instead (must_end).
    if (!goes_on && c->keep) goes_on = c->is_cut = true;
    return push(c, token->sequence, token->id) && goes_on;
}

static bool must_end(void *user) {
    struct ree_completion *c = user;
    if (c->status != REE_OK || c->is_cut) return true;
    if (!c->options.is_interrupted) return false;
    REE_FLOAT_ENV_CALLBACK();
    return c->options.is_interrupted(c->options.user);
}

static enum ree_status keep(void *user, const struct ree_snapshot *sequences, size_t n,
                            struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_completion *c = user;
    return c->keep(c->keep_user, sequences, n, err);
}

enum ree_status ree_completion_create(struct ree_generator *generator,
                                      const struct ree_tokenizer *tokenizer,
                                      const struct ree_prompt *prompts, size_t n,
                                      const struct ree_completion_options *options,
                                      struct ree_completion **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_completion_options o;
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_completion_options", err));
    if (n == 0) return ree_fail(err, REE_INVALID, "a completion requires a prompt");
    struct ree_completion *c = ree_alloc_zeroed(1, sizeof *c);
    if (!c) return ree_no_memory(err);
    ree_arena_init(&c->arena);
    *c = (struct ree_completion){.generator = generator,
                                 .tokenizer = tokenizer,
                                 .options = o,
                                 .sampling = o.sampling ? *o.sampling : ree_greedy,
                                 .arena = c->arena,
                                 .n = n};
    c->options.sampling = &c->sampling;
    enum ree_status status = ree_sampling_check(&c->sampling, err);
    if (status == REE_OK) status = copy_stops(c, err);
    if (status == REE_OK) status = copy_prompts(c, prompts, err);
    if (status == REE_OK) status = begin_answers(c, err);
    if (status == REE_OK && !o.ignores_eos &&
        !ree_eos_ids(&generator->info, tokenizer, &c->eos, &c->generate.n_eos))
        status = ree_no_memory(err);
    if (status != REE_OK) {
        ree_completion_destroy(c);
        return status;
    }
    c->generate.size = sizeof c->generate;
    c->generate.sampling = c->sampling;
    c->generate.max_new_tokens = o.max_new_tokens;
    c->generate.eos = c->eos;
    c->generate.n_logprobs = o.n_logprobs;
    c->generate.on_token = take_token;
    c->generate.is_interrupted = must_end;
    c->generate.user = c;
    *out = c;
    return REE_OK;
}

void ree_completion_destroy(struct ree_completion *c) {
    REE_FLOAT_ENV_API();
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) {
        if (c->tokenizer && c->answers) ree_answer_finish(&c->answers[i]);
        if (c->generations) ree_generation_finish(&c->generations[i]);
    }
    ree_free(c->answers);
    ree_free(c->streamed);
    ree_free(c->generations);
    ree_free(c->eos);
    ree_arena_finish(&c->arena);
    ree_tokenizer_destroy(c->owned_tokenizer);
    ree_free(c);
}

static void report_resumed(struct ree_completion *c, size_t i, size_t position, int32_t id) {
    struct ree_token token = {.sequence = i, .position = position, .id = id};
    if (!c->options.on_token) return;
    REE_FLOAT_ENV_CALLBACK();
    c->options.on_token(c->options.user, &token);
}

// Adds the tokens of the checkpoint from which the completion continues.
static enum ree_status replay(struct ree_completion *c, struct ree_error *err) {
    for (size_t i = 0; c->resume && i < c->n; i++) {
        const struct ree_snapshot *s = &c->resume[i];
        bool stops = false;
        for (size_t k = s->n_prompt; k < s->n && !stops; k++) {
            report_resumed(c, i, k, s->ids[k]);
            stops = !push(c, i, s->ids[k]);
            if (c->status != REE_OK) return ree_fail(err, c->status, "%s", c->error.message);
            if (stops && k + 1 == s->n && s->is_done) break;
            if (stops)
                return ree_fail(err, REE_INVALID, "%s: sequence %zu continues after a stop text",
                                c->resume_name, i);
        }
        // A token that ends a text takes precedence over a stop text that it completes.
        if (!s->is_done || s->finish == REE_FINISH_EOS || stops == (s->finish == REE_FINISH_STOP))
            continue;
        return ree_fail(
            err, REE_INVALID,
            "%s: sequence %zu ends with %s stop text, which contradicts its recorded finish",
            c->resume_name, i, stops ? "a" : "no");
    }
    return REE_OK;
}

// Streams the text that the answers have held back.
static enum ree_status end_answers(struct ree_completion *c, struct ree_error *err) {
    for (size_t i = 0; c->tokenizer && c->status == REE_OK && i < c->n; i++) {
        c->status = ree_answer_end(&c->answers[i], &c->error);
        if (c->status == REE_OK) stream_until(c, i, c->answers[i].text.size);
    }
    return c->status == REE_OK ? REE_OK : ree_fail(err, c->status, "%s", c->error.message);
}

// Sets the finish that follows from tokens, stop texts and limits, as a verifier finds it. An
// answer that on_token ended before its limit is interrupted.
static void correct_finish(struct ree_completion *c, size_t i) {
    struct ree_generation *g = &c->generations[i];
    if (g->finish != REE_FINISH_STOP || c->answers[i].stopped) return;
    g->finish = g->n >= ree_token_limit(c->generator, g->n_prompt, c->options.max_new_tokens)
                    ? REE_FINISH_LENGTH
                    : REE_FINISH_INTERRUPTED;
}

enum ree_status ree_completion_run(struct ree_completion *c, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error ignored;
    if (c->is_started) return ree_fail(err, REE_INVALID, "a completion can be run once");
    c->is_started = true;
    if (c->keep) {
        c->generate.on_checkpoint = keep;
        c->generate.checkpoint_every = c->keep_every;
    }
    c->generate.resume = c->resume;
    c->stats.size = sizeof c->stats;
    REE_TRY(replay(c, err));
    enum ree_status status =
        ree_generate(c->generator, c->prompts, c->n, &c->generate, c->generations, &c->stats, err);
    if (status != REE_OK) {
        end_answers(c, &ignored); // the caller gets the text that was generated
        return status;
    }
    // Before end_answers, which can complete a stop text: no token of the answer does.
    for (size_t i = 0; i < c->n; i++)
        correct_finish(c, i);
    REE_TRY(end_answers(c, err));
    c->is_done = true;
    return REE_OK;
}

enum ree_status ree_complete_text(struct ree_generator *generator, const char *text, size_t nbytes,
                                  const struct ree_completion_options *options,
                                  struct ree_completion **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_tokenizer *tokenizer;
    struct ree_prompts *prompts = NULL;
    const struct ree_prompt *list;
    *out = NULL;
    REE_TRY(ree_tokenizer_load(generator->info.folder, &tokenizer, err));
    struct ree_prompts_options encoding = {.size = sizeof encoding, .tokenizer = tokenizer};
    enum ree_status status = ree_prompts_create(&encoding, &prompts, err);
    if (status == REE_OK) status = ree_prompts_add_text(prompts, text, nbytes, err);
    if (status == REE_OK)
        status = ree_completion_create(
            generator, tokenizer, (ree_prompts_list(prompts, &list), list), 1, options, out, err);
    ree_prompts_destroy(prompts);
    if (status != REE_OK) {
        ree_tokenizer_destroy(tokenizer);
        return status;
    }
    (*out)->owned_tokenizer = tokenizer;
    status = ree_completion_run(*out, err);
    if (status == REE_OK) return REE_OK;
    ree_completion_destroy(*out);
    *out = NULL;
    return status;
}

size_t ree_completion_n_prompts(const struct ree_completion *c) {
    return c->n;
}

static const char *text_of(const struct ree_strbuf *text, size_t *out_nbytes) {
    if (out_nbytes) *out_nbytes = text->size;
    return text->data ? text->data : "";
}

const char *ree_completion_prompt_text(const struct ree_completion *c, size_t i,
                                       size_t *out_nbytes) {
    return text_of(&c->answers[i].prompt, out_nbytes);
}

const char *ree_completion_text(const struct ree_completion *c, size_t i, size_t *out_nbytes) {
    return text_of(&c->answers[i].text, out_nbytes);
}

const struct ree_generation *ree_completion_generation(const struct ree_completion *c, size_t i) {
    return c->is_done ? &c->generations[i] : NULL;
}

const struct ree_generate_stats *ree_completion_stats(const struct ree_completion *c) {
    return &c->stats;
}
