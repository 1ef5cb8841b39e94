#include "base/arena.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

// AddressSanitizer checks the bounds of each allocation, as it does for malloc: unallocated bytes
// are poisoned, and a few bytes between allocations stay poisoned.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define GAP 16
#else
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)0)
#define GAP 0
#endif

struct ree_arena_block {
    struct ree_arena_block *next;
    size_t used, size;   // bytes in data
    unsigned char *data; // 64-byte aligned
};

void ree_arena_init(struct ree_arena *arena) {
    *arena = (struct ree_arena){0};
}

void ree_arena_finish(struct ree_arena *arena) {
    struct ree_arena_block *block = arena->blocks;
    while (block) {
        struct ree_arena_block *next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
        ree_free_aligned(block->data);
        ree_free(block);
        block = next;
    }
    *arena = (struct ree_arena){0};
}

static void *exhausted(struct ree_arena *arena) {
    arena->is_exhausted = true;
    return NULL;
}

void *ree_arena_alloc(struct ree_arena *arena, size_t size) {
    size_t align = size >= 64 ? 64 : 16;
    if (size == 0) size = 1;
    struct ree_arena_block *block = arena->blocks;
    if (block) {
        size_t at = (block->used + align - 1) & ~(align - 1);
        if (at <= block->size && size <= block->size - at) {
            block->used = at + size + GAP;
            ASAN_UNPOISON_MEMORY_REGION(block->data + at, size);
            return block->data + at;
        }
    }
    size_t want = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    if (want > SIZE_MAX - 63) return exhausted(arena);
    want = (want + 63) & ~(size_t)63;
    struct ree_arena_block *fresh = ree_alloc(sizeof *fresh);
    if (!fresh) return exhausted(arena);
    fresh->data = ree_alloc_aligned(64, want);
    if (!fresh->data) {
        ree_free(fresh);
        return exhausted(arena);
    }
    memset(fresh->data, 0, want);
    fresh->size = want;
    fresh->used = size + GAP;
    ASAN_POISON_MEMORY_REGION(fresh->data + size, want - size);
    if (block && size > BLOCK_SIZE / 4) {
        // A large request gets a block of its own. The new block is inserted after the current one,
        // whose free space remains available.
        fresh->next = block->next;
        block->next = fresh;
    } else {
        fresh->next = block;
        arena->blocks = fresh;
    }
    return fresh->data;
}

void *ree_arena_alloc_array(struct ree_arena *arena, size_t n, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) return exhausted(arena);
    return ree_arena_alloc(arena, total);
}

char *ree_arena_strndup(struct ree_arena *arena, const char *s, size_t n) {
    if (n == SIZE_MAX) return NULL;
    char *copy = ree_arena_alloc(arena, n + 1);
    if (copy && n) memcpy(copy, s, n);
    return copy;
}

char *ree_arena_strdup(struct ree_arena *arena, const char *s) {
    return ree_arena_strndup(arena, s, strlen(s));
}
