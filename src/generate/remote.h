// Stages that run in other processes: what a generator does then with a step, in place of running
// it here. src/ranks makes it; this room knows nothing of messages.
#ifndef REE_GENERATE_REMOTE_H
#define REE_GENERATE_REMOTE_H

#include "generate/generator.h"

struct ree_remote {
    void *user;
    // After ree_generator_begin has emptied the caches of the local stages.
    enum ree_status (*begin)(void *user, size_t set, size_t batch, int64_t most,
                             struct ree_error *err);
    // Runs the local stages (ree_generator_run_stages) and hands over what they made.
    enum ree_status (*submit)(void *user, size_t set, const struct ree_step *step,
                              struct ree_error *err);
    // As ree_generator_collect.
    enum ree_status (*collect)(void *user, size_t set, const struct ree_step *step,
                               struct ree_tensor *out_logits, struct ree_error *err);
    // As ree_generator_read_caches; no step is in flight.
    enum ree_status (*read)(void *user, size_t set, int64_t sequence, int64_t first, int64_t n,
                            struct ree_tensor *out, struct ree_error *err);
    // Positions that the set's caches hold, wherever they are.
    int64_t (*rows)(void *user, size_t set);
};

#endif
