// Converts a pointer to a field into a pointer to the containing struct.
#ifndef REE_BASE_CONTAINER_H
#define REE_BASE_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

// Evaluates to the struct of type `type` (may be const-qualified) whose field `field` is at
// `pointer`.
#define REE_CONTAINER_OF(pointer, type, field)                                                     \
    ((type *)ree_bytes_before(pointer, offsetof(type, field)))

static inline void *ree_bytes_before(const void *pointer, size_t n) {
    return (char *)(uintptr_t)pointer - n;
}

#endif
