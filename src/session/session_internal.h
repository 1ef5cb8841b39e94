// A session: a model on a device. A bind is the model lowered for one set of input shapes (and for
// the input values that shapes depended on), ready to run. Binds are cached.
#ifndef REE_SESSION_SESSION_INTERNAL_H
#define REE_SESSION_SESSION_INTERNAL_H

#include "device/device.h"
#include "graph/lower/core/lower.h"
#include "session/model.h"
#include "session/types.h"

struct ree_profile_entry; // defined in profile.h

// A kv cache and its device buffer. The buffer holds a dense tensor whose shape is `dims`, except
// that its size along spec.axis is `capacity`.
struct ree_kv_cache {
    struct ree_kv_cache_spec spec;
    int64_t dims[REE_MAX_RANK]; // shape of the filled part; dims[spec.axis]: filled positions
    int64_t capacity;           // positions that the buffer can hold; 0: no buffer yet
    int64_t n_written; // the first n_written positions may have been written since the last reset
    struct ree_device_buffer *buffer;
};

// Number of input tensors that a run with paged kv caches adds: page table and targets
// (page_pool.h).
#define REE_PAGE_TENSORS 2
#define REE_PAGE_PROGRAMS 5

struct ree_page_pool {
    struct ree_session *session;
    // One for each kv cache of the session, as a single sequence. Outside runs, dims[spec.axis] is
    // the capacity in positions.
    struct ree_kv_cache *kv_caches;
    uint32_t page_bits;
    // copies[0][i] copies 2^i single positions, copies[1][i] copies 2^i pages. Each program is made
    // when it is first used, for the present capacity; NULL before.
    struct ree_device_program *copies[2][REE_PAGE_PROGRAMS];
    // Buffers of the programs in `copies`. index: the numbers of the positions or pages to read and
    // to write. moved: their contents between reading and writing.
    struct ree_device_buffer *index, *moved;
    // During a run: the run's page table, i32 [batch, pages], and targets, i32 [batch, new
    // positions].
    struct ree_tensor tensors[REE_PAGE_TENSORS];
    // About the last run: whether it wrote all positions of a kv cache, not only new ones; number
    // of its dispatches that copied pages to a dense tensor.
    bool rewrites_pages;
    uint32_t n_page_copies;
};

// Bytes of a device's memory, over all sessions on the device that share this counter.
struct ree_memory_budget {
    uint64_t limit; // memory budget in bytes; UINT64_MAX: no limit
    uint64_t used, peak;
    // Devices must not copy constants: there is no space, or it will be needed soon.
    bool no_copies;
};

struct ree_session {
    struct ree_model *model;
    struct ree_device *device;
    struct ree_session_options options;
    // Constants on the device, indexed by value->number; NULL: not loaded.
    struct ree_device_buffer **constants;
    uint64_t weight_bytes;
    uint64_t copied_bytes; // part of weight_bytes that was copied to the device
    uint64_t packed_bytes; // copies that the device made of weights; counted only with `memory`
    bool is_unloaded;      // ree_session_unload has subtracted weight_bytes from memory->used
    struct ree_memory_budget *memory; // NULL: memory is not counted
    struct ree_device_buffer *arena;  // intermediate results; shared by all binds
    uint64_t arena_size;
    size_t inputs_capacity;
    struct ree_device_buffer **inputs; // per run input tensor: its buffer on the device
    uint64_t *input_sizes;
    size_t n_kv_caches;
    struct ree_kv_cache *kv_caches; // [n_kv_caches], of the cache slot that the next run uses
    size_t n_cache_slots;
    struct ree_kv_cache **cache_slots; // [n_cache_slots], each an array of n_kv_caches
    // Model input with the target positions of new entries (kv_cache.h); REE_NO_INPUT: none.
    size_t positions_input;
    struct ree_page_pool *pages; // pool of the current run; NULL: its kv caches are dense
    struct ree_bind *binds;      // linked list, most recently used first
    uint32_t n_binds;
    struct ree_session_stats stats;
    bool measure;                  // measure the dispatches of the next runs (profile.h)
    struct ree_observer *observer; // owned copy (observe.h); NULL: never observed
    void *observed;                // host memory for observed values, owned
    size_t observed_size;
    bool has_fault;
    struct ree_fault fault;
};

// What kind of buffer a slot of a program refers to. `index` is the field of struct ree_slot.
enum ree_slot_kind {
    REE_SLOT_ARENA,
    REE_SLOT_CONSTANT, // a constant; index: its value->number
    REE_SLOT_INPUT,    // a run input tensor; index: its index
    REE_SLOT_LITERALS, // constants computed while binding
    REE_SLOT_SEGMENT,  // results of an earlier segment; index: the segment
    REE_SLOT_KV_CACHE, // a kv cache of the session; index: its index
    REE_SLOT_OUTPUT,   // the device tensor that receives a model output; index: the output's index
};

struct ree_slot {
    enum ree_slot_kind kind;
    uint32_t index;
};

// Consecutive dispatches of a bind, run as one program. A segment ends where a shape or a condition
// depends on computed data, or at the end of the model.
struct ree_segment {
    struct ree_device_program *program; // NULL if the segment has no dispatches
    uint32_t n_slots;
    struct ree_slot *slots;
    struct ree_device_buffer *literals; // constants computed while binding; NULL: none
    uint64_t literals_size;
    // Buffer of all tensors that the segment computes. The last segment uses the session's arena
    // instead and has NULL.
    struct ree_device_buffer *results;
    uint64_t results_size;
    uint32_t n_entries;
    struct ree_profile_entry *entries; // one per dispatch; `seconds` is valid if `measured`
    bool measured;
};

struct ree_memory_plan_tensor;
struct ree_bind {
    struct ree_bind *next;
    struct ree_session *session;
    struct ree_arena arena;
    struct ree_arena scratch; // temporary data, freed when a segment is finished
    struct ree_lower lower;
    struct ree_view **values;                // tensors, indexed by value->id; NULL: not lowered
    const struct ree_run_inputs *run_inputs; // the run inputs: borrowed while binding, then NULL
    // The fields from here to `capacities` are the key by which later runs find this bind.
    // kinds, counts, per model input: its kind, and its number of items if it is a sequence.
    // ranks, dims, consulted, per run input tensor: its shape, and a copy of its elements if the
    // bind depends on them, otherwise NULL. The elements of strings are `const char *`.
    enum ree_kind *kinds;
    size_t *counts;
    size_t n_tensors;
    uint32_t *ranks;
    int64_t (*dims)[REE_MAX_RANK];
    const void **consulted;
    bool *on_device;           // per model output: a device tensor receives it
    int64_t *capacities;       // per kv cache, in positions
    int64_t *filled_positions; // per kv cache: positions filled after the run
    uint64_t *offsets;         // per storage: offset in the device buffer that holds it, in bytes
    uint32_t *segment_of; // per storage: 1 + index of the segment whose `results` have it; 0: none
    size_t offsets_capacity;
    const char **labels; // per node of the graph: its label for messages; NULL: not made yet
    size_t n_segments, segments_capacity;
    struct ree_segment *segments;
    uint64_t arena_size;
    struct ree_view **outputs; // per model output: its value, with dense tensors
    size_t n_results;
    struct ree_view **results; // outputs that are tensors, and items of sequences
    uint64_t n_dispatches;
    // With paged kv caches: the run's page table, i32 [batch, pages], and targets, i32 [batch, new
    // positions]. Otherwise NULL.
    struct ree_view *page_table, *page_targets;
    bool rewrites_pages; // a run writes all positions of some paged kv cache, not only new ones
    // Some paged kv cache is not its input with new positions appended in place. True also if the
    // cache has no earlier positions that a run could rewrite.
    bool replaces_pages;
    // Number of dispatches that copy pages to a dense tensor, for operators other than attention.
    uint32_t n_page_copies;
    // Memory plan of the segment being finished.
    size_t n_planned;
    const struct ree_memory_plan_tensor *planned;
    // Values to read back after a run, if the session is observed.
    size_t n_watched;
    struct ree_watched *watched;
    // Bytes of the observed values, which are at the beginning of the arena.
    uint64_t watched_size;
};

// An output of a node that the observer receives.
struct ree_watched {
    uint32_t node, output;
    struct ree_view *t;
    ptrdiff_t kv_cache; // index of the kv cache that keeps the value; -1: none
    int64_t first_position;
};

// match.c: checks the caller's inputs and writes them to `ordered`, one for each input of the
// model, in the model's order. Adds default values for missing inputs, and the shapes of kv caches.
// The entries of `ordered` borrow their data. on_device[i], unless NULL, is the device tensor for
// input i of the model; of it, `ordered` has type and shape. `on_device` may be NULL.
enum ree_status ree_inputs_match(const struct ree_model *model,
                                 const struct ree_kv_cache *kv_caches, size_t n_kv_caches,
                                 struct ree_device_tensor *const *on_device,
                                 const struct ree_tensor *inputs, size_t n_inputs,
                                 struct ree_tensor *ordered, struct ree_error *err);
// Fails unless the tensor, or each tensor of the sequence, is well formed. An input that accepts
// any type gets only this check.
enum ree_status ree_input_check_any(const char *name, const struct ree_tensor *t,
                                    struct ree_error *err);
// The device tensors of a run: inputs[i] for input i of the model, outputs[i] receives output i;
// NULL: none.
struct ree_device_tensors {
    struct ree_device_tensor **inputs, **outputs;
};
// Like ree_session_run, for inputs that ree_inputs_match has checked and ordered. `on_device` may
// be NULL.
enum ree_status ree_session_run_ordered(struct ree_session *session,
                                        const struct ree_tensor *ordered,
                                        const struct ree_device_tensors *on_device,
                                        struct ree_tensor *outputs, struct ree_error *err);
// run_on_device.c: fails unless the device tensors that receive outputs have their types and
// shapes.
enum ree_status ree_bind_check_outputs(const struct ree_bind *bind,
                                       const struct ree_run_inputs *run_inputs,
                                       struct ree_error *err);

// memory_budget.c: ree_session_reserve_memory counts bytes before they are allocated. If they
// exceed the budget, it fails with REE_NO_MEMORY and a message that names `what`.
// ree_session_release_memory subtracts bytes after their release.
enum ree_status ree_session_reserve_memory(struct ree_session *session, uint64_t nbytes,
                                           const char *what, struct ree_error *err);
void ree_session_release_memory(struct ree_session *session, uint64_t nbytes);
// Returns how many bytes of copies of constants the device may still make if the next run requires
// arena_size bytes for intermediate results. UINT64_MAX: no limit.
uint64_t ree_session_copies_capacity(const struct ree_session *session, uint64_t arena_size);
// If the device has made copies of constants: releases them with all loaded constants and all
// binds, disables further copies, and returns true. The next run loads the constants again.
// Otherwise returns false.
bool ree_session_drop_copies(struct ree_session *session);
// ree_session_unload releases the arena of intermediate results. If weights were copied to the
// device, it also releases all constants and all binds, and the next run makes them again. If the
// device reads all weights in place, it only stops counting their bytes; ree_session_load, which
// must precede the next run, counts them again.
void ree_session_unload(struct ree_session *session);
enum ree_status ree_session_load(struct ree_session *session, struct ree_error *err);

// kv_cache.c: estimates the bytes that the device holds while kv_caches[] grow to `positions`
// positions. They grow one after another, and the old and new buffers of the growing cache coexist.
// *used is the number of bytes before; it becomes the number after. *peak is raised to the maximum
// in between.
void ree_session_estimate_growth(const struct ree_session *session,
                                 const struct ree_kv_cache *kv_caches, int64_t positions,
                                 uint64_t *used, uint64_t *peak);
// Records that a run may write the first positions[i] positions of kv cache i. Call it before the
// run, because a run that fails may also have written.
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
// kv_cache_bind.c: return the index of the kv cache to which a model's input, a model's output or a
// value belongs, or -1 if it belongs to none.
ptrdiff_t ree_session_kv_cache_of_input(const struct ree_session *session, size_t input);
ptrdiff_t ree_session_kv_cache_of_output(const struct ree_session *session, size_t output);
ptrdiff_t ree_session_kv_cache_of_value(const struct ree_session *session,
                                        const struct ree_value *value);
enum ree_status ree_bind_kv_cache_input(struct ree_bind *bind, size_t cache, struct ree_view **out,
                                        struct ree_error *err);
// Emits the copy of kv cache `cache`'s output `t` to the cache's buffer, unless `t` is already
// there.
enum ree_status ree_bind_kv_cache_output(struct ree_bind *bind, size_t cache, struct ree_view *t,
                                         struct ree_error *err);
// Returns whether `t`, the output of kv cache `cache`, is its input with new positions appended in
// place.
bool ree_bind_kv_cache_grew(const struct ree_bind *bind, size_t cache, const struct ree_view *t);
// Makes a segment of the dispatches lowered since the previous segment, and runs it.
enum ree_status ree_bind_flush(struct ree_bind *bind, struct ree_error *err);
// observe.c: ree_bind_watch lists the observed values after all nodes are lowered.
// ree_bind_keep_watched sets keep[id] for the id of each of their storages. ree_bind_observe passes
// the values to the observer after a run.
enum ree_status ree_bind_watch(struct ree_bind *bind, struct ree_error *err);
void ree_bind_keep_watched(const struct ree_bind *bind, bool *keep);
enum ree_status ree_bind_observe(struct ree_bind *bind, const struct ree_run_inputs *run_inputs,
                                 struct ree_error *err);
// describe.c: passes the segment's program and memory plan as text to the session's callback
// options.on_program. `size`: bytes of intermediate results in the plan.
enum ree_status ree_segment_describe(const struct ree_bind *bind, const struct ree_segment *segment,
                                     uint64_t size, struct ree_error *err);
// The same for its kernels and options.on_kernel.
enum ree_status ree_segment_show_kernels(const struct ree_bind *bind,
                                         const struct ree_segment *segment, struct ree_error *err);
// fault_injection.c: flips the bit that session->fault names, after the fault's node was lowered.
enum ree_status ree_bind_inject_fault(struct ree_bind *bind, struct ree_error *err);
// values.c: ree_bind_inputs makes bind->values of the run inputs and fills in the bind's key.
// ree_bind_output reads the output `t` from the device into *out, which the caller releases, also
// on failure.
enum ree_status ree_bind_inputs(struct ree_bind *bind, struct ree_error *err);
enum ree_status ree_bind_output(struct ree_bind *bind, const struct ree_view *t, const char *name,
                                const struct ree_run_inputs *run_inputs, struct ree_tensor *out,
                                struct ree_error *err);
// Ensures that the session's arena has space for the intermediate results of a run of this bind.
enum ree_status ree_bind_reserve(struct ree_bind *bind, struct ree_error *err);
// Runs the last segment and reads the model's outputs into outputs[], which this call initialises.
// On failure all of them are empty.
enum ree_status ree_bind_run(struct ree_bind *bind, const struct ree_run_inputs *run_inputs,
                             struct ree_tensor *outputs, struct ree_error *err);

#endif
