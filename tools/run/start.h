// The options that every subcommand has, and its first step: the sandbox and the budgets.
#ifndef REE_TOOLS_RUN_START_H
#define REE_TOOLS_RUN_START_H

#include "budget.h"
#include "cli.h"
#include "sandbox.h"

#define CLI_START_HELP_WITH(status)                                                                \
    "\n"                                                                                           \
    "limits (SECURITY.md)\n"                                                                       \
    "  --max-memory SIZE    end if the command needs more memory than this (512M, 4G; powers "     \
    "of\n"                                                                                         \
    "                       1024). Counted: heap, buffers, caches and stacks. Not counted:\n"      \
    "                       weights that are mapped from files, and the memory of devices\n"       \
    "  --timeout SECONDS    end if the command takes longer, with exit status " status "\n"        \
    "  --no-sandbox         keep rights that the command otherwise gives up before it reads an\n"  \
    "                       untrusted file: files that are not on the command line, other\n"       \
    "                       programs, the network\n"
// PLAIN: no exit code is a verdict. VERDICT: some are, so a timeout exits with 2.
#define CLI_START_HELP_PLAIN CLI_START_HELP_WITH("124")
#define CLI_START_HELP_VERDICT CLI_START_HELP_WITH("2")

// Makes cli_next take these options, and cli_error explain what the sandbox or a budget caused.
// Must be called before any argument is parsed.
void cli_start_init(void);

struct cli_start {
    unsigned uses;          // SANDBOX_... flags
    const char *no_sandbox; // why this command has no sandbox; NULL: it has one
    int cannot;             // exit code as in struct budget
};
// Must be called after the options are parsed and before any file they name is read. Returns an
// exit code.
int cli_start(const struct cli_start *start);

#endif
