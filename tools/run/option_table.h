// Tables that describe the options of a subcommand. The parser, --help, the manual pages and the
// shell completions are made from them. Example:
//
//     #define AT(field) offsetof(struct options, field)
//     static const struct cli_option_row rows[] = {
//         {.kind = ROW_TEXT, .help = "ree-run count MODEL [options]: ...\n\nhow\n"},
//         {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model)},
//         {.name = "--top", .value = "N", .kind = ROW_NUMBER, .at = AT(top), .min = 1, .max = 9,
//          .help = "count the N most frequent (otherwise 3)"},
//         {.name = "--json", .kind = ROW_FLAG, .at = AT(json), .help = "one JSON object"},
//         {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device)},
//     };
//     const struct cli_option_table ree_run_count_options = CLI_OPTION_TABLE(rows);
#ifndef REE_TOOLS_RUN_OPTION_TABLE_H
#define REE_TOOLS_RUN_OPTION_TABLE_H

#include <stddef.h>

#include "cli.h"
#include "paths.h"

enum cli_option_kind {
    ROW_TEXT,              // not an option: help text, printed unchanged
    ROW_POSITIONAL,        // const char *, filled in the order of the rows
    ROW_FLAG,              // bool
    ROW_STRING,            // const char *
    ROW_NUMBER,            // uint64_t from min to max
    ROW_REAL,              // float in [low, high]; with `above`, in (low, high]
    ROW_SIZE,              // uint64_t, bytes: "600M", "2G"
    ROW_CHOICE,            // const char *, one of `choices`
    ROW_CHOICE_OF_NUMBERS, // uint64_t, one of `choices`
    ROW_TAKE,              // one option, parsed by `take`
    ROW_GROUP,             // the options of `group`
};

struct cli_option_table {
    const struct cli_option_row *rows;
    size_t n;
};
#define CLI_OPTION_TABLE(rows)                                                                     \
    { (rows), sizeof(rows) / sizeof *(rows) }

struct cli_option_row {
    const char *name;  // name of the option or argument: "--top", "MODEL"; NULL for text and groups
    const char *value; // placeholder of the value in the help; NULL: the option has no value
    // One or more sentences; cli_options_help breaks them into lines. NULL: another row's help
    // describes this option too. The help of a ROW_GROUP is printed unchanged, instead of the help
    // of the group's rows.
    const char *help;
    enum cli_option_kind kind;
    enum cli_path_kind path; // how the command uses the path, if the value is one
    bool may_be_empty;       // ROW_STRING: the value may be ""
    bool is_optional;        // the option may be given without its value
    bool is_unlisted;        // shell completions do not offer this option
    // Offset of the target in the struct of options. For a group: offset of the group's struct; the
    // offsets of the group's rows are within that struct.
    size_t at;
    uint64_t min, max; // ROW_NUMBER
    double low, high;  // ROW_REAL
    bool above;        // ROW_REAL: the value must be greater than `low`, not equal
    // All values of ROW_CHOICE and ROW_CHOICE_OF_NUMBERS; common values of other options. Ends with
    // NULL. Shell completions offer them.
    const char *const *choices;
    const struct cli_option_table *group; // ROW_GROUP
    // ROW_TAKE: parses the current argument. Returns true if it is this option, like cli_option.
    // `target` is the address at offset `at`.
    bool (*take)(struct cli *cli, const char *name, void *target);
};
#define CLI_CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

// Parses the current argument into the struct `options`. Returns false if the table does not have
// the option.
bool cli_options_take(struct cli *cli, const struct cli_option_table *table, void *options);
// Parses all arguments. On wrong usage it prints a message and sets cli->failed.
void cli_options_parse(struct cli *cli, const struct cli_option_table *table, void *options);
// Prints the help that a table contains. Returns the exit code.
int cli_options_help(const struct cli_option_table *table);

#endif
