#include "generate_report.h"
#include "outputs.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stage_options.h"
#include "sandbox.h"
#include "writer.h"

#include "json.h"

static double rate(double n, double seconds) {
    return seconds > 0 ? n / seconds : 0;
}

static void append_logprobs(const struct generate_report *r, size_t i, struct strbuf *out) {
    const struct ree_generation *g = ree_completion_generation(r->completion, i);
    for (size_t k = 0; r->n_logprobs && k < g->n - g->n_prompt; k++) {
        const struct token_logprob *t = &r->logprobs[i][k];
        strbuf_printf(out, "  %-7d %10.6f   of", g->ids[g->n_prompt + k], (double)t->logprob);
        for (uint32_t j = 0; j < r->n_logprobs && t->top[j].id >= 0; j++)
            strbuf_printf(out, "  %d %.6f", t->top[j].id, (double)t->top[j].logprob);
        strbuf_append(out, "\n", 1);
    }
}

// Appends prompt and answer. Without a tokenizer: the ids of the answer.
static void append_texts(const struct generate_report *r, size_t i, struct strbuf *out) {
    const struct ree_generation *g = ree_completion_generation(r->completion, i);
    size_t n;
    const char *text = ree_completion_prompt_text(r->completion, i, &n);
    writer_append(r->escapes, text, n, out);
    text = ree_completion_text(r->completion, i, &n);
    writer_append(r->escapes, text, n, out);
    for (size_t k = g->n_prompt; !r->has_text && k < g->n; k++)
        strbuf_printf(out, "%s%d", k > g->n_prompt ? " " : "", g->ids[k]);
}

void generate_report_text(const struct generate_report *r, struct strbuf *out) {
    const struct ree_generate_stats *s = r->stats;
    for (size_t i = 0; i < r->n; i++) {
        const struct ree_generation *g = ree_completion_generation(r->completion, i);
        if (r->prints_texts) {
            strbuf_printf(out, "%sprompt %zu: ", i ? "\n" : "", i);
            append_texts(r, i, out);
            strbuf_append(out, "\n", 1);
        }
        append_logprobs(r, i, out);
        strbuf_printf(out, "finish  %s\ntokens  %zu  SHA-256 %s\n", ree_finish_name(g->finish),
                      g->n, g->tokens_sha256);
        if (g->logits_sha256[0])
            strbuf_printf(out, "logits  %zu  SHA-256 %s\n", g->n - 1, g->logits_sha256);
    }
    // The first new token of each sequence comes from the prompt's own run, so decode_tokens does
    // not count it.
    size_t steps = s->decode_tokens;
    strbuf_printf(out,
                  "\nprompt    %6zu tokens  %8.3f s  %9.2f tokens/s\n"
                  "answer    %6zu tokens  %8.3f s  %9.2f tokens/s\n"
                  "first token after %.3f s; %s\n",
                  s->prompt_tokens, s->prompt_seconds,
                  rate((double)s->prompt_tokens, s->prompt_seconds), steps, s->decode_seconds,
                  rate((double)steps, s->decode_seconds), s->first_token_seconds, r->device);
    if (r->operation_set != REE_REPRODUCIBLE)
        strbuf_printf(out, "operation set %s: other devices may give other bits\n",
                      ree_operation_set_name(r->operation_set));
    if (r->receipt_hash[0]) strbuf_printf(out, "receipt %s\n", r->receipt_hash);
    run_trace_text(r->trace, out);
    if (r->ranks) cli_ranks_report_text(r->ranks, out);
    if (!r->session) return;
    strbuf_printf(out, "model %s\n", r->model);
    strbuf_printf(out, "weights %.1f MiB, caches %.1f MiB, intermediates %.1f MiB\n",
                  (double)r->session->weight_bytes / 1048576, (double)s->cache_bytes / 1048576,
                  (double)r->session->arena_bytes / 1048576);
    strbuf_printf(out, "%llu RepOps per run, %zu runs, %llu of them bound for new shapes\n",
                  (unsigned long long)r->session->n_dispatches, s->n_runs,
                  (unsigned long long)r->session->n_binds);
    if (r->session->peak_bytes)
        strbuf_printf(out, "at most %.1f MiB in use on a device\n",
                      (double)r->session->peak_bytes / 1048576);
    strbuf_printf(out, "sandbox: %s\n", sandbox_text());
    cli_stages_text(r->pipeline, out);
}

static void add_ids(cJSON *object, const char *name, const int32_t *ids, size_t n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (size_t i = 0; i < n; i++)
        json_put(array, cJSON_CreateNumber(ids[i]));
}

static void add_logprobs(const struct generate_report *r, size_t i, cJSON *object) {
    const struct ree_generation *g = ree_completion_generation(r->completion, i);
    if (!r->n_logprobs) return;
    cJSON *list = cJSON_AddArrayToObject(object, "logprobs");
    for (size_t k = 0; k < g->n - g->n_prompt; k++) {
        const struct token_logprob *t = &r->logprobs[i][k];
        cJSON *token = cJSON_CreateObject();
        cJSON_AddNumberToObject(token, "id", g->ids[g->n_prompt + k]);
        cJSON_AddNumberToObject(token, "logprob", (double)t->logprob);
        cJSON *top = cJSON_AddArrayToObject(token, "top");
        for (uint32_t j = 0; j < r->n_logprobs && t->top[j].id >= 0; j++) {
            cJSON *entry = cJSON_CreateObject();
            cJSON_AddNumberToObject(entry, "id", t->top[j].id);
            // JSON has no infinity; cJSON writes null.
            cJSON_AddNumberToObject(entry, "logprob", (double)t->top[j].logprob);
            json_put(top, entry);
        }
        json_put(list, token);
    }
}

// Adds a text with U+FFFD for each NUL, as in a receipt.
static void add_text(cJSON *object, const char *name, const char *text, size_t n) {
    struct strbuf escaped;
    strbuf_init(&escaped);
    for (size_t at = 0; at < n;) {
        size_t length = strnlen(text + at, n - at);
        strbuf_append(&escaped, text + at, length);
        at += length;
        if (at < n) strbuf_append(&escaped, "\xef\xbf\xbd", 3);
        at++;
    }
    strbuf_append(&escaped, "", 0);
    if (escaped.failed)
        cli_json_fail();
    else
        cJSON_AddStringToObject(object, name, escaped.data ? escaped.data : "");
    strbuf_finish(&escaped);
}

static void add_sequence(const struct generate_report *r, size_t i, cJSON *object) {
    const struct ree_generation *g = ree_completion_generation(r->completion, i);
    add_ids(object, "prompt_tokens", g->ids, g->n_prompt);
    add_ids(object, "tokens", g->ids + g->n_prompt, g->n - g->n_prompt);
    if (r->has_text) {
        size_t n;
        const char *text = ree_completion_prompt_text(r->completion, i, &n);
        add_text(object, "prompt", text, n);
        text = ree_completion_text(r->completion, i, &n);
        add_text(object, "text", text, n);
    }
    cJSON_AddStringToObject(object, "finish_reason", ree_finish_name(g->finish));
    cJSON_AddStringToObject(object, "tokens_sha256", g->tokens_sha256);
    if (g->logits_sha256[0])
        cJSON_AddStringToObject(object, "logits_sha256", g->logits_sha256);
    else
        cJSON_AddNullToObject(object, "logits_sha256");
    add_logprobs(r, i, object);
}

static void add_stats(const struct generate_report *r, cJSON *root) {
    const struct ree_generate_stats *s = r->stats;
    cJSON *stats = cJSON_AddObjectToObject(root, "stats");
    cJSON_AddNumberToObject(stats, "prompt_tokens", (double)s->prompt_tokens);
    cJSON_AddNumberToObject(stats, "new_tokens", (double)s->new_tokens);
    cJSON_AddNumberToObject(stats, "prompt_seconds", s->prompt_seconds);
    cJSON_AddNumberToObject(stats, "decode_seconds", s->decode_seconds);
    cJSON_AddNumberToObject(stats, "first_token_seconds", s->first_token_seconds);
    cJSON_AddNumberToObject(stats, "prompt_tokens_per_second",
                            rate((double)s->prompt_tokens, s->prompt_seconds));
    cJSON_AddNumberToObject(stats, "decode_tokens_per_second",
                            rate((double)s->decode_tokens, s->decode_seconds));
    cJSON_AddNumberToObject(stats, "runs", (double)s->n_runs);
    cJSON_AddNumberToObject(stats, "cache_bytes", (double)s->cache_bytes);
    if (!r->session) return;
    cJSON_AddStringToObject(stats, "model", r->model);
    cJSON_AddNumberToObject(stats, "weight_bytes", (double)r->session->weight_bytes);
    cJSON_AddNumberToObject(stats, "arena_bytes", (double)r->session->arena_bytes);
    cJSON_AddNumberToObject(stats, "dispatches", (double)r->session->n_dispatches);
    cJSON_AddNumberToObject(stats, "binds", (double)r->session->n_binds);
    cJSON_AddNumberToObject(stats, "bind_seconds", r->session->bind_seconds);
    if (r->session->peak_bytes)
        cJSON_AddNumberToObject(stats, "peak_bytes", (double)r->session->peak_bytes);
    cJSON_AddStringToObject(stats, "sandbox", sandbox_text());
    cli_stages_json(r->pipeline, stats);
}

void generate_report_json(const struct generate_report *r, struct strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    if (r->n == 1) {
        add_sequence(r, 0, root);
    } else {
        cJSON *list = cJSON_AddArrayToObject(root, "sequences");
        for (size_t i = 0; i < r->n; i++) {
            cJSON *object = cJSON_CreateObject();
            add_sequence(r, i, object);
            json_put(list, object);
        }
    }
    cJSON_AddStringToObject(root, "device", r->device);
    if (r->operation_set != REE_REPRODUCIBLE)
        cJSON_AddStringToObject(root, "operation_set", ree_operation_set_name(r->operation_set));
    if (r->receipt_hash[0]) cJSON_AddStringToObject(root, "receipt_hash", r->receipt_hash);
    run_trace_json(r->trace, root);
    add_stats(r, root);
    if (r->ranks) json_put_as(root, "processes", cli_ranks_report_json(r->ranks));
    cli_append_json(out, root, false);
}
