// A growable string. A failed allocation sets `failed`; the string stays valid.
#ifndef REE_BASE_STRBUF_H
#define REE_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct ree_strbuf {
    char *data; // NUL-terminated; NULL until the first append
    size_t size;
    size_t capacity;
    bool failed;
};

void ree_strbuf_init(struct ree_strbuf *buf);
void ree_strbuf_finish(struct ree_strbuf *buf);
__attribute__((format(printf, 2, 3))) void ree_strbuf_printf(struct ree_strbuf *buf,
                                                             const char *format, ...);
void ree_strbuf_append(struct ree_strbuf *buf, const char *s, size_t n);
// Returns the string, which the caller releases with ree_free, and resets the buffer. Returns "" if
// nothing was appended, NULL if an allocation failed.
char *ree_strbuf_take(struct ree_strbuf *buf);

#endif
