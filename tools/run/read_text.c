#include "read_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

char *cli_read_stdin(size_t *out_n) {
    struct strbuf text;
    char block[65536];
    size_t n;
    strbuf_init(&text);
    while ((n = fread(block, 1, sizeof block, stdin)) > 0)
        strbuf_append(&text, block, n);
    if (ferror(stdin)) {
        cli_error("cannot read standard input: %s", strerror(errno));
        strbuf_finish(&text);
        return NULL;
    }
    *out_n = text.size;
    char *data = strbuf_take(&text);
    if (!data) cli_error("out of memory");
    return data;
}

char *cli_read_text(const char *path, size_t *out_n) {
    if (!path || strcmp(path, "-") == 0) return cli_read_stdin(out_n);
    struct ree_error err;
    void *bytes;
    if (ree_file_read_small(path, SIZE_MAX, &bytes, out_n, &err) == REE_OK) return bytes;
    cli_fail(&err);
    return NULL;
}
