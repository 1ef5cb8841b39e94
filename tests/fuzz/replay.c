// Runs a fuzz target over the given files and folders, without libFuzzer. With it the seeds are
// part of the ordinary tests, with any compiler.
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes || fread(bytes, 1, size, file) != size) {
        perror(path);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 0;
}

int main(int argc, char **argv) {
    long n = 0;
    int failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE|FOLDER...\n", argv[0]);
        return 1;
    }
    FTS *walk = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk) {
        perror("fts_open");
        return 1;
    }
    for (FTSENT *entry; (entry = fts_read(walk));) {
        if (entry->fts_info != FTS_F) continue;
        failed |= run_file(entry->fts_path);
        n++;
    }
    fts_close(walk);
    printf("%ld inputs\n", n);
    return n > 0 ? failed : 1;
}
