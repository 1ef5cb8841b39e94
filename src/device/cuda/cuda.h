// Internal header of the CUDA backend, shared by its files. Only this folder and its tests include
// it.
//
// One struct ree_cuda is one opened device: its primary context, one stream on which all work runs
// in order, its memory, and the kernels loaded so far.
#ifndef REE_DEVICE_CUDA_CUDA_H
#define REE_DEVICE_CUDA_CUDA_H

#include "base/container.h"
#include "base/status.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernel_numbers.h"
#include "device/cuda/tiles.h"
#include "device/device.h"
#include "device/facts.h"
#include "device/selftest/record.h"

struct ree_device_buffer {
    CUdeviceptr address;            // device address, a multiple of 256
    uint64_t size;                  // requested bytes
    uint64_t reserved;              // allocated bytes
    struct ree_device_buffer *next; // next buffer in the list of unused ones
};

#define REE_CUDA_N_CLASSES 64
#define REE_CUDA_STAGING ((size_t)4 << 20) // bytes of one half of `staging`

struct ree_cuda_slab;
struct ree_cublas;
struct ree_cuda_tested;
struct ree_cuda_jit;
struct ree_cuda_encoding;
struct ree_cuda_expr;
struct ree_cuda_step;

#define REE_CUDA_TEST_BUCKETS 256

struct ree_cuda {
    struct ree_device base;
    struct ree_cuda_driver driver;
    CUdevice ordinal;
    CUcontext context;
    CUstream stream;
    uint32_t capability; // compute capability times 10: 80 is 8.0
    struct ree_cuda_limits limits;
    uint64_t memory_size;
    uint32_t l2_size;
    // modules.c
    CUmodule modules[REE_CUDA_N_MODULES];
    CUfunction functions[REE_CUDA_N_KERNELS];
    uint32_t static_shared[REE_CUDA_N_KERNELS]; // by kernel: bytes of its own shared arrays
    // by kernel: bytes of dynamic shared memory already enabled
    uint32_t shared_set[REE_CUDA_N_KERNELS];
    // jit.c
    struct ree_cuda_jit *jit;
    bool no_jit; // expressions of maps are interpreted; no_jit_why is the reason
    char no_jit_why[256];
    uint32_t n_jit_failed; // number of expressions that the driver could not compile
    // selftest.c
    struct ree_cuda_tested *tested[REE_CUDA_TEST_BUCKETS];
    struct ree_test_record tests;
    unsigned char identity[REE_SHA256_SIZE]; // digest of driver, device and binary
    uint32_t n_tests_run;
    uint32_t n_untested;  // number of kernels in dispatches that no twin reached
    bool has_large_twins; // set by tests: use large twins on the emulated device too
    // memory.c
    struct ree_cuda_slab *slabs;
    struct ree_device_buffer *unused[REE_CUDA_N_CLASSES];
    void *staging; // pinned host memory for transfers, in two halves
    CUevent staged[2];
    struct ree_cublas *cublas; // NULL: kernels compute all products
    enum ree_operation_set operation_set;
    struct ree_facts facts; // facts about the device (device.c)
};

static inline struct ree_cuda *ree_cuda_of(struct ree_device *device) {
    return REE_CONTAINER_OF(device, struct ree_cuda, base);
}

// Calls a function of the driver. If it fails, returns the failure from the calling function;
// `what` says in the message what failed. Requires variables `cuda` and `err`.
#define REE_CUDA_CALL(call, what) REE_CUDA_TRY(&cuda->driver, err, call, what)

// The device's vtable (entry.c). Its functions call ree_cuda_enter first and ree_cuda_leave last.
// ree_cuda_enter makes the device's context current on the calling thread, as all functions below
// that call the driver require, except ree_cuda_destroy. ree_cuda_leave restores the previous
// context. These calls may be nested.
extern const struct ree_device_vtable ree_cuda_vtable;
enum ree_status ree_cuda_enter(struct ree_cuda *cuda, struct ree_error *err);
void ree_cuda_leave(struct ree_cuda *cuda);

// device.c
void ree_cuda_destroy(struct ree_device *device);
size_t ree_cuda_facts(const struct ree_device *device, const struct ree_device_fact **out_facts);

// Sets *out to a kernel; its module is loaded at its first use (modules.c). shared_bytes: bytes of
// dynamic shared memory of the launch.
enum ree_status ree_cuda_function(struct ree_cuda *cuda, enum ree_cuda_kernel kernel,
                                  uint32_t shared_bytes, CUfunction *out, struct ree_error *err);
void ree_cuda_modules_finish(struct ree_cuda *cuda);
const char *ree_cuda_kernel_name(enum ree_cuda_kernel kernel);
// Passes the code of a kernel to the sink: the image of its module.
void ree_cuda_kernel_show(enum ree_cuda_kernel kernel, const struct ree_kernel_sink *sink);
// Returns NULL if this build contains kernels; otherwise the reason why not.
const char *ree_cuda_no_kernels(void);

// JIT-generated kernels for the expressions of maps (jit.c). ree_cuda_jit_init checks whether the
// driver can compile and adds a fact about it. ree_cuda_jit_map sets *out to the kernel of a
// dispatch, or to NULL if the expression must be interpreted; `prepared` comes from
// ree_cuda_expr_prepare.
enum ree_status ree_cuda_jit_init(struct ree_cuda *cuda, struct ree_error *err);
void ree_cuda_jit_finish(struct ree_cuda *cuda);
enum ree_status ree_cuda_jit_map(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                 const struct ree_cuda_expr *prepared, CUfunction *out,
                                 struct ree_error *err);
// Passes the PTX of a JIT-generated kernel to the sink. Sets *out_found to false if `function` is
// not one.
enum ree_status ree_cuda_jit_show(const struct ree_cuda *cuda, CUfunction function,
                                  const struct ree_kernel_sink *sink, bool *out_found,
                                  struct ree_error *err);
// Returns the launch of a JIT-generated kernel for n_elements elements.
struct ree_cuda_step ree_cuda_jit_step(uint32_t n_elements);

// Encodes a dispatch in the first form that computes the CPU's bits on this device, as self-tests
// on twins show; in the form REE_CUDA_ON_HOST if no other form does (selftest.c).
// ree_cuda_selftest_init requires an open driver and reads the results of earlier processes;
// cache_dir is as in struct ree_device_options.
enum ree_status ree_cuda_encode_tested(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err);
// For tests: returns whether a twin would run all kernels that the dispatch runs. Launches nothing.
bool ree_cuda_twin_reaches(struct ree_cuda *cuda, const struct ree_dispatch *dispatch);
void ree_cuda_selftest_init(struct ree_cuda *cuda, const char *cache_dir);
void ree_cuda_selftest_finish(struct ree_cuda *cuda);

// Probes the device's arithmetic (probe.c). Adds a fact for each primitive, or fails with a message
// that names a wrong primitive. break_primitive: as in struct ree_device_testing.
enum ree_status ree_cuda_probe(struct ree_cuda *cuda, const char *break_primitive,
                               struct ree_error *err);

// memory.c
enum ree_status ree_cuda_memory_init(struct ree_cuda *cuda, struct ree_error *err);
void ree_cuda_memory_finish(struct ree_cuda *cuda);
enum ree_status ree_cuda_buffer_create(struct ree_cuda *cuda, uint64_t size,
                                       struct ree_device_buffer **out, struct ree_error *err);
void ree_cuda_buffer_destroy(struct ree_cuda *cuda, struct ree_device_buffer *buffer);
enum ree_status ree_cuda_buffer_write(struct ree_cuda *cuda, struct ree_device_buffer *buffer,
                                      uint64_t offset, const void *data, uint64_t size,
                                      struct ree_error *err);
enum ree_status ree_cuda_buffer_read(struct ree_cuda *cuda, struct ree_device_buffer *buffer,
                                     uint64_t offset, void *data, uint64_t size,
                                     struct ree_error *err);

// Opens cuBLAS on a stream (cublas.c), for products in the operation sets other than
// `reproducible`. tf32: float32 products may use TF32. Fails with REE_UNAVAILABLE if the library is
// not installed.
enum ree_status ree_cublas_open(CUstream stream, bool tf32, struct ree_cublas **out,
                                struct ree_error *err);
void ree_cublas_close(struct ree_cublas *cublas);
const char *ree_cublas_version(const struct ree_cublas *cublas); // such as "13.0.2"
// Returns whether cuBLAS can compute the sums: float32 sums of float32, float16 or bfloat16
// operands that are dense except for transposition. cuBLAS does not compute epilogues.
bool ree_cublas_can(const struct ree_matmul_params *p);
// Enqueues the product on the stream. a, b, c: addresses of the operands; the offsets in *p are not
// yet added.
enum ree_status ree_cublas_run(struct ree_cublas *cublas, const struct ree_matmul_params *p,
                               CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, struct ree_error *err);

// Builds a program of dispatches that are already encoded: encodings[source->n_dispatches]
// (program.c). ree_cuda_program_create also encodes them.
enum ree_status ree_cuda_program_assemble(struct ree_cuda *cuda, const struct ree_program *source,
                                          const struct ree_cuda_encoding *encodings,
                                          struct ree_device_program **out, struct ree_error *err);
enum ree_status ree_cuda_program_create(struct ree_cuda *cuda, const struct ree_program *program,
                                        struct ree_device_program **out, struct ree_error *err);
void ree_cuda_program_destroy(struct ree_cuda *cuda, struct ree_device_program *program);
uint32_t ree_cuda_program_size(const struct ree_device_program *program); // number of dispatches
enum ree_status ree_cuda_program_run(struct ree_cuda *cuda, struct ree_device_program *program,
                                     struct ree_device_buffer *const *slots, bool measures,
                                     struct ree_error *err);
bool ree_cuda_program_times(struct ree_cuda *cuda, struct ree_device_program *program,
                            double *out_seconds);
enum ree_status ree_cuda_program_kernels(const struct ree_cuda *cuda,
                                         const struct ree_device_program *program,
                                         const struct ree_kernel_sink *sink, struct ree_error *err);

#endif
