#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ree_fail_message(struct ree_error *err, enum ree_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
}

#undef ree_fail_prefix // status.h wraps it for clang's analyzer
enum ree_status ree_fail_prefix(struct ree_error *err, const char *format, ...) {
    if (!err) return REE_INTERNAL;
    char prefix[REE_ERROR_MAX], rest[REE_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(rest, err->message, sizeof rest);
    size_t n = strlen(prefix);
    // A very long prefix must not displace the message itself: it gets at most half of the space.
    if (n > sizeof err->message / 2) n = sizeof err->message / 2;
    memcpy(err->message, prefix, n);
    snprintf(err->message + n, sizeof err->message - n, ": %s", rest);
    // A caller that received REE_OK for a failure would continue with results that were never set.
    if (err->status == REE_OK) err->status = REE_INTERNAL;
    return err->status;
}

bool ree_mul_size(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool ree_add_size(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool ree_count_elements(uint32_t rank, const int64_t *dims, int64_t *out) {
    // A dimension of 0 counts as 1 in the overflow check, because partial products are used as
    // strides.
    int64_t n = 1;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0) empty = true;
        if (__builtin_mul_overflow(n, dims[i] ? dims[i] : 1, &n)) return false;
    }
    *out = empty ? 0 : n;
    return true;
}

const char *ree_status_name(enum ree_status status) {
    switch (status) {
    case REE_OK: return "ok";
    case REE_INVALID: return "invalid";
    case REE_UNSUPPORTED: return "unsupported";
    case REE_NOT_FOUND: return "not found";
    case REE_IO: return "i/o error";
    case REE_NO_MEMORY: return "out of memory";
    case REE_UNAVAILABLE: return "unavailable";
    case REE_DEVICE: return "device error";
    case REE_INTERNAL: return "internal error";
    case REE_CANCELLED: return "cancelled";
    }
    return "?";
}

#define TEXT(x) #x
#define DIGITS(x) TEXT(x) // expands the macro x before TEXT quotes it
const char *ree_version(void) {
    return DIGITS(REE_VERSION_MAJOR) "." DIGITS(REE_VERSION_MINOR) "." DIGITS(REE_VERSION_PATCH);
}
const char *ree_numerics_version(void) {
    return "RepOps/1";
}
