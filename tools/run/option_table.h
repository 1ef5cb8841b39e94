// An option table of a subcommand. The arguments are parsed by it and --help is printed from it.
//
//     #define AT(field) offsetof(struct options, field)
//     static const struct cli_option_row rows[] = {
//         {.kind = ROW_TEXT, .help = "ree-run count MODEL [options]: ...\n\nhow\n"},
//         {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model)},
//         {.name = "--top", .value = "N", .kind = ROW_NUMBER, .at = AT(top), .min = 1, .max = 9,
//          .help = "so many (otherwise 3)"},
//         {.name = "--json", .kind = ROW_FLAG, .at = AT(json), .help = "one JSON object"},
//     };
#ifndef REE_TOOLS_RUN_OPTION_TABLE_H
#define REE_TOOLS_RUN_OPTION_TABLE_H

#include <stddef.h>

#include "cli.h"
#include "paths.h"

enum cli_option_kind {
    ROW_TEXT,       // not an option: help text, printed unchanged
    ROW_POSITIONAL, // const char *, filled in the order of the rows
    ROW_FLAG,       // bool
    ROW_STRING,     // const char *
    ROW_NUMBER,     // uint64_t from min to max
    ROW_REAL,       // float in [low, high]; with `above`, in (low, high]
    ROW_TAKE,       // one option, parsed by `take`
    ROW_GROUP,      // options of another module, parsed by `take`; help is printed unchanged
};

struct cli_option_row {
    const char *name;  // "--top"; NULL for text and groups
    const char *value; // placeholder of the value in the help; NULL: the option has no value
    const char *help;  // one or more sentences; cli_options_help breaks them into lines
    enum cli_option_kind kind;
    enum cli_path_kind path; // kind of path, for a positional or a string that is a path
    size_t at;               // offset of the target in the struct of options
    uint64_t min, max;
    double low, high;
    bool above; // the value must be greater than `low`, not equal
    // Parses the current argument. Returns true if it is this option or belongs to the group, like
    // cli_option. `target` is the address at offset `at`.
    bool (*take)(struct cli *cli, const char *name, void *target);
};

// Parses all arguments; sets cli->failed on wrong usage.
void cli_options_parse(struct cli *cli, const struct cli_option_row *rows, size_t n, void *options);
// Prints the manual page; returns the exit code.
int cli_options_help(const struct cli_option_row *rows, size_t n);

#endif
