// The table of self-test groups with their recorded results, and the function that runs one group.
#include "device/cpu/selftest_problems.h"

#include <stdlib.h>
#include "base/memory.h"

enum ree_status ree_cpu_test_hash(const struct ree_cpu_test *test,
                                  const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                  struct ree_error *err) {
    struct ree_cpu_trial_kept kept[REE_MAX_OPERANDS][REE_HARD_FEW_ROUNDS] = {0};
    const struct ree_cpu_trial trial = {
        .ctx = ctx,
        .hasher = hasher,
        .err = err,
        .kept = kept,
        .size =
            {
                .elements = 300,
                .columns = SOME, // products with fewer columns keep them
                .length = 300,   // a chunk and a part of the next
                .long_length = 550,
                .long_from = UINT32_MAX,
                .keeps_ones = true,
                .few_rows = SOME, // products with fewer rows keep them
                .rows = ROWS,
                .few_queries = 8,
            },
        .rounds = REE_HARD_FEW_ROUNDS,
    };
    enum ree_status status = test->run(&trial);
    for (size_t i = 0; i < REE_MAX_OPERANDS; i++)
        for (size_t round = 0; round < REE_HARD_FEW_ROUNDS; round++)
            for (size_t copy = 0; copy < REE_CPU_TRIAL_COPIES; copy++)
                ree_free(kept[i][round].copies[copy].bytes);
    return status;
}

#define GROUP(name, recorded) {#name, ree_cpu_test_##name, recorded},
const struct ree_cpu_test ree_cpu_tests[] = {
#include "device/cpu/selftest_recorded.inc"
};
const size_t ree_cpu_n_tests = sizeof ree_cpu_tests / sizeof *ree_cpu_tests;
