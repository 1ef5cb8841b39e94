// Runs a fuzz target over the given files and folders, without libFuzzer. With it the seeds are
// part of the ordinary tests, with any compiler.
//
//     REPLAY [FILE|FOLDER]... [--accepted[=N] FILE|FOLDER...]...
//
// Fails if a FILE or FOLDER contains no inputs or cannot be read. After --accepted, the target must
// accept (replay.h) every input in each FILE and FOLDER, or with N at least N inputs in each.
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define EVERY (-1)

struct counts {
    long n, n_accepted;
};

static bool run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return false;
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes || fread(bytes, 1, size, file) != size) {
        perror(path);
        return false;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return true;
}

static bool is_unreadable(const FTSENT *entry) {
    return entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR;
}

// Runs the inputs in a file or folder. Returns false if one cannot be read. n_required: EVERY
// prints the inputs that are not accepted.
static bool run_all(char *path, long n_required, struct counts *out) {
    char *const paths[] = {path, NULL};
    bool ok = true;
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk) {
        perror(path);
        return false;
    }
    for (FTSENT *entry; (entry = fts_read(walk));) {
        if (is_unreadable(entry)) {
            fprintf(stderr, "%s: %s\n", entry->fts_path, strerror(entry->fts_errno));
            ok = false;
        }
        if (entry->fts_info != FTS_F) continue;
        if (&fuzz_accepted) fuzz_accepted = false;
        ok = run_file(entry->fts_path) && ok;
        bool accepted = &fuzz_accepted && fuzz_accepted;
        if (!accepted && n_required == EVERY)
            fprintf(stderr, "%s: not accepted\n", entry->fts_path);
        out->n++;
        out->n_accepted += accepted;
    }
    fts_close(walk);
    return ok;
}

static bool run_argument(char *path, long n_required) {
    struct counts counts = {0};
    bool ok = run_all(path, n_required, &counts);
    printf("%s: %ld inputs", path, counts.n);
    if (&fuzz_accepted) printf(", %ld accepted", counts.n_accepted);
    printf("\n");
    return ok && counts.n > 0 && counts.n_accepted >= (n_required == EVERY ? counts.n : n_required);
}

int main(int argc, char **argv) {
    bool ok = true;
    long n_required = 0, n_paths = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--accepted=", 11) == 0) {
            n_required = strtol(argv[i] + 11, NULL, 10);
        } else if (strcmp(argv[i], "--accepted") == 0) {
            n_required = EVERY;
        } else {
            ok = run_argument(argv[i], n_required) && ok;
            n_paths++;
        }
    }
    if (n_paths == 0)
        fprintf(stderr, "usage: %s [FILE|FOLDER]... [--accepted[=N] FILE|FOLDER...]...\n", argv[0]);
    return ok && n_paths > 0 ? 0 : 1;
}
