// The device interface: what a backend provides. Buffers, programs of RepOps, and nothing about
// models. A backend embeds struct ree_device as its first member. All functions may be called from
// one thread at a time.
#ifndef REE_DEVICE_DEVICE_H
#define REE_DEVICE_DEVICE_H

#include "repops/repop.h"

struct ree_device_buffer; // backend-defined
struct ree_device_program;

struct ree_device_vtable {
    void (*destroy)(struct ree_device *device);

    // Uninitialised memory of `size` bytes (size 0 is allowed), 64-byte aligned.
    enum ree_status (*buffer_create)(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err);
    // A buffer over the caller's memory, read-only, which stays valid until buffer_destroy and is
    // readable up to the next multiple of 4 bytes. NULL function: the backend cannot, the caller
    // creates and writes instead.
    enum ree_status (*buffer_wrap)(struct ree_device *device, const void *data, uint64_t size,
                                   struct ree_device_buffer **out, struct ree_error *err);
    void (*buffer_destroy)(struct ree_device *device, struct ree_device_buffer *buffer);
    enum ree_status (*buffer_write)(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err);
    enum ree_status (*buffer_read)(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err);

    // Prepares a program; copies what it needs from `program`. constants[slot] is the buffer bound
    // to that slot in every run, its contents never changing (the backend may repack them), or NULL
    // for slots that vary.
    enum ree_status (*program_create)(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      struct ree_device_program **out, struct ree_error *err);
    void (*program_destroy)(struct ree_device *device, struct ree_device_program *program);
    // Runs it with slots[i] bound to slot i (constants included) and waits. A fault (an index out
    // of range) is REE_INVALID with the node's name in front.
    enum ree_status (*program_run)(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots, struct ree_error *err);
    // Device time of each dispatch of the last run, in seconds; false when not measured. What is
    // not measured otherwise is while device->wants_times, as far as the device can.
    bool (*program_times)(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds);

    size_t (*facts)(const struct ree_device *device, const struct ree_device_fact **out_facts);
};

struct ree_device {
    const struct ree_device_vtable *vtable;
    char name[256];
    // Progress of program_run: dispatches done, of how many. Set by the caller; NULL: off.
    void (*on_progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
    bool wants_times; // program_run is to measure each dispatch, whatever it costs. Set by the
                      // caller
    uint64_t max_buffer_size; // bytes; larger tensors are refused by buffer_create with a message
    uint64_t memory_size;     // bytes in all, used ones included
    // Bytes that the copies of constants may take which program_create makes, laid out for the
    // backend; it takes off what it makes. UINT64_MAX: any number. Set by the caller.
    uint64_t copies_room;
};

// Backends. options is never NULL here.
enum ree_status ree_cpu_device_open(const struct ree_device_options *options,
                                    struct ree_device **out, struct ree_error *err);
// Runs one dispatch on the calling thread with operands[i] in host memory. Constant folding, shapes
// and sampling use it, the twins take its results as the expected ones (device/selftest/twin.h),
// and CUDA runs through it what no form of its own computes rightly.
enum ree_status ree_cpu_execute(const struct ree_dispatch *dispatch, void *const *operands,
                                struct ree_error *err);
// The folder where ree_cpu_execute keeps the results of its self-tests; as in struct
// ree_device_options. Opening a device calls it, so that the folder is the last opened device's.
// Before the first call nothing is kept.
void ree_cpu_use_cache(const char *cache_dir);

// which: "" for the first, an index, or part of a name. *out_note: why there is none, or NULL.
enum ree_status ree_cuda_device_open(const char *which, const struct ree_device_options *options,
                                     struct ree_device **out, struct ree_error *err);
size_t ree_cuda_device_list(struct ree_device_listing *out_list, size_t max, const char **out_note);
enum ree_status ree_vulkan_device_open(const char *which, const struct ree_device_options *options,
                                       struct ree_device **out, struct ree_error *err);
size_t ree_vulkan_device_list(struct ree_device_listing *out_list, size_t max,
                              const char **out_note);

#endif
