// Devices, on which models run: the CPU, Vulkan devices and CUDA devices.
#ifndef REE_DEVICE_H
#define REE_DEVICE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_device;
struct ree_device_testing; // testing.h

// What a run promises about its output bits (README.md, "Operation sets"). A device without faster
// operations than RepOps runs RepOps in every set.
enum ree_operation_set {
    REE_REPRODUCIBLE, // the bits that RepOps define, equal on every device
    // The same bits in every run on the same device and driver. CUDA uses cuBLAS in binary32 if it
    // is installed.
    REE_DETERMINISTIC,
    // No promise. CUDA uses cuBLAS with tensor cores (TF32) if it is installed.
    REE_DEFAULT,
};
REE_API const char *ree_operation_set_name(enum ree_operation_set set); // "reproducible", ...

struct ree_device_options {
    size_t size; // sizeof(struct ree_device_options)
    enum ree_operation_set operation_set;
    // Number of CPU threads; 0: one per core. If all cores are used, each OpenMP worker is bound to
    // one core; the calling thread is not bound. If OMP_PROC_BIND is set, ree binds no thread.
    uint32_t n_threads;
    const char *cpu_isa; // "avx512", "avx2", "neon" or "portable"; NULL: the best available
    // Vulkan: enable VK_LAYER_KHRONOS_validation. A run fails if the layer reports a message.
    bool validation;
    // Folder for compiled pipelines and for the results of probes and self-tests, which later
    // processes reuse. NULL: $XDG_CACHE_HOME/ree, or $HOME/.cache/ree; "": do not cache.
    const char *cache_dir;
    // For tests; NULL: none.
    const struct ree_device_testing *testing;
    // Vulkan: also measure functions of the device that ree does not use, and list them as facts of
    // the kind "not used".
    bool all_facts;
};

// Opens a device. `spec` is "cpu", "cuda" or "vulkan" for the first device of that kind, or
// "cuda:INDEX", or "cuda:NAME", where NAME is a part of the device's name in upper or lower case;
// likewise "vulkan:INDEX" and "vulkan:NAME". `options` may be NULL. Fails with
// - REE_UNAVAILABLE if there is no driver, or no usable device of that kind
// - REE_NOT_FOUND if there is no device of that index or name
// - REE_INVALID if spec or an option is malformed
// - REE_UNSUPPORTED if the device computes wrongly and ree has no other form for it
REE_API enum ree_status ree_device_open(const char *spec, const struct ree_device_options *options,
                                        struct ree_device **out_device, struct ree_error *err);
REE_API void ree_device_destroy(struct ree_device *device);
REE_API const char *
ree_device_name(const struct ree_device *device); // "cpu (avx512, 2 threads)", ...
// Returns the operation set with which the device was opened.
REE_API enum ree_operation_set ree_device_operation_set(const struct ree_device *device);

// A fact about a device, for people to read, for example {"limit", "storage buffer range", "128
// MiB"} or {"primitive", "fma", "float64 (native is not fused)"}.
struct ree_device_fact {
    // One of
    // - "device", "limit", "feature"
    // - "primitive": the value is the probe's verdict, the form that ree uses
    // - "self-test": the name is "passed", "failed" or "not tested"; the value says which kernel or
    //   pipeline, and why it failed. ree runs another form instead of a failed one
    // - "cache": the name is "not used", the value is the reason
    // - "not used": a function of the device that ree tested only for information, if
    //   ree_device_options.all_facts is set
    const char *kind;
    const char *name;
    const char *value;
};
// Code that dispatches run on a device. The struct does not change between versions.
struct ree_kernel {
    // Name of the shader ("conv_1_float64"), of CUDA's kernel ("ree_copy_words"), or of ree's own
    // function ("ree_cpu_matmul").
    const char *name;
    // "SPIR-V": the module as the driver receives it
    // "PTX": text of a kernel, or of the module with this kernel
    // "fatbin": NVIDIA's container of such a module
    // "": the code is that of the library itself, or of cuBLAS
    const char *format;
    const void *code; // NULL if format is ""
    size_t nbytes;
};
// Returns the number of facts about a device; *out_facts is borrowed. A later call may return more
// facts, because self-tests run when a program first uses a kernel or pipeline.
REE_API size_t ree_device_facts(const struct ree_device *device,
                                const struct ree_device_fact **out_facts);

// A device that can be opened: its spec for ree_device_open, and its name.
struct ree_device_listing {
    char spec[64];
    char name[256];
};
// Lists the devices that can be opened. Writes up to `max` entries and returns the number of
// devices found, which may be larger. Unless out_note is NULL, sets *out_note to the reasons why
// kinds of devices are missing, one line per kind ("Vulkan: libvulkan.so.1 ..."), or to NULL if
// none is missing; the text is valid until the next call.
REE_API size_t ree_device_list(struct ree_device_listing *out_list, size_t max,
                               const char **out_note);

#ifdef __cplusplus
}
#endif
#endif
