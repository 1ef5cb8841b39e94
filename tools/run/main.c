// ree-run: the command line. Selects the subcommand; each has its own file.
#include "budget.h"
#include "cli.h"
#include "commands.h"
#include "start.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

static const char title[] = "ree-run: runs ONNX models so that every device gives the same bits\n"
                            "\n";

static const char introduction[] =
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

const char *cli_introduction(void) {
    return introduction;
}

#define SUMMARY_COLUMN 36

static void append_usage(struct strbuf *out, bool is_first, const char *usage,
                         const char *summary) {
    size_t begin = out->size;
    strbuf_printf(out, "%sree-run %s", is_first ? "usage: " : "       ", usage);
    if (*summary) {
        size_t column = out->size - begin;
        strbuf_printf(out, "%*s%s", column < SUMMARY_COLUMN ? (int)(SUMMARY_COLUMN - column) : 3,
                      "", summary);
    }
    strbuf_append(out, "\n", 1);
}

static void append_overview(struct strbuf *out) {
    strbuf_printf(out, "%s", title);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *c = &cli_commands[i];
        char usage[128];
        snprintf(usage, sizeof usage, "%s%s%s", c->is_default ? "" : c->name,
                 c->is_default || !*c->usage ? "" : " ", c->usage);
        append_usage(out, i == 0, usage, c->summary);
    }
    append_usage(out, false, "help SUBCOMMAND", "print the manual of run, generate, inspect, ...");
    append_usage(out, false, "--version", "");
    strbuf_printf(out, "%s", introduction);
}

static int print_overview(void) {
    struct strbuf out;
    strbuf_init(&out);
    append_overview(&out);
    return cli_print(&out);
}

static int usage(void) {
    struct strbuf out;
    strbuf_init(&out);
    append_overview(&out);
    fputs(out.failed ? title : out.data, stderr);
    strbuf_finish(&out);
    return CLI_USAGE;
}

static int unexpected(const char *argument) {
    cli_error("unexpected argument '%s'\nTry 'ree-run help'.", argument);
    return CLI_USAGE;
}

static int help(int argc, char **argv) {
    if (argc < 2) return print_overview();
    if (argc > 2) return unexpected(argv[2]);
    static char option[] = "--help";
    const struct cli_command *command = cli_find_command(argv[1]);
    if (command) return command->run(2, (char *[]){argv[1], option, NULL});
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
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return print_overview();
    if (strcmp(argv[1], "--version") == 0) return version(argc - 1, argv + 1);
    if (strcmp(argv[1], "help") == 0) return help(argc - 1, argv + 1);
    // For the build, not for users: no help names it.
    if (strcmp(argv[1], "--document") == 0 && argc == 4) return cli_document(argv[2], argv[3]);
    const struct cli_command *command = cli_find_command(argv[1]);
    if (command) return command->run(argc - 1, argv + 1);
    // No subcommand: "run", or "generate" if there is a prompt. Its name replaces the program's
    // name in argv[0].
    static char run_name[] = "run", generate_name[] = "generate";
    bool generates = ree_run_is_generate(argc, argv);
    argv[0] = generates ? generate_name : run_name;
    return generates ? ree_run_generate(argc, argv) : ree_run_run(argc, argv);
}

int main(int argc, char **argv) {
    budget_begin();
    // A library that was loaded with the program may have changed the floating-point environment,
    // such as the rounding, and with it how numbers are read and printed.
    fesetenv(FE_DFL_ENV);
    cli_json_init();
    cli_start_init();
    return budget_end(choose(argc, argv));
}
