// A session: a model on a device. A bind is the model lowered for one set of input shapes (and of
// the input values that shapes depended on), ready to run; binds are cached.
#ifndef REE_SESSION_SESSION_INTERNAL_H
#define REE_SESSION_SESSION_INTERNAL_H

#include "device/device.h"
#include "graph/lower/lower.h"
#include "session/model.h"
#include "session/observe.h"
#include "session/profile.h"
#include "session/state.h"

// A state and where it is. Dense with `capacity` in place of dims[axis].
struct ree_session_state {
    struct ree_state_spec spec;
    int64_t dims[REE_MAX_RANK]; // [axis]: rows filled
    int64_t capacity;           // along the axis; 0: no buffer yet
    struct ree_device_buffer *buffer;
};

// Bytes of a device's memory: of all sessions on it that count them here.
struct ree_memory_count {
    uint64_t limit; // UINT64_MAX: none
    uint64_t used, peak;
    bool no_copies; // devices are to make none of constants: there is no room, or not for long
};

struct ree_session {
    struct ree_model *model;
    struct ree_device *device;
    struct ree_session_options options;
    struct ree_device_buffer **constants; // per value->number: the weight on the device, or NULL
    uint64_t weight_bytes;
    uint64_t copied_bytes;           // of them, those that the device does not read where they lie
    uint64_t packed_bytes;           // of the copies that the device made of them, where counted
    bool is_unloaded;                // the weights count as not held
    struct ree_memory_count *memory; // NULL: not counted
    struct ree_device_buffer *arena; // intermediate results of whichever bind runs
    uint64_t arena_size;
    size_t inputs_capacity;
    struct ree_device_buffer **inputs; // per tensor given: the device's copy
    uint64_t *input_sizes;
    size_t n_states;
    struct ree_session_state *states; // those of the set that the next run is of
    size_t n_sets;
    struct ree_session_state **sets; // a run sees one of them
    size_t state_rows_input;         // REE_NO_INPUT: none
    struct ree_bind *binds;          // most recently used first
    uint32_t n_binds;
    struct ree_session_stats stats;
    bool measure;                  // profile.h
    struct ree_observer *observer; // observe.h; NULL: none
    void *observed;                // memory of observe.c: what was read back
    size_t observed_size;
    bool has_fault;
    struct ree_fault fault;
};

// Where a program finds the buffer of a slot.
enum ree_slot_kind {
    REE_SLOT_ARENA,
    REE_SLOT_CONSTANT, // index: the value's number
    REE_SLOT_INPUT,    // index: tensor given
    REE_SLOT_LITERALS, // made by the bind
    REE_SLOT_SEGMENT,  // results of an earlier segment; index: segment
    REE_SLOT_STATE,    // index: state of the session
};

struct ree_slot {
    enum ree_slot_kind kind;
    uint32_t index;
};

// Dispatches up to a point where a shape depended on computed data, or to the end.
struct ree_segment {
    struct ree_device_program *program; // NULL when there is nothing to run
    uint32_t n_slots;
    struct ree_slot *slots;
    struct ree_device_buffer *literals; // NULL: none
    uint64_t literals_size;
    struct ree_device_buffer
        *results; // of a segment that is not the last: its intermediate tensors
    uint64_t results_size;
    uint32_t n_entries;
    struct ree_profile_entry *entries; // per dispatch; their times if `measured`
    bool measured;
};

struct ree_plan_tensor;
struct ree_bind {
    struct ree_bind *next;
    struct ree_session *session;
    struct ree_arena arena;
    struct ree_arena scratch; // of the segment being finished
    struct ree_lower lower;
    struct ree_tval **values;      // per graph value
    const struct ree_given *given; // the caller's, while binding
    // The key: per model input what it is, per tensor given its shape, and the value where the bind
    // depends on it (of a string, `const char *`), or NULL.
    enum ree_kind *kinds;
    size_t *counts;
    size_t n_tensors;
    uint32_t *ranks;
    int64_t (*dims)[REE_MAX_RANK];
    const void **consulted;
    int64_t *capacities; // per state
    int64_t *state_rows; // per state: rows filled after the run
    uint64_t *place;     // per storage: offset in its slot's buffer
    uint32_t *home;      // per storage: 1 + segment that computed it, 0: the arena or none
    size_t place_capacity;
    const char **labels; // per node of the graph, made when first needed
    size_t n_segments, segments_capacity;
    struct ree_segment *segments;
    uint64_t arena_size;
    struct ree_tval **outputs; // per model output, its tensors dense
    size_t n_results;
    struct ree_tval **results; // the tensors among and within them
    uint64_t n_dispatches;
    size_t n_planned; // of the segment being finished: the memory plan
    const struct ree_plan_tensor *planned;
    size_t n_watched; // of an observed session: what is read back after a run
    struct ree_watched *watched;
    uint64_t watched_size; // bytes of them at the beginning of the arena
};

// An output of a node that an observer is to be told of.
struct ree_watched {
    uint32_t node, output;
    struct ree_tval *t;
    ptrdiff_t state; // -1: none
    int64_t first_row;
};

// match.c: brings the caller's inputs into the model's order, checked, with defaults for those that
// are missing and the shapes of states.
enum ree_status ree_inputs_match(const struct ree_model *model,
                                 const struct ree_session_state *states, size_t n_states,
                                 const struct ree_tensor *inputs, size_t n_inputs,
                                 struct ree_tensor *ordered, struct ree_error *err);
// Whether a tensor or a sequence of them is whole; what an input of any type takes.
enum ree_status ree_input_check_any(const char *name, const struct ree_tensor *t,
                                    struct ree_error *err);
// ree_session_run with inputs in the model's order, checked.
enum ree_status ree_session_run_ordered(struct ree_session *session,
                                        const struct ree_tensor *ordered,
                                        struct ree_tensor *outputs, struct ree_error *err);

// memory.c: counts bytes before they are taken, or fails naming `what`; and after they are given
// back.
enum ree_status ree_session_take(struct ree_session *session, uint64_t nbytes, const char *what,
                                 struct ree_error *err);
void ree_session_give(struct ree_session *session, uint64_t nbytes);
// Bytes that the device may use for copies of constants, with an arena of that size beside them.
uint64_t ree_session_copies_room(const struct ree_session *session, uint64_t arena_size);
// Gives such copies back and has none made from now on. False: there are none. Binds are gone then.
bool ree_session_drop_copies(struct ree_session *session);
// Gives back all that a session holds between runs but its states, and takes it again.
void ree_session_unload(struct ree_session *session);
enum ree_status ree_session_load(struct ree_session *session, struct ree_error *err);

// state.c: what a device holds while caches grow to `rows`, one after the other, each there twice
// while it does; from *used on, which becomes what it holds then.
void ree_session_foresee(const struct ree_session *session, const struct ree_session_state *states,
                         int64_t rows, uint64_t *used, uint64_t *peak);
uint64_t ree_session_set_bytes(const struct ree_session *session,
                               const struct ree_session_state *states);

// Binds the model to what it is given, which is checked. A bind of several segments has run all but
// the last and serves once.
enum ree_status ree_bind_create(struct ree_session *session, const struct ree_given *given,
                                struct ree_bind **out, struct ree_error *err);
void ree_bind_destroy(struct ree_bind *bind);
// profile.c: notes what a segment's program consists of; takes its times after a run.
enum ree_status ree_segment_note(struct ree_bind *bind, struct ree_segment *segment,
                                 const struct ree_program *program, struct ree_error *err);
void ree_segment_measure(struct ree_bind *bind, struct ree_segment *segment);
bool ree_bind_matches(const struct ree_bind *bind, const struct ree_given *given);
// The states among the inputs and outputs (state_bind.c). -1: the port is no state.
ptrdiff_t ree_session_state_of_input(const struct ree_session *session, size_t input);
ptrdiff_t ree_session_state_of_output(const struct ree_session *session, size_t output);
ptrdiff_t ree_session_state_of_value(const struct ree_session *session,
                                     const struct ree_value *value);
enum ree_status ree_bind_state_input(struct ree_bind *bind, size_t state, struct ree_tval **out,
                                     struct ree_error *err);
// Brings a state's output to where it is kept, unless it is there already.
enum ree_status ree_bind_state_output(struct ree_bind *bind, size_t state, struct ree_tval *t,
                                      struct ree_error *err);
// Whether the state's output is the state itself with rows added behind those that it had.
bool ree_bind_state_grew(const struct ree_bind *bind, size_t state, const struct ree_tval *t);
// Runs what was lowered so far.
enum ree_status ree_bind_flush(struct ree_bind *bind, struct ree_error *err);
// observe.c. Notes what is watched, when all nodes are lowered; marks its storages; hands it out
// after a run.
enum ree_status ree_bind_watch(struct ree_bind *bind, struct ree_error *err);
void ree_bind_keep_watched(const struct ree_bind *bind, bool *keep);
enum ree_status ree_bind_observe(struct ree_bind *bind, const struct ree_given *given,
                                 struct ree_error *err);
// describe.c: hands the segment's program and its memory plan to options.on_program, as text.
enum ree_status ree_segment_describe(const struct ree_bind *bind, const struct ree_segment *segment,
                                     uint64_t size, struct ree_error *err);
// damage.c: the session's fault, when its node has been lowered.
enum ree_status ree_bind_damage(struct ree_bind *bind, struct ree_error *err);
// Between what callers have and what a bind has (values.c): inputs into bind->values with the key,
// and back.
enum ree_status ree_bind_inputs(struct ree_bind *bind, struct ree_error *err);
enum ree_status ree_bind_output(struct ree_bind *bind, const struct ree_tval *t, const char *name,
                                const struct ree_given *given, struct ree_tensor *out,
                                struct ree_error *err);
// Takes the memory that intermediate results of a run need.
enum ree_status ree_bind_reserve(struct ree_bind *bind, struct ree_error *err);
// Runs the last segment and reads the outputs into initialised-by-this-call tensors.
enum ree_status ree_bind_run(struct ree_bind *bind, const struct ree_given *given,
                             struct ree_tensor *outputs, struct ree_error *err);

#endif
