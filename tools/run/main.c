// ree-run: the command line. Selects the subcommand; each has its own file.
#include "budget.h"
#include "cli.h"
#include "start.h"

#include "base/float_env.h"

#include <stdio.h>
#include <string.h>

static const char overview[] =
    "ree-run: runs ONNX models so that every device gives the same bits\n"
    "\n"
    "usage: ree-run MODEL [options]      run a model once, print its outputs' SHA-256\n"
    "       ree-run MODEL --prompt-text TEXT [options]   continue a text\n"
    "       ree-run inspect MODEL        show a model's inputs, outputs and operators\n"
    "       ree-run export HF_DIR        write a Hugging Face checkpoint as an ONNX model\n"
    "       ree-run plan MODEL           show how a model is divided into stages\n"
    "       ree-run verify RECEIPT MODEL check whether a receipt of a run is true\n"
    "       ree-run devices              list the devices of this machine\n"
    "       ree-run bench ...            measure speed\n"
    "       ree-run tokenize PATH        convert text to token ids and back\n"
    "       ree-run validate RECEIPT     check whether a receipt is complete and unaltered\n"
    "       ree-run compare MODEL --device A --device B   find where two devices differ\n"
    "       ree-run diff TRACE TRACE     find the first operator where two runs differ\n"
    "       ree-run dispute ...          find the same by exchanging few hashes\n"
    "       ree-run referee CLAIM MODEL  decide who is right about that operator\n"
    "       ree-run trace TRACE          show what a trace contains\n"
    "       ree-run keygen FILE          make keys to sign receipts with\n"
    "       ree-run request MODEL        ask somebody else for a run, for 'verify --request'\n"
    "       ree-run help SUBCOMMAND      print the manual of run, generate, inspect, ...\n"
    "       ree-run --version\n"
    "\n"
    "A first run, on the CPU and then on a GPU; both print the same SHA-256:\n"
    "\n"
    "    ree-run model.onnx --input image=image.npy\n"
    "    ree-run model.onnx --input image=image.npy --device vulkan\n"
    "\n"
    "The bits depend only on the model, the inputs and the numerics version: not on the device,\n"
    "its driver, the number of threads, or how the work is divided. NUMERICS.md defines them.\n"
    "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    // clang-format off
    {"run", ree_run_run},
    {"generate", ree_run_generate},
    {"inspect", ree_run_inspect},
    {"export", ree_run_export},
    {"plan", ree_run_plan},
    {"devices", ree_run_devices},
    {"bench", ree_run_bench},
    {"tokenize", ree_run_tokenize},
    {"validate", ree_run_validate},
    {"verify", ree_run_verify},
    {"keygen", ree_run_keygen},
    {"request", ree_run_request},
    {"compare", ree_run_compare},
    {"diff", ree_run_diff},
    {"dispute", ree_run_dispute},
    {"referee", ree_run_referee},
    {"trace", ree_run_trace},
    // clang-format on
};

static int usage(void) {
    fputs(overview, stderr);
    return CLI_USAGE;
}

static int unexpected(const char *argument) {
    cli_error("unexpected argument '%s'\nTry 'ree-run help'.", argument);
    return CLI_USAGE;
}

static int help(int argc, char **argv) {
    if (argc < 2) return cli_print_text(overview);
    if (argc > 2) return unexpected(argv[2]);
    static char option[] = "--help";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(2, (char *[]){argv[1], option, NULL});
    cli_error("unknown subcommand '%s'\nTry 'ree-run help'.", argv[1]);
    return CLI_USAGE;
}

static int version(int argc, char **argv) {
    struct strbuf out;
    if (argc > 1) return unexpected(argv[1]);
    strbuf_init(&out);
    strbuf_printf(&out, "ree-run %s (%s)\n", ree_version(), ree_numerics_version());
    return cli_print(&out);
}

static int choose(int argc, char **argv) {
    if (argc < 2) return usage();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cli_print_text(overview);
    if (strcmp(argv[1], "--version") == 0) return version(argc - 1, argv + 1);
    if (strcmp(argv[1], "help") == 0) return help(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    // No subcommand: "run", or "generate" if there is a prompt. Its name replaces the program's
    // name in argv[0].
    static char run_name[] = "run", generate_name[] = "generate";
    bool generates = ree_run_is_generate(argc, argv);
    argv[0] = generates ? generate_name : run_name;
    return generates ? ree_run_generate(argc, argv) : ree_run_run(argc, argv);
}

int main(int argc, char **argv) {
    budget_begin();
    ree_float_env_set(); // subcommands also call internal functions of the library
    cli_json_init();
    cli_start_init();
    return budget_end(choose(argc, argv));
}
