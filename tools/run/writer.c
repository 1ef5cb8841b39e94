#include "writer.h"

#include <string.h>

#include "cli.h"

void writer_init(struct writer *w, bool escapes) {
    *w = (struct writer){.escapes = escapes};
    strbuf_init(&w->pending);
}

static void lack_memory(struct writer *w) {
    if (!w->failed) cli_error("out of memory");
    w->failed = true;
}

// Prints the pending text. `more`: more text may follow.
static void print(struct writer *w, bool more) {
    struct strbuf escaped;
    strbuf_init(&escaped);
    size_t n = cli_append_escaped(&escaped, w->pending.data, w->pending.size, more);
    // If the output cannot be written, cli_write reports it, and the final report fails. The
    // generation continues, so that its receipt is written.
    if (escaped.failed)
        lack_memory(w);
    else
        cli_write(escaped.data, escaped.size);
    strbuf_finish(&escaped);
    w->pending.size -= n;
    if (n) memmove(w->pending.data, w->pending.data + n, w->pending.size);
}

void writer_print(struct writer *w, const char *text, size_t n) {
    if (!w->escapes) {
        cli_write(text, n);
        return;
    }
    strbuf_append(&w->pending, text, n);
    if (w->pending.failed)
        lack_memory(w);
    else
        print(w, true);
}

void writer_end(struct writer *w) {
    if (w->pending.size && !w->pending.failed) print(w, false);
}

void writer_finish(struct writer *w) {
    strbuf_finish(&w->pending);
}

void writer_append(bool escapes, const char *text, size_t n, struct strbuf *out) {
    if (escapes)
        cli_append_escaped(out, text, n, false);
    else
        strbuf_append(out, text, n);
}
