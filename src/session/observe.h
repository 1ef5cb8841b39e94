// Looking into a run: the value of every output of every node, after it. An observed session keeps
// all of them in memory until the run is over and fuses nothing across them, which changes no bit
// and costs memory and time.
//
// And damage, for tests of what looks for it: one bit of one output flipped before later nodes read
// it, as a failing device would.
#ifndef REE_SESSION_OBSERVE_H
#define REE_SESSION_OBSERVE_H

#include "ree.h"

struct ree_observed {
    size_t node, output; // of the model's graph
    // Dense, NaNs canonical; valid during the call, not to be released. Of a value that is kept as
    // a state: the rows that are new in this run alone, or all where not only new rows were
    // written.
    const struct ree_tensor *tensor;
    ptrdiff_t state;   // the session's number of it; -1: none
    int64_t first_row; // of a state: which its first row is; what lies below is as it was
};

struct ree_observer {
    // The run's inputs in the model's order, before it; of states the name, type and dims alone.
    // NaNs are as they were given. May be NULL, as may the others.
    enum ree_status (*on_inputs)(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err);
    // In the order of nodes and their outputs, without omitted ones. With `concurrent`: in any
    // order, by several threads at a time, and `err` is then the thread's own.
    enum ree_status (*on_value)(void *user, const struct ree_observed *value,
                                struct ree_error *err);
    enum ree_status (*on_end)(void *user, struct ree_error *err);
    void *user;
    bool concurrent;
};

// Before the first run, after ree_session_keep; the observer is copied. A failure of a callback
// fails the run. Sessions that mix sequences of different lengths cannot be observed
// (REE_UNSUPPORTED).
enum ree_status ree_session_observe(struct ree_session *session,
                                    const struct ree_observer *observer, struct ree_error *err);

struct ree_fault {
    size_t node, output; // of the model's graph
    uint64_t bit;        // bit % 8 of byte bit / 8 of the dense tensor, modulo its size
    uint64_t run;        // in how many runs from now: 0 is the next
};
// Once: later faults take the place of one that has not happened yet. REE_INVALID where the graph
// has no such output. The run concerned fails with REE_UNSUPPORTED where the output is empty, a
// string, no tensor, computed while binding, or kept as a state.
enum ree_status ree_session_inject(struct ree_session *session, const struct ree_fault *fault,
                                   struct ree_error *err);

#endif
