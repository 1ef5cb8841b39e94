// Prints a generated text to standard output, piece by piece, while it is generated.
#ifndef REE_TOOLS_RUN_WRITER_H
#define REE_TOOLS_RUN_WRITER_H

#include "strbuf.h"
#include "ree.h"

struct writer {
    bool escapes;          // escape control characters for a terminal (cli_append_escaped)
    struct strbuf pending; // bytes of a UTF-8 character that the next text may complete
    bool failed;           // memory was exhausted; a message was printed
};

void writer_init(struct writer *w, bool escapes);
void writer_print(struct writer *w, const char *text, size_t n);
// Prints the bytes of an incomplete last character. Must be called after the last text.
void writer_end(struct writer *w);
void writer_finish(struct writer *w);
// Appends n bytes of text to `out`, with control characters escaped as writer_print does if
// `escapes` is true.
void writer_append(bool escapes, const char *text, size_t n, struct strbuf *out);

#endif
