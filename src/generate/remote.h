// Callbacks for a generator whose stages run in several processes: they replace the local step.
// src/ranks implements them; this module does not know about messages.
#ifndef REE_GENERATE_REMOTE_H
#define REE_GENERATE_REMOTE_H

#include "ree.h"

struct ree_step;

struct ree_remote {
    void *user;
    // Called after ree_generator_begin has emptied the kv caches of the local stages.
    enum ree_status (*begin)(void *user, size_t slot, size_t batch, int64_t most,
                             struct ree_error *err);
    // Runs the local stages (ree_generator_run_stages) and sends their boundary tensors.
    enum ree_status (*submit)(void *user, size_t slot, const struct ree_step *step,
                              struct ree_error *err);
    // Like ree_generator_collect.
    enum ree_status (*collect)(void *user, size_t slot, const struct ree_step *step,
                               struct ree_tensor *out_logits, struct ree_error *err);
    // Like ree_generator_read_kv_caches; no step is in flight.
    enum ree_status (*read)(void *user, size_t slot, int64_t sequence, int64_t first, int64_t n,
                            struct ree_tensor *out, struct ree_error *err);
    // Number of positions that the slot's kv caches hold, in any process.
    int64_t (*filled_positions)(void *user, size_t slot);
};

#endif
