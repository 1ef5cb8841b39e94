// Encodes a receipt as JSON. Fields that are "" or NULL in memory are left out.
#include "receipt/receipt_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

// The add functions return false if memory is exhausted. cJSON accepts NULL as the object.

static bool add_string(cJSON *object, const char *name, const char *value) {
    return !value || cJSON_AddStringToObject(object, name, value);
}

static bool add_hash(cJSON *object, const char *name, const char *hex) {
    return !hex[0] || cJSON_AddStringToObject(object, name, hex);
}

static bool add_number(cJSON *object, const char *name, double value) {
    return cJSON_AddNumberToObject(object, name, value);
}

static bool add_item(cJSON *object, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static bool add_ids(cJSON *object, const char *name, const int32_t *ids, size_t n) {
    // An empty list may be NULL, which cJSON_CreateIntArray rejects.
    return n <= INT_MAX &&
           add_item(object, name, n ? cJSON_CreateIntArray(ids, (int)n) : cJSON_CreateArray());
}

static bool add_strings(cJSON *object, const char *name, const char *const *strings, size_t n) {
    return n <= INT_MAX &&
           add_item(object, name,
                    n ? cJSON_CreateStringArray(strings, (int)n) : cJSON_CreateArray());
}

static bool add_text(cJSON *object, const struct ree_receipt_text *text) {
    return add_hash(object, "tokens_sha256", text->tokens_sha256) &&
           add_number(object, "n_tokens", (double)text->n_tokens) &&
           add_hash(object, "text_sha256", text->text_sha256) &&
           (!text->tokens || add_ids(object, "tokens", text->tokens, text->n_tokens)) &&
           add_string(object, "text", text->text);
}

bool ree_receipt_add_sampling(cJSON *body, const struct ree_receipt *receipt) {
    cJSON *object = cJSON_AddObjectToObject(body, "sampling");
    const struct ree_sampling *s = &receipt->sampling;
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    return add_number(object, "temperature", (double)s->temperature) &&
           add_number(object, "top_k", s->top_k) && add_number(object, "top_p", (double)s->top_p) &&
           add_number(object, "min_p", (double)s->min_p) &&
           add_number(object, "repetition_penalty", (double)s->repetition_penalty) &&
           add_string(object, "seed", seed) &&
           add_number(object, "max_new_tokens", (double)receipt->max_new_tokens) &&
           add_strings(object, "stop", receipt->stops, receipt->n_stops) &&
           add_ids(object, "eos", receipt->eos, receipt->n_eos) &&
           add_number(object, "context_length", (double)receipt->context_length);
}

static bool add_tensors(cJSON *body, const char *name, const struct ree_receipt_tensor *tensors,
                        size_t n) {
    cJSON *array = cJSON_AddArrayToObject(body, name);
    for (size_t i = 0; i < n; i++) {
        cJSON *object = cJSON_CreateObject();
        if (!array || !object || !cJSON_AddItemToArray(array, object)) {
            cJSON_Delete(object);
            return false;
        }
        if (!add_string(object, "name", tensors[i].name ? tensors[i].name : "") ||
            !add_hash(object, "sha256", tensors[i].sha256))
            return false;
    }
    return array;
}

static bool add_run_of_text(cJSON *body, const struct ree_receipt *receipt) {
    cJSON *prompt = cJSON_AddObjectToObject(body, "prompt");
    cJSON *output = cJSON_AddObjectToObject(body, "output");
    return add_hash(body, "tokenizer_sha256", receipt->tokenizer_sha256) &&
           add_text(prompt, &receipt->prompt) && ree_receipt_add_sampling(body, receipt) &&
           add_text(output, &receipt->output) &&
           add_string(output, "finish_reason", receipt->finish_reason) &&
           add_hash(output, "logits_sha256", receipt->logits_sha256);
}

bool ree_receipt_add_model(cJSON *body, const struct ree_receipt *receipt) {
    cJSON *model = cJSON_AddObjectToObject(body, "model");
    return add_string(body, "numerics", receipt->numerics) &&
           add_string(body, "operation_set", receipt->operation_set) &&
           add_hash(model, "graph_sha256", receipt->graph_sha256) &&
           add_hash(model, "weights_sha256", receipt->weights_sha256);
}

// Adds the fields that version 2 introduced.
static bool add_rest(cJSON *body, const struct ree_receipt *receipt) {
    if (receipt->is_private) {
        cJSON *part = cJSON_AddObjectToObject(body, "private");
        if (!add_hash(part, "salt_sha256", receipt->salt_sha256)) return false;
    }
    return add_hash(body, "request_sha256", receipt->request_sha256) &&
           (!receipt->extensions ||
            cJSON_AddItemReferenceToObject(body, "extensions", receipt->extensions)) &&
           (!receipt->n_critical ||
            add_strings(body, "critical", receipt->critical, receipt->n_critical));
}

static bool add_body(cJSON *body, const struct ree_receipt *receipt) {
    if (!add_string(body, "kind", ree_receipt_kind_names[receipt->kind]) ||
        !ree_receipt_add_model(body, receipt))
        return false;
    if (receipt->kind == REE_RECEIPT_TEXT
            ? !add_run_of_text(body, receipt)
            : !add_tensors(body, "inputs", receipt->inputs, receipt->n_inputs) ||
                  !add_tensors(body, "outputs", receipt->outputs, receipt->n_outputs))
        return false;
    if (!add_rest(body, receipt)) return false;
    if (!receipt->has_trace) return true;
    cJSON *trace = cJSON_AddObjectToObject(body, "trace");
    return add_hash(trace, "root", receipt->trace_root) &&
           add_number(trace, "n_steps", (double)receipt->trace_steps) &&
           add_number(trace, "prefill_chunk", receipt->trace_chunk);
}

cJSON *ree_receipt_body(const struct ree_receipt *receipt) {
    cJSON *body = cJSON_CreateObject();
    if (add_body(body, receipt)) return body;
    cJSON_Delete(body);
    return NULL;
}

static bool add_signature(cJSON *root, const struct ree_receipt *receipt) {
    if (!receipt->is_signed) return true;
    cJSON *signature = cJSON_AddObjectToObject(root, "signature");
    return add_string(signature, "algorithm", REE_SIGNATURE_ALGORITHM) &&
           add_hash(signature, "public_key", receipt->public_key) &&
           add_hash(signature, "signature", receipt->signature);
}

static bool add_unbound(cJSON *root, const struct ree_receipt *receipt) {
    if (!receipt->ree_version && !receipt->device && !receipt->created && !receipt->trace_file &&
        !receipt->stats)
        return true;
    cJSON *unbound = cJSON_AddObjectToObject(root, "unbound");
    return add_string(unbound, "ree_version", receipt->ree_version) &&
           add_string(unbound, "device", receipt->device) &&
           add_string(unbound, "created", receipt->created) &&
           add_string(unbound, "trace_file", receipt->trace_file) &&
           (!receipt->stats ||
            (unbound && cJSON_AddItemReferenceToObject(unbound, "stats", receipt->stats)));
}

enum ree_status ree_receipt_encode(const struct ree_receipt *receipt, char **out,
                                   size_t *out_nbytes, struct ree_error *err) {
    *out = NULL;
    *out_nbytes = 0;
    if (!receipt->receipt_hash[0])
        return ree_fail(err, REE_INVALID, "the receipt is not sealed, so it has no hash");
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    cJSON *root = cJSON_CreateObject();
    bool ok = add_string(root, "schema", ree_receipt_schemas[receipt->version - 1]) &&
              add_item(root, "body", ree_receipt_body(receipt)) &&
              add_hash(root, "receipt_hash", receipt->receipt_hash) &&
              add_signature(root, receipt) && add_unbound(root, receipt);
    enum ree_status status =
        ok ? ree_canonical_json(root, &text, err) : ree_fail(err, REE_NO_MEMORY, "out of memory");
    cJSON_Delete(root);
    ree_strbuf_append(&text, "\n", 1);
    size_t n = text.size;
    if (status == REE_OK) {
        *out = ree_strbuf_take(&text);
        if (!*out) return ree_fail(err, REE_NO_MEMORY, "out of memory");
        *out_nbytes = n;
    }
    ree_strbuf_finish(&text);
    return status;
}
