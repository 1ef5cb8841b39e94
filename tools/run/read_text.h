// Reads texts that the command line names.
#ifndef REE_TOOLS_RUN_READ_TEXT_H
#define REE_TOOLS_RUN_READ_TEXT_H

#include <stddef.h>

// Reads standard input to its end. *out_n: number of bytes read. The result is NUL-terminated;
// release it with free. Returns NULL after printing an error.
char *cli_read_stdin(size_t *out_n);
// Reads the file at `path` to its end; NULL or "-": standard input. *out_n: number of bytes read.
// The result may have no terminating NUL; release it with free. Returns NULL after printing an
// error.
char *cli_read_text(const char *path, size_t *out_n);

#endif
