#include "paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

// One command line per process, hence the statics.
static struct cli_path *paths;
static size_t n_paths;

static void end_without_memory(void) {
    cli_error("out of memory");
    exit(CLI_USAGE); // the code that no command uses for a result
}

void cli_path_add(enum cli_path_kind kind, const char *path) {
    if (!path || kind == CLI_NO_PATH) return;
    struct cli_path *grown = realloc(paths, (n_paths + 1) * sizeof *grown);
    if (!grown) end_without_memory();
    paths = grown;
    paths[n_paths++] = (struct cli_path){kind, path};
}

void cli_path_add_suffixed(enum cli_path_kind kind, const char *path, const char *suffix) {
    char *whole;
    if (!path) return;
    if (asprintf(&whole, "%s%s", path, suffix) < 0) end_without_memory();
    cli_path_add(kind, whole);
}

size_t cli_paths(const struct cli_path **out) {
    *out = paths;
    return n_paths;
}

bool cli_option_path(struct cli *cli, const char *name, enum cli_path_kind kind, const char **out) {
    const char *path = NULL;
    if (!cli_option(cli, name, &path)) return false;
    if (path) *out = path;
    cli_path_add(kind, path);
    return true;
}

bool cli_positional_path(struct cli *cli, enum cli_path_kind kind, const char **out) {
    if (!cli_positional(cli, out)) return false;
    cli_path_add(kind, *out);
    return true;
}

// Sets *out to the folder of a path, and returns the last component.
static const char *stat_folder(const char *path, struct stat *out, bool *out_ok) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    *out_ok = folder && stat(folder, out) == 0;
    free(folder);
    return slash ? slash + 1 : path;
}

bool cli_is_same_file(const char *a, const char *b) {
    struct stat x, y;
    bool has_x, has_y;
    if (!a || !b) return false;
    if (stat(a, &x) == 0 && stat(b, &y) == 0) return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    const char *name = stat_folder(a, &x, &has_x), *other = stat_folder(b, &y, &has_y);
    if (!has_x || !has_y) return !strcmp(a, b);
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino && !strcmp(name, other);
}

const char *cli_path_read_from(const char *path) {
    for (size_t i = 0; i < n_paths; i++)
        if ((paths[i].kind == CLI_READS || paths[i].kind == CLI_READS_BESIDE) &&
            cli_is_same_file(path, paths[i].path))
            return paths[i].path;
    return NULL;
}
