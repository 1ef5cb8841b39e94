// Runs one dispatch of a self-test in all its rounds. Operands get different hard values in each
// round, and the kernel's results go into the group's digest. Products run twice: with plain and
// with packed weights.
#ifndef REE_DEVICE_CPU_SELFTEST_TRIAL_H
#define REE_DEVICE_CPU_SELFTEST_TRIAL_H

#include "device/cpu/selftest.h"
#include "device/selftest/twin_shapes.h"

// A copy of an operand's contents, reused if the next problem has the same operand: filling takes
// most of a self-test's time.
struct ree_cpu_trial_kept {
    struct ree_hard_values values;
    void *bytes; // NULL: no copy
};

// One run of a group.
struct ree_cpu_trial {
    const struct ree_cpu_context *ctx;
    struct ree_hasher *hasher;
    struct ree_error *err;
    struct ree_cpu_trial_kept (*kept)[REE_HARD_FEW_ROUNDS]; // [operand][round]
    struct ree_twin_size size;
    uint32_t rounds; // number of rounds
};

// Returns the same trial with only the first round: for code that differs from code tested in all
// rounds in its shape, not in its arithmetic.
struct ree_cpu_trial ree_cpu_trial_once(const struct ree_cpu_trial *t);
// Runs a dispatch unchanged, with d->n_operands operands.
enum ree_status ree_cpu_trial_run_whole(const struct ree_cpu_trial *t, struct ree_dispatch *d,
                                        const struct ree_twin_operand *operands);
// Runs the small form of the dispatch that ree_twin_shrink makes.
enum ree_status ree_cpu_trial_run(const struct ree_cpu_trial *t, struct ree_dispatch *d);
// Adds an operand for ree_cpu_trial_run_whole. Its values have runs of 100 elements.
void ree_cpu_trial_add_operand(struct ree_dispatch *d, struct ree_twin_operand *operands,
                               uint32_t dtype, uint64_t n, bool is_written);

#endif
