// Runs one dispatch of a self-test in all its rounds: operands get hard values, others in each
// round, and what the kernel writes goes into the group's digest. Products run twice, with their
// weights as they are and packed.
#ifndef REE_DEVICE_CPU_SELFTEST_TRIAL_H
#define REE_DEVICE_CPU_SELFTEST_TRIAL_H

#include "device/cpu/selftest.h"
#include "device/selftest/twin_shapes.h"

// What an operand was filled with, to be copied if the next problem has the same one: filling is
// most of a self-test's time.
struct ree_cpu_trial_kept {
    struct ree_hard_values values;
    void *bytes; // NULL: nothing is kept
};

// One run of a group.
struct ree_cpu_trial {
    const struct ree_cpu_context *ctx;
    struct ree_hasher *hasher;
    struct ree_error *err;
    struct ree_cpu_trial_kept (*kept)[REE_HARD_FEW_ROUNDS]; // of each operand, of each round
    struct ree_twin_size size;
    uint32_t rounds; // of values
};

// The same trial with the first round only: for code that differs in its shape, not in its
// arithmetic, from what runs in all rounds.
struct ree_cpu_trial ree_cpu_trial_once(const struct ree_cpu_trial *t);
// Runs a dispatch as it is, with d->n_operands operands.
enum ree_status ree_cpu_trial_run_whole(const struct ree_cpu_trial *t, struct ree_dispatch *d,
                                        const struct ree_twin_operand *operands);
// Runs the small form that ree_twin_shrink makes of it.
enum ree_status ree_cpu_trial_run(const struct ree_cpu_trial *t, struct ree_dispatch *d);
// Adds an operand for ree_cpu_trial_run_whole. Its values come in runs of 100.
void ree_cpu_trial_add_operand(struct ree_dispatch *d, struct ree_twin_operand *operands,
                               uint32_t dtype, uint64_t n, bool is_written);

#endif
