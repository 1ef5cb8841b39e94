// The options that every subcommand has, and the first step of every subcommand: entering the
// sandbox and limiting memory and time.
#ifndef REE_TOOLS_RUN_START_H
#define REE_TOOLS_RUN_START_H

#include "budget.h"
#include "cli.h"
#include "option_groups.h"
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
// Help of the options. VERDICT: for commands whose exit code 1 is a verdict; a timeout exits with
// 2. PLAIN: for all other commands; a timeout exits with 124.
#define CLI_START_HELP_PLAIN CLI_START_HELP_WITH("124")
#define CLI_START_HELP_VERDICT CLI_START_HELP_WITH("2")

// Rows that add --max-memory, --timeout and --no-sandbox to a subcommand's table. Every table
// contains one of the two.
#define CLI_START_ROW_PLAIN                                                                        \
    { .kind = ROW_GROUP, .group = &cli_start_group, .help = CLI_START_HELP_PLAIN }
#define CLI_START_ROW_VERDICT                                                                      \
    { .kind = ROW_GROUP, .group = &cli_start_group, .help = CLI_START_HELP_VERDICT }

// Makes cli_error append a hint to messages of errors that the sandbox or a limit may have caused.
// Must be called before any argument is parsed.
void cli_start_init(void);

struct cli_start {
    unsigned uses;          // SANDBOX_... flags
    const char *no_sandbox; // why this command has no sandbox; NULL: it has one
    int cannot;             // exit code if a limit ends the command; see struct budget
};
// Enters the sandbox and starts the limits. Must be called after the options are parsed and before
// any file that they name is read. Returns 0, or prints an error and returns an exit code.
int cli_start(const struct cli_start *start);

#endif
