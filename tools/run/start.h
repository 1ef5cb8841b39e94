// The options that every subcommand has, and its first step: the sandbox and the budgets.
#ifndef REE_TOOLS_RUN_START_H
#define REE_TOOLS_RUN_START_H

#include "budget.h"
#include "cli.h"
#include "sandbox.h"

#define CLI_START_HELP_WITH(status)                                                                \
    "\nwhat the command may do (SECURITY.md)\n"                                                    \
    "  --max-memory SIZE    end where it takes more memory than that (512M, 4G, in powers of\n"    \
    "                       1024): heap, buffers, caches and stacks, not weights that are only\n"  \
    "                       mapped from their files, nor the memory of devices\n"                  \
    "  --timeout SECONDS    end if it takes longer, with exit status " status "\n"                 \
    "  --no-sandbox         keep the rights that it gives up before it reads a file of a\n"        \
    "                       stranger: files that the command line does not name, other\n"          \
    "                       programs, the network\n"
// PLAIN: no exit code is a verdict. VERDICT: some are, so a timeout exits with 2.
#define CLI_START_HELP_PLAIN CLI_START_HELP_WITH("124")
#define CLI_START_HELP_VERDICT CLI_START_HELP_WITH("2")

// Returns true if the argument is one of these options. cli_next calls this for all subcommands.
bool cli_start_option(struct cli *cli);

struct cli_start {
    unsigned uses;          // SANDBOX_... flags
    const char *no_sandbox; // why this command has no sandbox; NULL: it has one
    int cannot;             // exit code as in struct budget
};
// Must be called after the options are parsed and before any file they name is read. Returns an
// exit code.
int cli_start(const struct cli_start *start);

#endif
