// Runs one dispatch of a self-test in all its rounds. Operands get different hard values in each
// round, and the kernel's results go into the group's digest. If the weights of a product can be
// packed, it runs again with packed weights and must give the same bytes.
#ifndef REE_DEVICE_CPU_SELFTEST_TRIAL_H
#define REE_DEVICE_CPU_SELFTEST_TRIAL_H

#include "device/cpu/selftest.h"
#include "device/selftest/twin_shapes.h"

// Copies of an operand's contents in one round, the latest first, reused if a later problem has the
// same operand or a prefix of it: filling takes a third of a self-test's time.
#define REE_CPU_TRIAL_COPIES 3
struct ree_cpu_trial_kept {
    struct {
        struct ree_hard_values values;
        void *bytes; // NULL: no copy
    } copies[REE_CPU_TRIAL_COPIES];
};

// The state of one run of a group of problems.
struct ree_cpu_trial {
    const struct ree_cpu_context *ctx;
    struct ree_hasher *hasher;
    struct ree_error *err;
    // [operand][round]: copies of the operands' contents, for reuse by later problems
    struct ree_cpu_trial_kept (*kept)[REE_HARD_FEW_ROUNDS];
    struct ree_twin_size size;
    uint32_t rounds; // number of rounds to run
};

// Returns the trial with only its first round: for code that differs from code tested in all rounds
// in its shape, not in its arithmetic.
struct ree_cpu_trial ree_cpu_trial_once(const struct ree_cpu_trial *t);
// Runs a dispatch unchanged, on operands[d->n_operands], whose contents it generates.
enum ree_status ree_cpu_trial_run_whole(const struct ree_cpu_trial *t, struct ree_dispatch *d,
                                        const struct ree_twin_operand *operands);
// Runs the small form of the dispatch, as ree_twin_shrink makes it; *d becomes this form.
enum ree_status ree_cpu_trial_run(const struct ree_cpu_trial *t, struct ree_dispatch *d);
// Adds an operand of n elements to operands[] and d, for ree_cpu_trial_run_whole. Its hard values
// change their style every 100 elements.
void ree_cpu_trial_add_operand(struct ree_dispatch *d, struct ree_twin_operand *operands,
                               uint32_t dtype, uint64_t n, bool is_written);

#endif
