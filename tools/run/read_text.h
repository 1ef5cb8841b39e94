// Reads texts that the command line names.
#ifndef REE_TOOLS_RUN_READ_TEXT_H
#define REE_TOOLS_RUN_READ_TEXT_H

#include <stddef.h>

// Reads standard input to its end. Release the result, which is NUL-terminated, with free. Returns
// NULL after printing an error.
char *cli_read_stdin(size_t *out_n);
// The same for the file at `path`, without the NUL; NULL or "-": standard input.
char *cli_read_text(const char *path, size_t *out_n);

#endif
