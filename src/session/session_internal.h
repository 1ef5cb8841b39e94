// A session: a model on a device. A bind is the model lowered for one set of input shapes (and for
// the input values that shapes depended on), ready to run. Binds are cached.
#ifndef REE_SESSION_SESSION_INTERNAL_H
#define REE_SESSION_SESSION_INTERNAL_H

#include "device/device.h"
#include "graph/lower/core/lower.h"
#include "session/model.h"
#include "session/types.h"

struct ree_profile_entry; // profile.h

// A kv cache and its buffer. Dense, with `capacity` instead of dims[axis].
struct ree_kv_cache {
    struct ree_kv_cache_spec spec;
    int64_t dims[REE_MAX_RANK]; // dims[axis]: positions filled
    int64_t capacity;           // positions along the axis; 0: no buffer yet
    int64_t n_written;          // positions that runs since the last reset may have written
    struct ree_device_buffer *buffer;
};

// page_pool.h
#define REE_PAGE_TENSORS 2 // page table and targets
#define REE_PAGE_PROGRAMS 5

struct ree_page_pool {
    struct ree_session *session;
    struct ree_kv_cache *kv_caches; // dims[axis]: all positions
    uint32_t page_bits;
    // copies[0][i] copies 2^i single positions, copies[1][i] copies 2^i pages. Each program is made
    // when it is first used, for the present capacity; NULL before.
    struct ree_device_program *copies[2][REE_PAGE_PROGRAMS];
    struct ree_device_buffer *index, *moved; // numbers of positions or pages; their contents
    // During a run: i32 [batch, pages], i32 [batch, new positions].
    struct ree_tensor tensors[REE_PAGE_TENSORS];
    // Of the last run: see struct ree_bind.
    bool rewrites_pages;
    uint32_t n_page_copies;
};

// Bytes of a device's memory, over all sessions on the device that share this counter.
struct ree_memory_budget {
    uint64_t limit; // memory budget; UINT64_MAX: none
    uint64_t used, peak;
    // Devices must not copy constants: there is no space, or it will be needed soon.
    bool no_copies;
};

struct ree_session {
    struct ree_model *model;
    struct ree_device *device;
    struct ree_session_options options;
    // per value->number: the weight on the device; NULL: not loaded
    struct ree_device_buffer **constants;
    uint64_t weight_bytes;
    uint64_t copied_bytes;            // part of weight_bytes that the device does not read in place
    uint64_t packed_bytes;            // copies of the weights made by the device, if counted
    bool is_unloaded;                 // the weights are counted as not held
    struct ree_memory_budget *memory; // NULL: not counted
    struct ree_device_buffer *arena;  // intermediate results; shared by all binds
    uint64_t arena_size;
    size_t inputs_capacity;
    struct ree_device_buffer **inputs; // per run input tensor: the device's copy
    uint64_t *input_sizes;
    size_t n_kv_caches;
    struct ree_kv_cache *kv_caches; // kv caches of the cache slot for the next run
    size_t n_cache_slots;
    struct ree_kv_cache **cache_slots; // one array of kv caches per cache slot
    size_t positions_input;            // REE_NO_INPUT: none
    struct ree_page_pool *pages;       // run with these kv caches in pages; NULL: dense kv caches
    struct ree_bind *binds;            // most recently used first
    uint32_t n_binds;
    struct ree_session_stats stats;
    bool measure;                  // profile.h
    struct ree_observer *observer; // observe.h; NULL: none
    void *observed;                // read-back memory of observe.c
    size_t observed_size;
    bool has_fault;
    struct ree_fault fault;
};

// The buffer that a program's slot refers to.
enum ree_slot_kind {
    REE_SLOT_ARENA,
    REE_SLOT_CONSTANT, // index: the value's number
    REE_SLOT_INPUT,    // index: run input tensor
    REE_SLOT_LITERALS, // made by the bind
    REE_SLOT_SEGMENT,  // results of an earlier segment; index: the segment
    REE_SLOT_KV_CACHE, // index: kv cache of the session
};

struct ree_slot {
    enum ree_slot_kind kind;
    uint32_t index;
};

// Consecutive dispatches, up to the point at which a shape depended on computed data, or to the
// end.
struct ree_segment {
    struct ree_device_program *program; // NULL if there is nothing to run
    uint32_t n_slots;
    struct ree_slot *slots;
    struct ree_device_buffer *literals; // NULL: none
    uint64_t literals_size;
    // Intermediate tensors of a segment that is not the last.
    struct ree_device_buffer *results;
    uint64_t results_size;
    uint32_t n_entries;
    struct ree_profile_entry *entries; // per dispatch; times are valid if `measured`
    bool measured;
};

struct ree_memory_plan_tensor;
struct ree_bind {
    struct ree_bind *next;
    struct ree_session *session;
    struct ree_arena arena;
    struct ree_arena scratch; // for the segment being finished
    struct ree_lower lower;
    struct ree_view **values;                // per graph value
    const struct ree_run_inputs *run_inputs; // run inputs; borrowed from the caller while binding
    // The key for finding this bind. Per model input: its kind. Per run input tensor: its shape,
    // and its value if the bind depends on it, otherwise NULL (`const char *` elements for
    // strings).
    enum ree_kind *kinds;
    size_t *counts;
    size_t n_tensors;
    uint32_t *ranks;
    int64_t (*dims)[REE_MAX_RANK];
    const void **consulted;
    int64_t *capacities;       // per kv cache
    int64_t *filled_positions; // per kv cache: positions filled after the run
    uint64_t *offsets;         // per storage: offset in its slot's buffer, in bytes
    uint32_t *segment_of;      // per storage: 1 + segment that computed it; 0: the arena or none
    size_t offsets_capacity;
    const char **labels; // per node of the graph; made on first use
    size_t n_segments, segments_capacity;
    struct ree_segment *segments;
    uint64_t arena_size;
    struct ree_view **outputs; // per model output; its tensors are dense
    size_t n_results;
    struct ree_view **results; // the tensors among and within the outputs
    uint64_t n_dispatches;
    // With pages: tables and targets of the run, i32 [batch, pages] and [batch, new positions].
    struct ree_view *page_table, *page_targets;
    bool rewrites_pages;    // writes all positions of a kv cache, not only new ones
    uint32_t n_page_copies; // dispatches that copy pages, because something else reads them
    size_t n_planned;       // memory plan of the segment being finished
    const struct ree_memory_plan_tensor *planned;
    size_t n_watched; // observed session: values to read back after a run
    struct ree_watched *watched;
    // Bytes of the observed values, which are at the beginning of the arena.
    uint64_t watched_size;
};

// An output of a node that the observer receives.
struct ree_watched {
    uint32_t node, output;
    struct ree_view *t;
    ptrdiff_t kv_cache; // -1: not a kv cache
    int64_t first_position;
};

// match.c: checks the caller's inputs and puts them into the model's order. Adds default values for
// missing inputs, and the shapes of kv caches.
enum ree_status ree_inputs_match(const struct ree_model *model,
                                 const struct ree_kv_cache *kv_caches, size_t n_kv_caches,
                                 const struct ree_tensor *inputs, size_t n_inputs,
                                 struct ree_tensor *ordered, struct ree_error *err);
// Checks that a tensor, or each tensor of a sequence, is well formed. The only check for inputs
// that accept any type.
enum ree_status ree_input_check_any(const char *name, const struct ree_tensor *t,
                                    struct ree_error *err);
// ree_session_run with checked inputs in the model's order.
enum ree_status ree_session_run_ordered(struct ree_session *session,
                                        const struct ree_tensor *ordered,
                                        struct ree_tensor *outputs, struct ree_error *err);

// memory_budget.c: ree_session_reserve_memory counts bytes before they are allocated; if they
// exceed the budget, it fails with a message that names `what`. ree_session_release_memory
// subtracts bytes after their release.
enum ree_status ree_session_reserve_memory(struct ree_session *session, uint64_t nbytes,
                                           const char *what, struct ree_error *err);
void ree_session_release_memory(struct ree_session *session, uint64_t nbytes);
// Capacity in bytes for the device's copies of constants, given the arena size of the next run.
uint64_t ree_session_copies_capacity(const struct ree_session *session, uint64_t arena_size);
// Releases the device's copies of constants and the binds, and disables further copies. Returns
// false if there are no copies.
bool ree_session_drop_copies(struct ree_session *session);
// Releases everything that a session holds between runs, except its kv caches. ree_session_load
// restores it.
void ree_session_unload(struct ree_session *session);
enum ree_status ree_session_load(struct ree_session *session, struct ree_error *err);

// kv_cache.c: estimates the memory that the device holds while caches grow to `positions`
// positions. They grow one after another, and the old and new buffers of the growing cache coexist.
// Starts from *used bytes and updates *used to the final value and *peak to the maximum.
void ree_session_estimate_growth(const struct ree_session *session,
                                 const struct ree_kv_cache *kv_caches, int64_t positions,
                                 uint64_t *used, uint64_t *peak);
// Must be called before a run that fills positions[i] positions of kv cache i. The run may fail.
void ree_session_note_written(struct ree_session *session, const int64_t *positions);
uint64_t ree_session_cache_slot_bytes(const struct ree_session *session,
                                      const struct ree_kv_cache *kv_caches);

// Binds the model to the run inputs, which must be checked. A bind with several segments has
// already run all but the last, and can be used only once.
enum ree_status ree_bind_create(struct ree_session *session,
                                const struct ree_run_inputs *run_inputs, struct ree_bind **out,
                                struct ree_error *err);
void ree_bind_destroy(struct ree_bind *bind);
// profile.c: ree_segment_note records the dispatches of a segment's program; ree_segment_measure
// records their times after a run.
enum ree_status ree_segment_note(struct ree_bind *bind, struct ree_segment *segment,
                                 const struct ree_program *program, struct ree_error *err);
void ree_segment_measure(struct ree_bind *bind, struct ree_segment *segment);
bool ree_bind_matches(const struct ree_bind *bind, const struct ree_run_inputs *run_inputs);
// kv_cache_bind.c: the kv cache of an input, output or value; -1: it is not a kv cache.
ptrdiff_t ree_session_kv_cache_of_input(const struct ree_session *session, size_t input);
ptrdiff_t ree_session_kv_cache_of_output(const struct ree_session *session, size_t output);
ptrdiff_t ree_session_kv_cache_of_value(const struct ree_session *session,
                                        const struct ree_value *value);
enum ree_status ree_bind_kv_cache_input(struct ree_bind *bind, size_t cache, struct ree_view **out,
                                        struct ree_error *err);
// Copies a kv cache's output to the cache's buffer, unless it is already there.
enum ree_status ree_bind_kv_cache_output(struct ree_bind *bind, size_t cache, struct ree_view *t,
                                         struct ree_error *err);
// Whether the output is the kv cache itself with new positions appended.
bool ree_bind_kv_cache_grew(const struct ree_bind *bind, size_t cache, const struct ree_view *t);
// Runs the dispatches lowered so far.
enum ree_status ree_bind_flush(struct ree_bind *bind, struct ree_error *err);
// observe.c. ree_bind_watch lists the observed values after all nodes are lowered;
// ree_bind_keep_watched marks their storages; ree_bind_observe passes them to the observer after a
// run.
enum ree_status ree_bind_watch(struct ree_bind *bind, struct ree_error *err);
void ree_bind_keep_watched(const struct ree_bind *bind, bool *keep);
enum ree_status ree_bind_observe(struct ree_bind *bind, const struct ree_run_inputs *run_inputs,
                                 struct ree_error *err);
// describe.c: passes the segment's program and memory plan to options.on_program as text.
enum ree_status ree_segment_describe(const struct ree_bind *bind, const struct ree_segment *segment,
                                     uint64_t size, struct ree_error *err);
// fault_injection.c: applies the session's fault after its node has been lowered.
enum ree_status ree_bind_inject_fault(struct ree_bind *bind, struct ree_error *err);
// values.c: ree_bind_inputs stores the run inputs in bind->values and their key in the bind;
// ree_bind_output reads an output back.
enum ree_status ree_bind_inputs(struct ree_bind *bind, struct ree_error *err);
enum ree_status ree_bind_output(struct ree_bind *bind, const struct ree_view *t, const char *name,
                                const struct ree_run_inputs *run_inputs, struct ree_tensor *out,
                                struct ree_error *err);
// Allocates the memory for intermediate results of a run.
enum ree_status ree_bind_reserve(struct ree_bind *bind, struct ree_error *err);
// Runs the last segment and reads the outputs into `outputs`, which this call initialises.
enum ree_status ree_bind_run(struct ree_bind *bind, const struct ree_run_inputs *run_inputs,
                             struct ree_tensor *outputs, struct ree_error *err);

#endif
