#include "receipt/request.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "receipt/receipt_fields.h"
#include "receipt/receipt_internal.h"

#define SCHEMA "ree-request/1"

void ree_request_init(struct ree_request *request) {
    *request = (struct ree_request){.sampling = {.top_p = 1, .repetition_penalty = 1}};
    ree_arena_init(&request->arena);
}

void ree_request_finish(struct ree_request *request) {
    ree_arena_finish(&request->arena);
    ree_request_init(request);
}

static bool add_item(cJSON *object, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static bool add_sampling(cJSON *body, const struct ree_request *r) {
    cJSON *part = cJSON_AddObjectToObject(body, "sampling");
    const struct ree_sampling *s = &r->sampling;
    return cJSON_AddNumberToObject(part, "temperature", (double)s->temperature) &&
           cJSON_AddNumberToObject(part, "top_k", s->top_k) &&
           cJSON_AddNumberToObject(part, "top_p", (double)s->top_p) &&
           cJSON_AddNumberToObject(part, "min_p", (double)s->min_p) &&
           cJSON_AddNumberToObject(part, "repetition_penalty", (double)s->repetition_penalty) &&
           cJSON_AddNumberToObject(part, "max_new_tokens", (double)r->max_new_tokens) &&
           r->n_stops <= INT_MAX &&
           add_item(part, "stop",
                    r->n_stops ? cJSON_CreateStringArray(r->stops, (int)r->n_stops)
                               : cJSON_CreateArray());
}

static bool add_body(cJSON *body, const struct ree_request *r) {
    if (!cJSON_AddStringToObject(body, "nonce", r->nonce)) return false;
    if (r->graph_sha256[0]) {
        cJSON *model = cJSON_AddObjectToObject(body, "model");
        if (!cJSON_AddStringToObject(model, "graph_sha256", r->graph_sha256) ||
            !cJSON_AddStringToObject(model, "weights_sha256", r->weights_sha256))
            return false;
    }
    cJSON *prompt = cJSON_AddObjectToObject(body, "prompt");
    return r->n_tokens <= INT_MAX &&
           add_item(prompt, "tokens",
                    r->n_tokens ? cJSON_CreateIntArray(r->tokens, (int)r->n_tokens)
                                : cJSON_CreateArray()) &&
           add_sampling(body, r);
}

static cJSON *make_body(const struct ree_request *request) {
    cJSON *body = cJSON_CreateObject();
    if (add_body(body, request)) return body;
    cJSON_Delete(body);
    return NULL;
}

static uint64_t seed_of(const ree_digest request) {
    ree_digest digest;
    uint64_t seed = 0;
    struct ree_hasher *hasher = ree_hasher_create("ree-seed/1");
    ree_hasher_update(hasher, request, sizeof(ree_digest));
    ree_hasher_digest(hasher, digest);
    for (int i = 7; i >= 0; i--)
        seed = seed << 8 | digest[i];
    return seed;
}

enum ree_status ree_request_seal(struct ree_request *r, struct ree_error *err) {
    ree_digest digest;
    struct ree_sampling *s = &r->sampling;
    if (!(s->temperature > 0)) s->top_k = 0, s->top_p = 1, s->min_p = 0;
    REE_TRY(ree_sampling_check(s, err));
    cJSON *body = make_body(r);
    if (!body) return ree_no_memory(err);
    enum ree_status status = ree_canonical_sha256(body, SCHEMA, digest, err);
    cJSON_Delete(body);
    if (status != REE_OK) return ree_fail_prefix(err, "the request");
    ree_hex(digest, r->request_sha256);
    s->seed = s->temperature > 0 ? seed_of(digest) : 0;
    return REE_OK;
}

enum ree_status ree_request_write(const struct ree_request *request, const char *path,
                                  struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_strbuf text;
    cJSON *root = cJSON_CreateObject();
    ree_strbuf_init(&text);
    bool ok = cJSON_AddStringToObject(root, "schema", SCHEMA) &&
              add_item(root, "body", make_body(request)) &&
              cJSON_AddStringToObject(root, "request_sha256", request->request_sha256);
    enum ree_status status = ok ? ree_canonical_json(root, &text, err) : ree_no_memory(err);
    cJSON_Delete(root);
    ree_strbuf_append(&text, "\n", 1);
    if (status == REE_OK && text.failed) status = ree_no_memory(err);
    if (status == REE_OK) status = ree_file_write_secret(path, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

static enum ree_status get_sampling(const struct ree_fields *body, struct ree_request *out,
                                    struct ree_error *err) {
    struct ree_fields part;
    struct ree_sampling *s = &out->sampling;
    int64_t top_k = 0, most = 0;
    REE_TRY(ree_fields_open(body, "sampling", "body.sampling",
                            "temperature top_k top_p min_p repetition_penalty max_new_tokens stop",
                            "", &part, err));
    REE_TRY(ree_field_float(&part, "temperature", true, 1e6, &s->temperature, err));
    REE_TRY(ree_field_whole(&part, "top_k", 0, UINT32_MAX, &top_k, err));
    REE_TRY(ree_field_float(&part, "top_p", false, 1, &s->top_p, err));
    REE_TRY(ree_field_float(&part, "min_p", true, 1, &s->min_p, err));
    REE_TRY(ree_field_float(&part, "repetition_penalty", false, 1e6, &s->repetition_penalty, err));
    if (ree_sampling_check(s, err) != REE_OK) return ree_fail_prefix(err, "%s", part.name);
    REE_TRY(ree_field_whole(&part, "max_new_tokens", 0, REE_RECEIPT_MAX_NUMBER, &most, err));
    REE_TRY(ree_field_stops(&part, "stop", &out->stops, &out->n_stops, err));
    s->top_k = (uint32_t)top_k;
    out->max_new_tokens = (uint64_t)most;
    if (!ree_receipt_sampling_is_canonical(s))
        return ree_fail(err, REE_INVALID,
                        "body.sampling: at temperature 0, top_k and min_p must be 0 and top_p 1");
    return REE_OK;
}

static enum ree_status get_body(const struct ree_fields *root, struct ree_request *out,
                                struct ree_error *err) {
    struct ree_fields body, part;
    REE_TRY(ree_fields_open(root, "body", "body", "nonce prompt sampling", "model", &body, err));
    REE_TRY(ree_field_hex(&body, "nonce", out->nonce, sizeof out->nonce, err));
    if (ree_field(&body, "model")) {
        REE_TRY(ree_fields_open(&body, "model", "body.model", "graph_sha256 weights_sha256", "",
                                &part, err));
        REE_TRY(
            ree_field_hex(&part, "graph_sha256", out->graph_sha256, sizeof out->graph_sha256, err));
        REE_TRY(ree_field_hex(&part, "weights_sha256", out->weights_sha256,
                              sizeof out->weights_sha256, err));
    }
    REE_TRY(ree_fields_open(&body, "prompt", "body.prompt", "tokens", "", &part, err));
    REE_TRY(ree_field_ids(&part, "tokens", &out->tokens, &out->n_tokens, err));
    if (!out->n_tokens) return ree_fail(err, REE_INVALID, "body.prompt.tokens is empty");
    return get_sampling(&body, out, err);
}

static enum ree_status get_request(const cJSON *json, struct ree_request *out,
                                   struct ree_error *err) {
    static const char *const schemas[] = {SCHEMA};
    struct ree_fields root = {json, "request", &out->arena};
    size_t schema;
    char stated[65] = "";
    REE_TRY(ree_canonical_check(json, err));
    REE_TRY(ree_fields_check(&root, "schema", NULL, err));
    REE_TRY(ree_field_name(&root, "schema", schemas, 1, &schema, err));
    REE_TRY(ree_fields_check(&root, "schema body request_sha256", "", err));
    REE_TRY(get_body(&root, out, err));
    REE_TRY(ree_field_hex(&root, "request_sha256", stated, sizeof stated, err));
    REE_TRY(ree_request_seal(out, err));
    if (strcmp(stated, out->request_sha256) == 0) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "it is damaged: its body has SHA-256 %s, but request_sha256 is %s",
                    out->request_sha256, stated);
}

enum ree_status ree_request_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_request *out, struct ree_error *err) {
    cJSON *json;
    ree_request_init(out);
    if (nbytes > REE_RECEIPT_MAX_SIZE)
        return ree_fail(err, REE_INVALID, "%s: it has %zu bytes, expected at most %zu", where,
                        nbytes, REE_RECEIPT_MAX_SIZE);
    enum ree_status status = ree_json_parse_strict(bytes, nbytes, &json, err);
    if (status == REE_OK) status = get_request(json, out, err);
    cJSON_Delete(json);
    return status == REE_OK ? status : ree_fail_prefix(err, "%s", where);
}

enum ree_status ree_request_read(const char *path, struct ree_request *out, struct ree_error *err) {
    void *bytes;
    size_t n;
    ree_request_init(out);
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    enum ree_status status = ree_request_decode(bytes, n, path, out, err);
    ree_free(bytes);
    return status;
}
