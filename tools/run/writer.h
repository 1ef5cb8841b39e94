// Prints the text of a generated sequence while it is generated.
#ifndef REE_TOOLS_RUN_WRITER_H
#define REE_TOOLS_RUN_WRITER_H

#include "strbuf.h"
#include "ree.h"

struct writer {
    bool escapes;          // escape control characters for a terminal (cli_append_escaped)
    struct strbuf pending; // an incomplete character, whose rest decides how it is escaped
    bool failed;           // out of memory; already printed
};

void writer_init(struct writer *w, bool escapes);
void writer_print(struct writer *w, const char *text, size_t n);
// Prints what is pending. Must be called after the last text.
void writer_end(struct writer *w);
void writer_finish(struct writer *w);
// Appends a text in the form in which it is printed.
void writer_append(bool escapes, const char *text, size_t n, struct strbuf *out);

#endif
