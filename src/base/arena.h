// Bump allocator: many small allocations with one lifetime. Memory comes zeroed.
#ifndef REE_BASE_ARENA_H
#define REE_BASE_ARENA_H

#include <stddef.h>

struct ree_arena_block;

struct ree_arena {
    struct ree_arena_block *blocks; // newest first
};

void ree_arena_init(struct ree_arena *arena);
void ree_arena_finish(struct ree_arena *arena); // frees everything; the arena may be used again
// Zeroed, aligned to 64 bytes for sizes of 64 and more, else to 16. NULL when memory is exhausted.
void *ree_arena_alloc(struct ree_arena *arena, size_t size);
void *ree_arena_alloc_array(struct ree_arena *arena, size_t n,
                            size_t size); // NULL also on overflow
char *ree_arena_strdup(struct ree_arena *arena, const char *s);
char *ree_arena_strndup(struct ree_arena *arena, const char *s, size_t n);

#endif
