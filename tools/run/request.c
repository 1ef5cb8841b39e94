// ree-run request: writes a file with the run that a verifier requests from a prover.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ree.h"
#include "cli.h"
#include "prompts.h"
#include "commands.h"
#include "option_groups.h"
#include "paths.h"
#include "quantize.h"
#include "start.h"

struct options {
    const char *model, *output, *tokenizer, *chat_family;
    struct prompt_arg *prompts;
    const char **stops;
    size_t n_prompts, n_stops;
    struct ree_sampling sampling;
    struct cli_quantize quantize;
    uint64_t top_k, max_new_tokens;
    bool raw, any_model;
};

#define AT(field) offsetof(struct options, field)

static bool take_prompt(struct cli *cli, const char *name, void *options) {
    struct options *o = options;
    return prompt_option(cli, name, o->prompts, &o->n_prompts);
}

static bool take_stop(struct cli *cli, const char *name, void *options) {
    struct options *o = options;
    (void)name;
    return stop_option(cli, o->stops, &o->n_stops);
}

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run request MODEL --prompt-text TEXT --output FILE [options]: ask for a run\n"
  "\n"
  "Writes a request: a model, a prompt, parameters, and 32 random bytes. Whoever runs it\n"
  "('ree-run MODEL --request FILE --receipt-path RECEIPT') cannot choose any of these. With a\n"
  "temperature, the seed of the draws follows from the request, so nobody can try several seeds\n"
  "and keep the best answer. 'ree-run verify RECEIPT MODEL --request FILE' then checks whether\n"
  "the receipt answers this request. Keep the file secret until the run is due: whoever has it\n"
  "can run it.\n"
  "\n"
  "request\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--output", .value = "FILE", .kind = ROW_STRING, .at = AT(output), .path = CLI_WRITES,
     .help = "the file to write the request to"},
    {.name = "--prompt-text", .value = "TEXT", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as text"},
    {.name = "--prompt-ids", .value = "IDS", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as token ids, separated by commas; requires no tokenizer"},
    {.name = "--messages", .value = "FILE", .kind = ROW_TAKE, .path = CLI_READS, .take = take_prompt,
     .help = "a conversation; see 'ree-run help generate'"},
    {.name = "--chat-family", .value = "NAME", .kind = ROW_STRING, .at = AT(chat_family),
     .help = "the family of the chat template, if the tokenizer does not state it"},
    {.name = "--raw-prompt", .kind = ROW_FLAG, .at = AT(raw),
     .help = "add nothing to texts, and encode special tokens that are written in them as special "
             "tokens"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder that contains one, or a *.tiktoken file (default: MODEL's)"},
    {.name = "--max-new-tokens", .value = "N", .kind = ROW_NUMBER,
     .at = AT(max_new_tokens), .max = INT32_MAX,
     .help = "maximum number of new tokens (default 256); 0: until the context is full"},
    {.name = "--stop", .value = "TEXT", .kind = ROW_TAKE, .take = take_stop,
     .help = "end the answer before this text; may be given several times"},
    {.name = "--temperature", .value = "T", .kind = ROW_REAL,
     .at = AT(sampling.temperature), .high = 1e6,
     .help = "0 (the default): always choose the most likely token; otherwise draw at this "
             "temperature"},
    {.name = "--top-k", .value = "K", .kind = ROW_NUMBER, .at = AT(top_k), .max = 1 << 24,
     .help = "draw only from the K most likely tokens; 0 (the default): from all"},
    {.name = "--top-p", .value = "P", .kind = ROW_REAL,
     .at = AT(sampling.top_p), .high = 1, .above = true,
     .help = "draw only from the most likely tokens whose probabilities add up to P (default 1)"},
    {.name = "--min-p", .value = "P", .kind = ROW_REAL, .at = AT(sampling.min_p), .high = 1,
     .help = "exclude tokens that are less likely than P times the most likely one (default 0)"},
    {.name = "--repetition-penalty", .value = "R", .kind = ROW_REAL,
     .at = AT(sampling.repetition_penalty), .high = 1e6, .above = true,
     .help = "divide positive logits of tokens that already occurred by R, multiply negative ones "
             "by R; 1 (the default): no penalty"},
    {.name = "--any-model", .kind = ROW_FLAG, .at = AT(any_model),
     .help = "do not name the model in the request. By default, the request contains the model's "
             "hashes, for which all weights are read"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\nexamples\n"
  "  ree-run request tools/sample/stories --prompt-text \"Once upon a time\" --temperature 0.8 \\\n"
  "      --max-new-tokens 64 --output ask.json\n"
  "  ree-run tools/sample/stories --request ask.json --receipt-path r.json\n"
  "  ree-run verify r.json tools/sample/stories --request ask.json\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_request_options = CLI_OPTION_TABLE(rows);

static void check(struct cli *cli, struct options *o) {
    struct ree_error err;
    if (!o->model) cli_usage(cli, "no model given");
    cli_quantize_check(cli, &o->quantize);
    if (!o->output) cli_usage(cli, "an output file for the request is required: --output FILE");
    if (o->n_prompts != 1) cli_usage(cli, "a request requires one prompt, not %zu", o->n_prompts);
    o->sampling.top_k = (uint32_t)o->top_k;
    if (ree_sampling_check(&o->sampling, &err) != REE_OK) cli_usage(cli, "%s", err.message);
}

// Loads the tokenizer in the model's folder, unless --tokenizer names another. *out is NULL if
// there is none; prompts_load reports that if it is needed.
static int load_tokenizer(const struct options *o, struct ree_tokenizer **out) {
    struct ree_error err;
    struct stat st;
    const char *slash = strrchr(o->model, '/');
    bool is_file = stat(o->model, &st) == 0 && !S_ISDIR(st.st_mode);
    char *folder = !is_file ? strdup(o->model)
                   : slash  ? strndup(o->model, (size_t)(slash - o->model) + 1)
                            : strdup(".");
    if (!folder) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    enum ree_status status = ree_tokenizer_load(o->tokenizer ? o->tokenizer : folder, out, &err);
    free(folder);
    if (status == REE_OK) return 0;
    *out = NULL;
    return status == REE_NOT_FOUND && !o->tokenizer ? 0 : cli_fail(&err);
}

static int print_hash(const struct ree_request *request) {
    struct strbuf text;
    strbuf_init(&text);
    strbuf_printf(&text, "%s\n", ree_request_info(request)->request_sha256);
    return cli_print(&text);
}

static int write_request(const struct options *o, const struct ree_prompt *prompt) {
    struct ree_error err;
    struct ree_model *model = NULL;
    struct ree_request *request = NULL;
    struct ree_model_options model_options = {.size = sizeof model_options,
                                              .progress = cli_reports};
    cli_quantize_model(&o->quantize, &model_options);
    if (!o->any_model && ree_model_load(o->model, &model_options, &model, &err) != REE_OK)
        return cli_fail(&err);
    struct ree_request_options options = {.size = sizeof options,
                                          .prompt = prompt,
                                          .sampling = &o->sampling,
                                          .max_new_tokens = o->max_new_tokens,
                                          .n_stops = o->n_stops,
                                          .stops = o->stops,
                                          .model = model,
                                          .progress = cli_reports};
    int code = ree_request_create(&options, &request, &err) == REE_OK &&
                       ree_request_write(request, o->output, &err) == REE_OK
                   ? print_hash(request)
                   : cli_fail(&err);
    ree_request_destroy(request);
    ree_model_destroy(model);
    return code;
}

static int run(const struct options *o) {
    struct ree_tokenizer *tokenizer = NULL;
    struct prompts prompts = {0};
    int code = cli_check_output_path(o->output, "a request");
    if (!code) code = load_tokenizer(o, &tokenizer);
    if (!code)
        code = prompts_load(&prompts, o->prompts, o->n_prompts, tokenizer, o->chat_family, o->raw);
    if (!code) code = write_request(o, prompts.list);
    prompts_finish(&prompts);
    ree_tokenizer_destroy(tokenizer);
    return code;
}

int ree_run_request(int argc, char **argv) {
    struct cli cli;
    struct options o = {.sampling = ree_greedy, .max_new_tokens = 256};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_request_options);
    o.prompts = calloc((size_t)argc, sizeof *o.prompts);
    o.stops = calloc((size_t)argc, sizeof *o.stops);
    int code = CLI_FAILED;
    if (!o.prompts || !o.stops) {
        cli_error("out of memory");
    } else {
        cli_init(&cli, argc, argv);
        cli_options_parse(&cli, &ree_run_request_options, &o);
        if (!cli.failed) check(&cli, &o);
        code = cli.failed ? CLI_USAGE : cli_start(&(struct cli_start){0});
        if (!code) code = run(&o);
    }
    free(o.prompts);
    free(o.stops);
    return code;
}
