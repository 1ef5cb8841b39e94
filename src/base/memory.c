#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

// Set before any allocation, and read without a lock.
static struct ree_allocator hook;
static bool is_set;
static atomic_bool is_used; // something was allocated

enum ree_status ree_set_allocator(const struct ree_allocator *allocator, struct ree_error *err) {
    if (allocator && (!allocator->alloc || !allocator->realloc || !allocator->free))
        return ree_fail(err, REE_INVALID, "an allocator requires alloc, realloc and free");
    if (atomic_load(&is_used))
        return ree_fail(
            err, REE_INVALID,
            "ree has allocated memory already: set the allocator before any other call");
    is_set = allocator != NULL;
    hook = allocator ? *allocator : (struct ree_allocator){0};
    return REE_OK;
}

// The caller's allocator need not support a size of 0: it may return NULL, which ree would take for
// exhausted memory.
static size_t at_least_1(size_t size) {
    return size ? size : 1;
}

// Writes is_used only once, so that threads do not exchange its cache line.
static void note_use(void) {
    if (!atomic_load_explicit(&is_used, memory_order_relaxed)) atomic_store(&is_used, true);
}

void *ree_alloc(size_t size) {
    note_use();
    return is_set ? hook.alloc(hook.user, at_least_1(size)) : malloc(size);
}

void ree_free(void *memory) {
    if (!is_set)
        free(memory);
    else if (memory)
        hook.free(hook.user, memory);
}

void *ree_alloc_zeroed(size_t n, size_t size) {
    size_t total;
    note_use();
    if (!is_set) return calloc(n, size);
    if (__builtin_mul_overflow(n, size, &total)) return NULL;
    void *memory = ree_alloc(total);
    return memory ? memset(memory, 0, total) : NULL;
}

void *ree_realloc(void *memory, size_t size) {
    note_use();
    if (!is_set) return realloc(memory, size);
    return memory ? hook.realloc(hook.user, memory, at_least_1(size)) : ree_alloc(size);
}

static char *copy(const char *s, size_t length) {
    char *own = ree_alloc(length + 1);
    if (!own) return NULL;
    memcpy(own, s, length);
    own[length] = 0;
    return own;
}

char *ree_strndup(const char *s, size_t n) {
    return copy(s, strnlen(s, n));
}

char *ree_strdup(const char *s) {
    return copy(s, strlen(s));
}

int ree_vasprintf(char **out, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *out = n < 0 ? NULL : ree_alloc((size_t)n + 1);
    if (!*out) return -1;
    return vsnprintf(*out, (size_t)n + 1, format, args);
}

int ree_asprintf(char **out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = ree_vasprintf(out, format, args);
    va_end(args);
    return n;
}

// With the caller's allocator, the pointer in front of the aligned memory is the address of the
// allocated block.
void *ree_alloc_aligned(size_t alignment, size_t size) {
    note_use();
    if (!is_set) {
        void *memory;
        return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
    }
    size_t total;
    if (__builtin_add_overflow(size, alignment + sizeof(void *), &total)) return NULL;
    unsigned char *block = ree_alloc(total);
    if (!block) return NULL;
    uintptr_t at =
        ((uintptr_t)block + sizeof(void *) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    unsigned char *memory = block + (at - (uintptr_t)block);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

void ree_free_aligned(void *memory) {
    if (!is_set || !memory) {
        free(memory);
        return;
    }
    unsigned char *block;
    memcpy(&block, (unsigned char *)memory - sizeof block, sizeof block);
    ree_free(block);
}
