// ree-run compare: one model on two devices, every node of every step.
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "watch.h"

static const char help[] =
    "ree-run compare MODEL --device A --device B [options]: where two devices part\n"
    "\n"
    "Runs the model on both and compares, byte by byte, what every node computed. Prints the "
    "first\n"
    "node that differs, how far its elements are apart and which of the devices' primitives it\n"
    "depends on that are not computed natively; then how the difference grows from node to node.\n"
    "\n"
    "what is run\n"
    "  a language model     --prompt-text TEXT or --prompt-ids IDS, --max-new-tokens N (otherwise\n"
    "                       16), --prefill-chunk N (otherwise 64), --tokenizer PATH, "
    "--ignore-eos;\n"
    "                       see 'ree-run help generate'. Both are given the same tokens: those "
    "that\n"
    "                       A finds the likeliest\n"
    "  any other model      --input NAME=FILE, --random-inputs SEED, --dim NAME=N; see 'ree-run "
    "help\n"
    "                       run'\n"
    "\n"
    "where: each of these once, for both, or twice, for A and then for B\n"
    "  --device SPEC        cpu, cuda, vulkan, vulkan:1, vulkan:NAME, ... (otherwise cpu)\n"
    "  --operation-set SET  reproducible (the default), deterministic or default\n"
    "  --threads N, --cpu-isa ISA, --form FORM, --break-primitive NAME\n"
    "                       see 'ree-run help run'\n"
    "\n"
    "results\n"
    "  --all                every node in the table, and not just those that differ\n"
    "  --json               one JSON object instead of text\n"
    "  --html FILE          a page with a picture of the difference over depth, and the table\n"
    "  --inject-fault NODE:STEP:BIT[:OUTPUT]\n"
    "                       for tests: flip one bit on B\n"
    "\n"
    "examples\n"
    "  ree-run compare tools/sample/stories --prompt-text \"Once upon a time\" \\\n"
    "      --device cpu --device vulkan\n"
    "  ree-run compare model.onnx --random-inputs 1 --device cuda \\\n"
    "      --operation-set reproducible --operation-set default --html drift.html\n"
    "\n"
    "exit status: 0 the same bytes, 1 they differ, 2 they cannot be compared (or wrong usage)\n";

// Options of a device, which may be given for both or for each.
static const char *const device_options[COMPARE_N_TWICE] = {
    "--device", "--operation-set", "--threads", "--cpu-isa", "--form", "--break-primitive"};

static bool device_option(struct cli *cli, struct compare_options *o) {
    const char *argument = cli->argv[cli->at];
    size_t k = 0, n;
    for (; k < COMPARE_N_TWICE; k++) {
        n = strlen(device_options[k]);
        if (strncmp(argument, device_options[k], n) == 0 && (!argument[n] || argument[n] == '='))
            break;
    }
    if (k == COMPARE_N_TWICE || !cli_device_option(cli, &o->devices[1])) return false;
    // The first is of both until there is a second.
    struct cli_device *a = &o->devices[0];
    const struct cli_device *b = &o->devices[1];
    if (++o->n_given[k] > 2) cli_usage(cli, "%s is given at most twice", device_options[k]);
    if (o->n_given[k] > 1) return true;
    switch (k) {
    case 0: a->spec = b->spec; break;
    case 1: a->options.operation_set = b->options.operation_set; break;
    case 2: a->n_threads = b->n_threads; break;
    case 3: a->options.cpu_isa = b->options.cpu_isa; break;
    case 4: a->options.force_form = b->options.force_form; break;
    default: a->options.break_primitive = b->options.break_primitive;
    }
    return true;
}

static bool input_option(struct cli *cli, struct compare_options *o) {
    const char *value = NULL;
    if (cli_option(cli, "--input", &value)) {
        if (value) o->inputs.args[o->inputs.n_args++] = value;
    } else if (cli_option(cli, "--dim", &value)) {
        if (value) run_inputs_add_dim(&o->inputs, cli, value);
    } else if (cli_option_number(cli, "--random-inputs", 0, UINT64_MAX, &o->inputs.seed)) {
        o->inputs.random = true;
    } else if (cli_option(cli, "--prompt-text", &value)) {
        o->prompt = (struct prompt_arg){PROMPT_TEXT, value};
        o->n_prompts++;
    } else if (cli_option(cli, "--prompt-ids", &value)) {
        o->prompt = (struct prompt_arg){PROMPT_IDS, value};
        o->n_prompts++;
    } else {
        return false;
    }
    return true;
}

static void parse(struct cli *cli, struct compare_options *o) {
    o->max_new_tokens = 16;
    o->chunk = WATCH_CHUNK;
    while (cli_next(cli)) {
        if (cli_flag(cli, "--json"))
            o->json = true;
        else if (cli_flag(cli, "--all"))
            o->all = true;
        else if (cli_flag(cli, "--ignore-eos"))
            o->ignore_eos = true;
        else if (!input_option(cli, o) && !device_option(cli, o) &&
                 !cli_option(cli, "--tokenizer", &o->tokenizer) &&
                 !cli_option(cli, "--html", &o->html) &&
                 !cli_option(cli, "--inject-fault", &o->fault) &&
                 !cli_option_number(cli, "--max-new-tokens", 0, 1 << 20, &o->max_new_tokens) &&
                 !cli_option_number(cli, "--prefill-chunk", 1, 1 << 20, &o->chunk) &&
                 !cli_positional(cli, &o->model))
            cli_unknown(cli);
    }
    if (cli->failed) return;
    if (!o->model) cli_usage(cli, "no model is named");
    if (o->n_prompts > 1) cli_usage(cli, "one prompt is compared, and %zu are given", o->n_prompts);
    if (o->n_prompts && (o->inputs.n_args || o->inputs.random))
        cli_usage(cli, "a prompt and inputs exclude each other");
}

int ree_run_compare(int argc, char **argv) {
    struct cli cli;
    struct compare_options o = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            struct ree_strbuf text;
            ree_strbuf_init(&text);
            ree_strbuf_printf(&text, "%s", help);
            return cli_print(&text);
        }
    o.inputs.args = calloc((size_t)argc, sizeof *o.inputs.args);
    o.inputs.dims = calloc((size_t)argc, sizeof *o.inputs.dims);
    cli_init(&cli, argc, argv);
    int code = COMPARE_CANNOT;
    if (!o.inputs.args || !o.inputs.dims) {
        cli_error("out of memory");
    } else {
        struct compare_job job = {.o = &o};
        parse(&cli, &o);
        code = cli.failed ? CLI_USAGE : compare_work(&job, &o);
        compare_finish(&job);
    }
    run_inputs_finish(&o.inputs);
    return code;
}
