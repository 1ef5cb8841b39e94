// Bump allocator: many small allocations with one lifetime. The memory is zeroed.
#ifndef REE_BASE_ARENA_H
#define REE_BASE_ARENA_H

#include <stddef.h>

struct ree_arena_block;

struct ree_arena {
    struct ree_arena_block *blocks; // newest first
};

void ree_arena_init(struct ree_arena *arena);
// frees all allocations; the arena may be used again
void ree_arena_finish(struct ree_arena *arena);
// Zeroed; aligned to 64 bytes for sizes of at least 64, otherwise to 16. NULL if memory is
// exhausted.
void *ree_arena_alloc(struct ree_arena *arena, size_t size);
void *ree_arena_alloc_array(struct ree_arena *arena, size_t n,
                            size_t size); // NULL also on overflow
char *ree_arena_strdup(struct ree_arena *arena, const char *s);
char *ree_arena_strndup(struct ree_arena *arena, const char *s, size_t n);

#endif
