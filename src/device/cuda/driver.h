// The part of the CUDA driver API that ree uses, loaded at run time. Building this folder requires
// no CUDA header or library, and one binary runs with and without a driver. The API of
// REE_CUDA_DRIVER_VERSION and all later versions has these names, types and values.
#ifndef REE_DEVICE_CUDA_DRIVER_H
#define REE_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Oldest CUDA version with all functions below, encoded as cuDriverGetVersion does: 11040 is CUDA
// 11.4, which introduced cuGraphInstantiateWithFlags. The test cuda/driver_version derives it from
// NVIDIA's header.
#define REE_CUDA_DRIVER_VERSION 11040

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_NOT_READY = 600,
};

enum { // CUdevice_attribute
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum { // CUfunction_attribute
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
};

typedef struct CUDA_KERNEL_NODE_PARAMS_v1_st {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value;
    unsigned elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

// Expands DRIVER(field of struct ree_cuda_driver, symbol in the library, parameters) for each
// function that ree uses.
#define REE_CUDA_DRIVER(DRIVER)                                                                    \
    DRIVER(init, cuInit, (unsigned flags))                                                         \
    DRIVER(driver_version, cuDriverGetVersion, (int *version))                                     \
    DRIVER(error_name, cuGetErrorName, (CUresult error, const char **name))                        \
    DRIVER(error_string, cuGetErrorString, (CUresult error, const char **text))                    \
    DRIVER(device_count, cuDeviceGetCount, (int *count))                                           \
    DRIVER(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                              \
    DRIVER(device_name, cuDeviceGetName, (char *name, int size, CUdevice device))                  \
    DRIVER(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                  \
    DRIVER(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))   \
    DRIVER(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))       \
    DRIVER(context_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                       \
    DRIVER(context_push, cuCtxPushCurrent_v2, (CUcontext context))                                 \
    DRIVER(context_pop, cuCtxPopCurrent_v2, (CUcontext * context))                                 \
    DRIVER(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                  \
    DRIVER(                                                                                        \
        module_load_ex, cuModuleLoadDataEx,                                                        \
        (CUmodule * module, const void *image, unsigned n_options, int *options, void **values))   \
    DRIVER(module_unload, cuModuleUnload, (CUmodule module))                                       \
    DRIVER(module_function, cuModuleGetFunction,                                                   \
           (CUfunction * function, CUmodule module, const char *name))                             \
    DRIVER(function_get, cuFuncGetAttribute, (int *value, int attribute, CUfunction function))     \
    DRIVER(function_set, cuFuncSetAttribute, (CUfunction function, int attribute, int value))      \
    DRIVER(memory_alloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t size))                      \
    DRIVER(memory_free, cuMemFree_v2, (CUdeviceptr address))                                       \
    DRIVER(host_alloc, cuMemHostAlloc, (void **memory, size_t size, unsigned flags))               \
    DRIVER(host_free, cuMemFreeHost, (void *memory))                                               \
    DRIVER(copy_up, cuMemcpyHtoDAsync_v2,                                                          \
           (CUdeviceptr to, const void *from, size_t size, CUstream stream))                       \
    DRIVER(copy_down, cuMemcpyDtoHAsync_v2,                                                        \
           (void *to, CUdeviceptr from, size_t size, CUstream stream))                             \
    DRIVER(memory_set, cuMemsetD8Async,                                                            \
           (CUdeviceptr to, unsigned char value, size_t n, CUstream stream))                       \
    DRIVER(stream_create, cuStreamCreate, (CUstream * stream, unsigned flags))                     \
    DRIVER(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                  \
    DRIVER(stream_wait, cuStreamSynchronize, (CUstream stream))                                    \
    DRIVER(event_create, cuEventCreate, (CUevent * event, unsigned flags))                         \
    DRIVER(event_destroy, cuEventDestroy_v2, (CUevent event))                                      \
    DRIVER(event_record, cuEventRecord, (CUevent event, CUstream stream))                          \
    DRIVER(event_query, cuEventQuery, (CUevent event))                                             \
    DRIVER(event_wait, cuEventSynchronize, (CUevent event))                                        \
    DRIVER(event_elapsed, cuEventElapsedTime, (float *milliseconds, CUevent from, CUevent to))     \
    DRIVER(launch, cuLaunchKernel,                                                                 \
           (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                \
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,           \
            CUstream stream, void **params, void **extra))                                         \
    DRIVER(graph_create, cuGraphCreate, (CUgraph * graph, unsigned flags))                         \
    DRIVER(graph_destroy, cuGraphDestroy, (CUgraph graph))                                         \
    DRIVER(graph_add_kernel, cuGraphAddKernelNode,                                                 \
           (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t n_after,           \
            const CUDA_KERNEL_NODE_PARAMS *params))                                                \
    DRIVER(graph_add_memset, cuGraphAddMemsetNode,                                                 \
           (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t n_after,           \
            const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context))                             \
    DRIVER(graph_instantiate, cuGraphInstantiateWithFlags,                                         \
           (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                          \
    DRIVER(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec exec))                             \
    DRIVER(graph_exec_set, cuGraphExecKernelNodeSetParams,                                         \
           (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))            \
    DRIVER(graph_launch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))

struct ree_cuda_driver {
    void *library;
    bool emulated;    // the library is the tests' emulator, not a driver
    bool has_kernels; // the emulator runs kernels of its own instead of those built into ree
    int version;      // CUDA version of the driver; 12040: CUDA 12.4
#define REE_CUDA_DRIVER_FIELD(name, symbol, parameters) CUresult(*name) parameters;
    REE_CUDA_DRIVER(REE_CUDA_DRIVER_FIELD)
};

// Loads libcuda.so.1, or the library that $REE_CUDA_DRIVER names (the tests' emulator), and
// initialises it. Fails with REE_UNAVAILABLE if there is no driver or no device.
enum ree_status ree_cuda_driver_open(struct ree_cuda_driver *driver, struct ree_error *err);
void ree_cuda_driver_close(struct ree_cuda_driver *driver);

// Sets *err to "CUDA: what: CUDA_ERROR_... (text)" for the failed `result`. Returns REE_NO_MEMORY
// if device memory is exhausted, otherwise REE_DEVICE.
enum ree_status ree_cuda_fail(const struct ree_cuda_driver *driver, struct ree_error *err,
                              CUresult result, const char *what);
#ifdef __clang_analyzer__
#define ree_cuda_fail(...) ree_never_ok(ree_cuda_fail(__VA_ARGS__)) // base/status.h
#endif
#define REE_CUDA_TRY(driver, err, call, what)                                                      \
    do {                                                                                           \
        CUresult ree_cuda_result_ = (driver)->call;                                                \
        if (ree_cuda_result_ != CUDA_SUCCESS)                                                      \
            return ree_cuda_fail((driver), (err), ree_cuda_result_, (what));                       \
    } while (0)

#endif
