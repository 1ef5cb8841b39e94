// Allocates memory for all of libree's own code: with malloc and free, or with the functions that
// the caller has set with ree_set_allocator. The test base/allocations checks that no other code
// calls malloc. ree_alloc and ree_free are public (ree/core.h).
//
// The following allocate in other ways:
// - functions of the C library that return memory, which ree frees: getline, realpath
// - the libraries that ree uses, except protobuf-c and PCRE2
#ifndef REE_BASE_MEMORY_H
#define REE_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

#include "ree.h"

// These functions have the contracts of calloc, realloc, strdup, strndup, asprintf and vasprintf.
// Release the memory with ree_free.
void *ree_alloc_zeroed(size_t n, size_t size);
void *ree_realloc(void *memory, size_t size);
char *ree_strdup(const char *s);
char *ree_strndup(const char *s, size_t n);
__attribute__((format(printf, 2, 3))) int ree_asprintf(char **out, const char *format, ...);
int ree_vasprintf(char **out, const char *format, va_list args);

// Allocates `size` bytes at a multiple of `alignment`, a power of two of at least sizeof(void *).
// Release with ree_free_aligned only.
void *ree_alloc_aligned(size_t alignment, size_t size);
void ree_free_aligned(void *memory);

#endif
