#include "strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_init(struct strbuf *buf) {
    memset(buf, 0, sizeof *buf);
}

void strbuf_finish(struct strbuf *buf) {
    free(buf->data);
    memset(buf, 0, sizeof *buf);
}

// Ensures capacity for n more bytes and the terminator.
static bool reserve(struct strbuf *buf, size_t n) {
    if (buf->failed) return false;
    if (n >= SIZE_MAX / 2 - buf->size) goto fail;
    size_t need = buf->size + n + 1;
    if (need <= buf->capacity) return true;
    size_t capacity = buf->capacity ? buf->capacity * 2 : 128;
    if (capacity < need) capacity = need;
    char *data = realloc(buf->data, capacity);
    if (!data) goto fail;
    buf->data = data;
    buf->capacity = capacity;
    return true;
fail:
    buf->failed = true;
    return false;
}

void strbuf_append(struct strbuf *buf, const char *s, size_t n) {
    if (!reserve(buf, n)) return;
    if (n) memcpy(buf->data + buf->size, s, n);
    buf->size += n;
    buf->data[buf->size] = 0;
}

void strbuf_printf(struct strbuf *buf, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0) {
        buf->failed = true;
    } else if (reserve(buf, (size_t)n)) {
        vsnprintf(buf->data + buf->size, (size_t)n + 1, format, again);
        buf->size += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

char *strbuf_take(struct strbuf *buf) {
    if (!buf->failed && !buf->data) reserve(buf, 0);
    char *data = buf->failed ? NULL : buf->data;
    if (data) data[buf->size] = 0;
    if (buf->failed) free(buf->data);
    memset(buf, 0, sizeof *buf);
    return data;
}
