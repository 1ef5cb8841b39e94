// Decodes a receipt from JSON. The file is untrusted. Whatever this file accepts, receipt_encode.c
// encodes again as the same canonical text.
#include "receipt/receipt_fields.h"
#include "receipt/receipt_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/name_index.h"

enum ree_status ree_field_stops(const struct ree_fields *part, const char *key,
                                const char *const **out, size_t *out_n, struct ree_error *err) {
    REE_TRY(ree_field_strings(part, key, out, out_n, err));
    if (*out_n > REE_RECEIPT_MAX_STOPS)
        return ree_fail(err, REE_INVALID, "%s.%s has %zu texts; the maximum is %d", part->name, key,
                        *out_n, REE_RECEIPT_MAX_STOPS);
    size_t nbytes = 0;
    for (size_t i = 0; i < *out_n; i++) {
        size_t n = strlen((*out)[i]);
        nbytes += n;
        if (n == 0) return ree_fail(err, REE_INVALID, "%s.%s[%zu] is empty", part->name, key, i);
    }
    if (nbytes > REE_RECEIPT_MAX_STOP_BYTES)
        return ree_fail(err, REE_INVALID, "%s.%s has %zu bytes in total; the maximum is %d",
                        part->name, key, nbytes, REE_RECEIPT_MAX_STOP_BYTES);
    return REE_OK;
}

static enum ree_status get_tensors(const struct ree_fields *body, const char *key,
                                   struct ree_receipt_tensor **out, size_t *out_n,
                                   struct ree_error *err) {
    const cJSON *item;
    char name[48];
    void *memory;
    REE_TRY(ree_field_array(body, key, sizeof **out, &item, &memory, out_n, err));
    *out = memory;
    for (size_t i = 0; item; i++, item = item->next) {
        snprintf(name, sizeof name, "%s.%s[%zu]", body->name, key, i);
        struct ree_fields tensor = {item, name, body->arena};
        REE_TRY(ree_fields_check(&tensor, "name sha256", "", err));
        REE_TRY(ree_field_string(&tensor, "name", &(*out)[i].name, err));
        REE_TRY(ree_field_hex(&tensor, "sha256", (*out)[i].sha256, sizeof(*out)[i].sha256, err));
    }
    return REE_OK;
}

static enum ree_status get_text(const struct ree_fields *part, bool has_tokenizer,
                                struct ree_receipt_text *out, struct ree_error *err) {
    int64_t n = 0;
    size_t n_ids = 0;
    REE_TRY(
        ree_field_hex(part, "tokens_sha256", out->tokens_sha256, sizeof out->tokens_sha256, err));
    REE_TRY(ree_field_whole(part, "n_tokens", 0, REE_RECEIPT_MAX_NUMBER, &n, err));
    REE_TRY(ree_field_hex(part, "text_sha256", out->text_sha256, sizeof out->text_sha256, err));
    REE_TRY(ree_field_ids(part, "tokens", &out->tokens, &n_ids, err));
    REE_TRY(ree_field_string(part, "text", &out->text, err));
    out->n_tokens = (size_t)n;
    if (out->tokens && n_ids != out->n_tokens)
        return ree_fail(err, REE_INVALID, "%s.n_tokens is %zu, but %s.tokens has %zu", part->name,
                        out->n_tokens, part->name, n_ids);
    if (out->text && !out->text_sha256[0])
        return ree_fail(err, REE_INVALID, "%s.text has no text_sha256", part->name);
    if (out->text_sha256[0] && !has_tokenizer)
        return ree_fail(err, REE_INVALID, "%s.text_sha256 is present without a tokenizer_sha256",
                        part->name);
    return REE_OK;
}

enum ree_status ree_receipt_get_sampling(const struct ree_fields *body, struct ree_receipt *out,
                                         struct ree_error *err) {
    struct ree_fields part;
    struct ree_sampling *s = &out->sampling;
    int64_t top_k = 0, max_new_tokens = 0;
    REE_TRY(
        ree_fields_open(body, "sampling", "body.sampling",
                        "temperature top_k top_p min_p repetition_penalty seed max_new_tokens stop "
                        "eos context_length",
                        "", &part, err));
    REE_TRY(ree_field_float(&part, "temperature", true, 1e6, &s->temperature, err));
    REE_TRY(ree_field_whole(&part, "top_k", 0, UINT32_MAX, &top_k, err));
    REE_TRY(ree_field_float(&part, "top_p", false, 1, &s->top_p, err));
    REE_TRY(ree_field_float(&part, "min_p", true, 1, &s->min_p, err));
    REE_TRY(ree_field_float(&part, "repetition_penalty", false, 1e6, &s->repetition_penalty, err));
    if (ree_sampling_check(s, err) != REE_OK) return ree_fail_prefix(err, "%s", part.name);
    REE_TRY(ree_field_digits(&part, "seed", &s->seed, err));
    REE_TRY(
        ree_field_whole(&part, "max_new_tokens", 0, REE_RECEIPT_MAX_NUMBER, &max_new_tokens, err));
    REE_TRY(ree_field_stops(&part, "stop", &out->stops, &out->n_stops, err));
    REE_TRY(ree_field_ids(&part, "eos", &out->eos, &out->n_eos, err));
    REE_TRY(ree_field_whole(&part, "context_length", 0, REE_RECEIPT_MAX_NUMBER,
                            &out->context_length, err));
    s->top_k = (uint32_t)top_k;
    out->max_new_tokens = (uint64_t)max_new_tokens;
    return REE_OK;
}

static enum ree_status get_run_of_text(const struct ree_fields *body, struct ree_receipt *out,
                                       struct ree_error *err) {
    struct ree_fields prompt, output;
    size_t reason = 0;
    REE_TRY(ree_field_hex(body, "tokenizer_sha256", out->tokenizer_sha256,
                          sizeof out->tokenizer_sha256, err));
    REE_TRY(ree_fields_open(body, "prompt", "body.prompt", "tokens_sha256 n_tokens",
                            "text_sha256 tokens text", &prompt, err));
    REE_TRY(get_text(&prompt, out->tokenizer_sha256[0], &out->prompt, err));
    REE_TRY(ree_receipt_get_sampling(body, out, err));
    REE_TRY(ree_fields_open(body, "output", "body.output", "tokens_sha256 n_tokens finish_reason",
                            "text_sha256 tokens text logits_sha256", &output, err));
    REE_TRY(get_text(&output, out->tokenizer_sha256[0], &out->output, err));
    REE_TRY(ree_field_hex(&output, "logits_sha256", out->logits_sha256, sizeof out->logits_sha256,
                          err));
    REE_TRY(ree_field_name(&output, "finish_reason", ree_receipt_finish_names, 4, &reason, err));
    out->finish_reason = ree_receipt_finish_names[reason];
    return REE_OK;
}

static enum ree_status get_trace(const struct ree_fields *body, struct ree_receipt *out,
                                 struct ree_error *err) {
    struct ree_fields part;
    int64_t steps = 0, chunk = 0;
    if (!ree_field(body, "trace")) return REE_OK;
    REE_TRY(
        ree_fields_open(body, "trace", "body.trace", "root n_steps prefill_chunk", "", &part, err));
    REE_TRY(ree_field_hex(&part, "root", out->trace_root, sizeof out->trace_root, err));
    REE_TRY(ree_field_whole(&part, "n_steps", 1, REE_RECEIPT_MAX_NUMBER, &steps, err));
    // The prompt of a text is cut into steps; a tensor model runs in one step.
    bool is_text = out->kind == REE_RECEIPT_TEXT;
    REE_TRY(ree_field_whole(&part, "prefill_chunk", is_text, is_text ? REE_MAX_PREFILL_CHUNK : 0,
                            &chunk, err));
    out->has_trace = true;
    out->trace_steps = (uint64_t)steps;
    out->trace_chunk = (uint32_t)chunk;
    return REE_OK;
}

enum ree_status ree_receipt_get_model(const struct ree_fields *body, struct ree_receipt *out,
                                      struct ree_error *err) {
    static const char *const numerics[] = {"RepOps/1"};
    static const char *const sets[] = {"reproducible", "deterministic", "default"};
    struct ree_fields model;
    size_t version = 0, set = 0;
    REE_TRY(ree_field_name(body, "numerics", numerics, 1, &version, err));
    REE_TRY(ree_field_name(body, "operation_set", sets, sizeof sets / sizeof *sets, &set, err));
    out->numerics = numerics[version];
    out->operation_set = sets[set];
    REE_TRY(ree_fields_open(body, "model", "body.model", "graph_sha256 weights_sha256", "", &model,
                            err));
    REE_TRY(
        ree_field_hex(&model, "graph_sha256", out->graph_sha256, sizeof out->graph_sha256, err));
    return ree_field_hex(&model, "weights_sha256", out->weights_sha256, sizeof out->weights_sha256,
                         err);
}

static enum ree_status get_private(const struct ree_fields *body, struct ree_receipt *out,
                                   struct ree_error *err) {
    struct ree_fields part;
    if (!ree_field(body, "private")) return REE_OK;
    REE_TRY(ree_fields_open(body, "private", "body.private", "salt_sha256", "", &part, err));
    REE_TRY(ree_field_hex(&part, "salt_sha256", out->salt_sha256, sizeof out->salt_sha256, err));
    out->is_private = true;
    const struct ree_receipt_text *const texts[] = {&out->prompt, &out->output};
    for (size_t i = 0; i < 2; i++)
        if (texts[i]->tokens || texts[i]->text)
            return ree_fail(err, REE_INVALID, "body.%s has %s, but the receipt is private",
                            i ? "output" : "prompt", texts[i]->tokens ? "tokens" : "a text");
    return REE_OK;
}

// Indexes the names of an object's members, because a receipt may have very many extensions. An
// object of NULL has no members. Returns false if memory is exhausted.
static bool index_names(const cJSON *object, struct ree_name_index *index) {
    size_t n = 0;
    const cJSON *first = object ? object->child : NULL;
    for (const cJSON *item = first; item; item = item->next)
        n++;
    if (!ree_name_index_reserve(index, n)) return false;
    for (const cJSON *item = first; item; item = item->next)
        ree_name_index_add(index, item->string, index->n);
    ree_name_index_sort(index);
    return true;
}

static enum ree_status get_extensions(const struct ree_fields *body, struct ree_receipt *out,
                                      struct ree_error *err) {
    const cJSON *extensions = ree_field(body, "extensions");
    struct ree_name_index index;
    if (extensions && !cJSON_IsObject(extensions))
        return ree_fields_wrong(body, "extensions", "an object", err);
    if (ree_field(body, "critical")) {
        REE_TRY(ree_field_strings(body, "critical", &out->critical, &out->n_critical, err));
        if (!out->n_critical)
            return ree_fail(err, REE_INVALID, "body.critical is empty; it must be omitted");
    }
    if (!index_names(extensions, &index)) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < out->n_critical && status == REE_OK; i++) {
        if (i && strcmp(out->critical[i - 1], out->critical[i]) >= 0)
            status = ree_fail(err, REE_INVALID, "body.critical is not in ascending order");
        else if (ree_name_index_find(&index, out->critical[i]) == REE_NO_NAME)
            status =
                ree_fail(err, REE_INVALID, "body.critical names '%.64s', which is not an extension",
                         out->critical[i]);
    }
    ree_name_index_finish(&index);
    if (status != REE_OK || !extensions) return status;
    if (!extensions->child)
        return ree_fail(err, REE_INVALID, "body.extensions is empty; it must be omitted");
    out->extensions =
        cJSON_DetachItemFromObjectCaseSensitive((cJSON *)(uintptr_t)body->json, "extensions");
    return ree_canonical_sha256(out->extensions, NULL, out->extensions_digest, err);
}

// Reads the fields that version 2 added.
static enum ree_status get_rest(const struct ree_fields *body, struct ree_receipt *out,
                                struct ree_error *err) {
    REE_TRY(get_private(body, out, err));
    REE_TRY(ree_field_hex(body, "request_sha256", out->request_sha256, sizeof out->request_sha256,
                          err));
    return get_extensions(body, out, err);
}

static enum ree_status get_body(const struct ree_fields *root, struct ree_receipt *out,
                                struct ree_error *err) {
    struct ree_fields body;
    size_t kind = 0;
    REE_TRY(ree_fields_open(root, "body", "body", "kind", NULL, &body, err));
    REE_TRY(ree_field_name(&body, "kind", ree_receipt_kind_names, 2, &kind, err));
    out->kind = (enum ree_receipt_kind)kind;
    // Version 1 must not have the fields that version 2 added.
    bool is_new = out->version > 1;
    if (out->kind == REE_RECEIPT_TEXT)
        REE_TRY(ree_fields_check(&body, "kind numerics operation_set model prompt sampling output",
                                 is_new
                                     ? "tokenizer_sha256 trace private request_sha256 extensions "
                                       "critical"
                                     : "tokenizer_sha256 trace",
                                 err));
    else
        REE_TRY(ree_fields_check(&body, "kind numerics operation_set model inputs outputs",
                                 is_new ? "trace extensions critical" : "trace", err));
    REE_TRY(ree_receipt_get_model(&body, out, err));
    if (out->kind == REE_RECEIPT_TEXT) {
        REE_TRY(get_run_of_text(&body, out, err));
    } else {
        REE_TRY(get_tensors(&body, "inputs", &out->inputs, &out->n_inputs, err));
        REE_TRY(get_tensors(&body, "outputs", &out->outputs, &out->n_outputs, err));
    }
    REE_TRY(get_trace(&body, out, err));
    return get_rest(&body, out, err);
}

static enum ree_status get_signature(const struct ree_fields *root, struct ree_receipt *out,
                                     struct ree_error *err) {
    static const char *const algorithms[] = {REE_SIGNATURE_ALGORITHM};
    struct ree_fields part;
    size_t algorithm;
    if (!ree_field(root, "signature")) return REE_OK;
    REE_TRY(ree_fields_open(root, "signature", "signature", "algorithm public_key signature", "",
                            &part, err));
    REE_TRY(ree_field_name(&part, "algorithm", algorithms, 1, &algorithm, err));
    REE_TRY(ree_field_hex(&part, "public_key", out->public_key, sizeof out->public_key, err));
    REE_TRY(ree_field_hex(&part, "signature", out->signature, sizeof out->signature, err));
    out->is_signed = true;
    return REE_OK;
}

static enum ree_status get_unbound(const struct ree_fields *root, struct ree_receipt *out,
                                   struct ree_error *err) {
    struct ree_fields part;
    if (!ree_field(root, "unbound")) return REE_OK;
    // Writers of receipts may add any other members to "unbound".
    REE_TRY(ree_fields_open(root, "unbound", "unbound", "", NULL, &part, err));
    REE_TRY(ree_field_string(&part, "ree_version", &out->ree_version, err));
    REE_TRY(ree_field_string(&part, "device", &out->device, err));
    REE_TRY(ree_field_string(&part, "created", &out->created, err));
    REE_TRY(ree_field_string(&part, "trace_file", &out->trace_file, err));
    if (!ree_field(&part, "stats")) return REE_OK;
    if (!cJSON_IsObject(ree_field(&part, "stats")))
        return ree_fields_wrong(&part, "stats", "an object", err);
    out->stats = cJSON_DetachItemFromObjectCaseSensitive((cJSON *)(uintptr_t)part.json, "stats");
    return REE_OK;
}

static enum ree_status get_receipt(const cJSON *json, struct ree_receipt *out,
                                   struct ree_error *err) {
    // Rejects duplicate keys, strings that are not UTF-8 and numbers that are not finite, anywhere
    // in the file: these have no canonical form.
    REE_TRY(ree_canonical_check(json, err));
    struct ree_fields root = {json, "receipt", &out->arena};
    size_t schema;
    REE_TRY(ree_fields_check(&root, "schema", NULL, err));
    REE_TRY(ree_field_name(&root, "schema", ree_receipt_schemas, 2, &schema, err));
    out->version = (uint32_t)schema + 1;
    REE_TRY(ree_fields_check(&root, "schema body receipt_hash", "signature unbound", err));
    REE_TRY(get_body(&root, out, err));
    REE_TRY(ree_field_hex(&root, "receipt_hash", out->receipt_hash, sizeof out->receipt_hash, err));
    REE_TRY(get_signature(&root, out, err));
    return get_unbound(&root, out, err);
}

enum ree_status ree_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_receipt *out, struct ree_error *err) {
    cJSON *json;
    ree_receipt_init(out);
    if (nbytes > REE_RECEIPT_MAX_SIZE)
        return ree_fail(err, REE_INVALID, "%s: it has %zu bytes, expected at most %zu", where,
                        nbytes, REE_RECEIPT_MAX_SIZE);
    enum ree_status status = ree_json_parse_strict(bytes, nbytes, &json, err);
    if (status == REE_OK) status = get_receipt(json, out, err);
    cJSON_Delete(json);
    return status == REE_OK ? status : ree_fail_prefix(err, "%s", where);
}
