// The files and folders that a command line names. Options and positional arguments add them while
// they are parsed; the sandbox then lets the command reach these and no others.
#ifndef REE_TOOLS_RUN_PLACES_H
#define REE_TOOLS_RUN_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum cli_place_kind {
    CLI_NO_PLACE,
    CLI_READS,        // a file; a folder with all in it
    CLI_READS_BESIDE, // the same, and what lies beside a file: weights, a tokenizer, a trace
    CLI_WRITES,       // a file that is made or replaced, in a folder that is there
    CLI_FILLS,        // a folder, which is made where it is not there
};

struct cli_place {
    enum cli_place_kind kind;
    const char *path; // borrowed from the command line, or of cli_place_add_suffixed
};

// `path` must live as long as the process, as argv does; NULL adds nothing. Without memory the
// process ends with a message: a place that is forgotten would be refused later.
void cli_place_add(enum cli_place_kind kind, const char *path);
// The path with `suffix` behind it: a receipt's salt.
void cli_place_add_suffixed(enum cli_place_kind kind, const char *path, const char *suffix);
size_t cli_places(const struct cli_place **out);

// As cli_option and cli_positional, for an argument that is a path.
struct cli;
bool cli_option_place(struct cli *cli, const char *name, enum cli_place_kind kind,
                      const char **out);
bool cli_positional_place(struct cli *cli, enum cli_place_kind kind, const char **out);

#endif
