// The option table of a verification, and the combinations that are not allowed.
#include "verify_options.h"

#include <stdlib.h>

#include "option_groups.h"
#include "receipts.h"
#include "option_table.h"
#include "start.h"

#define AT(field) offsetof(struct verify_options, field)

static bool take_prompt(struct cli *cli, const char *name, void *options) {
    struct verify_options *o = options;
    return prompt_option(cli, name, o->prompts, &o->n_prompts);
}

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run verify RECEIPT MODEL [options]: whether a receipt tells the truth\n"
  "\n"
  "MODEL is a copy of the model that the receipt names, in whatever form: a checkpoint's folder\n"
  "or what was exported from it. Any device will do. A line is printed for everything that is\n"
  "compared, 'NAME: agrees' or 'NAME: differs: ...', in this order:\n"
  "\n"
  "  receipt, prompt tokens, ...  the receipt's own hashes, and its signature\n"
  "  graph, weights               the model's\n"
  "  tokenizer                    that of the tokenizer, beside MODEL or named\n"
  "  ends, context length         those of the model\n"
  "  prompt encoding              the prompt's text, encoded, gives its tokens; special tokens\n"
  "                               are shown\n"
  "  finish                       the answer ends where tokens and parameters end it\n"
  "  decoded prompt, answer       the texts are what the tokens say\n"
  "  tokens, logits               what the model computes\n"
  "  input, output                of a run of tensors\n"
  "\n"
  "An answer is checked in one pass: the model runs over prompt and answer as over one prompt,\n"
  "and has to choose, at every position, the token that stands there. That is several times\n"
  "faster than making the answer was. It is done only if the model's graph proves that no logits\n"
  "depend on later tokens. Otherwise the answer runs token by token, and a line says which node\n"
  "has no proof ('ran token by token: ...').\n"
  "\n"
  "The last line is the verdict. 'verified': everything that the receipt promises was compared\n"
  "with something that the receipt does not decide. Sampling parameters, max_new_tokens and stop\n"
  "texts are the prover's choice, and the verdict names them. 'verified prefix of an answer':\n"
  "somebody interrupted it. 'verified in part': nothing differs, and what was not checked is\n"
  "named. Device, date and speed prove nothing and are printed as claims.\n"
  "\n"
  "how\n"},
    {.name = "RECEIPT", .kind = ROW_POSITIONAL, .at = AT(receipt), .path = CLI_READS},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--stepwise", .kind = ROW_FLAG, .at = AT(stepwise),
     .help = "make the answer anew, token by token, whatever is proved of the model"},
    {.name = "--trace", .value = "FILE", .kind = ROW_STRING, .at = AT(tracing.trace), .path = CLI_WRITES,
     .help = "make its trace anew, too, stepwise, and compare; it is written to FILE, for "
             "'ree-run diff'"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder with one, or a *.tiktoken file"},
    {.name = "--public-key", .value = "FILE|HEX", .kind = ROW_STRING, .at = AT(key),
     .path = CLI_READS,
     .help = "the receipt has to be signed with this key ('ree-run help validate')"},
    {.name = "--ignore-eos", .kind = ROW_FLAG, .at = AT(ignore_eos),
     .help = "accept an answer that was made with --ignore-eos: no token ends it"},
    {.name = "--request", .value = "FILE", .kind = ROW_STRING, .at = AT(request), .path = CLI_READS,
     .help = "the receipt has to answer this request ('ree-run help request'), whose prompt and "
             "parameters are then not the prover's choice"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "one JSON object instead of text"},

    {.kind = ROW_TEXT, .help =
  "\nwhat a receipt does not tell\n"
  "  --prompt-text TEXT, --prompt-ids IDS, --messages FILE, --chat-family NAME, --raw-prompt\n"
  "                       the prompt of a private receipt, as it was given to 'generate'\n"
  "  --salt FILE          the salt of a private receipt (otherwise RECEIPT.salt, if it is there)\n"
  "  --input NAME=FILE, --random-inputs N, --dim NAME=SIZE\n"
  "                       the inputs of a run of tensors, as they were given to 'run'\n"},
    {.name = "--prompt-text", .kind = ROW_TAKE, .take = take_prompt},
    {.name = "--prompt-ids", .kind = ROW_TAKE, .take = take_prompt},
    {.name = "--messages", .kind = ROW_TAKE, .take = take_prompt},
    {.name = "--chat-family", .kind = ROW_STRING, .at = AT(chat_family)},
    {.name = "--raw-prompt", .kind = ROW_FLAG, .at = AT(raw)},
    {.name = "--salt", .kind = ROW_STRING, .at = AT(salt), .path = CLI_READS},
    {.kind = ROW_GROUP, .take = cli_take_inputs, .at = AT(inputs)},
    {.kind = ROW_GROUP, .take = cli_take_quantize, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help =
  "\nwhere and how it runs (the bits do not depend on any of these)\n"},
    {.kind = ROW_GROUP, .take = cli_take_device, .at = AT(device), .help = CLI_DEVICE_HELP},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse)},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold)},
    {.kind = ROW_GROUP, .take = cli_take_stages, .at = AT(stages), .help = CLI_STAGES_HELP},
    {.name = "--prefill-chunk", .value = "N", .kind = ROW_NUMBER,
     .at = AT(chunk), .min = 1, .max = REE_MAX_PREFILL_CHUNK,
     .help = "tokens in one run (otherwise 512)"},

    {.kind = ROW_TEXT, .help = CLI_START_HELP_VERDICT},
    {.kind = ROW_TEXT, .help =
  "\nfor tests of ree itself\n" CLI_DEVICE_TEST_HELP
  "\nexamples\n"
  "  ree-run tools/sample/stories --prompt-text \"Once upon a time\" --receipt-path r.json\n"
  "  ree-run verify r.json tools/sample/stories\n"
  "  ree-run verify r.json tools/sample/stories --device vulkan --stepwise\n"
  "\n"
  "exit status: 0 verified, 1 something differs, 2 it cannot be checked (or wrong usage),\n"
  "3 verified in part, or a verified prefix of an answer\n"},
    // clang-format on
};
#define N_ROWS (sizeof rows / sizeof *rows)

int verify_options_help(void) {
    return cli_options_help(rows, N_ROWS);
}

static void check(struct cli *cli, const struct verify_options *o) {
    if (!o->receipt) cli_usage(cli, "no receipt is named");
    if (!o->model) cli_usage(cli, "no model is named");
    cli_path_add_suffixed(CLI_READS, o->receipt, ".salt");
    cli_quantize_check(cli, &o->quantize);
    cli_stages_check(cli, &o->stages, &o->device);
    if (o->tracing.trace && o->no_fold) cli_usage(cli, CLI_TRACE_IS_FOLDED);
    if (o->request && o->n_prompts) cli_usage(cli, "the prompt is that of --request");
    if (o->n_prompts > 1)
        cli_usage(cli, "a receipt is of one prompt, and %zu are given", o->n_prompts);
    if (o->device.options.operation_set != REE_REPRODUCIBLE)
        cli_usage(cli, "only the operation set 'reproducible' can verify anything");
}

bool verify_options_parse(struct verify_options *o, int argc, char **argv) {
    struct cli cli;
    *o = (struct verify_options){0};
    if (!run_inputs_init(&o->inputs, argc)) return false;
    o->prompts = calloc((size_t)argc, sizeof *o->prompts);
    if (!o->prompts) {
        cli_error("out of memory");
        return false;
    }
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, rows, N_ROWS, o);
    if (!cli.failed) check(&cli, o);
    return !cli.failed;
}

void verify_options_finish(struct verify_options *o) {
    free(o->prompts);
    run_inputs_finish(&o->inputs);
}
