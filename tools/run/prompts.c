#include "prompts.h"
#include "status.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "paths.h"
#include "receipt/receipt.h"
#include "text/json.h"

static const struct {
    const char *name;
    enum prompt_kind kind;
} options[] = {{"--prompt-text", PROMPT_TEXT},
               {"--prompt-ids", PROMPT_IDS},
               {"--prompt-file", PROMPT_FILE},
               {"--messages", PROMPT_MESSAGES}};
#define N_OPTIONS (sizeof options / sizeof *options)

bool prompt_option(struct cli *cli, const char *name, struct prompt_arg *list, size_t *n) {
    const char *value = NULL;
    // An empty text is a valid prompt.
    bool is_text = strcmp(name, "--prompt-text") == 0 || strcmp(name, "--prompt-ids") == 0;
    if (!(is_text ? cli_option_text : cli_option)(cli, name, &value)) return false;
    if (!is_text) cli_path_add(CLI_READS, value);
    for (size_t i = 0; value && i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            list[(*n)++] = (struct prompt_arg){options[i].kind, value};
    return true;
}

bool stop_option(struct cli *cli, const char **list, size_t *n) {
    const char *stop = NULL;
    size_t nbytes = 0;
    if (!cli_option_text(cli, "--stop", &stop)) return false;
    if (!stop) return true;
    if (!stop[0]) cli_usage(cli, "--stop requires a text, not ''");
    for (size_t i = 0; i < *n; i++)
        nbytes += strlen(list[i]);
    if (*n == REE_RECEIPT_MAX_STOPS || nbytes + strlen(stop) > REE_RECEIPT_MAX_STOP_BYTES) {
        cli_usage(cli, "--stop: at most %d texts, of at most %d bytes together",
                  REE_RECEIPT_MAX_STOPS, REE_RECEIPT_MAX_STOP_BYTES);
        return true;
    }
    list[(*n)++] = stop;
    return true;
}

bool prompt_is_option(const char *argument) {
    for (size_t i = 0; i < N_OPTIONS; i++) {
        size_t n = strlen(options[i].name);
        if (strncmp(argument, options[i].name, n) == 0 && (!argument[n] || argument[n] == '='))
            return true;
    }
    return false;
}

struct loader {
    struct prompts *out;
    const struct ree_tokenizer *tokenizer;
    const char *chat_family;
    bool raw;
    const char *file; // file being read; NULL: the command line
    size_t line;
};

static int no_memory(void) {
    cli_error("out of memory");
    return CLI_FAILED;
}

static int fail_at(const struct loader *l, const char *what) {
    if (l->file)
        cli_error("%s, line %zu: %s", l->file, l->line, what);
    else
        cli_error("%s", what);
    return CLI_FAILED;
}

static int fail_json(const struct loader *l, const struct ree_error *err) {
    cli_error("%s, line %zu: a line that begins with { or \" must be one JSON value: %s (write a "
              "text that begins with these characters as a JSON string)",
              l->file, l->line, err->message);
    return CLI_FAILED;
}

// Takes ownership of ids.
static int add(struct loader *l, int32_t *ids, size_t n, bool chat) {
    struct prompts *p = l->out;
    struct ree_prompt *list = realloc(p->list, (p->n + 1) * sizeof *list);
    if (list) p->list = list;
    bool *is_chat = realloc(p->is_chat, (p->n + 1) * sizeof *is_chat);
    if (is_chat) p->is_chat = is_chat;
    if (!list || !is_chat) {
        free(ids);
        return no_memory();
    }
    list[p->n] = (struct ree_prompt){ids, n};
    is_chat[p->n++] = chat;
    return n ? 0 : fail_at(l, "the prompt is empty: it has no tokens");
}

static int add_text(struct loader *l, const char *text, size_t nbytes, uint32_t flags, bool chat) {
    struct ree_error err;
    int32_t *ids;
    size_t n;
    if (!l->tokenizer)
        return fail_at(l, "there is no tokenizer in the model's folder; name one with --tokenizer, "
                          "or give the prompt as --prompt-ids");
    if (ree_tokenizer_encode(l->tokenizer, text, nbytes, flags, &ids, &n, &err) != REE_OK)
        return cli_fail(&err);
    return add(l, ids, n, chat);
}

static int add_plain(struct loader *l, const char *text, size_t nbytes) {
    return add_text(l, text, nbytes, l->raw ? REE_PARSE_SPECIAL : REE_ADD_SPECIAL, false);
}

static int add_messages(struct loader *l, const char *json, size_t nbytes) {
    struct ree_error err;
    char *text;
    size_t n;
    if (!l->tokenizer) return add_text(l, "", 0, 0, true); // reports the missing tokenizer
    if (ree_chat_prompt(l->tokenizer, l->chat_family, json, nbytes, true, &text, &n, &err) !=
        REE_OK)
        return cli_fail(&err);
    int code = add_text(l, text, n, REE_PARSE_SPECIAL, true);
    free(text);
    return code;
}

// Parses a list such as "1, 2 3".
static int add_id_list(struct loader *l, const char *text) {
    size_t capacity = strlen(text) / 2 + 2, n = 0;
    int32_t *ids = malloc(capacity * sizeof *ids);
    if (!ids) return no_memory();
    for (const char *at = text; *at;) {
        if (strchr(", \t\n", *at)) {
            at++;
            continue;
        }
        char number[16], *end = number;
        while (*at && !strchr(", \t\n", *at) && end < number + sizeof number - 1)
            *end++ = *at++;
        *end = 0;
        uint64_t id;
        if (!cli_parse_number(number, 0, INT32_MAX, &id)) {
            free(ids);
            return fail_at(l, "token ids must be integers separated by commas or spaces");
        }
        ids[n++] = (int32_t)id;
    }
    return add(l, ids, n, false);
}

static int add_id_array(struct loader *l, const cJSON *array) {
    int n = cJSON_GetArraySize(array), i = 0;
    int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) return no_memory();
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        double x = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(x >= 0 && x <= INT32_MAX) || x != (double)(int32_t)x) {
            free(ids);
            return fail_at(l, "\"ids\" must be an array of integers");
        }
        ids[i++] = (int32_t)x;
    }
    return add(l, ids, (size_t)n, false);
}

// Adds a string of a parsed line, with its NULs restored.
static int add_string(struct loader *l, const cJSON *string) {
    char *text = strdup(string->valuestring);
    if (!text) return no_memory();
    int code = add_plain(l, text, ree_text_json_restore(text));
    free(text);
    return code;
}

// Prints JSON as text again. text/json.h describes how parsed values represent NULs.
static bool print_json(const cJSON *json, struct strbuf *out) {
    char *text = cJSON_PrintUnformatted(json);
    const char *at = text, *nul;
    while (at && (nul = strstr(at, REE_TEXT_JSON_NUL))) {
        strbuf_append(out, at, (size_t)(nul - at));
        strbuf_append(out, "\\u0000", 6);
        at = nul + strlen(REE_TEXT_JSON_NUL);
    }
    if (at) strbuf_append(out, at, strlen(at));
    free(text);
    return at && !out->failed;
}

// Adds a JSON line: "text", or an object with "prompt", "ids" or "messages".
static int add_json(struct loader *l, const cJSON *line) {
    if (cJSON_IsString(line)) return add_string(l, line);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(line, "prompt");
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(line, "ids");
    const cJSON *messages = cJSON_GetObjectItemCaseSensitive(line, "messages");
    if (cJSON_IsString(text)) return add_string(l, text);
    if (cJSON_IsArray(ids)) return add_id_array(l, ids);
    if (!cJSON_IsArray(messages))
        return fail_at(l, "expected a string, or an object with \"prompt\", \"ids\" or "
                          "\"messages\"");
    struct strbuf printed;
    strbuf_init(&printed);
    bool ok = print_json(messages, &printed);
    int code = ok ? add_messages(l, printed.data, printed.size) : no_memory();
    strbuf_finish(&printed);
    return code;
}

static int read_file(const char *path, char **out, size_t *out_n) {
    struct ree_error err;
    void *bytes;
    if (ree_file_read_small(path, SIZE_MAX, &bytes, out_n, &err) != REE_OK) return cli_fail(&err);
    *out = bytes;
    return 0;
}

// Reads one prompt per line. A line that begins with { or " must be JSON as a whole: text after the
// value would be lost. Empty lines are skipped.
static int add_file(struct loader *l, const char *path) {
    char *bytes = NULL;
    size_t nbytes;
    int code = read_file(path, &bytes, &nbytes);
    if (code) return code;
    l->file = path;
    l->line = 0;
    size_t before = l->out->n;
    for (size_t at = 0; code == 0 && at < nbytes;) {
        const char *line = bytes + at, *end = memchr(line, '\n', nbytes - at);
        size_t n = end ? (size_t)(end - line) : nbytes - at;
        at += n + 1;
        l->line++;
        if (n && line[n - 1] == '\r') n--;
        if (n == 0) continue;
        if (line[0] != '{' && line[0] != '"') {
            code = add_plain(l, line, n);
            continue;
        }
        cJSON *json;
        struct ree_error err;
        code = ree_text_json_parse(line, n, &json, &err) == REE_OK ? add_json(l, json)
                                                                   : fail_json(l, &err);
        cJSON_Delete(json);
    }
    l->line = 0;
    if (code == 0 && l->out->n == before) {
        cli_error("%s: this file contains no prompts", path);
        code = CLI_FAILED;
    }
    l->file = NULL;
    free(bytes);
    return code;
}

static int add_messages_file(struct loader *l, const char *path) {
    char *bytes = NULL;
    size_t nbytes;
    int code = read_file(path, &bytes, &nbytes);
    if (code) return code;
    code = add_messages(l, bytes, nbytes);
    free(bytes);
    return code;
}

int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw) {
    struct loader l = {prompts, tokenizer, chat_family, raw, NULL, 0};
    int code = 0;
    *prompts = (struct prompts){0};
    for (size_t i = 0; code == 0 && i < n_args; i++) {
        const char *value = args[i].value;
        switch (args[i].kind) {
        case PROMPT_TEXT: code = add_plain(&l, value, strlen(value)); break;
        case PROMPT_IDS: code = add_id_list(&l, value); break;
        case PROMPT_FILE: code = add_file(&l, value); break;
        case PROMPT_MESSAGES: code = add_messages_file(&l, value); break;
        }
    }
    return code;
}

bool prompts_of_ids(struct prompts *prompts, const int32_t *ids, size_t n) {
    int32_t *copy = malloc((n + 1) * sizeof *copy);
    *prompts = (struct prompts){.list = malloc(sizeof *prompts->list),
                                .is_chat = calloc(1, sizeof *prompts->is_chat)};
    if (!copy || !prompts->list || !prompts->is_chat) {
        free(copy);
        prompts_finish(prompts);
        return false;
    }
    memcpy(copy, ids, n * sizeof *ids);
    prompts->list[0] = (struct ree_prompt){copy, n};
    prompts->n = 1;
    return true;
}

void prompts_finish(struct prompts *prompts) {
    for (size_t i = 0; i < prompts->n; i++)
        free((int32_t *)(uintptr_t)prompts->list[i].ids);
    free(prompts->list);
    free(prompts->is_chat);
    *prompts = (struct prompts){0};
}
