// Decodes a checkpoint from JSON. The file is untrusted.
#include <stdio.h>
#include <string.h>

#include "receipt/checkpoint_internal.h"
#include "receipt/receipt_internal.h"

static enum ree_status get_tokens(const struct ree_fields *part, struct ree_snapshot *out,
                                  struct ree_error *err) {
    const int32_t *prompt = NULL, *tokens = NULL;
    size_t n_prompt = 0, n = 0;
    REE_TRY(ree_field_ids(part, "prompt", &prompt, &n_prompt, err));
    REE_TRY(ree_field_ids(part, "tokens", &tokens, &n, err));
    if (!n_prompt) return ree_fail(err, REE_INVALID, "%s.prompt has no tokens", part->name);
    int32_t *ids = ree_arena_alloc_array(part->arena, n_prompt + n, sizeof *ids);
    if (!ids) return ree_no_memory(err);
    memcpy(ids, prompt, n_prompt * sizeof *ids);
    if (n) memcpy(ids + n_prompt, tokens, n * sizeof *ids);
    out->ids = ids;
    out->n_prompt = n_prompt;
    out->n = n_prompt + n;
    return REE_OK;
}

static enum ree_status get_caches(const struct ree_fields *part, struct ree_snapshot *out,
                                  struct ree_error *err) {
    const cJSON *item;
    void *memory;
    if (!ree_field(part, "caches")) return REE_OK;
    REE_TRY(
        ree_field_array(part, "caches", sizeof(ree_digest), &item, &memory, &out->n_caches, err));
    ree_digest *caches = memory;
    for (size_t i = 0; item; i++, item = item->next) {
        const char *hex = cJSON_GetStringValue(item);
        if (cJSON_IsNull(item)) continue; // null: the digest stays all zeros
        if (!hex || !ree_unhex(hex, caches[i]) || strspn(hex, "0") == 64)
            return ree_fail(
                err, REE_INVALID,
                "%s.caches[%zu] is not 64 hexadecimal digits in lower case, or all of them are 0",
                part->name, i);
    }
    out->caches = (const unsigned char(*)[32])caches;
    return REE_OK;
}

static enum ree_status get_sequence(const struct ree_fields *part,
                                    const struct ree_text_checkpoint *c, struct ree_snapshot *out,
                                    struct ree_error *err) {
    size_t reason = 0;
    REE_TRY(ree_fields_check(part, "prompt tokens", "finish_reason logits_sha256 caches", err));
    REE_TRY(get_tokens(part, out, err));
    REE_TRY(get_caches(part, out, err));
    out->is_done = ree_field(part, "finish_reason") != NULL;
    bool has_hash = ree_field(part, "logits_sha256") != NULL;
    if (has_hash != (out->is_done && c->logits_hash))
        return ree_fail(err, REE_INVALID, "%s.logits_sha256 is %s", part->name,
                        has_hash ? "present, but not allowed" : "missing");
    if (out->is_done && out->n_caches)
        return ree_fail(err, REE_INVALID, "%s.caches is present, but the sequence is done",
                        part->name);
    if (!out->is_done) return REE_OK;
    // Accepts only the names before REE_FINISH_INTERRUPTED, which is the last: an interrupted
    // sequence is not done.
    REE_TRY(ree_field_name(part, "finish_reason", ree_receipt_finish_names, REE_FINISH_INTERRUPTED,
                           &reason, err));
    out->finish = (enum ree_finish)reason;
    if (!has_hash) return REE_OK;
    char *hex = ree_arena_alloc(part->arena, 65);
    if (!hex) return ree_no_memory(err);
    out->logits_sha256 = hex;
    return ree_field_hex(part, "logits_sha256", hex, 65, err);
}

static enum ree_status get_body(const struct ree_fields *root, struct ree_text_checkpoint *out,
                                struct ree_error *err) {
    struct ree_fields body;
    struct ree_receipt *run = &out->run;
    const cJSON *item;
    char name[48];
    void *memory;
    REE_TRY(ree_fields_open(root, "body", "body",
                            "numerics operation_set model sampling logits_hash sequences",
                            "tokenizer_sha256", &body, err));
    REE_TRY(ree_receipt_get_model(&body, run, err));
    REE_TRY(ree_receipt_get_sampling(&body, run, err));
    REE_TRY(ree_field_hex(&body, "tokenizer_sha256", run->tokenizer_sha256,
                          sizeof run->tokenizer_sha256, err));
    if (!cJSON_IsBool(ree_field(&body, "logits_hash")))
        return ree_fields_wrong(&body, "logits_hash", "true or false", err);
    out->logits_hash = cJSON_IsTrue(ree_field(&body, "logits_hash"));
    REE_TRY(
        ree_field_array(&body, "sequences", sizeof *out->sequences, &item, &memory, &out->n, err));
    struct ree_snapshot *sequences = memory;
    out->sequences = sequences;
    if (!out->n) return ree_fail(err, REE_INVALID, "body.sequences is empty");
    for (size_t i = 0; item; i++, item = item->next) {
        snprintf(name, sizeof name, "body.sequences[%zu]", i);
        struct ree_fields part = {item, name, root->arena};
        REE_TRY(get_sequence(&part, out, &sequences[i], err));
    }
    return REE_OK;
}

static enum ree_status check_hash(const struct ree_fields *root, struct ree_error *err) {
    ree_digest digest;
    char stated[65] = "", hex[65];
    REE_TRY(ree_field_hex(root, "checkpoint_sha256", stated, sizeof stated, err));
    REE_TRY(ree_canonical_sha256(ree_field(root, "body"), REE_TEXT_CHECKPOINT_SCHEMA, digest, err));
    ree_hex(digest, hex);
    if (strcmp(hex, stated) == 0) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "it is damaged: its body has SHA-256 %s, but checkpoint_sha256 is %s", hex,
                    stated);
}

static enum ree_status get_checkpoint(const cJSON *json, struct ree_text_checkpoint *out,
                                      struct ree_error *err) {
    static const char *const schemas[] = {REE_TEXT_CHECKPOINT_SCHEMA};
    struct ree_fields root = {json, "checkpoint", &out->run.arena};
    size_t schema;
    REE_TRY(ree_canonical_check(json, err));
    REE_TRY(ree_fields_check(&root, "schema", NULL, err));
    REE_TRY(ree_field_name(&root, "schema", schemas, 1, &schema, err));
    REE_TRY(ree_fields_check(&root, "schema body checkpoint_sha256", "", err));
    REE_TRY(check_hash(&root, err));
    return get_body(&root, out, err);
}

enum ree_status ree_text_checkpoint_decode(const void *bytes, size_t nbytes, const char *where,
                                           struct ree_text_checkpoint *out, struct ree_error *err) {
    cJSON *json;
    memset(out, 0, sizeof *out);
    ree_receipt_init(&out->run);
    if (nbytes > REE_RECEIPT_MAX_SIZE)
        return ree_fail(err, REE_INVALID, "%s: it has %zu bytes, expected at most %zu", where,
                        nbytes, REE_RECEIPT_MAX_SIZE);
    enum ree_status status = ree_json_parse_strict(bytes, nbytes, &json, err);
    if (status == REE_OK) status = get_checkpoint(json, out, err);
    cJSON_Delete(json);
    return status == REE_OK ? status : ree_fail_prefix(err, "%s", where);
}
