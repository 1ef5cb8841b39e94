// Growable string. A failed allocation sets `failed`; the string stays valid.
#ifndef REE_TOOLS_RUN_STRBUF_H
#define REE_TOOLS_RUN_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *data; // NUL-terminated; NULL until the first append
    size_t size;
    size_t capacity;
    bool failed;
};

void strbuf_init(struct strbuf *buf);
void strbuf_finish(struct strbuf *buf);
__attribute__((format(printf, 2, 3))) void strbuf_printf(struct strbuf *buf, const char *format,
                                                         ...);
void strbuf_append(struct strbuf *buf, const char *s, size_t n);
// Returns the string, which the caller frees, and resets the buffer. "" if empty, NULL if failed.
char *strbuf_take(struct strbuf *buf);

#endif
