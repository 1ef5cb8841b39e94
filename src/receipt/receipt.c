#include "receipt/receipt_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

const char *const ree_receipt_schemas[2] = {"ree-receipt/1", "ree-receipt/2"};
const char *const ree_receipt_kind_names[2] = {"text", "tensors"};
const char *const ree_receipt_finish_names[4] = {"length", "eos", "stop", "interrupted"};

void ree_receipt_init(struct ree_receipt *receipt) {
    *receipt = (struct ree_receipt){
        .version = 2,
        .numerics = "RepOps/1",
        .operation_set = "reproducible",
        // The same values as ree_greedy.
        .sampling = {.top_p = 1, .repetition_penalty = 1},
    };
    ree_arena_init(&receipt->arena);
}

void ree_receipt_finish(struct ree_receipt *receipt) {
    cJSON_Delete(receipt->stats);
    cJSON_Delete(receipt->extensions);
    ree_arena_finish(&receipt->arena);
    ree_receipt_init(receipt);
}

void ree_receipt_text_sha256(const char *text, char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-text/1");
    ree_hasher_update(hasher, text, strlen(text));
    ree_hasher_finish(hasher, hex);
}

enum ree_status ree_receipt_body_digest(const struct ree_receipt *receipt, ree_digest out,
                                        struct ree_error *err) {
    cJSON *body = ree_receipt_body(receipt);
    if (!body) return ree_no_memory(err);
    enum ree_status status =
        ree_canonical_sha256(body, ree_receipt_schemas[receipt->version - 1], out, err);
    cJSON_Delete(body);
    return status;
}

static void seal_text(struct ree_receipt_text *text) {
    if (text->tokens) ree_tokens_sha256(text->tokens, text->n_tokens, text->tokens_sha256);
    if (text->text) ree_receipt_text_sha256(text->text, text->text_sha256);
}

enum ree_status ree_receipt_seal(struct ree_receipt *receipt, struct ree_error *err) {
    ree_digest digest;
    receipt->receipt_hash[0] = 0;
    receipt->is_signed = false;
    if (receipt->kind == REE_RECEIPT_TEXT) {
        seal_text(&receipt->prompt);
        seal_text(&receipt->output);
    }
    enum ree_status status = ree_receipt_body_digest(receipt, digest, err);
    if (status != REE_OK) return ree_fail_prefix(err, "the receipt");
    ree_hex(digest, receipt->receipt_hash);
    return REE_OK;
}

enum ree_status ree_receipt_check_limits(const char *kind, uint64_t max_new_tokens,
                                         const char *const *stops, size_t n_stops,
                                         struct ree_error *err) {
    size_t nbytes = 0;
    for (size_t i = 0; i < n_stops; i++)
        nbytes += strlen(stops[i]);
    if (n_stops > REE_RECEIPT_MAX_STOPS || nbytes > REE_RECEIPT_MAX_STOP_BYTES)
        return ree_fail(err, REE_INVALID, "%s has at most %d stop texts, of at most %d bytes", kind,
                        REE_RECEIPT_MAX_STOPS, REE_RECEIPT_MAX_STOP_BYTES);
    if (max_new_tokens > REE_RECEIPT_MAX_NUMBER)
        return ree_fail(err, REE_INVALID, "max_new_tokens of %s is at most 2^53 - 1", kind);
    return REE_OK;
}

static void salt_sha256(const unsigned char salt[REE_SALT_SIZE], char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-salt/1");
    ree_hasher_update(hasher, salt, REE_SALT_SIZE);
    ree_hasher_finish(hasher, hex);
}

bool ree_receipt_set_salt(struct ree_receipt *receipt, const unsigned char salt[REE_SALT_SIZE]) {
    char hex[65];
    salt_sha256(salt, hex);
    // A wrong salt does not replace the salt that the receipt may have.
    if (!receipt->is_private || strcmp(hex, receipt->salt_sha256) != 0) return false;
    memcpy(receipt->salt, salt, REE_SALT_SIZE);
    return receipt->has_salt = true;
}

void ree_receipt_blind(const struct ree_receipt *receipt, char hex[65]) {
    ree_digest digest;
    if (!receipt->has_salt || !hex[0] || !ree_unhex(hex, digest)) return;
    struct ree_hasher *hasher = ree_hasher_create("ree-blind/1");
    ree_hasher_update(hasher, receipt->salt, REE_SALT_SIZE);
    ree_hasher_update(hasher, digest, sizeof digest);
    ree_hasher_finish(hasher, hex);
}

static void hide(const struct ree_receipt *receipt, struct ree_receipt_text *text) {
    text->tokens = NULL;
    text->text = NULL;
    ree_receipt_blind(receipt, text->tokens_sha256);
    ree_receipt_blind(receipt, text->text_sha256);
}

enum ree_status ree_receipt_make_private(struct ree_receipt *receipt,
                                         const unsigned char salt[REE_SALT_SIZE],
                                         struct ree_error *err) {
    if (receipt->kind != REE_RECEIPT_TEXT || receipt->is_private || !receipt->receipt_hash[0])
        return ree_fail(err, REE_INVALID,
                        "only a sealed receipt of a text that is not private can become private");
    receipt->is_private = true;
    salt_sha256(salt, receipt->salt_sha256);
    ree_receipt_set_salt(receipt, salt);
    hide(receipt, &receipt->prompt);
    hide(receipt, &receipt->output);
    ree_receipt_blind(receipt, receipt->logits_sha256);
    ree_receipt_blind(receipt, receipt->trace_root);
    return ree_receipt_seal(receipt, err);
}

// This version of ree knows no extension, so every critical one is unknown.
const char *ree_receipt_unknown_extension(const struct ree_receipt *receipt) {
    return receipt->n_critical ? receipt->critical[0] : NULL;
}

bool ree_receipt_sampling_is_canonical(const struct ree_sampling *s) {
    return s->temperature > 0 || (s->top_k == 0 && s->top_p == 1 && s->min_p == 0 && s->seed == 0);
}

enum ree_status ree_receipt_draft(const struct ree_receipt *receipt, const char *path,
                                  struct ree_file_draft **out, struct ree_error *err) {
    *out = NULL;
    char *text;
    size_t n;
    struct ree_receipt read;
    enum ree_status status = ree_receipt_encode(receipt, &text, &n, err);
    if (status != REE_OK) return ree_fail_prefix(err, "%s", path);
    // Do not write a file that cannot be read again.
    status = ree_receipt_decode(text, n, path, &read, err);
    ree_receipt_finish(&read);
    if (status == REE_OK) status = ree_file_begin(path, 0666, out, err);
    if (status == REE_OK) status = ree_file_append(*out, text, n, err);
    if (status == REE_OK) status = ree_file_sync(*out, err);
    ree_free(text);
    if (status == REE_OK) return REE_OK;
    ree_file_abandon(*out);
    *out = NULL;
    return status;
}

enum ree_status ree_receipt_read(const char *path, struct ree_receipt *out, struct ree_error *err) {
    void *bytes;
    size_t n;
    ree_receipt_init(out);
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    enum ree_status status = ree_receipt_decode(bytes, n, path, out, err);
    ree_free(bytes);
    return status;
}

void ree_receipt_tokenizer_sha256(const struct ree_receipt *receipt,
                                  const struct ree_tokenizer *tokenizer, char hex[65]) {
    if (receipt->version == 1)
        ree_tokenizer_sha256_version_1(tokenizer, hex);
    else
        ree_tokenizer_sha256(tokenizer, hex);
}

bool ree_receipt_same_extensions(const struct ree_receipt *a, const struct ree_receipt *b) {
    if (a->n_critical != b->n_critical) return false;
    for (size_t i = 0; i < a->n_critical; i++)
        if (strcmp(a->critical[i], b->critical[i]) != 0) return false;
    return memcmp(a->extensions_digest, b->extensions_digest, sizeof(ree_digest)) == 0;
}
