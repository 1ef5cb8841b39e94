// Types that callers of sessions and pipelines pass in, and that both keep.
#ifndef REE_SESSION_TYPES_H
#define REE_SESSION_TYPES_H

#include "ree.h"
#include "ree/testing.h"

// kv_cache.h
struct ree_kv_cache_spec {
    size_t input, output;      // ports of the model
    uint32_t axis, batch_axis; // dimensions of the positions and of the sequences
};

#define REE_NO_INPUT SIZE_MAX
// As a kv cache's output: another session keeps the kv cache; this session knows only its shape.
#define REE_NO_OUTPUT SIZE_MAX

// observe.h
struct ree_observed {
    size_t node, output; // indices in the model's graph
    // Dense, NaNs canonical; borrowed, valid during the call. For a value that is kept as a kv
    // cache: only the positions that this run added, or all positions if the run also wrote
    // older ones.
    const struct ree_tensor *tensor;
    ptrdiff_t kv_cache; // index of the session's kv cache; -1: not a kv cache
    // For a kv cache: the position of the tensor's first row. Earlier positions are unchanged.
    int64_t first_position;
};

struct ree_observer {
    // Receives the run's inputs in the model's order, before the run; kv caches have only name,
    // type and dims. NaNs are not canonicalised. Each callback may be NULL.
    enum ree_status (*on_inputs)(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err);
    // Receives each value in the order of nodes and their outputs, without omitted outputs. With
    // `concurrent`: in any order and from several threads at a time; `err` then belongs to the
    // thread.
    enum ree_status (*on_value)(void *user, const struct ree_observed *value,
                                struct ree_error *err);
    enum ree_status (*on_end)(void *user, struct ree_error *err);
    void *user;
    bool concurrent;
};

#endif
