// Reads and fills public structs that begin with `size_t size`, so that programs that were compiled
// with another version of the headers work.
#ifndef REE_BASE_SIZED_H
#define REE_BASE_SIZED_H

#include <string.h>

#include "base/status.h"

// Copies options of the caller into `out` (`known` bytes) and zeroes the rest. NULL: all zeros.
// Fails with REE_INVALID if options->size is 0, or if a byte that this version does not know is not
// zero. `name` is the struct's name, for messages.
static inline enum ree_status ree_sized_read(void *out, size_t known, const void *options,
                                             const char *name, struct ree_error *err) {
    size_t size = known;
    memset(out, 0, known);
    if (options) memcpy(&size, options, sizeof size);
    if (size < sizeof size)
        return ree_fail(err, REE_INVALID, "options.size is %zu: set it to sizeof(struct %s)", size,
                        name);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)options)[i])
            return ree_fail(err, REE_INVALID,
                            "struct %s has fields that this version of ree does not know", name);
    if (options) memcpy(out, options, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return REE_OK;
}

// Copies `from` (`known` bytes) to a struct of the caller. Fills no more than the caller's size,
// keeps that size, and zeroes what this version does not know. Fails with REE_INVALID if out->size
// is 0. `name` is the struct's name, for messages.
static inline enum ree_status ree_sized_fill(void *out, const void *from, size_t known,
                                             const char *name, struct ree_error *err) {
    size_t size;
    memcpy(&size, out, sizeof size);
    if (size < sizeof size)
        return ree_fail(err, REE_INVALID, "size is %zu: set it to sizeof(struct %s)", size, name);
    size_t n = size < known ? size : known;
    memcpy((char *)out + sizeof size, (const char *)from + sizeof size, n - sizeof size);
    if (size > known) memset((char *)out + known, 0, size - known);
    return REE_OK;
}

#endif
