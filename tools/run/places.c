#include "places.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

// One command line per process, hence the statics.
static struct cli_place *places;
static size_t n_places;

static void end_without_memory(void) {
    cli_error("out of memory");
    exit(CLI_USAGE); // the code that no command uses for a result
}

void cli_place_add(enum cli_place_kind kind, const char *path) {
    if (!path || kind == CLI_NO_PLACE) return;
    struct cli_place *grown = realloc(places, (n_places + 1) * sizeof *grown);
    if (!grown) end_without_memory();
    places = grown;
    places[n_places++] = (struct cli_place){kind, path};
}

void cli_place_add_suffixed(enum cli_place_kind kind, const char *path, const char *suffix) {
    char *whole;
    if (!path) return;
    if (asprintf(&whole, "%s%s", path, suffix) < 0) end_without_memory();
    cli_place_add(kind, whole);
}

size_t cli_places(const struct cli_place **out) {
    *out = places;
    return n_places;
}

bool cli_option_place(struct cli *cli, const char *name, enum cli_place_kind kind,
                      const char **out) {
    const char *path = NULL;
    if (!cli_option(cli, name, &path)) return false;
    if (path) *out = path;
    cli_place_add(kind, path);
    return true;
}

bool cli_positional_place(struct cli *cli, enum cli_place_kind kind, const char **out) {
    if (!cli_positional(cli, out)) return false;
    cli_place_add(kind, *out);
    return true;
}
