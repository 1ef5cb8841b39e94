#include "base/arena.h"
#include "test.h"

#include <stdint.h>
#include <string.h>

static bool is_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

// Allocations of many sizes are zeroed, aligned and disjoint: each keeps the pattern written to it.
static void test_pieces(void) {
    enum { N = 400 };
    static unsigned char *pieces[N];
    static size_t sizes[N];
    struct ree_arena arena;
    ree_arena_init(&arena);
    for (size_t i = 0; i < N; i++) {
        sizes[i] = (i * 7919 + 13) % 3000;
        if (i % 50 == 0) sizes[i] = 100000 + i; // larger than a block
        pieces[i] = ree_arena_alloc(&arena, sizes[i]);
        REQUIRE(pieces[i]);
        CHECK(is_zero(pieces[i], sizes[i]));
        CHECK((uintptr_t)pieces[i] % (sizes[i] >= 64 ? 64 : 16) == 0);
        memset(pieces[i], (int)(i % 255) + 1, sizes[i]);
    }
    for (size_t i = 0; i < N; i++) {
        size_t wrong = 0;
        for (size_t j = 0; j < sizes[i]; j++)
            wrong += pieces[i][j] != i % 255 + 1;
        CHECK_MSG(wrong == 0, "piece %zu was overwritten", i);
    }
    ree_arena_finish(&arena);
    // The arena is usable again after finish.
    CHECK(ree_arena_alloc(&arena, 10) != NULL);
    ree_arena_finish(&arena);
    ree_arena_finish(&arena);
}

static void test_limits(void) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    CHECK(ree_arena_alloc(&arena, 0) != NULL);
    CHECK(ree_arena_alloc(&arena, SIZE_MAX) == NULL);
    CHECK(ree_arena_alloc(&arena, SIZE_MAX - 63) == NULL);
    CHECK(ree_arena_alloc_array(&arena, SIZE_MAX / 8 + 2, 8) == NULL);
    CHECK(ree_arena_alloc_array(&arena, 3, 8) != NULL);
    CHECK(ree_arena_strndup(&arena, "x", SIZE_MAX) == NULL);
    ree_arena_finish(&arena);
}

static void test_strings(void) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    const char *a = ree_arena_strdup(&arena, "conv1.weight");
    const char *b = ree_arena_strndup(&arena, "conv1.weight", 5);
    const char *c = ree_arena_strdup(&arena, "");
    REQUIRE(a && b && c);
    CHECK(strcmp(a, "conv1.weight") == 0);
    CHECK(strcmp(b, "conv1") == 0);
    CHECK(strcmp(c, "") == 0);
    ree_arena_finish(&arena);
}

int main(void) {
    test_pieces();
    test_limits();
    test_strings();
    return test_finish();
}
