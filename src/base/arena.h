// Bump allocator: many small allocations with one lifetime. The memory is zeroed.
#ifndef REE_BASE_ARENA_H
#define REE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ree_arena_block;

struct ree_arena {
    struct ree_arena_block *blocks; // newest first
    bool is_exhausted;              // an allocation has failed
};

void ree_arena_init(struct ree_arena *arena);
// Frees all allocations. The arena may be used again.
void ree_arena_finish(struct ree_arena *arena);
// Allocates `size` zeroed bytes, aligned to 64 bytes if size is at least 64, otherwise to 16.
// Returns NULL and sets is_exhausted if there is no memory.
void *ree_arena_alloc(struct ree_arena *arena, size_t size);
// As ree_arena_alloc, for n elements of `size` bytes. Returns NULL also if n * size overflows.
void *ree_arena_alloc_array(struct ree_arena *arena, size_t n, size_t size);
char *ree_arena_strdup(struct ree_arena *arena, const char *s);
char *ree_arena_strndup(struct ree_arena *arena, const char *s, size_t n);

#endif
