#include "prompts.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "paths.h"

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

static int no_memory(void) {
    cli_error("out of memory");
    return CLI_FAILED;
}

// Parses a list such as "1, 2 3".
static int add_id_list(struct ree_prompts *prompts, const char *text) {
    struct ree_error err;
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
            cli_error("token ids must be integers separated by commas or spaces");
            return CLI_FAILED;
        }
        ids[n++] = (int32_t)id;
    }
    int code = ree_prompts_add_ids(prompts, ids, n, &err) == REE_OK ? 0 : cli_fail(&err);
    free(ids);
    return code;
}

static int add_messages_file(struct ree_prompts *prompts, const char *path) {
    struct ree_error err;
    void *bytes;
    size_t nbytes;
    if (ree_file_read_small(path, SIZE_MAX, &bytes, &nbytes, &err) != REE_OK) return cli_fail(&err);
    enum ree_status status = ree_prompts_add_messages(prompts, bytes, nbytes, &err);
    ree_free(bytes);
    return status == REE_OK ? 0 : cli_fail(&err);
}

static int add(struct ree_prompts *prompts, const struct prompt_arg *arg) {
    struct ree_error err;
    enum ree_status status = REE_OK;
    switch (arg->kind) {
    case PROMPT_TEXT:
        status = ree_prompts_add_text(prompts, arg->value, strlen(arg->value), &err);
        break;
    case PROMPT_FILE: status = ree_prompts_add_file(prompts, arg->value, &err); break;
    case PROMPT_IDS: return add_id_list(prompts, arg->value);
    case PROMPT_MESSAGES: return add_messages_file(prompts, arg->value);
    }
    return status == REE_OK ? 0 : cli_fail(&err);
}

int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw) {
    struct ree_error err;
    struct ree_prompts_options encoding = {
        .size = sizeof encoding, .tokenizer = tokenizer, .chat_family = chat_family, .raw = raw};
    int code = 0;
    *prompts = (struct prompts){0};
    if (ree_prompts_create(&encoding, &prompts->all, &err) != REE_OK) return cli_fail(&err);
    for (size_t i = 0; code == 0 && i < n_args; i++)
        code = add(prompts->all, &args[i]);
    prompts->n = ree_prompts_list(prompts->all, &prompts->list);
    return code;
}

bool prompts_is_chat(const struct prompts *prompts, size_t i) {
    return prompts->all && ree_prompts_is_chat(prompts->all, i);
}

void prompts_finish(struct prompts *prompts) {
    ree_prompts_destroy(prompts->all);
    *prompts = (struct prompts){0};
}
