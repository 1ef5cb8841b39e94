// The memory plan: tensors alive at the same time never share a byte, in any program. The arena is
// at most about twice as large as the live bytes at the peak, and never smaller than them.
#include <stdlib.h>

#include "session/memory_plan.h"
#include "test.h"
#include "splitmix.h"

static struct splitmix rng = {1};

static uint32_t next(uint32_t below) {
    return splitmix_below(&rng, below);
}

static bool alive_together(const struct ree_memory_plan_tensor *a,
                           const struct ree_memory_plan_tensor *b) {
    return a->first <= b->last && b->first <= a->last;
}

static void check_random_program(uint32_t n, uint32_t length) {
    struct ree_memory_plan_tensor *t = calloc(n, sizeof *t);
    struct ree_arena scratch;
    struct ree_error err;
    ree_arena_init(&scratch);
    for (uint32_t i = 0; i < n; i++) {
        t[i].id = i;
        t[i].nbytes = next(4) ? next(5000) : 0;
        t[i].first = next(length);
        t[i].last = t[i].first + next(length - t[i].first);
    }
    uint64_t size;
    CHECK(ree_memory_plan(t, n, &scratch, &size, &err) == REE_OK);
    bool apart = true, inside = true, aligned = true;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < n; i++) {
        inside = inside && t[i].offset + t[i].nbytes <= size;
        aligned = aligned && t[i].offset % 256 == 0;
        for (uint32_t j = 0; j < i; j++) {
            bool disjoint = t[i].offset + t[i].nbytes <= t[j].offset ||
                            t[j].offset + t[j].nbytes <= t[i].offset;
            if (t[i].nbytes && t[j].nbytes && alive_together(&t[i], &t[j]))
                apart = apart && disjoint;
        }
    }
    for (uint32_t at = 0; at < length; at++) {
        uint64_t now = 0;
        for (uint32_t i = 0; i < n; i++)
            if (t[i].first <= at && at <= t[i].last) now += (t[i].nbytes + 255) / 256 * 256;
        if (now > peak) peak = now;
    }
    CHECK(apart);
    CHECK(inside);
    CHECK(aligned);
    CHECK(size >= peak);
    // Greedy placement by size is close to the bound in practice; twice the bound would be an
    // error.
    CHECK(size <= 2 * peak + 256);
    ree_arena_finish(&scratch);
    free(t);
}

int main(void) {
    for (int i = 0; i < 300; i++)
        check_random_program(1 + next(120), 1 + next(60));
    check_random_program(1, 1);
    check_random_program(17000, 1000); // more tensors than the planner searches exhaustively
    return test_finish();
}
