// Types that callers pass to sessions and to pipelines, which both store them: kv caches,
// observers.
#ifndef REE_SESSION_TYPES_H
#define REE_SESSION_TYPES_H

#include "ree.h"
#include "ree/testing.h"

// Declares a kv cache of a model (kv_cache.h).
struct ree_kv_cache_spec {
    size_t input, output;      // indices among the model's inputs and outputs
    uint32_t axis, batch_axis; // which dimension counts positions, and which sequences
    // It is proved that each run's new positions come directly behind the filled ones.
    bool in_order;
};

#define REE_NO_INPUT SIZE_MAX
// Value of ree_kv_cache_spec.output if another session keeps the kv cache and this session knows
// only its shape.
#define REE_NO_OUTPUT SIZE_MAX

// A value that an observer receives (observe.h).
struct ree_observed {
    size_t node, output; // index of the node in the model's graph, and of its output
    // Dense, NaNs canonical; borrowed, valid during the call. For a value that is kept as a kv
    // cache: only the positions that this run added, or all positions if the run also wrote
    // older ones.
    const struct ree_tensor *tensor;
    ptrdiff_t kv_cache; // index of the session's kv cache; -1: not a kv cache
    // For a kv cache: position in the cache of the tensor's first position. The run has not changed
    // earlier positions. 0 for other values.
    int64_t first_position;
};

struct ree_observer {
    // Receives the run's inputs in the model's order, before the run; kv caches have only name,
    // type and dims. NaNs are not canonicalised. Each callback may be NULL.
    enum ree_status (*on_inputs)(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err);
    // Receives each output of each node, in the order of nodes and of their outputs; omitted
    // outputs are left out. If `concurrent` is set: in any order and from several threads at a
    // time; each thread has its own `err`.
    enum ree_status (*on_value)(void *user, const struct ree_observed *value,
                                struct ree_error *err);
    enum ree_status (*on_end)(void *user, struct ree_error *err);
    void *user;
    bool concurrent;
};

#endif
