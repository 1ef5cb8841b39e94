// Observation of a run: the value of every output of every node. An observed session keeps these
// values in memory until the end of the run and does not fuse across them. This changes no bit; it
// costs memory and time.
//
// Also fault injection, for tests of error detection: flips one bit of one output before later
// nodes read it, as a failing device would.
#ifndef REE_SESSION_OBSERVE_H
#define REE_SESSION_OBSERVE_H

#include "ree.h"

struct ree_observed {
    size_t node, output; // indices in the model's graph
    // Dense, NaNs canonical; borrowed, valid during the call. For a value that is kept as a kv
    // cache (state): only the positions that this run added, or all positions if the run also wrote
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

// Call it before the first run and after ree_session_declare_kv_caches. Copies the observer. A
// failure of a callback fails the run. Fails with REE_UNSUPPORTED if the session mixes sequences of
// different lengths.
enum ree_status ree_session_observe(struct ree_session *session,
                                    const struct ree_observer *observer, struct ree_error *err);

struct ree_fault {
    size_t node, output; // indices in the model's graph
    // Bit of the dense tensor, modulo its size: bit % 8 of byte bit / 8.
    uint64_t bit;
    uint64_t run; // number of runs before the affected one; 0: the next run
};
// Injects the fault once; replaces a pending fault. Fails with REE_INVALID if the graph has no such
// output. The affected run fails with REE_UNSUPPORTED if the output is empty, holds strings, is not
// a tensor, is computed while binding, or is kept as a kv cache.
enum ree_status ree_session_inject(struct ree_session *session, const struct ree_fault *fault,
                                   struct ree_error *err);

#endif
