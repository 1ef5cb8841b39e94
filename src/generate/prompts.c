// Makes prompts, lists of token ids, from texts, conversations, ids, and files of these.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "ree.h"
#include "text/json.h"

struct ree_prompts {
    const struct ree_tokenizer *tokenizer;
    char *chat_family;
    bool raw;
    size_t n, capacity;
    struct ree_prompt *list; // the ids are owned
    bool *is_chat;           // per prompt
};

enum ree_status ree_prompts_create(const struct ree_prompts_options *options,
                                   struct ree_prompts **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_prompts_options o;
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_prompts_options", err));
    struct ree_prompts *p = ree_alloc_zeroed(1, sizeof *p);
    if (!p) return ree_no_memory(err);
    p->tokenizer = o.tokenizer;
    p->raw = o.raw;
    if (o.chat_family && !(p->chat_family = ree_strdup(o.chat_family))) {
        ree_prompts_destroy(p);
        return ree_no_memory(err);
    }
    *out = p;
    return REE_OK;
}

void ree_prompts_destroy(struct ree_prompts *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n; i++)
        ree_free((int32_t *)(uintptr_t)p->list[i].ids);
    ree_free(p->list);
    ree_free(p->is_chat);
    ree_free(p->chat_family);
    ree_free(p);
}

// Adds a prompt. Takes ownership of ids, also on failure.
static enum ree_status add(struct ree_prompts *p, int32_t *ids, size_t n, bool is_chat,
                           struct ree_error *err) {
    enum ree_status status = REE_OK;
    if (n == 0) status = ree_fail(err, REE_INVALID, "the prompt is empty: it has no tokens");
    if (status == REE_OK && p->n == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 8;
        struct ree_prompt *list = ree_realloc(p->list, capacity * sizeof *list);
        if (list) p->list = list;
        bool *chats = ree_realloc(p->is_chat, capacity * sizeof *chats);
        if (chats) p->is_chat = chats;
        if (list && chats)
            p->capacity = capacity;
        else
            status = ree_no_memory(err);
    }
    if (status != REE_OK) {
        ree_free(ids);
        return status;
    }
    p->list[p->n] = (struct ree_prompt){ids, n};
    p->is_chat[p->n++] = is_chat;
    return REE_OK;
}

static enum ree_status require_tokenizer(const struct ree_prompts *p, struct ree_error *err) {
    if (p->tokenizer) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "there is no tokenizer in the model's folder; name one with --tokenizer, or "
                    "give the prompt as --prompt-ids");
}

static enum ree_status add_encoded(struct ree_prompts *p, const char *text, size_t nbytes,
                                   uint32_t flags, bool is_chat, struct ree_error *err) {
    int32_t *ids;
    size_t n;
    REE_TRY(require_tokenizer(p, err));
    REE_TRY(ree_tokenizer_encode(p->tokenizer, text, nbytes, flags, &ids, &n, err));
    return add(p, ids, n, is_chat, err);
}

enum ree_status ree_prompts_add_text(struct ree_prompts *p, const char *text, size_t nbytes,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    return add_encoded(p, text, nbytes, p->raw ? REE_PARSE_SPECIAL : REE_ADD_SPECIAL, false, err);
}

enum ree_status ree_prompts_add_ids(struct ree_prompts *p, const int32_t *ids, size_t n,
                                    struct ree_error *err) {
    int32_t *copy = ree_alloc((n + 1) * sizeof *copy);
    if (!copy) return ree_no_memory(err);
    if (n) memcpy(copy, ids, n * sizeof *copy);
    return add(p, copy, n, false, err);
}

enum ree_status ree_prompts_add_messages(struct ree_prompts *p, const char *messages, size_t nbytes,
                                         struct ree_error *err) {
    REE_FLOAT_ENV_API();
    char *text;
    size_t n;
    REE_TRY(require_tokenizer(p, err));
    REE_TRY(ree_chat_prompt(p->tokenizer, p->chat_family, messages, nbytes, true, &text, &n, err));
    enum ree_status status = add_encoded(p, text, n, REE_PARSE_SPECIAL, true, err);
    ree_free(text);
    return status;
}

// Files

static enum ree_status add_id_array(struct ree_prompts *p, const cJSON *array,
                                    struct ree_error *err) {
    int n = cJSON_GetArraySize(array), i = 0;
    int32_t *ids = ree_alloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) return ree_no_memory(err);
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        double x = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(x >= 0 && x <= INT32_MAX) || x != (double)(int32_t)x) {
            ree_free(ids);
            return ree_fail(err, REE_INVALID, "\"ids\" must be an array of integers");
        }
        ids[i++] = (int32_t)x;
    }
    return add(p, ids, (size_t)n, false, err);
}

// Adds a string of a parsed line, with its NULs restored.
static enum ree_status add_string(struct ree_prompts *p, const cJSON *string,
                                  struct ree_error *err) {
    char *text = ree_strdup(string->valuestring);
    if (!text) return ree_no_memory(err);
    enum ree_status status = ree_prompts_add_text(p, text, ree_text_json_restore(text), err);
    ree_free(text);
    return status;
}

// Prints JSON as text again. text/json.h describes how parsed values represent NULs.
static bool print_json(const cJSON *json, struct ree_strbuf *out) {
    char *text = cJSON_PrintUnformatted(json);
    const char *at = text, *nul;
    while (at && (nul = strstr(at, REE_TEXT_JSON_NUL))) {
        ree_strbuf_append(out, at, (size_t)(nul - at));
        ree_strbuf_append(out, "\\u0000", 6);
        at = nul + strlen(REE_TEXT_JSON_NUL);
    }
    if (at) ree_strbuf_append(out, at, strlen(at));
    cJSON_free(text);
    return at && !out->failed;
}

static enum ree_status add_json(struct ree_prompts *p, const cJSON *line, struct ree_error *err) {
    if (cJSON_IsString(line)) return add_string(p, line, err);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(line, "prompt");
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(line, "ids");
    const cJSON *messages = cJSON_GetObjectItemCaseSensitive(line, "messages");
    if (cJSON_IsString(text)) return add_string(p, text, err);
    if (cJSON_IsArray(ids)) return add_id_array(p, ids, err);
    if (!cJSON_IsArray(messages))
        return ree_fail(err, REE_INVALID,
                        "expected a string, or an object with \"prompt\", \"ids\" or \"messages\"");
    struct ree_strbuf printed;
    ree_strbuf_init(&printed);
    enum ree_status status = print_json(messages, &printed)
                                 ? ree_prompts_add_messages(p, printed.data, printed.size, err)
                                 : ree_no_memory(err);
    ree_strbuf_finish(&printed);
    return status;
}

// A line that begins with { or " must be JSON as a whole: text after the value would be lost.
static enum ree_status add_line(struct ree_prompts *p, const char *line, size_t n,
                                struct ree_error *err) {
    cJSON *json;
    if (line[0] != '{' && line[0] != '"') return ree_prompts_add_text(p, line, n, err);
    if (ree_text_json_parse(line, n, &json, err) != REE_OK) {
        struct ree_error why = *err;
        return ree_fail(err, why.status,
                        "a line that begins with { or \" must be one JSON value: %s (write a text "
                        "that begins with these characters as a JSON string)",
                        why.message);
    }
    enum ree_status status = add_json(p, json, err);
    cJSON_Delete(json);
    return status;
}

static enum ree_status add_lines(struct ree_prompts *p, const char *path, const char *bytes,
                                 size_t nbytes, struct ree_error *err) {
    size_t before = p->n, number = 0;
    for (size_t at = 0; at < nbytes;) {
        const char *line = bytes + at, *end = memchr(line, '\n', nbytes - at);
        size_t n = end ? (size_t)(end - line) : nbytes - at;
        at += n + 1;
        number++;
        if (n && line[n - 1] == '\r') n--;
        if (n && add_line(p, line, n, err) != REE_OK)
            return ree_fail_prefix(err, "%s, line %zu", path, number);
    }
    if (p->n > before) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s: this file contains no prompts", path);
}

enum ree_status ree_prompts_add_file(struct ree_prompts *p, const char *path,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    void *bytes;
    size_t nbytes;
    REE_TRY(ree_file_read(path, &bytes, &nbytes, err));
    enum ree_status status = add_lines(p, path, bytes, nbytes, err);
    ree_free(bytes);
    return status;
}

size_t ree_prompts_list(const struct ree_prompts *p, const struct ree_prompt **out_list) {
    *out_list = p->list;
    return p->n;
}

bool ree_prompts_is_chat(const struct ree_prompts *p, size_t i) {
    return p->is_chat[i];
}
