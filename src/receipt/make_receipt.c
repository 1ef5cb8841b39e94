#include "receipt/make_receipt.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "generate/answer.h"
#include "base/name_index.h"
#include "base/sha256.h"
#include "receipt/receipt_internal.h"
#include "trace/model_header.h"

static void put_model(struct ree_receipt *r, const struct ree_model_hashes *model,
                      enum ree_operation_set set) {
    memcpy(r->graph_sha256, model->graph, sizeof r->graph_sha256);
    memcpy(r->weights_sha256, model->weights, sizeof r->weights_sha256);
    r->numerics = ree_numerics_version();
    r->operation_set = ree_operation_set_name(set);
}

static enum ree_status put_trace(struct ree_receipt *r, const struct ree_traced *trace,
                                 struct ree_error *err) {
    if (!trace) return REE_OK;
    r->has_trace = true;
    ree_hex(trace->root, r->trace_root);
    r->trace_steps = trace->n_steps;
    r->trace_chunk = trace->prefill_chunk;
    if (!trace->file) return REE_OK;
    r->trace_file = ree_arena_strdup(&r->arena, trace->file);
    return r->trace_file ? REE_OK : ree_no_memory(err);
}

void ree_receipt_date(char out[32]) {
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc)) out[0] = 0;
}

static enum ree_status put_unbound(struct ree_receipt *r, const char *device,
                                   struct ree_error *err) {
    char text[32];
    r->ree_version = ree_version();
    if (device && !(r->device = ree_arena_strdup(&r->arena, device))) return ree_no_memory(err);
    ree_receipt_date(text);
    if (!text[0]) return REE_OK;
    r->created = ree_arena_strdup(&r->arena, text);
    return r->created ? REE_OK : ree_no_memory(err);
}

static cJSON *describe_stats(const struct ree_generate_stats *s) {
    cJSON *stats = cJSON_CreateObject();
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"prompt_tokens", (double)s->prompt_tokens},
                   {"new_tokens", (double)s->new_tokens},
                   {"prompt_seconds", s->prompt_seconds},
                   {"decode_seconds", s->decode_seconds},
                   {"first_token_seconds", s->first_token_seconds}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!cJSON_AddNumberToObject(stats, numbers[i].name, numbers[i].value)) {
            cJSON_Delete(stats);
            return NULL;
        }
    return stats;
}

char *ree_receipt_encode_text(struct ree_arena *arena, const struct ree_strbuf *text) {
    static const char replacement[] = "\xef\xbf\xbd";
    size_t n_nuls = 0, at = 0;
    for (size_t i = 0; i < text->size; i++)
        n_nuls += text->data[i] == 0;
    char *out = ree_arena_alloc(arena, text->size + 2 * n_nuls + 1);
    for (size_t i = 0; out && i < text->size; i++) {
        bool nul = text->data[i] == 0;
        memcpy(out + at, nul ? replacement : text->data + i, nul ? 3 : 1);
        at += nul ? 3 : 1;
    }
    return out;
}

static enum ree_status put_tokens(struct ree_receipt *r, struct ree_receipt_text *to,
                                  const int32_t *ids, size_t n, struct ree_error *err) {
    int32_t *copy = ree_arena_alloc_array(&r->arena, n + 1, sizeof *copy);
    if (!copy) return ree_no_memory(err);
    if (n) memcpy(copy, ids, n * sizeof *ids);
    to->tokens = copy;
    to->n_tokens = n;
    return REE_OK;
}

static enum ree_status put_texts(struct ree_receipt *r, const struct ree_text_run *run,
                                 struct ree_error *err) {
    const struct ree_generation *g = run->generation;
    struct ree_answer answer;
    enum ree_status status = ree_answer_begin(&answer, run->tokenizer, run->stops, run->n_stops,
                                              g->ids, g->n_prompt, REE_BOUNDARY_SETTLED, err);
    for (size_t i = g->n_prompt; status == REE_OK && i < g->n; i++)
        status = ree_answer_push(&answer, g->ids[i], err);
    if (status == REE_OK) status = ree_answer_end(&answer, err);
    if (status == REE_OK) {
        r->prompt.text = ree_receipt_encode_text(&r->arena, &answer.prompt);
        r->output.text = ree_receipt_encode_text(&r->arena, &answer.text);
        if (!r->prompt.text || !r->output.text) status = ree_no_memory(err);
    }
    ree_answer_finish(&answer);
    if (status == REE_OK) ree_tokenizer_sha256(run->tokenizer, r->tokenizer_sha256);
    return status;
}

// Copies the stop texts and the eos tokens.
static enum ree_status put_ends(struct ree_receipt *r, const struct ree_text_run *run,
                                struct ree_error *err) {
    const struct ree_generate_options *o = run->options;
    const char **stops = ree_arena_alloc_array(&r->arena, run->n_stops + 1, sizeof *stops);
    int32_t *eos = ree_arena_alloc_array(&r->arena, o->n_eos + 1, sizeof *eos);
    if (!stops || !eos) return ree_no_memory(err);
    for (size_t i = 0; i < run->n_stops; i++)
        if (!(stops[i] = ree_arena_strdup(&r->arena, run->stops[i]))) return ree_no_memory(err);
    if (o->n_eos) memcpy(eos, o->eos, o->n_eos * sizeof *eos);
    r->stops = stops;
    r->n_stops = run->n_stops;
    r->eos = eos;
    r->n_eos = o->n_eos;
    return REE_OK;
}

// Gives parameters that have no effect at temperature 0 their neutral values, whatever values were
// requested.
static struct ree_sampling canonical(struct ree_sampling s) {
    if (s.temperature > 0) return s;
    return (struct ree_sampling){.top_p = 1, .repetition_penalty = s.repetition_penalty};
}

enum ree_status ree_receipt_make_text(const struct ree_text_run *run, struct ree_receipt *out,
                                      struct ree_error *err) {
    const struct ree_generation *g = run->generation;
    const struct ree_generate_options *o = run->options;
    ree_receipt_init(out);
    out->kind = REE_RECEIPT_TEXT;
    if (o->on_logits || g->logits_changed)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the logits were changed before tokens were chosen, so no receipt can be "
                        "made: a verifier could not repeat the choice");
    put_model(out, run->model, run->operation_set);
    REE_TRY(put_unbound(out, run->device, err));
    REE_TRY(put_tokens(out, &out->prompt, g->ids, g->n_prompt, err));
    REE_TRY(put_tokens(out, &out->output, g->ids + g->n_prompt, g->n - g->n_prompt, err));
    if (run->tokenizer) REE_TRY(put_texts(out, run, err));
    out->sampling = canonical(o->sampling);
    out->max_new_tokens = o->max_new_tokens;
    out->context_length = run->context_length;
    REE_TRY(put_ends(out, run, err));
    out->finish_reason = ree_finish_name(g->finish);
    // If the run ended within the prompt, the hash is over logits of an unknown part of it, so it
    // is left out.
    if (g->n > g->n_prompt) memcpy(out->logits_sha256, g->logits_sha256, sizeof g->logits_sha256);
    if (run->request_sha256)
        snprintf(out->request_sha256, sizeof out->request_sha256, "%s", run->request_sha256);
    REE_TRY(put_trace(out, run->trace, err));
    if (run->stats && !(out->stats = describe_stats(run->stats))) return ree_no_memory(err);
    REE_TRY(ree_receipt_seal(out, err));
    return run->salt ? ree_receipt_make_private(out, run->salt, err) : REE_OK;
}

enum ree_status ree_receipt_try_text(const struct ree_text_run *run, struct ree_error *err) {
    struct ree_text_run tried = *run;
    struct ree_model_hashes zeros;
    struct ree_receipt receipt;
    int32_t none = 0;
    struct ree_generation empty = {.ids = &none, .finish = REE_FINISH_INTERRUPTED};
    memset(&zeros, '0', sizeof zeros);
    zeros.graph[64] = zeros.weights[64] = 0;
    tried.model = &zeros;
    tried.generation = &empty;
    enum ree_status status = ree_receipt_make_text(&tried, &receipt, err);
    ree_receipt_finish(&receipt);
    return status;
}

// A tensor without a name gets an empty one. NaNs count as canonical, as in a trace.
static enum ree_status put_tensor(struct ree_receipt *r, const char *name,
                                  const struct ree_tensor *tensor, struct ree_receipt_tensor *out,
                                  struct ree_error *err) {
    out->name = ree_arena_strdup(&r->arena, name ? name : "");
    if (!out->name) return ree_no_memory(err);
    ree_digest digest;
    ree_trace_tensor_digest(tensor, digest);
    ree_hex(digest, out->sha256);
    return REE_OK;
}

static const char *name_of_tensor(const void *tensors, size_t i) {
    return ((const struct ree_tensor *)tensors)[i].name;
}

// Adds the inputs in the model's order.
static enum ree_status put_inputs(const struct ree_tensors_run *run, struct ree_receipt *out,
                                  struct ree_error *err) {
    struct ree_name_index index;
    enum ree_status status = REE_OK;
    if (!ree_name_index_init(&index, run->n_inputs, name_of_tensor, run->inputs))
        return ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < ree_model_n_inputs(run->of); i++) {
        const char *name = ree_model_input(run->of, i)->name;
        size_t k = ree_name_index_find(&index, name);
        if (k != REE_NO_NAME)
            status = put_tensor(out, name, &run->inputs[k], &out->inputs[out->n_inputs++], err);
    }
    ree_name_index_finish(&index);
    return status;
}

enum ree_status ree_receipt_make_tensors(const struct ree_tensors_run *run, struct ree_receipt *out,
                                         struct ree_error *err) {
    ree_receipt_init(out);
    out->kind = REE_RECEIPT_TENSORS;
    put_model(out, run->model, run->operation_set);
    REE_TRY(put_unbound(out, run->device, err));
    out->inputs = ree_arena_alloc_array(&out->arena, run->n_inputs + 1, sizeof *out->inputs);
    out->outputs = ree_arena_alloc_array(&out->arena, run->n_outputs + 1, sizeof *out->outputs);
    if (!out->inputs || !out->outputs) return ree_no_memory(err);
    REE_TRY(put_inputs(run, out, err));
    for (size_t i = 0; i < run->n_outputs; i++)
        REE_TRY(put_tensor(out, run->outputs[i].name, &run->outputs[i],
                           &out->outputs[out->n_outputs++], err));
    REE_TRY(put_trace(out, run->trace, err));
    return ree_receipt_seal(out, err);
}
