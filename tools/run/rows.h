// The options of a subcommand as a table, by which they are parsed and from which --help is
// printed.
//
//     #define AT(field) offsetof(struct options, field)
//     static const struct cli_row rows[] = {
//         {.kind = ROW_TEXT, .help = "ree-run count MODEL [options]: ...\n\nhow\n"},
//         {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model)},
//         {.name = "--top", .value = "N", .kind = ROW_NUMBER, .at = AT(top), .min = 1, .max = 9,
//          .help = "so many (otherwise 3)"},
//         {.name = "--json", .kind = ROW_FLAG, .at = AT(json), .help = "one JSON object"},
//     };
#ifndef REE_TOOLS_RUN_ROWS_H
#define REE_TOOLS_RUN_ROWS_H

#include <stddef.h>

#include "cli.h"
#include "places.h"

enum cli_row_kind {
    ROW_TEXT,       // no option: help, printed as it is
    ROW_POSITIONAL, // const char *, in the order of the rows
    ROW_FLAG,       // bool
    ROW_STRING,     // const char *
    ROW_NUMBER,     // uint64_t from min to max
    ROW_REAL,       // float from low, or above it, to high
    ROW_TAKE,       // one option that `take` parses
    ROW_GROUP,      // options of another room, which `take` parses; help is printed as it is
};

struct cli_row {
    const char *name;  // "--top"; NULL of text and groups
    const char *value; // what stands for its value in the help; NULL: it has none
    const char *help;  // one sentence or more, cut into lines here
    enum cli_row_kind kind;
    enum cli_place_kind place; // of a positional or a string that is a path
    size_t at;                 // of its place in the struct of options
    uint64_t min, max;
    double low, high;
    bool above; // the low end does not belong to it
    // True if the argument is this option (or one of the group), as with cli_option. `place` is
    // what `at` tells.
    bool (*take)(struct cli *cli, const char *name, void *place);
};

// Parses all arguments; cli->failed tells.
void cli_rows_parse(struct cli *cli, const struct cli_row *rows, size_t n, void *options);
// Prints the manual page; returns the exit code.
int cli_rows_help(const struct cli_row *rows, size_t n);

#endif
