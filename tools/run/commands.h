// The subcommands of ree-run: what they are called, what they do, and which options they have.
#ifndef REE_TOOLS_RUN_COMMANDS_H
#define REE_TOOLS_RUN_COMMANDS_H

#include "option_table.h"

struct cli_command {
    const char *name;    // "inspect"
    const char *usage;   // arguments after the name: "MODEL"
    const char *summary; // what it does, in a few words
    int (*run)(int argc, char **argv);
    const struct cli_option_table *options;
    bool is_default; // the command line may omit the subcommand's name
};
extern const struct cli_command cli_commands[];
extern const size_t cli_n_commands;
// Returns the subcommand called `name`, or NULL if there is none.
const struct cli_command *cli_find_command(const char *name);

// Returns the text that follows the list of subcommands in the help of the whole program: a first
// example, what the program promises, and the exit status.
const char *cli_introduction(void);

// Prints a document that the build writes to a file. kind: "man" for the manual page of the
// subcommand `name` ("": of the whole program); "bash", "zsh" or "fish" for this shell's
// completions. Returns an exit code.
int cli_document(const char *kind, const char *name);

extern const struct cli_option_table ree_run_run_options;
extern const struct cli_option_table ree_run_generate_options;
extern const struct cli_option_table ree_run_inspect_options;
extern const struct cli_option_table ree_run_export_options;
extern const struct cli_option_table ree_run_plan_options;
extern const struct cli_option_table ree_run_devices_options;
extern const struct cli_option_table ree_run_bench_options;
extern const struct cli_option_table ree_run_tokenize_options;
extern const struct cli_option_table ree_run_perplexity_options;
extern const struct cli_option_table ree_run_train_options;
extern const struct cli_option_table ree_run_validate_options;
extern const struct cli_option_table ree_run_verify_options;
extern const struct cli_option_table ree_run_keygen_options;
extern const struct cli_option_table ree_run_request_options;
extern const struct cli_option_table ree_run_compare_options;
extern const struct cli_option_table ree_run_diff_options;
extern const struct cli_option_table ree_run_dispute_options;
extern const struct cli_option_table ree_run_referee_options;
extern const struct cli_option_table ree_run_trace_options;

#endif
