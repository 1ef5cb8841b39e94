// The public functions that read and validate receipts.
#include "receipt/receipt_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "receipt/receipt_internal.h"

enum ree_status ree_receipt_create(struct ree_receipt **out, struct ree_error *err) {
    *out = NULL;
    struct ree_receipt *receipt = ree_alloc(sizeof *receipt);
    struct ree_receipt_object *object = ree_alloc_zeroed(1, sizeof *object);
    if (!receipt || !object) {
        ree_free(receipt);
        ree_free(object);
        return ree_no_memory(err);
    }
    ree_receipt_init(receipt);
    receipt->object = object;
    *out = receipt;
    return REE_OK;
}

void ree_receipt_destroy(struct ree_receipt *receipt) {
    if (!receipt) return;
    if (receipt->object) {
        ree_free(receipt->object->json);
        ree_free(receipt->object->path);
        ree_free(receipt->object);
    }
    ree_receipt_finish(receipt);
    ree_free(receipt);
}

// Moves a receipt that was read to the heap and gives it an object. It is not read in place,
// because reading resets the struct. Releases *read on failure.
static enum ree_status move_to_heap(struct ree_receipt *read, const char *path,
                                    struct ree_receipt **out, struct ree_error *err) {
    enum ree_status status = ree_receipt_create(out, err);
    if (status != REE_OK) {
        ree_receipt_finish(read);
        return status;
    }
    struct ree_receipt_object *object = (*out)->object;
    **out = *read; // moves what it owns
    (*out)->object = object;
    if (!path || (object->path = ree_strdup(path))) return REE_OK;
    ree_receipt_destroy(*out);
    *out = NULL;
    return ree_no_memory(err);
}

enum ree_status ree_receipt_load(const char *path, struct ree_receipt **out,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_receipt read;
    *out = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    enum ree_status status = ree_receipt_read(path, &read, err);
    if (status == REE_OK) return move_to_heap(&read, path, out, err);
    ree_receipt_finish(&read);
    return status;
}

enum ree_status ree_receipt_parse(const void *bytes, size_t nbytes, const char *where,
                                  struct ree_receipt **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_receipt read;
    *out = NULL;
    if (!err) err = &local;
    enum ree_status status = ree_receipt_decode(bytes, nbytes, where, &read, err);
    if (status == REE_OK) return move_to_heap(&read, NULL, out, err);
    ree_receipt_finish(&read);
    return status;
}

const struct ree_receipt_info *ree_receipt_info(const struct ree_receipt *r) {
    bool is_text = r->kind == REE_RECEIPT_TEXT;
    r->object->info = (struct ree_receipt_info){
        .version = r->version,
        .kind = r->kind,
        .receipt_hash = r->receipt_hash,
        .numerics = r->numerics,
        .operation_set = r->operation_set,
        .graph_sha256 = r->graph_sha256,
        .weights_sha256 = r->weights_sha256,
        .tokenizer_sha256 = r->tokenizer_sha256,
        .prompt = is_text ? &r->prompt : NULL,
        .output = is_text ? &r->output : NULL,
        .sampling = is_text ? &r->sampling : NULL,
        .max_new_tokens = r->max_new_tokens,
        .context_length = r->context_length,
        .n_stops = r->n_stops,
        .n_eos = r->n_eos,
        .stops = r->stops,
        .eos = r->eos,
        .finish_reason = r->finish_reason,
        .logits_sha256 = r->logits_sha256,
        .request_sha256 = r->request_sha256,
        .is_private = r->is_private,
        .has_salt = r->has_salt,
        .n_inputs = r->n_inputs,
        .n_outputs = r->n_outputs,
        .inputs = r->inputs,
        .outputs = r->outputs,
        .trace_root = r->has_trace ? r->trace_root : "",
        .trace_steps = r->trace_steps,
        .trace_chunk = r->trace_chunk,
        .public_key = r->is_signed ? r->public_key : "",
        .device = r->device,
        .ree_version = r->ree_version,
        .created = r->created,
        .trace_file = r->trace_file,
    };
    return &r->object->info;
}

bool ree_receipt_has_root(const struct ree_receipt *receipt, const char *root) {
    char hex[65];
    if (!receipt->has_trace || strlen(root) != 64) return false;
    memcpy(hex, root, sizeof hex);
    ree_receipt_blind(receipt, hex);
    return strcmp(hex, receipt->trace_root) == 0;
}

const char *ree_receipt_json(const struct ree_receipt *receipt) {
    REE_FLOAT_ENV_API();
    struct ree_receipt_object *object = receipt->object;
    char *text;
    size_t n;
    if (ree_receipt_encode(receipt, &text, &n, NULL) != REE_OK) return NULL;
    if (n) text[n - 1] = 0; // remove the newline
    if (object->json && strcmp(object->json, text) == 0) {
        ree_free(text); // the caller may still use the same text from an earlier call
        return object->json;
    }
    ree_free(object->json);
    return object->json = text;
}

// Validation

enum ree_status ree_receipt_validate(struct ree_receipt *receipt,
                                     const struct ree_validate_options *options,
                                     const struct ree_receipt_finding **out_findings, size_t *out_n,
                                     bool *out_ok, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_validate_options o;
    struct ree_receipt_finding *findings = receipt->object->findings;
    const char *path = receipt->object->path;
    char key[65] = "";
    *out_findings = NULL;
    *out_n = 0;
    *out_ok = false;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_validate_options", err));
    if (o.public_key) REE_TRY(ree_key_parse(o.public_key, key, err));
    if (o.attestation && !path)
        return ree_fail(err, REE_INVALID,
                        "an attestation is about a file, but the receipt was not loaded from one");
    bool ok;
    size_t n = ree_receipt_check(receipt, findings, &ok);
    if (o.public_key && (!o.attestation || receipt->is_signed))
        ree_finding_key(receipt->is_signed ? receipt->public_key : "", key, &findings[n++]);
    if (o.attestation) {
        struct ree_error reason;
        char signer[65];
        enum ree_status status = ree_dsse_check(o.attestation, path, key, signer, &reason);
        ree_finding_attestation(status, signer, &reason, &findings[n++]);
    }
    REE_TRY(ree_findings_conclude(findings, n, path, &ok, err));
    *out_findings = findings;
    *out_n = n;
    *out_ok = ok;
    return REE_OK;
}
