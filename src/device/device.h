// The device interface that a backend implements: buffers and programs of RepOps. It knows nothing
// about models. A backend embeds struct ree_device as its first member. The functions are not
// thread-safe: only one thread may call them at a time.
#ifndef REE_DEVICE_DEVICE_H
#define REE_DEVICE_DEVICE_H

#include "ree/testing.h"
#include "repops/repop.h"

struct ree_device_buffer; // backend-defined
struct ree_device_program;

struct ree_program_run {
    bool measures; // measure the time of each dispatch, even if the run then takes longer
    // Receives REE_RUNNING, the number of dispatches done and their total. If it cancels the run,
    // program_run returns after the device has stopped; some results may have been written.
    struct ree_progress progress;
};
#define REE_RUNNING "running"

// Receives the kernels of a program.
struct ree_kernel_sink {
    void (*each)(void *user, const struct ree_kernel *kernel);
    void *user;
};

struct ree_device_vtable {
    void (*destroy)(struct ree_device *device);

    // Creates a buffer of `size` uninitialised bytes (size 0 is allowed), 64-byte aligned.
    enum ree_status (*buffer_create)(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err);
    // Creates a read-only buffer over the caller's memory. The memory must stay valid until
    // buffer_destroy and be readable up to the next multiple of 4 bytes. The function pointer is
    // NULL if the backend cannot do this; the caller then uses buffer_create and buffer_write.
    enum ree_status (*buffer_wrap)(struct ree_device *device, const void *data, uint64_t size,
                                   struct ree_device_buffer **out, struct ree_error *err);
    void (*buffer_destroy)(struct ree_device *device, struct ree_device_buffer *buffer);
    enum ree_status (*buffer_write)(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err);
    enum ree_status (*buffer_read)(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err);

    // Prepares a program; `program` is not used after the call. constants[slot] is the buffer that
    // every run binds to that slot, or NULL if the buffer varies. The contents of a constant buffer
    // must never change, because the backend may make repacked copies of them. *copies_capacity:
    // bytes that these copies may take; reduced by what they take. NULL: no limit.
    enum ree_status (*program_create)(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err);
    void (*program_destroy)(struct ree_device *device, struct ree_device_program *program);
    // Runs the program with slots[i] bound to slot i (constants included) and waits for it. Fails
    // with REE_INVALID if an index is out of range; the message starts with the node's name.
    // `options` may be NULL.
    enum ree_status (*program_run)(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err);
    // Returns the device time of each dispatch of the last run, in seconds; false if it was not
    // measured. Some backends measure only if the run's options request it.
    bool (*program_times)(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds);

    // Passes each kernel that a run of the program launches to the sink once, in the order of the
    // first launches. Fails with REE_NO_MEMORY.
    enum ree_status (*program_kernels)(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err);

    size_t (*facts)(const struct ree_device *device, const struct ree_device_fact **out_facts);
};

struct ree_device {
    const struct ree_device_vtable *vtable;
    char name[256];
    uint64_t max_buffer_size; // maximum bytes of a buffer; buffer_create fails for more
    uint64_t memory_size;     // memory of the device in bytes, whether it is free or in use
    // Attention of up to this many queries per head reads keys and values from pages
    // (ree_attention_params.page_bits). 0: none.
    uint32_t paged_queries;
    // Set by ree_device_open.
    enum ree_operation_set operation_set;
    bool is_cpu;
    uint32_t n_threads; // threads of the host for what it computes itself; 0: one per processor
};

// ree_broken_primitive, ree_forced_form and ree_probes_again return what a test requests through
// options->testing (ree/testing.h); NULL or false: nothing.
static inline const char *ree_broken_primitive(const struct ree_device_options *options) {
    return options->testing ? options->testing->break_primitive : NULL;
}
static inline const char *ree_forced_form(const struct ree_device_options *options) {
    return options->testing ? options->testing->force_form : NULL;
}

static inline bool ree_probes_again(const struct ree_device_options *options) {
    return options->testing && options->testing->probes_again;
}

// Opens the CPU backend. Here and in the functions of the other backends, `options` must not be
// NULL and must have all fields of this version; ree_device_open ensures both.
enum ree_status ree_cpu_device_open(const struct ree_device_options *options,
                                    struct ree_device **out, struct ree_error *err);
// Runs one dispatch on the calling thread; operands[i] is the host memory of operand i. Constant
// folding, shape computation and sampling use it.
enum ree_status ree_cpu_execute(const struct ree_dispatch *dispatch, void *const *operands,
                                struct ree_error *err);
// The same on at most n_threads threads, or 16, or one per processor (n_threads 0) if it is much
// work; on one thread in a forked process. Self-tests take its results as the expected ones
// (device/selftest/twin.h). The CUDA backend uses it for a dispatch that none of its kernels
// computes correctly.
enum ree_status ree_cpu_execute_threads(const struct ree_dispatch *dispatch, void *const *operands,
                                        uint32_t n_threads, struct ree_error *err);
// Runs the self-tests that the first call of ree_cpu_execute would run, so that they may overlap with
// other work. Ignores an error: that call reports it.
void ree_cpu_execute_soon(void);
// Sets the folder of the file with results of ree_cpu_execute's self-tests; cache_dir is as in
// struct ree_device_options. ree_device_open calls it, so the folder is that of the device opened
// last. Before the first call no results are read or written.
void ree_cpu_use_cache(const char *cache_dir);

// The CUDA and Vulkan backends have one function each to open and to list devices.
//
// open:  `which` selects a device of the backend: "" the first one, otherwise its index or a part
//        of its name.
// list:  fills at most `max` entries of out_list and returns the number of devices.
//        *out_note receives NULL, or the reason if none was found; the reason is a
//        static string.
enum ree_status ree_cuda_device_open(const char *which, const struct ree_device_options *options,
                                     struct ree_device **out, struct ree_error *err);
size_t ree_cuda_device_list(struct ree_device_listing *out_list, size_t max, const char **out_note);
enum ree_status ree_vulkan_device_open(const char *which, const struct ree_device_options *options,
                                       struct ree_device **out, struct ree_error *err);
size_t ree_vulkan_device_list(struct ree_device_listing *out_list, size_t max,
                              const char **out_note);

#endif
