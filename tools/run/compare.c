// ree-run compare: runs one model on two devices and compares every node of every step.
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "option_groups.h"
#include "paths.h"
#include "start.h"
#include "trace_options.h"

// Device options. Each may be given once for both devices, or twice, once per device.
static const char *const device_options[COMPARE_N_TWICE] = {
    "--device", "--operation-set", "--threads", "--cpu-isa", "--form", "--break-primitive"};

static bool take_device(struct cli *cli, const char *name, void *options) {
    struct compare_options *o = options;
    size_t k = 0;
    while (strcmp(device_options[k], name) != 0)
        k++;
    const char *argument = cli->argv[cli->at];
    size_t n = strlen(name);
    if (strncmp(argument, name, n) != 0 || (argument[n] && argument[n] != '=')) return false;
    if (!cli_device_option(cli, &o->devices[1])) return false;
    // The first value applies to both devices unless a second one follows.
    struct cli_device *a = &o->devices[0];
    const struct cli_device *b = &o->devices[1];
    if (++o->n_given[k] > 2) cli_usage(cli, "%s is given at most twice", device_options[k]);
    if (o->n_given[k] > 1) return true;
    switch (k) {
    case 0: a->spec = b->spec; break;
    case 1: a->options.operation_set = b->options.operation_set; break;
    case 2: a->n_threads = b->n_threads; break;
    case 3: a->options.cpu_isa = b->options.cpu_isa; break;
    case 4: a->testing.force_form = b->testing.force_form; break;
    default: a->testing.break_primitive = b->testing.break_primitive;
    }
    return true;
}

static bool take_prompt(struct cli *cli, const char *name, void *options) {
    struct compare_options *o = options;
    return prompt_option(cli, name, o->prompts, &o->n_prompts);
}

#define AT(field) offsetof(struct compare_options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run compare MODEL --device A --device B [options]: find where two devices differ\n"
  "\n"
  "Runs the model on both devices and compares the result of every node byte by byte. Prints the\n"
  "first node that differs, how far its elements are apart, and the primitives that this node\n"
  "depends on and that a device does not compute natively; then how the difference grows from\n"
  "node to node.\n"
  "\n"
  "input of a language model (both devices run the same tokens: the most likely ones on A; see\n"
  "'ree-run help generate')\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--prompt-text", .value = "TEXT", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as text"},
    {.name = "--prompt-ids", .value = "IDS", .kind = ROW_TAKE, .take = take_prompt,
     .help = "the prompt as token ids, separated by commas"},
    {.name = "--max-new-tokens", .value = "N", .kind = ROW_NUMBER,
     .at = AT(max_new_tokens), .max = 1 << 20,
     .help = "maximum number of new tokens (default 16)"},
    {.name = "--prefill-chunk", .value = "N", .kind = ROW_NUMBER,
     .at = AT(chunk), .min = 1, .max = 1 << 20,
     .help = "number of prompt tokens in one run (default 64)"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder that contains one, or a *.tiktoken file"},
    {.name = "--ignore-eos", .kind = ROW_FLAG, .at = AT(ignore_eos),
     .help = "continue after tokens that end a text"},

    {.kind = ROW_TEXT, .help = "\ninput of any other model\n"},
    {.kind = ROW_GROUP, .group = &cli_inputs_group, .at = AT(inputs), .help = RUN_INPUTS_HELP},
    {.kind = ROW_GROUP, .group = &cli_random_group, .at = AT(inputs), .help = ""},

    {.kind = ROW_TEXT, .help = "\nweights\n"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help =
  "\n"
  "devices (give each option once for both devices, or twice: for A, then for B)\n"
  "  --device SPEC        cpu, cuda, vulkan, vulkan:1, vulkan:NAME, ... (default cpu)\n"
  "  --operation-set SET  reproducible (the default), deterministic or default\n"
  "  --threads N, --cpu-isa ISA, --form FORM\n"
  "                       see 'ree-run help run'\n"},
    {.name = "--device", .value = "SPEC", .kind = ROW_TAKE, .take = take_device, .choices = CLI_DEVICE_CHOICES},
    {.name = "--operation-set", .value = "SET", .kind = ROW_TAKE, .take = take_device, .choices = CLI_SET_CHOICES},
    {.name = "--threads", .value = "N", .kind = ROW_TAKE, .take = take_device},
    {.name = "--cpu-isa", .value = "ISA", .kind = ROW_TAKE, .take = take_device, .choices = CLI_ISA_CHOICES},
    {.name = "--form", .value = "FORM", .kind = ROW_TAKE, .take = take_device, .choices = CLI_FORM_CHOICES},
    {.name = "--break-primitive", .value = "NAME", .kind = ROW_TAKE, .take = take_device},

    {.kind = ROW_TEXT, .help = "\nresults\n"},
    {.name = "--all", .kind = ROW_FLAG, .at = AT(all),
     .help = "list every node in the table, not only those that differ"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.name = "--html", .value = "FILE", .kind = ROW_STRING, .at = AT(html), .path = CLI_WRITES,
     .help = "write an HTML page with a plot of the difference over depth, and the table"},
    {.name = "--inject-fault", .value = "NODE:STEP:BIT[:OUTPUT]", .kind = ROW_STRING,
     .at = AT(fault),
     .help = "flip one bit on B, to check that compare finds it; see 'ree-run help run'"},

    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\nfor tests of ree itself (for one device or both, as above)\n" CLI_DEVICE_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run compare tools/sample/stories --prompt-text \"Once upon a time\" \\\n"
  "      --device cpu --device vulkan\n"
  "  ree-run compare model.onnx --random-inputs 1 --device cuda \\\n"
  "      --operation-set reproducible --operation-set default --html drift.html\n"
  "\n"
  "exit status: 0 same bytes, 1 different bytes, 2 cannot be compared (or wrong usage)\n"},
    // clang-format on
};
const struct cli_option_table ree_run_compare_options = CLI_OPTION_TABLE(rows);

static void parse(struct cli *cli, struct compare_options *o) {
    o->max_new_tokens = 16;
    o->chunk = TRACE_CHUNK;
    cli_options_parse(cli, &ree_run_compare_options, o);
    if (cli->failed) return;
    if (!o->model) cli_usage(cli, "no model given");
    cli_quantize_check(cli, &o->quantize);
    fault_option_check(cli, o->fault);
    if (o->n_prompts > 1) cli_usage(cli, "expected one prompt, not %zu", o->n_prompts);
    if (o->n_prompts && (o->inputs.n_args || o->inputs.random))
        cli_usage(cli, "a prompt and --input exclude each other");
}

int ree_run_compare(int argc, char **argv) {
    struct cli cli;
    struct compare_options o = {0};
    int code = COMPARE_CANNOT;
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_compare_options);
    cli_init(&cli, argc, argv);
    o.prompts = calloc((size_t)argc, sizeof *o.prompts);
    if (!o.prompts) {
        cli_error("out of memory");
    } else if (run_inputs_init(&o.inputs, argc)) {
        struct compare_job job = {.o = &o};
        parse(&cli, &o);
        const struct cli_start start = {.uses = sandbox_uses(o.devices[0].spec) |
                                                sandbox_uses(o.devices[1].spec),
                                        .cannot = COMPARE_CANNOT};
        code = cli.failed ? CLI_USAGE : cli_start(&start);
        if (!code) code = compare_work(&job, &o);
        compare_finish(&job);
    }
    free(o.prompts);
    run_inputs_finish(&o.inputs);
    return code;
}
