// The other files in a tokenizer's folder: tokens that begin and end a text, the chat template,
// added tokens.
#include "base/file.h"
#include "base/memory.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_EOS 4096 // more than any model has

enum ree_status ree_read_sibling(const char *folder, const char *name, cJSON **out_json,
                                 struct ree_error *err) {
    *out_json = NULL;
    size_t size = strlen(folder) + strlen(name) + 2, nbytes;
    char *path = ree_alloc(size);
    void *bytes;
    if (!path) return ree_fail(err, REE_NO_MEMORY, "no memory for a path");
    snprintf(path, size, "%s/%s", folder, name);
    enum ree_status status = ree_file_read(path, &bytes, &nbytes, err);
    if (status == REE_NOT_FOUND) {
        status = REE_OK;
    } else if (status == REE_OK) {
        status = ree_text_json_parse(bytes, nbytes, out_json, err);
        if (status == REE_OK && !cJSON_IsObject(*out_json)) {
            cJSON_Delete(*out_json);
            *out_json = NULL;
            status = ree_fail(err, REE_INVALID, "not a JSON object");
        }
        if (status != REE_OK) ree_fail_prefix(err, "%s", path);
        ree_free(bytes);
    }
    ree_free(path);
    return status;
}

static int32_t id_of(const struct ree_tokenizer *tokenizer, const cJSON *value) {
    // A token is given as its text, as an object that contains its text, or as its id.
    if (cJSON_IsObject(value)) value = ree_text_json_get(value, "content");
    if (cJSON_IsString(value))
        return ree_tokenizer_find(tokenizer, value->valuestring, strlen(value->valuestring));
    struct ree_error ignored;
    int32_t id;
    if (!cJSON_IsNumber(value) || ree_text_json_id(value, &id, &ignored) != REE_OK) return -1;
    return ree_tokenizer_piece(tokenizer, id) ? id : -1;
}

static enum ree_status add_eos(struct ree_tokenizer *tokenizer, int32_t id, struct ree_error *err) {
    if (id < 0) return REE_OK;
    size_t at = 0, n = tokenizer->n_eos;
    while (at < n && tokenizer->eos[at] < id)
        at++;
    if (at < n && tokenizer->eos[at] == id) return REE_OK;
    if (n == MAX_EOS) return ree_fail(err, REE_INVALID, "more than %d tokens end a text", MAX_EOS);
    int32_t *eos = ree_realloc(tokenizer->eos, (n + 1) * sizeof *eos);
    if (!eos) return ree_fail(err, REE_NO_MEMORY, "no memory for ids");
    memmove(eos + at + 1, eos + at, (n - at) * sizeof *eos);
    eos[at] = id;
    tokenizer->eos = eos;
    tokenizer->n_eos = n + 1;
    return REE_OK;
}

// Reads the tokens that begin and end a text from the members `bos` and `eos`. In
// generation_config.json and config.json these are ids, in the tokenizer's own files tokens.
static enum ree_status read_ends(struct ree_tokenizer *tokenizer, const cJSON *json,
                                 const char *bos, const char *eos, struct ree_error *err) {
    if (tokenizer->bos < 0 && bos) tokenizer->bos = id_of(tokenizer, ree_text_json_get(json, bos));
    if (!eos) return REE_OK;
    const cJSON *ends = ree_text_json_get(json, eos), *end;
    if (!cJSON_IsArray(ends)) {
        int32_t id = id_of(tokenizer, ends);
        if (tokenizer->eos_token < 0) tokenizer->eos_token = id;
        return add_eos(tokenizer, id, err);
    }
    cJSON_ArrayForEach(end, ends) REE_TRY(add_eos(tokenizer, id_of(tokenizer, end), err));
    return REE_OK;
}

// Reads the chat template: a string, or an array of templates with names, of which "default" is
// used.
static enum ree_status read_template(struct ree_tokenizer *tokenizer, const cJSON *json,
                                     struct ree_error *err) {
    const cJSON *template = ree_text_json_get(json, "chat_template"), *entry;
    if (cJSON_IsArray(template)) {
        const cJSON *named = NULL;
        cJSON_ArrayForEach(entry, template) {
            const cJSON *name = ree_text_json_get(entry, "name");
            if (cJSON_IsString(name) && strcmp(name->valuestring, "default") == 0)
                named = ree_text_json_get(entry, "template");
        }
        template = named;
    }
    if (!cJSON_IsString(template)) return REE_OK;
    struct ree_str text;
    REE_TRY(ree_text_json_copy(&tokenizer->arena, template->valuestring, &text, err));
    tokenizer->chat_template = text.data;
    return REE_OK;
}

// Reads the chat template from chat_template.jinja, where newer models have it.
static enum ree_status read_template_file(struct ree_tokenizer *tokenizer, const char *folder,
                                          struct ree_error *err) {
    size_t size = strlen(folder) + sizeof "/chat_template.jinja", nbytes;
    char *path = ree_alloc(size);
    void *bytes;
    if (!path) return ree_fail(err, REE_NO_MEMORY, "no memory for a path");
    snprintf(path, size, "%s/chat_template.jinja", folder);
    enum ree_status status = ree_file_read(path, &bytes, &nbytes, err);
    ree_free(path);
    if (status != REE_OK) return status == REE_NOT_FOUND ? REE_OK : status;
    tokenizer->chat_template = ree_arena_strndup(&tokenizer->arena, bytes, nbytes);
    ree_free(bytes);
    if (!tokenizer->chat_template) return ree_fail(err, REE_NO_MEMORY, "no memory for a template");
    return REE_OK;
}

static enum ree_status keep_own_eos(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    size_t n = tokenizer->n_eos;
    tokenizer->own_eos = ree_alloc((n + 1) * sizeof *tokenizer->own_eos);
    if (!tokenizer->own_eos) return ree_fail(err, REE_NO_MEMORY, "no memory for ids");
    if (n) memcpy(tokenizer->own_eos, tokenizer->eos, n * sizeof *tokenizer->own_eos);
    tokenizer->n_own_eos = n;
    return REE_OK;
}

size_t ree_tokenizer_own_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids) {
    *out_ids = tokenizer->own_eos;
    return tokenizer->n_own_eos;
}

enum ree_status ree_tokenizer_read_config(struct ree_tokenizer *tokenizer, const char *folder,
                                          struct ree_error *err) {
    // The tokenizer's own files come first.
    enum { N_OWN = 2 };
    static const struct {
        const char *file, *bos, *eos;
    } files[] = {
        {"tokenizer_config.json", "bos_token", "eos_token"},
        {"special_tokens_map.json", "bos_token", "eos_token"},
        {"generation_config.json", "bos_token_id", "eos_token_id"},
        {"config.json", "bos_token_id", "eos_token_id"},
    };
    bool bos_is_null = false, has_generation_eos = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cJSON *json;
        if (i == N_OWN) REE_TRY(keep_own_eos(tokenizer, err));
        REE_TRY(ree_read_sibling(folder, files[i].file, &json, err));
        if (!json) continue;
        // If tokenizer_config.json declares that no token begins a text, ignore the id in the other
        // files: those of some models name one anyway.
        if (i == 0) bos_is_null = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(json, "bos_token"));
        const char *bos = bos_is_null ? NULL : files[i].bos;
        // As for the model (generate/source.c), the list in generation_config.json replaces that in
        // config.json, also an empty one.
        const char *eos = i == 3 && has_generation_eos ? NULL : files[i].eos;
        const cJSON *ends = i == 2 ? ree_text_json_get(json, "eos_token_id") : NULL;
        has_generation_eos = has_generation_eos || cJSON_IsArray(ends) || cJSON_IsNumber(ends);
        enum ree_status status = read_ends(tokenizer, json, bos, eos, err);
        if (status == REE_OK) status = read_template(tokenizer, json, err);
        const cJSON *type = i == 3 ? ree_text_json_get(json, "model_type") : NULL;
        struct ree_str text;
        if (status == REE_OK && cJSON_IsString(type)) {
            status = ree_text_json_copy(&tokenizer->arena, type->valuestring, &text, err);
            tokenizer->model_type = status == REE_OK ? text.data : NULL;
        }
        cJSON_Delete(json);
        REE_TRY(status);
    }
    return read_template_file(tokenizer, folder, err);
}

// Adds the tokens of "added_tokens_decoder" whose ids are not in the set `known` (one bit per id;
// NULL: the empty set).
static enum ree_status read_decoder(struct ree_tokenizer *tokenizer, const cJSON *json,
                                    const unsigned char *known, struct ree_error *err) {
    const cJSON *token;
    cJSON_ArrayForEach(token, ree_text_json_get(json, "added_tokens_decoder")) {
        enum ree_status status = REE_OK;
        char *end;
        long id = token->string ? strtol(token->string, &end, 10) : -1;
        if (id < 0 || id >= REE_VOCAB_MAX || *end || end == token->string)
            status = ree_fail(err, REE_INVALID, "'%.80s' is not an id",
                              token->string ? token->string : "");
        else if (!known || !(known[id / 8] >> (id % 8) & 1))
            status = ree_added_add(tokenizer, token, (int32_t)id, err);
        if (status != REE_OK)
            return ree_fail_prefix(err, "tokenizer_config.json, added_tokens_decoder");
    }
    return REE_OK;
}

enum ree_status ree_tokenizer_read_more_added(struct ree_tokenizer *tokenizer, const char *folder,
                                              struct ree_error *err) {
    cJSON *json;
    REE_TRY(ree_read_sibling(folder, "tokenizer_config.json", &json, err));
    if (!json) return REE_OK;
    unsigned char *known = ree_alloc_zeroed(REE_VOCAB_MAX / 8, 1);
    enum ree_status status =
        known ? REE_OK : ree_fail(err, REE_NO_MEMORY, "no memory for added tokens");
    for (size_t i = 0; known && i < tokenizer->n_added; i++)
        known[tokenizer->added[i].id / 8] |= (unsigned char)(1 << (tokenizer->added[i].id % 8));
    if (known) status = read_decoder(tokenizer, json, known, err);
    ree_free(known);
    cJSON_Delete(json);
    return status;
}

enum ree_status ree_tokenizer_read_added(struct ree_tokenizer *tokenizer, const char *folder,
                                         struct ree_error *err) {
    cJSON *json;
    const cJSON *token;
    REE_TRY(ree_read_sibling(folder, "tokenizer_config.json", &json, err));
    enum ree_status status = read_decoder(tokenizer, json, NULL, err);
    bool had = json && ree_text_json_get(json, "added_tokens_decoder");
    cJSON_Delete(json);
    if (status != REE_OK || had) return status;
    // Older models have a file with only texts and ids.
    REE_TRY(ree_read_sibling(folder, "added_tokens.json", &json, err));
    cJSON_ArrayForEach(token, json) {
        int32_t id;
        status = ree_text_json_id(token, &id, err);
        if (status == REE_OK) status = ree_added_add_special(tokenizer, token->string, id, err);
        if (status == REE_OK) continue;
        ree_fail_prefix(err, "added_tokens.json, '%.80s'", token->string);
        break;
    }
    cJSON_Delete(json);
    return status;
}
