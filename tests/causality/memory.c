// Without memory the proof of causality fails with REE_NO_MEMORY. It must not end with "not
// proved", which would change how prompts run and whom a referee names.
//
//     causality_memory MODEL
#include <stdlib.h>

#include "generate/causality.h"
#include "session/model.h"
#include "test.h"

static long left = -1; // allocations that succeed before one fails; negative: none fails

static bool fails(void) {
    return left >= 0 && left-- == 0;
}
static void *allocate(void *user, size_t size) {
    (void)user;
    return fails() ? NULL : malloc(size);
}
static void *reallocate(void *user, void *memory, size_t size) {
    (void)user;
    return fails() ? NULL : realloc(memory, size);
}
static void release(void *user, void *memory) {
    (void)user;
    free(memory);
}

int main(int argc, char **argv) {
    const struct ree_allocator allocator = {allocate, reallocate, release, NULL};
    struct ree_error err;
    struct ree_model *model = NULL;
    struct ree_roles roles = {0};
    struct ree_causality causality;
    if (argc != 2) return 2;
    CHECK(ree_set_allocator(&allocator, &err) == REE_OK);
    if (ree_model_load(argv[1], NULL, &model, &err) != REE_OK ||
        ree_roles_find(model, &(struct ree_port_names){0}, &roles, &err) != REE_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
        return 1;
    }
    long n_failed = 0;
    enum ree_status status = REE_NO_MEMORY;
    for (long n = 0; status == REE_NO_MEMORY; n++) {
        left = n;
        status = ree_causality_of_model(model, &roles, false, &causality, &err);
        CHECK(status == REE_NO_MEMORY || left >= 0);
        CHECK(!causality.is_proved || status == REE_OK);
        n_failed += status == REE_NO_MEMORY;
    }
    left = -1;
    CHECK_MSG(status == REE_OK && causality.is_proved, "%s", causality.why_not);
    CHECK_MSG(n_failed >= 5, "%ld allocations failed", n_failed);
    ree_roles_finish(&roles);
    ree_model_destroy(model);
    return test_finish();
}
