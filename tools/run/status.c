#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void set_error_message(struct ree_error *err, enum ree_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
}

enum ree_status memory_error(struct ree_error *err) {
    return set_error(err, REE_NO_MEMORY, "out of memory");
}

enum ree_status prefix_error(struct ree_error *err, const char *format, ...) {
    char prefix[REE_ERROR_MAX / 2], rest[REE_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(rest, err->message, sizeof rest);
    snprintf(err->message, sizeof err->message, "%s: %.*s", prefix,
             (int)(sizeof rest - sizeof prefix), rest);
    return err->status;
}
