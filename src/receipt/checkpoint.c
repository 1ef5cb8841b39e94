#include "receipt/checkpoint_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "receipt/receipt_internal.h"

// The add functions return false if memory is exhausted. cJSON accepts NULL as the object.

static bool add_item(cJSON *object, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static bool add_ids(cJSON *object, const char *name, const int32_t *ids, size_t n) {
    return n <= INT_MAX &&
           add_item(object, name, n ? cJSON_CreateIntArray(ids, (int)n) : cJSON_CreateArray());
}

static bool add_caches(cJSON *object, const struct ree_snapshot *s) {
    if (!s->n_caches) return true;
    cJSON *array = cJSON_AddArrayToObject(object, "caches");
    for (size_t i = 0; i < s->n_caches; i++) {
        static const ree_digest unknown;
        char hex[65];
        ree_hex(s->caches[i], hex);
        bool known = memcmp(s->caches[i], unknown, sizeof unknown) != 0;
        cJSON *item = known ? cJSON_CreateString(hex) : cJSON_CreateNull();
        if (!array || !item || !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            return false;
        }
    }
    return array;
}

static bool add_sequence(cJSON *object, const struct ree_text_checkpoint *c,
                         const struct ree_snapshot *s) {
    if (!add_ids(object, "prompt", s->ids, s->n_prompt) ||
        !add_ids(object, "tokens", s->ids + s->n_prompt, s->n - s->n_prompt))
        return false;
    if (!s->is_done) return add_caches(object, s);
    return cJSON_AddStringToObject(object, "finish_reason", ree_receipt_finish_names[s->finish]) &&
           (!c->logits_hash || cJSON_AddStringToObject(object, "logits_sha256", s->logits_sha256));
}

static bool add_body(cJSON *body, const struct ree_text_checkpoint *c) {
    if (!ree_receipt_add_model(body, &c->run) || !ree_receipt_add_sampling(body, &c->run))
        return false;
    if (c->run.tokenizer_sha256[0] &&
        !cJSON_AddStringToObject(body, "tokenizer_sha256", c->run.tokenizer_sha256))
        return false;
    if (!cJSON_AddBoolToObject(body, "logits_hash", c->logits_hash)) return false;
    cJSON *array = cJSON_AddArrayToObject(body, "sequences");
    for (size_t i = 0; array && i < c->n; i++) {
        cJSON *object = cJSON_CreateObject();
        if (!object || !cJSON_AddItemToArray(array, object)) {
            cJSON_Delete(object);
            return false;
        }
        if (!add_sequence(object, c, &c->sequences[i])) return false;
    }
    return array;
}

cJSON *ree_text_checkpoint_body(const struct ree_text_checkpoint *checkpoint) {
    cJSON *body = cJSON_CreateObject();
    if (add_body(body, checkpoint)) return body;
    cJSON_Delete(body);
    return NULL;
}

static enum ree_status encode(const struct ree_text_checkpoint *c, struct ree_strbuf *text,
                              struct ree_error *err) {
    ree_digest digest;
    char hex[65];
    cJSON *body = ree_text_checkpoint_body(c), *root = cJSON_CreateObject();
    enum ree_status status =
        body && root ? ree_canonical_sha256(body, REE_TEXT_CHECKPOINT_SCHEMA, digest, err)
                     : ree_no_memory(err);
    if (status != REE_OK) {
        cJSON_Delete(body);
        cJSON_Delete(root);
        return status;
    }
    ree_hex(digest, hex);
    bool ok = add_item(root, "body", body) &&
              cJSON_AddStringToObject(root, "schema", REE_TEXT_CHECKPOINT_SCHEMA) &&
              cJSON_AddStringToObject(root, "checkpoint_sha256", hex);
    status = ok ? ree_canonical_json(root, text, err) : ree_no_memory(err);
    cJSON_Delete(root);
    ree_strbuf_append(text, "\n", 1);
    if (status == REE_OK && text->failed) status = ree_no_memory(err);
    return status;
}

enum ree_status ree_text_checkpoint_write(const struct ree_text_checkpoint *c, const char *path,
                                          struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = encode(c, &text, err);
    // Do not write a file that cannot be read again.
    if (status == REE_OK && text.size > REE_RECEIPT_MAX_SIZE)
        status = ree_fail(err, REE_INVALID, "it would have %zu bytes; the maximum is %zu",
                          text.size, REE_RECEIPT_MAX_SIZE);
    if (status != REE_OK)
        ree_fail_prefix(err, "%s", path);
    else
        status = (c->is_secret ? ree_file_write_secret : ree_file_write)(path, text.data, text.size,
                                                                         err);
    ree_strbuf_finish(&text);
    return status;
}

enum ree_status ree_text_checkpoint_load(const char *path, struct ree_text_checkpoint *out,
                                         struct ree_error *err) {
    void *bytes;
    size_t n;
    memset(out, 0, sizeof *out);
    ree_receipt_init(&out->run);
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    enum ree_status status = ree_text_checkpoint_decode(bytes, n, path, out, err);
    ree_free(bytes);
    return status;
}

void ree_text_checkpoint_finish(struct ree_text_checkpoint *c) {
    ree_receipt_finish(&c->run);
    c->sequences = NULL;
    c->n = 0;
}

bool ree_text_checkpoint_is_done(const struct ree_text_checkpoint *c) {
    for (size_t i = 0; i < c->n; i++)
        if (!c->sequences[i].is_done) return false;
    return true;
}
