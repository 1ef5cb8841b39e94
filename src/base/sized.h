// Structs that the caller allocates and that begin with `size_t size`.
#ifndef REE_BASE_SIZED_H
#define REE_BASE_SIZED_H

#include <string.h>

#include "base/status.h"

// Copies an options struct into *out, whose size is `known`. Fields that the caller's struct does
// not have are zero. `options` NULL: all fields are zero. Fails with REE_INVALID if the size is 0,
// or if the struct is larger than `known` and the rest is not zero. `name` is the struct's, without
// "struct".
static inline enum ree_status ree_sized_read(void *out, size_t known, const void *options,
                                             const char *name, struct ree_error *err) {
    size_t size = known;
    memset(out, 0, known);
    if (options) {
        const unsigned char *bytes = options;
        memcpy(&size, options, sizeof size);
        if (size < sizeof size)
            return ree_fail(err, REE_INVALID, "options.size is %zu: set it to sizeof(struct %s)",
                            size, name);
        for (size_t i = known; i < size; i++)
            if (bytes[i])
                return ree_fail(err, REE_INVALID,
                                "struct %s has %zu bytes, and sets a field that this version of "
                                "ree, which knows %zu, does not have",
                                name, size, known);
        memcpy(out, options, size < known ? size : known);
    }
    memcpy(out, &known, sizeof known);
    return REE_OK;
}

#endif
