// The list of files and folders that the command line names. Options and positional arguments are
// added to it while they are parsed. The sandbox then allows access only to these paths and to what
// the system and the drivers need.
#ifndef REE_TOOLS_RUN_PATHS_H
#define REE_TOOLS_RUN_PATHS_H

#include <stdbool.h>
#include <stddef.h>

enum cli_path_kind {
    CLI_NO_PATH,
    CLI_READS,        // a file, or a folder with everything in it, to read
    CLI_READS_BESIDE, // as CLI_READS, and the files next to it: weights, a tokenizer, a trace
    CLI_WRITES,       // a file to create or replace, in a folder that exists
    CLI_FILLS,        // a folder, created if it does not exist
};

struct cli_path {
    enum cli_path_kind kind;
    const char *path; // borrowed from the command line; owned if cli_path_add_suffixed made it
};

// Adds a path. `path` must live as long as the process, as argv does; NULL adds nothing. If memory
// runs out, the process ends with a message, because the sandbox would later refuse the missing
// path.
void cli_path_add(enum cli_path_kind kind, const char *path);
// Adds the path with `suffix` appended, such as ".salt" for a receipt's salt. NULL as path adds
// nothing.
void cli_path_add_suffixed(enum cli_path_kind kind, const char *path, const char *suffix);
// Returns the number of paths on the list and stores a borrowed pointer to the list in *out.
size_t cli_paths(const struct cli_path **out);

// Returns whether two paths name the same file: the same folder and last component, or the same
// existing file. A path may be NULL, which names none.
bool cli_is_same_file(const char *a, const char *b);

// Returns the path on the list that is to be read and names the same file as `path`, or NULL.
const char *cli_path_read_from(const char *path);

// Like cli_option and cli_positional, for an argument that is a path; they also add it to the list.
struct cli;
bool cli_option_path(struct cli *cli, const char *name, enum cli_path_kind kind, const char **out);
bool cli_positional_path(struct cli *cli, enum cli_path_kind kind, const char **out);

#endif
