// Callbacks that a generator calls instead of running a step by itself, if the model's stages run
// in several processes. src/ranks implements them with messages.
#ifndef REE_GENERATE_REMOTE_H
#define REE_GENERATE_REMOTE_H

#include "ree.h"

struct ree_step;

struct ree_remote {
    void *user;
    // Empties the slot's kv caches in the other processes, for `batch` sequences of at most `most`
    // tokens (0: unknown). ree_generator_begin calls it after it has emptied those of this process.
    enum ree_status (*begin)(void *user, size_t slot, size_t batch, int64_t most,
                             struct ree_error *err);
    // Starts a step: runs the stages of this process (ree_generator_run_stages) and sends their
    // boundary tensors to the next process.
    enum ree_status (*submit)(void *user, size_t slot, const struct ree_step *step,
                              struct ree_error *err);
    // Receives the logits of the slot's step; like ree_generator_collect.
    enum ree_status (*collect)(void *user, size_t slot, const struct ree_step *step,
                               struct ree_tensor *out_logits, struct ree_error *err);
    // Reads positions of the slot's kv caches from all processes, as ree_generator_read_kv_caches
    // does. Called only while no step is in flight in any slot.
    enum ree_status (*read)(void *user, size_t slot, int64_t sequence, int64_t first, int64_t n,
                            struct ree_tensor *out, struct ree_error *err);
};

#endif
