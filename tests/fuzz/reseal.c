#include "reseal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/canonical_json.h"

static void put(cJSON *object, const char *key, cJSON *value) {
    if (!value || !cJSON_ReplaceItemInObjectCaseSensitive(object, key, value)) cJSON_Delete(value);
}

static void put_hash(cJSON *object, const char *key, const char *tag, const void *bytes, size_t n) {
    char hex[65];
    struct ree_hasher *hasher = ree_hasher_create(tag);
    ree_hasher_update(hasher, bytes, n);
    ree_hasher_finish(hasher, hex);
    put(object, key, cJSON_CreateString(hex));
}

static void put_canonical(cJSON *root, const char *key, const char *tag) {
    ree_digest digest;
    struct ree_error err;
    char hex[65];
    const cJSON *body = cJSON_GetObjectItemCaseSensitive(root, "body");
    if (!body || ree_canonical_sha256(body, tag, digest, &err) != REE_OK) return;
    ree_hex(digest, hex);
    put(root, key, cJSON_CreateString(hex));
}

static void reseal_text(cJSON *text, uint32_t what) {
    const cJSON *tokens = cJSON_GetObjectItemCaseSensitive(text, "tokens");
    const char *words = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(text, "text"));
    if (cJSON_IsArray(tokens) && (what & RESEAL_TOKENS)) {
        size_t n = 0;
        int32_t *ids = calloc((size_t)cJSON_GetArraySize(tokens) + 1, sizeof *ids);
        for (const cJSON *item = tokens->child; ids && item; item = item->next)
            ids[n++] = item->valueint;
        if (ids) put_hash(text, "tokens_sha256", "ree-tokens/1", ids, n * sizeof *ids);
        if (ids) put(text, "n_tokens", cJSON_CreateNumber((double)n));
        free(ids);
    }
    if (words && (what & RESEAL_TEXTS))
        put_hash(text, "text_sha256", "ree-text/1", words, strlen(words));
}

void reseal_receipt(cJSON *receipt, uint32_t what) {
    cJSON *body = cJSON_GetObjectItemCaseSensitive(receipt, "body");
    const char *schema = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(receipt, "schema"));
    reseal_text(cJSON_GetObjectItemCaseSensitive(body, "prompt"), what);
    reseal_text(cJSON_GetObjectItemCaseSensitive(body, "output"), what);
    if (schema && (what & RESEAL_HASH)) put_canonical(receipt, "receipt_hash", schema);
}

void reseal_request(cJSON *request) {
    put_canonical(request, "request_sha256", "ree-request/1");
}

void reseal_link(cJSON *receipt, const cJSON *request) {
    cJSON *body = cJSON_GetObjectItemCaseSensitive(receipt, "body");
    cJSON *sampling = cJSON_GetObjectItemCaseSensitive(body, "sampling");
    const char *hex =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "request_sha256"));
    double temperature =
        cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(sampling, "temperature"));
    ree_digest digest;
    char text[32];
    uint64_t seed = 0;
    if (!hex || !ree_unhex(hex, digest)) return;
    struct ree_hasher *hasher = ree_hasher_create("ree-seed/1");
    ree_hasher_update(hasher, digest, sizeof digest);
    ree_hasher_digest(hasher, digest);
    for (int i = 7; temperature > 0 && i >= 0; i--)
        seed = seed << 8 | digest[i];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    put(sampling, "seed", cJSON_CreateString(text));
    put(body, "request_sha256", cJSON_CreateString(hex));
}

char *reseal_print(const cJSON *value, size_t *out_n) {
    struct ree_strbuf out;
    struct ree_error err;
    ree_strbuf_init(&out);
    if (ree_canonical_json(value, &out, &err) == REE_OK && !out.failed) {
        *out_n = out.size;
        return ree_strbuf_take(&out);
    }
    ree_strbuf_finish(&out);
    char *text = cJSON_PrintUnformatted(value);
    *out_n = text ? strlen(text) : 0;
    return text;
}
