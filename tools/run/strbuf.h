// A growable string. If an allocation fails, `failed` is set, and the string keeps what it had;
// later appends do nothing.
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
// Returns the string, "" if it is empty, or NULL if `failed` is set; resets the buffer. The caller
// must release the string with free.
char *strbuf_take(struct strbuf *buf);

#endif
