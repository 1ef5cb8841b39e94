// ree-run tokenize: converts text to token ids and back with a model's tokenizer.
#include "commands.h"
#include "start.h"

#include "json.h"
#include "paths.h"
#include "read_text.h"
#include "sandbox.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *path, *text, *file, *chat, *family, *decode;
    bool json, no_special, raw_output;
};

#define AT(field) offsetof(struct request, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run tokenize PATH [--text TEXT | --file FILE | --chat FILE | --decode IDS]\n"
  "\n"
  "Converts text into the token ids of a model, or ids into text. PATH is a model's folder, a\n"
  "tokenizer.json, a GPT-2 vocab.json with merges.txt in the same folder, or a *.tiktoken file.\n"
  "By default, tokenize reads text from standard input. The last line is the tokenizer's\n"
  "SHA-256, over everything that decides its tokens: tokenizers with equal hashes give equal\n"
  "tokens, if the Unicode tables are also the same (see below).\n"
  "\n"},
    {.name = "PATH", .kind = ROW_POSITIONAL, .at = AT(path), .path = CLI_READS_BESIDE},
    {.name = "--text", .value = "TEXT", .kind = ROW_STRING, .at = AT(text), .may_be_empty = true,
     .help = "encode TEXT"},
    {.name = "--file", .value = "FILE", .kind = ROW_STRING, .at = AT(file), .path = CLI_READS,
     .help = "encode the text in FILE (-: standard input); bytes that are not UTF-8 become U+FFFD"},
    {.name = "--chat", .value = "FILE", .kind = ROW_STRING, .at = AT(chat), .path = CLI_READS,
     .help = "encode a conversation, [{\"role\": \"user\", \"content\": \"...\"}, ...], formatted "
             "with the model's chat template"},
    {.name = "--family", .value = "NAME", .kind = ROW_STRING, .at = AT(family),
     .help = "the family of the chat template, if the model does not state it"},
    {.name = "--decode", .value = "IDS", .kind = ROW_STRING, .at = AT(decode), .may_be_empty = true,
     .help = "print the text of these ids, separated by spaces or commas (-: standard input)"},
    {.name = "--no-special", .kind = ROW_FLAG, .at = AT(no_special),
     .help = "encoding: do not add special tokens around the text (BOS and so on), and treat "
             "special tokens that are written in the text as ordinary text; decoding: omit the "
             "text of special tokens"},
    {.name = "--raw-output", .kind = ROW_FLAG, .at = AT(raw_output),
     .help = "print control characters unchanged on a terminal. By default, they are printed "
             "there as \\x1b and so on"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run tokenize model/ --text 'Hello, world'\n"
  "  ree-run tokenize model/ --decode '9906 11 1917'\n"
  "  ree-run tokenize model/ --chat conversation.json --json\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_tokenize_options = CLI_OPTION_TABLE(rows);

static void append_piece(struct strbuf *out, const struct ree_tokenizer *tokenizer, int32_t id) {
    const char *piece = ree_tokenizer_token(tokenizer, id);
    cli_append_name(out, piece ? piece : "?");
}

static int print_json(cJSON *root, const struct ree_tokenizer *tokenizer) {
    char hex[65];
    struct strbuf out;
    strbuf_init(&out);
    ree_tokenizer_sha256(tokenizer, hex);
    cJSON_AddStringToObject(root, "tokenizer_sha256", hex);
    cli_append_json(&out, root, true);
    return cli_print(&out);
}

static int print_ids(const struct request *request, const struct ree_tokenizer *tokenizer,
                     const int32_t *ids, size_t n, const char *prompt) {
    if (request->json) {
        cJSON *root = cJSON_CreateObject(), *pieces;
        if (prompt) cJSON_AddStringToObject(root, "prompt", prompt);
        // cJSON_CreateIntArray rejects the NULL of an empty text.
        json_put_as(root, "ids", n > 0 ? cJSON_CreateIntArray(ids, (int)n) : cJSON_CreateArray());
        pieces = cJSON_AddArrayToObject(root, "tokens");
        for (size_t i = 0; i < n; i++) {
            const char *piece = ree_tokenizer_token(tokenizer, ids[i]);
            json_put(pieces, cJSON_CreateString(piece ? piece : ""));
        }
        return print_json(root, tokenizer);
    }
    struct strbuf out;
    char hex[65];
    strbuf_init(&out);
    if (prompt && cli_must_escape(request->raw_output))
        cli_append_escaped(&out, prompt, strlen(prompt), false);
    else if (prompt)
        strbuf_append(&out, prompt, strlen(prompt));
    if (prompt) strbuf_append(&out, "\n\n", 2);
    // Few tokens are listed with their text, many as one line of numbers.
    for (size_t i = 0; i < n; i++) {
        strbuf_printf(&out, n <= 64 ? "%7d  " : "%d ", ids[i]);
        if (n > 64) continue;
        append_piece(&out, tokenizer, ids[i]);
        strbuf_append(&out, "\n", 1);
    }
    ree_tokenizer_sha256(tokenizer, hex);
    strbuf_printf(&out, "%s%zu tokens, tokenizer %s\n", n > 64 ? "\n" : "", n, hex);
    return cli_print(&out);
}

static int encode(const struct request *request, const struct ree_tokenizer *tokenizer) {
    struct ree_error err;
    char *text = NULL, *prompt = NULL;
    size_t n, n_ids;
    int32_t *ids = NULL;
    uint32_t flags = request->no_special ? 0 : REE_ADD_SPECIAL | REE_PARSE_SPECIAL;
    if (request->text) {
        text = strdup(request->text);
        n = strlen(request->text);
    } else {
        text = cli_read_text(request->chat ? request->chat : request->file, &n);
    }
    if (!text && request->text) cli_error("out of memory");
    if (!text) return CLI_FAILED;
    enum ree_status status = REE_OK;
    if (request->chat) {
        size_t n_prompt;
        status =
            ree_chat_prompt(tokenizer, request->family, text, n, true, &prompt, &n_prompt, &err);
        n = n_prompt;
        flags = REE_PARSE_SPECIAL;
    }
    if (status == REE_OK)
        status =
            ree_tokenizer_encode(tokenizer, prompt ? prompt : text, n, flags, &ids, &n_ids, &err);
    int code =
        status == REE_OK ? print_ids(request, tokenizer, ids, n_ids, prompt) : cli_fail(&err);
    free(ids);
    free(prompt);
    free(text);
    return code;
}

// Parses numbers separated by spaces, commas and brackets.
static int32_t *parse_ids(const char *text, size_t *out_n) {
    int32_t *ids = calloc(strlen(text) / 2 + 1, sizeof *ids);
    if (!ids) cli_error("out of memory");
    *out_n = 0;
    while (ids && *(text += strspn(text, " ,[]\t\r\n"))) {
        char *end;
        errno = 0;
        long id = strtol(text, &end, 10);
        bool ended = end != text && (*end == 0 || strchr(" ,[]\t\r\n", *end));
        if (!ended || errno || id < INT32_MIN || id > INT32_MAX) {
            cli_error("'%.*s' is not a token id", (int)strcspn(text, " ,[]\t\r\n"), text);
            free(ids);
            return NULL;
        }
        ids[(*out_n)++] = (int32_t)id;
        text = end;
    }
    return ids;
}

static int decode(const struct request *request, const struct ree_tokenizer *tokenizer) {
    struct ree_error err;
    size_t n_list = 0, n, n_text;
    char *list =
        strcmp(request->decode, "-") == 0 ? cli_read_stdin(&n_list) : strdup(request->decode);
    if (!list && strcmp(request->decode, "-") != 0) cli_error("out of memory");
    int32_t *ids = list ? parse_ids(list, &n) : NULL;
    free(list);
    if (!ids) return CLI_FAILED;
    char *text;
    enum ree_status status = ree_tokenizer_decode(
        tokenizer, ids, n, request->no_special ? REE_SKIP_SPECIAL : 0, &text, &n_text, &err);
    free(ids);
    if (status != REE_OK) return cli_fail(&err);
    if (request->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "text", text);
        free(text);
        return print_json(root, tokenizer);
    }
    // Prints only the text, so that it can be compared and piped.
    struct strbuf out;
    strbuf_init(&out);
    if (cli_must_escape(request->raw_output))
        cli_append_escaped(&out, text, n_text, false);
    else
        strbuf_append(&out, text, n_text);
    free(text);
    return cli_print(&out);
}

int ree_run_tokenize(int argc, char **argv) {
    struct cli cli;
    struct request request = {0};
    if (cli_wants_help(argc, argv)) {
        char tables[200];
        struct strbuf text;
        ree_text_tables(tables, sizeof tables);
        strbuf_init(&text);
        strbuf_printf(&text, "\nUnicode tables: %s\n", tables);
        int code = cli_options_help(&ree_run_tokenize_options), after = cli_print(&text);
        return code ? code : after;
    }
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_tokenize_options, &request);
    if (cli.failed) return CLI_USAGE;
    int n = !!request.text + !!request.file + !!request.chat + !!request.decode;
    if (n > 1) cli_usage(&cli, "--text, --file, --chat and --decode exclude each other");
    if (!request.path) cli_usage(&cli, "no tokenizer given");
    if (cli.failed) return CLI_USAGE;
    struct ree_error err;
    struct ree_tokenizer *tokenizer;
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_NO_OPENMP});
    if (code) return code;
    if (ree_tokenizer_load(request.path, &tokenizer, &err) != REE_OK) return cli_fail(&err);
    code = request.decode ? decode(&request, tokenizer) : encode(&request, tokenizer);
    ree_tokenizer_destroy(tokenizer);
    return code;
}
