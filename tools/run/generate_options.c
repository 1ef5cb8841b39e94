// The options of a generation: the table from which they are parsed and --help is printed, and the
// combinations that are not allowed.
#include "generate_options.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "option_groups.h"
#include "paths.h"
#include "start.h"

#define DEFAULT_MOST 256 // default of --max-new-tokens

#define AT(field) offsetof(struct generate_options, field)

static bool take_prompt(struct cli *cli, const char *name, void *options) {
    struct generate_options *o = options;
    return prompt_option(cli, name, o->prompts, &o->n_prompts);
}

static bool take_stop(struct cli *cli, const char *name, void *options) {
    struct generate_options *o = options;
    (void)name;
    return stop_option(cli, o->stops, &o->n_stops);
}

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run generate MODEL --prompt-text TEXT [options]: continue a text\n"
  "(also without 'generate': ree-run MODEL --prompt-text TEXT)\n"
  "\n"
  "MODEL is a folder with a Hugging Face checkpoint (config.json, *.safetensors, tokenizer.json)\n"
  "or of onnxruntime-genai (genai_config.json), or an ONNX file of a causal language model, with\n"
  "or without past and present keys and values. ree looks for the tokenizer in the same folder.\n"
  "If a folder contains a checkpoint and ONNX files, ree runs the checkpoint; --stats prints\n"
  "which file is run.\n"
  "\n"
  "ree-run prints the text while it generates it, then the SHA-256 of the token ids and the\n"
  "speed. Two runs with the same SHA-256 generated the same tokens. It is the same on every\n"
  "device.\n"
  "\n"
  "prompts (each option may be given several times: all prompts then run together)\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--prompt-text", .value = "TEXT", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as text"},
    {.name = "--prompt-ids", .value = "IDS", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as token ids, separated by commas; requires no tokenizer"},
    {.name = "--prompt-file", .value = "FILE", .kind = ROW_TAKE, .path = CLI_READS, .take = take_prompt,
     .help = "one prompt per line. A line that begins with { or \" must be a JSON value: "
             "\"text\", {\"prompt\": \"text\"}, {\"ids\": [1, 2]} or {\"messages\": [...]}"},
    {.name = "--messages", .value = "FILE", .kind = ROW_TAKE, .path = CLI_READS, .take = take_prompt,
     .help = "a conversation, [{\"role\": \"user\", \"content\": \"...\"}, ...], formatted with "
             "the model's chat template. Special tokens in a content are encoded as special "
             "tokens, so an untrusted text can pretend to be another role"},
    {.name = "--request", .value = "FILE", .kind = ROW_STRING, .at = AT(request), .path = CLI_READS,
     .help = "answer this request, made by 'ree-run request': it sets prompt and parameters, and "
             "the receipt names it"},
    {.name = "--chat-family", .value = "NAME", .kind = ROW_STRING, .at = AT(chat_family),
     .help = "the family of the chat template, if the tokenizer does not state it: llama3, "
             "chatml, ..."},
    {.name = "--raw-prompt", .kind = ROW_FLAG, .at = AT(raw),
     .help = "add nothing to texts (no BOS token), and encode special tokens that are written in "
             "them as special tokens: for chat templates that ree does not know"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder that contains one, or a *.tiktoken file"},

    {.kind = ROW_TEXT, .help = "\nlength\n"},
    {.name = "--max-new-tokens", .value = "N", .kind = ROW_NUMBER,
     .at = AT(max_new_tokens), .max = INT32_MAX,
     .help = "maximum number of new tokens (default 256); 0: until the model's context is full"},
    {.name = "--stop", .value = "TEXT", .kind = ROW_TAKE, .take = take_stop,
     .help = "end the answer before this text; may be given several times"},
    {.name = "--ignore-eos", .kind = ROW_FLAG, .at = AT(ignore_eos),
     .help = "continue after tokens that end a text"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "sampling (NUMERICS.md, \"Sampling\", specifies it to the bit)\n"},
    {.name = "--temperature", .value = "T", .kind = ROW_REAL,
     .at = AT(sampling.temperature), .high = 1e6,
     .help = "0 (the default): always choose the most likely token; otherwise draw at this "
             "temperature"},
    {.name = "--top-k", .value = "K", .kind = ROW_NUMBER, .at = AT(top_k), .max = 1 << 24,
     .help = "draw only from the K most likely tokens; 0 (the default): from all"},
    {.name = "--top-p", .value = "P", .kind = ROW_REAL,
     .at = AT(sampling.top_p), .high = 1, .above = true,
     .help = "draw only from the most likely tokens whose probabilities add up to P; above 0, at "
             "most 1 (the default: from all)"},
    {.name = "--min-p", .value = "P", .kind = ROW_REAL, .at = AT(sampling.min_p), .high = 1,
     .help = "exclude tokens that are less likely than P times the most likely one; 0 (the "
             "default: none) to 1"},
    {.name = "--repetition-penalty", .value = "R", .kind = ROW_REAL,
     .at = AT(sampling.repetition_penalty), .high = 1e6, .above = true,
     .help = "divide positive logits of tokens that already occurred by R, multiply negative ones "
             "by R; 1 (the default): no penalty"},
    {.name = "--seed", .value = "N", .kind = ROW_NUMBER, .at = AT(sampling.seed), .max = UINT64_MAX,
     .help = "seed of the draws (default 0); the same seed gives the same text"},

    {.kind = ROW_TEXT, .help = "\nresults\n"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object at the end instead of text"},
    {.name = "--logits-hash", .kind = ROW_FLAG, .at = AT(logits_hash),
     .help = "also print a SHA-256 over the logits of all tokens (slower, because the logits of "
             "the prompt are computed only for this)"},
    {.name = "--logprobs", .value = "N", .kind = ROW_NUMBER,
     .at = AT(n_logprobs), .min = 1, .max = 100,
     .help = "print the log probabilities of each token and of the N most likely ones, 1 to 100"},
    {.name = "--no-echo", .kind = ROW_FLAG, .at = AT(no_echo),
     .help = "print the answer without the prompt"},
    {.name = "--raw-output", .kind = ROW_FLAG, .at = AT(raw_output),
     .help = "print texts unchanged on a terminal. By default, control characters, which could be "
             "commands to the terminal, are printed there as \\x1b and so on"},
    {.name = "--stats", .kind = ROW_FLAG, .at = AT(stats),
     .help = "also print the use of memory, and how often ree lowered the model for new shapes"},

    {.kind = ROW_TEXT, .help = "\nreceipts (for one prompt)\n"},
    {.kind = ROW_GROUP, .group = &cli_receipt_group, .at = AT(receipt)},
    {.name = "--private", .kind = ROW_FLAG, .at = AT(receipt.is_private),
     .help = "write salted hashes instead of tokens and texts. The salt is written to FILE.salt, for "
             "those who may verify the receipt"},

    {.kind = ROW_TEXT, .help = "\ncheckpoints\n"},
    {.kind = ROW_GROUP, .group = &checkpoint_group},
    {.kind = ROW_TEXT, .help = "\n"},
    {.kind = ROW_GROUP, .group = &cli_trace_group, .at = AT(tracing)},
    {.kind = ROW_TEXT, .help =
  "  (for one prompt; it then runs in chunks of 64 tokens, unless --prefill-chunk is given)\n"},

    {.kind = ROW_TEXT, .help = "\nweights\n"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help =
  "\ndevices and execution (the bits do not depend on these options)\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help = CLI_DEVICE_HELP},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse)},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold)},
    {.kind = ROW_GROUP, .group = &cli_stages_group, .at = AT(stages)},
    {.name = "--prefill-chunk", .value = "N", .kind = ROW_NUMBER,
     .at = AT(chunk), .min = 1, .max = REE_MAX_PREFILL_CHUNK,
     .help = "maximum number of prompt tokens in one run (default 512). Always 512 for a model that "
             "has a cache and is not proved to be causal"},
    {.name = "--batch-size", .value = "N", .kind = ROW_NUMBER,
     .at = AT(batch), .min = 1, .max = 4096,
     .help = "maximum number of prompts in one run (default 16)"},
    {.name = "--micro-batches", .value = "N", .kind = ROW_NUMBER,
     .at = AT(n_cache_slots), .min = 1, .max = 256,
     .help = "number of groups of prompts that run at the same time (default 1)"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "promise\n"
  "  --operation-set SET  reproducible (the default), deterministic or default: see\n"
  "                       'ree-run help run'\n"
  "\n"},
    {.kind = ROW_GROUP, .group = &cli_ranks_group, .at = AT(ranks)},

    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\nfor tests of ree itself\n" CLI_DEVICE_TEST_HELP CLI_RANKS_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run ./Qwen2.5-0.5B-Instruct --messages chat.json --device vulkan\n"
  "  ree-run model.onnx --prompt-text \"Once upon a time\" --max-new-tokens 64 --json\n"
  "  ree-run ./model --prompt-file prompts.txt --temperature 0.8 --top-p 0.95 --seed 7\n"
  "\n"
  "Ctrl-C stops the generation and reports the tokens so far; a second Ctrl-C ends the program.\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout, 130 interrupted\n"},
    // clang-format on
};
const struct cli_option_table ree_run_generate_options = CLI_OPTION_TABLE(rows);

int generate_options_help(void) {
    return cli_options_help(&ree_run_generate_options);
}

// Options must not override what a request decides.
static void check_request(struct cli *cli, const struct generate_options *o) {
    const struct ree_sampling *s = &o->sampling;
    bool samples = s->temperature != 0 || o->top_k || s->top_p != 1 || s->min_p != 0 ||
                   s->repetition_penalty != 1 || s->seed;
    const char *given = o->n_prompts                        ? "the prompt"
                        : samples                           ? "the sampling"
                        : o->n_stops                        ? "--stop"
                        : o->max_new_tokens != DEFAULT_MOST ? "--max-new-tokens"
                        : o->ignore_eos                     ? "the end of a text"
                                                            : NULL;
    if (given) cli_usage(cli, "--request already sets %s", given);
    if (o->checkpoint.resumes) cli_usage(cli, "--request and --resume exclude each other");
}

static void check(struct cli *cli, struct generate_options *o) {
    struct ree_error err;
    if (!o->model) cli_usage(cli, "no model given");
    if (o->request) {
        check_request(cli, o);
    } else if (!o->n_prompts)
        cli_usage(cli,
                  "no prompt given: use --prompt-text, --prompt-ids, --prompt-file or --messages");
    if (o->receipt.path && o->n_prompts > 1)
        cli_usage(cli, "a receipt requires one prompt, not %zu", o->n_prompts);
    cli_quantize_check(cli, &o->quantize);
    cli_stages_check(cli, &o->stages, &o->device);
    cli_receipt_check(cli, &o->receipt);
    trace_options_check(cli, &o->tracing);
    o->tracing.is_secret = o->receipt.is_private;
    if (o->receipt.path && o->tracing.trace && o->no_fold) cli_usage(cli, CLI_TRACE_IS_FOLDED);
    checkpoint_check(cli, o);
    if (trace_options_any(&o->tracing) && o->n_prompts > 1)
        cli_usage(cli, "--trace, --dump-tensors and --inject-fault require one prompt, not %zu",
                  o->n_prompts);
    // A receipt describes the steps of a run from the beginning. A resumed run divides the same
    // tokens into other steps, so its trace would be another.
    if (o->tracing.trace && o->checkpoint.resumes)
        cli_usage(cli, "--trace and --resume exclude each other: a trace begins with the prompt");
    // A trace records how its prompt was divided. The default chunk is small, because the values of
    // smaller chunks need less memory.
    if (trace_options_any(&o->tracing) && !o->chunk) o->chunk = TRACE_CHUNK;
    o->sampling.top_k = (uint32_t)o->top_k;
    if (ree_sampling_check(&o->sampling, &err) != REE_OK) cli_usage(cli, "%s", err.message);
}

bool generate_options_parse(struct generate_options *o, int argc, char **argv) {
    struct cli cli;
    *o = (struct generate_options){.sampling = ree_greedy, .max_new_tokens = DEFAULT_MOST};
    o->prompts = calloc((size_t)argc, sizeof *o->prompts);
    o->stops = calloc((size_t)argc, sizeof *o->stops);
    if (!o->prompts || !o->stops) {
        cli_error("out of memory");
        return false;
    }
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_generate_options, o);
    if (!cli.failed) check(&cli, o);
    return !cli.failed;
}

void generate_options_finish(struct generate_options *o) {
    free(o->prompts);
    free(o->stops);
}

bool ree_run_is_generate(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (prompt_is_option(argv[i]) || strcmp(argv[i], "--request") == 0 ||
            strncmp(argv[i], "--request=", 10) == 0)
            return true;
    return false;
}
