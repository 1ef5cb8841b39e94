// The option table of a verification, and the combinations that are not allowed.
#include "verify_options.h"

#include <stdlib.h>

#include "commands.h"
#include "option_groups.h"
#include "receipts.h"
#include "paths.h"
#include "start.h"

#define AT(field) offsetof(struct verify_options, field)

static bool take_prompt(struct cli *cli, const char *name, void *options) {
    struct verify_options *o = options;
    return prompt_option(cli, name, o->prompts, &o->n_prompts);
}

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run verify RECEIPT MODEL [options]: check whether a receipt is true\n"
  "\n"
  "MODEL is a copy of the model that the receipt names, in any format: a checkpoint's folder, or\n"
  "its export. Any device may be used. verify prints one line for each check, 'NAME: agrees' or\n"
  "'NAME: differs: ...', in this order:\n"
  "\n"
  "  receipt, prompt tokens, ...  the receipt's own hashes, and its signature\n"
  "  graph, weights               the model's hashes\n"
  "  tokenizer                    the hash of the tokenizer in MODEL's folder, or of --tokenizer\n"
  "  ends, context length         the eos tokens and the context length of the model\n"
  "  prompt encoding              the encoded prompt text gives the prompt tokens; special tokens\n"
  "                               are shown\n"
  "  finish                       the answer ends where its tokens and parameters end it\n"
  "  decoded prompt, answer       the texts are those of the tokens\n"
  "  tokens, logits               the model computes these\n"
  "  input, output                for a run of tensors\n"
  "\n"
  "verify checks an answer in one pass: the model runs over prompt and answer as over one prompt,\n"
  "and at every position it must choose the token that the receipt has there. This is several\n"
  "times faster than generating the answer. It is done only if the model's graph proves that\n"
  "logits do not depend on later tokens. Otherwise the answer runs token by token, and a line\n"
  "names the node without proof ('ran token by token: ...').\n"
  "\n"
  "The last line is the verdict:\n"
  "\n"
  "  verified                       everything that the receipt promises was compared with\n"
  "                                 something that the receipt does not decide. Sampling\n"
  "                                 parameters, max_new_tokens and stop texts are the prover's\n"
  "                                 choice; a line lists them\n"
  "  verified prefix of an answer   the same, but the run was interrupted\n"
  "  verified in part               nothing differs, and the verdict names what was not checked\n"
  "\n"
  "Device, date and speed are not proven; verify prints them as claims.\n"
  "\n"
  "method\n"},
    {.name = "RECEIPT", .kind = ROW_POSITIONAL, .at = AT(receipt), .path = CLI_READS},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--stepwise", .kind = ROW_FLAG, .at = AT(stepwise),
     .help = "generate the answer again, token by token, even if one pass is proven to be enough"},
    {.name = "--trace", .value = "FILE", .kind = ROW_STRING, .at = AT(trace), .path = CLI_WRITES,
     .help = "also compute the trace again, step by step, compare it, and write it to FILE, for "
             "'ree-run diff'"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder that contains one, or a *.tiktoken file"},
    {.name = "--public-key", .value = "FILE|HEX", .kind = ROW_STRING, .at = AT(key),
     .path = CLI_READS,
     .help = "require that the receipt is signed with this key ('ree-run help validate')"},
    {.name = "--ignore-eos", .kind = ROW_FLAG, .at = AT(ignore_eos),
     .help = "accept an answer that was generated with --ignore-eos: no token ends it"},
    {.name = "--request", .value = "FILE", .kind = ROW_STRING, .at = AT(request), .path = CLI_READS,
     .help = "require that the receipt answers this request ('ree-run help request'); prompt and "
             "parameters are then not the prover's choice"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "inputs that a receipt does not contain\n"
  "  --prompt-text TEXT, --prompt-ids IDS, --messages FILE, --chat-family NAME, --raw-prompt\n"
  "                       the prompt of a private receipt, as in 'ree-run help generate'\n"
  "  --salt FILE          the salt of a private receipt (default: RECEIPT.salt, if it exists)\n"
  "  --input NAME=FILE, --random-inputs N, --dim NAME=SIZE\n"
  "                       the inputs of a run of tensors, as in 'ree-run help run'\n"},
    {.name = "--prompt-text", .value = "TEXT", .kind = ROW_TAKE, .take = take_prompt},
    {.name = "--prompt-ids", .value = "IDS", .kind = ROW_TAKE, .take = take_prompt},
    {.name = "--messages", .value = "FILE", .kind = ROW_TAKE, .take = take_prompt, .path = CLI_READS},
    {.name = "--chat-family", .value = "NAME", .kind = ROW_STRING, .at = AT(chat_family)},
    {.name = "--raw-prompt", .kind = ROW_FLAG, .at = AT(raw)},
    {.name = "--salt", .value = "FILE", .kind = ROW_STRING, .at = AT(salt), .path = CLI_READS},
    {.kind = ROW_GROUP, .group = &cli_inputs_group, .at = AT(inputs), .help = ""},
    {.kind = ROW_GROUP, .group = &cli_random_group, .at = AT(inputs), .help = ""},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help =
  "\n"
  "receipts of trainings ('ree-run help train'; MODEL is the training step)\n"
  "verify repeats the steps and compares the states at each point of the receipt. If it starts from\n"
  "a checkpoint or does not repeat all steps, the training is at most verified in part.\n"},
    {.name = "--data", .value = "FILE", .kind = ROW_STRING, .at = AT(data), .path = CLI_READS,
     .help = "the samples, required for these receipts"},
    {.name = "--resume", .value = "FILE", .kind = ROW_STRING, .at = AT(resume), .path = CLI_READS,
     .help = "start from this checkpoint"},
    {.name = "--steps", .value = "N", .kind = ROW_NUMBER, .at = AT(n_steps), .min = 1,
     .max = UINT32_MAX, .help = "repeat at most N steps"},

    {.kind = ROW_TEXT, .help =
  "\ndevices and execution (the bits do not depend on these options)\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help = CLI_DEVICE_HELP},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse)},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold)},
    {.kind = ROW_GROUP, .group = &cli_stages_group, .at = AT(stages)},
    {.name = "--prefill-chunk", .value = "N", .kind = ROW_NUMBER,
     .at = AT(chunk), .min = 1, .max = REE_MAX_PREFILL_CHUNK,
     .help = "maximum number of tokens in one run (default 512)"},

    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\nfor tests of ree itself\n" CLI_DEVICE_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run tools/sample/stories --prompt-text \"Once upon a time\" --receipt-path r.json\n"
  "  ree-run verify r.json tools/sample/stories\n"
  "  ree-run verify r.json tools/sample/stories --device vulkan --stepwise\n"
  "\n"
  "exit status: 0 verified, 1 something differs, 2 cannot be checked (or wrong usage),\n"
  "3 verified in part, or a verified prefix of an answer\n"},
    // clang-format on
};
const struct cli_option_table ree_run_verify_options = CLI_OPTION_TABLE(rows);

int verify_options_help(void) {
    return cli_options_help(&ree_run_verify_options);
}

static void check(struct cli *cli, const struct verify_options *o) {
    if (!o->receipt) cli_usage(cli, "no receipt given");
    if (!o->model) cli_usage(cli, "no model given");
    cli_path_add_suffixed(CLI_READS, o->receipt, ".salt");
    cli_quantize_check(cli, &o->quantize);
    cli_stages_check(cli, &o->stages, &o->device);
    if (o->trace && o->no_fold) cli_usage(cli, CLI_TRACE_IS_FOLDED);
    if (o->request && o->n_prompts) cli_usage(cli, "--request already sets the prompt");
    if (!o->data && (o->resume || o->n_steps))
        cli_usage(cli, "--resume and --steps are for receipts of trainings, which require --data");
    if (o->data && (o->n_prompts || o->inputs.n_args || o->inputs.random || o->request || o->salt ||
                    o->tokenizer || o->chat_family || o->raw || o->stepwise || o->ignore_eos ||
                    o->chunk || o->quantize.bits || o->quantize.activations || o->stages.n ||
                    o->stages.plan || o->stages.memory))
        cli_usage(cli, "--data is for the receipt of a training, which has no prompt, inputs, "
                       "request, salt, tokenizer, quantisation or stages");
    if (o->n_prompts > 1) cli_usage(cli, "a receipt has one prompt, not %zu", o->n_prompts);
    if (o->device.options.operation_set != REE_REPRODUCIBLE)
        cli_usage(cli, "verify requires the operation set 'reproducible'");
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
    cli_options_parse(&cli, &ree_run_verify_options, o);
    if (!cli.failed) check(&cli, o);
    return !cli.failed;
}

void verify_options_finish(struct verify_options *o) {
    free(o->prompts);
    run_inputs_finish(&o->inputs);
}
