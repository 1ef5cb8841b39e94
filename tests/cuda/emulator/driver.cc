// A stand-in for the CUDA driver (libcuda.so.1): one or two devices, on which the emulator runs the
// kernels that were linked into this library. Every module has all kernels, whatever its image,
// unless REE_EMULATOR has the word kernels=image.
//
// Each device has its primary context. As in the driver, each thread has a stack of current
// contexts, and whatever is made belongs to the context on top. This driver is stricter than the
// real one: it always refuses what belongs to another context than the current one.
//
// Work is done immediately, in the order of submission. A graph's nodes run in an order that its
// edges allow and that REE_EMULATOR chooses. What the real driver refuses is refused here. After a
// kernel's error every call fails until the primary context is released.
#include <stddef.h>

#include "api.h"
#include "device/cuda/kernel_interface.h"
#include "driver_types.h"
#include "ptx.h"

#include <chrono>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define MEMORY_SIZE ((size_t)16 << 30)
#define DEFAULT_SHARED REE_EMULATOR_STATIC_SHARED

struct CUctx_st {
    CUdevice device;
    int references;
    bool broken;
    size_t used; // bytes
};
struct CUmod_st {
    CUcontext context;
    struct ree_emulator_ptx *ptx; // NULL: the compiled-in kernels, or those of the text
    std::string text;             // "": the compiled-in kernels
    std::map<std::string, CUfunction> functions;
};
struct CUfunc_st {
    CUcontext context;
    std::string name;
    unsigned max_dynamic; // with the kernel's own arrays at most 48 KiB, unless opted in to more
    struct ree_emulator_ptx *ptx; // NULL: compiled in
    bool owns_ptx;
};
struct CUstream_st {
    CUcontext context;
    CUgraph capture; // NULL: not capturing
};
struct CUevent_st {
    CUcontext context;
    bool recorded, timing;
    std::chrono::steady_clock::time_point at;
};

// A kernel, a copy, a fill, or an empty node.
enum work_kind { KERNEL, COPY, FILL, EMPTY };
struct work {
    enum work_kind kind;
    CUcontext context;
    CUfunction function;
    unsigned grid[3], block[3], shared;
    std::vector<unsigned char> args;
    void *to;
    const void *from;
    size_t size;                  // bytes of a copy, elements of a fill
    unsigned value, element_size; // for fills
};
struct CUgraphNode_st {
    struct work work;
    std::vector<CUgraphNode> after;
    CUgraph graph;
};
struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
    std::vector<struct work> work;
    std::vector<std::vector<size_t>> after;
    std::map<CUgraphNode, size_t> numbers; // index of each node of the source graph
};

static std::recursive_mutex mutex;
static bool initialised;
static struct CUctx_st primary[REE_EMULATOR_MAX_DEVICES] = {{0, 0, false, 0}, {1, 0, false, 0}};
static thread_local std::vector<CUcontext> current;
static std::set<const void *> modules, functions, streams, events, graphs, nodes, execs;
static std::map<void *, size_t> host_memory;
struct block {
    size_t size;
    CUcontext context;
};
static std::map<CUdeviceptr, struct block> device_memory;
static char last_error[1000];

#define LOCK std::lock_guard<std::recursive_mutex> lock(mutex)
#define CHECK(condition, error)                                                                    \
    if (!(condition)) return error
#define INVALID CUDA_ERROR_INVALID_VALUE
// Start of every function that does something on the device.
#define BEGIN                                                                                      \
    LOCK;                                                                                          \
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);                                                \
    CUcontext here = current.empty() ? NULL : current.back();                                      \
    CHECK(here && here->references > 0, CUDA_ERROR_INVALID_CONTEXT);                               \
    CHECK(!here->broken, CUDA_ERROR_ILLEGAL_ADDRESS)
// Start of every function that destroys something of context `owner`.
#define OWNED(owner) CHECK(is_current(owner), CUDA_ERROR_INVALID_CONTEXT)

static bool is_current(CUcontext context) {
    return !current.empty() && current.back() == context;
}
static bool context_exists(CUcontext context) {
    for (int i = 0; i < ree_emulator_n_devices(); i++)
        if (context == &primary[i]) return true;
    return false;
}
static bool device_exists(CUdevice device) {
    return device >= 0 && device < ree_emulator_n_devices();
}

static bool stream_exists(CUstream stream) {
    return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
           (streams.count(stream) && is_current(stream->context));
}
static bool event_exists(CUevent event) {
    return events.count(event) && is_current(event->context);
}
static bool captures(CUstream stream) {
    return streams.count(stream) && stream->capture;
}

EXPORT const char *ree_emulator_last_error(void) {
    return last_error;
}

// Initialisation and the device.

// NVIDIA's driver names its threads in this way, and fails if it may not.
static bool names_thread() {
    char path[64], name[17] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)syscall(SYS_gettid));
    prctl(PR_GET_NAME, name);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const bool ok = file >= 0 && write(file, name, strlen(name)) >= 0;
    if (file >= 0) close(file);
    return ok;
}

EXPORT CUresult CUDAAPI cuInit(unsigned flags) {
    LOCK;
    CHECK(flags == 0, INVALID);
    CHECK(names_thread(), CUDA_ERROR_OPERATING_SYSTEM);
    initialised = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDriverGetVersion(int *version) {
    CHECK(version, INVALID);
    *version = ree_emulator_driver_version();
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetCount(int *count) {
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(count, INVALID);
    *count = ree_emulator_n_devices();
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(device, INVALID);
    CHECK(device_exists(ordinal), CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device) {
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(name && size > 0, INVALID);
    snprintf(name, (size_t)size, "ree emulator");
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(uuid, INVALID);
    memcpy(uuid->bytes, "ree-emulator-001", 16);
    uuid->bytes[15] = (char)('1' + device);
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    return cuDeviceGetUuid(uuid, device);
}

EXPORT CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(bytes, INVALID);
    *bytes = MEMORY_SIZE;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                             CUdevice device) {
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(value, INVALID);
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = REE_EMULATOR_MAX_THREADS; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7FFFFFFF; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: *value = 0xFFFF; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 0xFFFF; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = DEFAULT_SHARED; break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: *value = 64 << 10; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 64 << 10; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 1000000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 256; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 164 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 64 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = REE_EMULATOR_MAX_SHARED;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = 1 << 10; break;
    default: *value = 0; return (int)attribute > 0 && (int)attribute < 200 ? CUDA_SUCCESS : INVALID;
    }
    return CUDA_SUCCESS;
}

// Contexts.

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    LOCK;
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(context, INVALID);
    primary[device].references++;
    *context = &primary[device];
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    LOCK;
    CHECK(device_exists(device), CUDA_ERROR_INVALID_DEVICE);
    CHECK(primary[device].references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--primary[device].references == 0) primary[device].broken = false;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(!context || context_exists(context), CUDA_ERROR_INVALID_CONTEXT);
    if (!current.empty()) current.pop_back();
    if (context) current.push_back(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(context, INVALID);
    *context = current.empty() ? NULL : current.back();
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
    CHECK(initialised, CUDA_ERROR_NOT_INITIALIZED);
    CHECK(context_exists(context), CUDA_ERROR_INVALID_CONTEXT);
    current.push_back(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context) {
    CHECK(!current.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context) *context = current.back();
    current.pop_back();
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
    CHECK(!current.empty(), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(device, INVALID);
    *device = current.back()->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxSynchronize(void) {
    BEGIN;
    return CUDA_SUCCESS;
}

// Modules and functions.

static uint32_t max_threads_of(CUfunction f) {
    return f->ptx ? ree_emulator_ptx_max_threads(f->ptx)
                  : (uint32_t)ree_emulator_kernel_max_threads(f->name.c_str());
}
static size_t args_size_of(CUfunction f) {
    return f->ptx ? ree_emulator_ptx_args_size(f->ptx)
                  : ree_emulator_kernel_args_size(f->name.c_str());
}

static unsigned static_shared_of(CUfunction f) {
    return ree_emulator_kernel_static_shared(f->name.c_str());
}

// Returns the oldest driver that compiles a text, by the PTX ISA that it declares: 11070 for 7.7.
// Returns 0 if it declares none. Right for 7.0 to 8.5 and 9.0 ("PTX ISA", release notes).
static int driver_of_ptx(const char *text) {
    const char *at = strncmp(text, ".version", 8) == 0 ? text : strstr(text, "\n.version");
    int major, minor;
    if (!at || sscanf(at + strspn(at, "\n"), ".version %d.%d", &major, &minor) != 2) return 0;
    return (major + 4) * 1000 + minor * 10;
}

EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
    BEGIN;
    CHECK(module && image, INVALID);
    struct ree_emulator_ptx *ptx = NULL;
    const char *text = "";
    // The text of a JIT-generated kernel begins with .version, nvcc's with a comment.
    const bool generated = strncmp((const char *)image, ".version", 8) == 0;
    if (generated || !ree_emulator_has_kernels()) {
        const int driver = driver_of_ptx((const char *)image);
        CHECK(driver, CUDA_ERROR_INVALID_IMAGE);
        CHECK(driver <= ree_emulator_driver_version(), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    }
    if (!generated && !ree_emulator_has_kernels()) text = (const char *)image;
    if (generated) {
        const enum ree_emulator_jit jit = ree_emulator_jit();
        CHECK(jit != REE_EMULATOR_JIT_OFF, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
        CHECK(jit == REE_EMULATOR_JIT_ON ||
                  (jit == REE_EMULATOR_JIT_PLAIN && !strstr((const char *)image, "call")),
              CUDA_ERROR_INVALID_PTX);
        ptx = ree_emulator_ptx_parse((const char *)image, NULL, last_error, sizeof last_error);
        if (!ptx) fprintf(stderr, "CUDA emulator: %s\n", last_error);
        CHECK(ptx, CUDA_ERROR_INVALID_PTX);
    }
    *module = new CUmod_st{here, ptx, text, {}};
    modules.insert(*module);
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n_options,
                                           CUjit_option *options, void **values) {
    CHECK(n_options == 0 || (options && values), INVALID);
    return cuModuleLoadData(module, image);
}
EXPORT CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    return cuModuleLoadData(module, image);
}

EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    LOCK;
    CHECK(modules.count(module), CUDA_ERROR_INVALID_HANDLE);
    OWNED(module->context);
    modules.erase(module);
    for (auto &function : module->functions) {
        functions.erase(function.second);
        if (function.second->owns_ptx) ree_emulator_ptx_destroy(function.second->ptx);
        delete function.second;
    }
    ree_emulator_ptx_destroy(module->ptx);
    delete module;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module,
                                            const char *name) {
    BEGIN;
    CHECK(function && name, INVALID);
    CHECK(modules.count(module) && module->context == here, CUDA_ERROR_INVALID_HANDLE);
    CUfunction &known = module->functions[name];
    if (!known) {
        struct ree_emulator_ptx *ptx = module->ptx;
        char error[sizeof last_error] = "";
        if (!ptx && !module->text.empty())
            ptx = ree_emulator_ptx_parse(module->text.c_str(), name, error, sizeof error);
        else if (!ptx)
            ptx = ree_emulator_ptx_shipped(name, error, sizeof error);
        if (!ptx && *error) {
            memcpy(last_error, error, sizeof error);
            fprintf(stderr, "CUDA emulator: %s\n", last_error);
        }
        if (ptx ? strcmp(ree_emulator_ptx_name(ptx), name) != 0
                : *error || ree_emulator_kernel_args_size(name) == 0) {
            module->functions.erase(name);
            return CUDA_ERROR_NOT_FOUND;
        }
        known = new CUfunc_st{here, name, 0, ptx, !module->text.empty()};
        known->max_dynamic = DEFAULT_SHARED - static_shared_of(known);
    }
    functions.insert(known);
    *function = known;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                           int value) {
    BEGIN;
    CHECK(functions.count(function) && function->context == here, CUDA_ERROR_INVALID_HANDLE);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
    CHECK(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
              value <= (int)(REE_EMULATOR_MAX_SHARED - static_shared_of(function)),
          INVALID);
    function->max_dynamic = (unsigned)value;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                           CUfunction function) {
    BEGIN;
    CHECK(value, INVALID);
    CHECK(functions.count(function) && function->context == here, CUDA_ERROR_INVALID_HANDLE);
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)max_threads_of(function); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)static_shared_of(function); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 80; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)function->max_dynamic;
        break;
    default: *value = 0; break;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction function,
                                                                    int block, size_t shared) {
    BEGIN;
    CHECK(n && block > 0, INVALID);
    CHECK(functions.count(function) && function->context == here, CUDA_ERROR_INVALID_HANDLE);
    shared += static_shared_of(function);
    int by_threads = 2048 / block, by_shared = shared ? (int)((164u << 10) / (shared + 1024)) : 32;
    *n = by_threads < by_shared ? by_threads : by_shared;
    if (*n > 32) *n = 32;
    if ((unsigned)block > max_threads_of(function)) *n = 0;
    return CUDA_SUCCESS;
}

// Memory.

EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *memory, size_t size) {
    BEGIN;
    CHECK(memory && size, INVALID);
    CHECK(size <= MEMORY_SIZE - here->used, CUDA_ERROR_OUT_OF_MEMORY);
    ree_emulator_set_device(here->device);
    *memory = (CUdeviceptr)ree_emulator_alloc(size);
    CHECK(*memory, CUDA_ERROR_OUT_OF_MEMORY);
    device_memory[*memory] = {size, here};
    here->used += size;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr memory) {
    LOCK;
    if (!memory) return CUDA_SUCCESS;
    auto found = device_memory.find(memory);
    CHECK(found != device_memory.end(), INVALID);
    CUcontext owner = found->second.context;
    OWNED(owner);
    owner->used -= found->second.size;
    device_memory.erase(found);
    ree_emulator_free((void *)memory);
    return owner->broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
    BEGIN;
    CHECK(memory && size && flags < 8, INVALID);
    *memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    CHECK(*memory, CUDA_ERROR_OUT_OF_MEMORY);
    host_memory[*memory] = size;
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuMemAllocHost_v2(void **memory, size_t size) {
    return cuMemHostAlloc(memory, size, 0);
}

EXPORT CUresult CUDAAPI cuMemFreeHost(void *memory) {
    LOCK;
    CHECK(!current.empty(), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(host_memory.erase(memory), INVALID);
    free(memory);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemGetInfo_v2(size_t *left, size_t *total) {
    BEGIN;
    CHECK(left && total, INVALID);
    *left = MEMORY_SIZE - here->used;
    *total = MEMORY_SIZE;
    return CUDA_SUCCESS;
}

// Returns whether one allocation of the context contains the range.
static bool is_memory_of(CUcontext context, CUdeviceptr at, size_t size) {
    auto after = device_memory.upper_bound(at);
    if (after == device_memory.begin()) return false;
    auto found = std::prev(after);
    size_t offset = at - found->first, whole = found->second.size;
    return found->second.context == context && offset <= whole && whole - offset >= size;
}
static bool on_device(CUdeviceptr at, size_t size) {
    return !current.empty() && is_memory_of(current.back(), at, size);
}

// Work.

// Returns whether every operand of a generated kernel is memory of its device.
static bool holds_operands(const struct work &w) {
    const struct ree_cuda_header *h = (const struct ree_cuda_header *)w.args.data();
    for (int o = 0; o < REE_MAX_OPERANDS; o++) {
        if (!h->operands[o] || ree_emulator_holds((const void *)h->operands[o], h->sizes[o]))
            continue;
        snprintf(last_error, sizeof last_error,
                 "kernel %s: operand %d is not memory of one allocation of this device",
                 w.function->name.c_str(), o);
        return false;
    }
    return true;
}

static CUresult run_work(const struct work &w) {
    if (w.context->broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
    ree_emulator_set_device(w.context->device);
    switch (w.kind) {
    case KERNEL:
        CHECK(functions.count(w.function), CUDA_ERROR_INVALID_HANDLE);
        if (w.function->ptx) {
            if (holds_operands(w) &&
                ree_emulator_ptx_run(w.function->ptx, w.grid, w.block, w.shared, w.args.data(),
                                     last_error, sizeof last_error) == 0)
                return CUDA_SUCCESS;
        } else if (ree_emulator_launch(w.function->name.c_str(), w.grid[0], w.grid[1], w.grid[2],
                                       w.block[0], w.block[1], w.block[2], w.shared, w.args.data(),
                                       last_error, sizeof last_error) == 0)
            return CUDA_SUCCESS;
        fprintf(stderr, "CUDA emulator: %s\n", last_error);
        w.context->broken = true;
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case COPY: memmove(w.to, w.from, w.size); return CUDA_SUCCESS;
    case FILL:
        for (size_t i = 0; i < w.size; i++)
            memcpy((unsigned char *)w.to + i * w.element_size, &w.value, w.element_size);
        return CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
    }
}

static CUgraphNode add_node(CUgraph graph, struct work w, const CUgraphNode *after, size_t n) {
    auto *node = new CUgraphNode_st{std::move(w), {}, graph};
    node->after.assign(after, after + n);
    graph->nodes.emplace_back(node);
    nodes.insert(node);
    return node;
}

// Submits work to a stream: it runs immediately, or is recorded if the stream is being captured.
static CUresult submit(CUstream stream, struct work w) {
    CHECK(stream_exists(stream), CUDA_ERROR_INVALID_HANDLE);
    if (!captures(stream)) return run_work(w);
    CUgraphNode last = stream->capture->nodes.empty() ? NULL : stream->capture->nodes.back().get();
    add_node(stream->capture, std::move(w), &last, last ? 1 : 0);
    return CUDA_SUCCESS;
}

static CUresult kernel_work(CUcontext here, struct work *w, CUfunction function,
                            const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared,
                            void **params, void **extra) {
    CHECK(functions.count(function) && function->context == here, CUDA_ERROR_INVALID_HANDLE);
    CHECK(params && params[0] && !extra, INVALID);
    uint64_t n = (uint64_t)block[0] * block[1] * block[2];
    CHECK(n != 0 && block[0] <= 1024 && block[1] <= 1024 && block[2] <= 64 &&
              n <= REE_EMULATOR_MAX_THREADS,
          INVALID);
    CHECK(grid[0] && grid[1] && grid[2] && grid[0] <= 0x7FFFFFFF && grid[1] <= 0xFFFF &&
              grid[2] <= 0xFFFF,
          INVALID);
    // A kernel compiled for fewer threads has no registers for more.
    CHECK(n <= max_threads_of(function), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(shared <= function->max_dynamic, INVALID);
    *w = {};
    w->kind = KERNEL;
    w->context = here;
    w->function = function;
    memcpy(w->grid, grid, sizeof grid);
    memcpy(w->block, block, sizeof block);
    w->shared = shared;
    const unsigned char *args = (const unsigned char *)params[0];
    w->args.assign(args, args + args_size_of(function));
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared, CUstream stream,
                                       void **params, void **extra) {
    BEGIN;
    struct work w;
    CUresult result = kernel_work(here, &w, function, {grid_x, grid_y, grid_z},
                                  {block_x, block_y, block_z}, shared, params, extra);
    return result != CUDA_SUCCESS ? result : submit(stream, std::move(w));
}

static CUresult copy(CUcontext here, CUstream stream, void *to, const void *from, size_t size) {
    CHECK(to && from, INVALID);
    struct work w = {};
    w.kind = COPY;
    w.context = here;
    w.to = to;
    w.from = from;
    w.size = size;
    return submit(stream, std::move(w));
}

EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size,
                                             CUstream stream) {
    BEGIN;
    CHECK(on_device(to, size), INVALID);
    return copy(here, stream, (void *)to, from, size);
}
EXPORT CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    return cuMemcpyHtoDAsync_v2(to, from, size, NULL);
}
EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size,
                                             CUstream stream) {
    BEGIN;
    CHECK(on_device(from, size), INVALID);
    return copy(here, stream, to, (const void *)from, size);
}
EXPORT CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoHAsync_v2(to, from, size, NULL);
}
EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size,
                                             CUstream stream) {
    BEGIN;
    CHECK(on_device(to, size) && on_device(from, size), INVALID);
    return copy(here, stream, (void *)to, (const void *)from, size);
}
EXPORT CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoDAsync_v2(to, from, size, NULL);
}

static CUresult fill(CUcontext here, CUstream stream, CUdeviceptr to, unsigned value,
                     unsigned element_size, size_t n) {
    CHECK(n <= MEMORY_SIZE && on_device(to, n * element_size) && to % element_size == 0, INVALID);
    struct work w = {};
    w.kind = FILL;
    w.context = here;
    w.to = (void *)to;
    w.size = n;
    w.value = value;
    w.element_size = element_size;
    return submit(stream, std::move(w));
}

EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n,
                                        CUstream stream) {
    BEGIN;
    return fill(here, stream, to, value, 1, n);
}
EXPORT CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
    return cuMemsetD8Async(to, value, n, NULL);
}
EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n,
                                         CUstream stream) {
    BEGIN;
    return fill(here, stream, to, value, 4, n);
}
EXPORT CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
    return cuMemsetD32Async(to, value, n, NULL);
}

// Streams and events.

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags) {
    BEGIN;
    CHECK(stream && flags < 2, INVALID);
    *stream = new CUstream_st{here, NULL};
    streams.insert(*stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
    LOCK;
    CHECK(streams.count(stream), CUDA_ERROR_INVALID_HANDLE);
    OWNED(stream->context);
    streams.erase(stream);
    delete stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
    BEGIN;
    CHECK(stream_exists(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(!captures(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuStreamQuery(CUstream stream) {
    return cuStreamSynchronize(stream);
}

EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    BEGIN;
    CHECK(stream_exists(stream) && event_exists(event), CUDA_ERROR_INVALID_HANDLE);
    CHECK(flags < 2, INVALID);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    BEGIN;
    CHECK((int)mode >= 0 && (int)mode <= 2, INVALID);
    CHECK(streams.count(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(!captures(stream), CUDA_ERROR_ILLEGAL_STATE);
    stream->capture = new CUgraph_st;
    graphs.insert(stream->capture);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    BEGIN;
    CHECK(graph, INVALID);
    CHECK(captures(stream), CUDA_ERROR_ILLEGAL_STATE);
    *graph = stream->capture;
    stream->capture = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    BEGIN;
    CHECK(status, INVALID);
    CHECK(stream_exists(stream), CUDA_ERROR_INVALID_HANDLE);
    *status = captures(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags) {
    BEGIN;
    CHECK(event && flags < 8, INVALID);
    *event = new CUevent_st{here, false, !(flags & 2), {}};
    events.insert(*event);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
    LOCK;
    CHECK(events.count(event), CUDA_ERROR_INVALID_HANDLE);
    OWNED(event->context);
    events.erase(event);
    delete event;
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
    BEGIN;
    CHECK(event_exists(event) && stream_exists(stream), CUDA_ERROR_INVALID_HANDLE);
    event->recorded = true;
    event->at = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    BEGIN;
    CHECK(event_exists(event), CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
    return cuEventSynchronize(event);
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    BEGIN;
    CHECK(milliseconds, INVALID);
    CHECK(event_exists(start) && event_exists(end), CUDA_ERROR_INVALID_HANDLE);
    CHECK(start->recorded && end->recorded && start->timing && end->timing,
          CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
    return CUDA_SUCCESS;
}
EXPORT CUresult CUDAAPI cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime(milliseconds, start, end);
}

// Graphs.

EXPORT CUresult CUDAAPI cuGraphCreate(CUgraph *graph, unsigned flags) {
    BEGIN;
    CHECK(graph && flags == 0, INVALID);
    *graph = new CUgraph_st;
    graphs.insert(*graph);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
    LOCK;
    CHECK(graphs.erase(graph), CUDA_ERROR_INVALID_HANDLE);
    for (auto &node : graph->nodes)
        nodes.erase(node.get());
    delete graph;
    return CUDA_SUCCESS;
}

static bool nodes_of(CUgraph graph, const CUgraphNode *after, size_t n) {
    if (!graphs.count(graph) || (n != 0 && !after)) return false;
    for (size_t i = 0; i < n; i++)
        if (!nodes.count(after[i]) || after[i]->graph != graph) return false;
    return true;
}

// Accepts both versions of the parameters.
template <class P> static CUresult node_work(CUcontext here, struct work *w, const P *p) {
    CHECK(p, INVALID);
    return kernel_work(here, w, p->func, {p->gridDimX, p->gridDimY, p->gridDimZ},
                       {p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                       p->kernelParams, p->extra);
}

template <class P>
static CUresult add_kernel_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                size_t n_after, const P *params) {
    BEGIN;
    CHECK(node && nodes_of(graph, after, n_after), INVALID);
    struct work w;
    CUresult result = node_work(here, &w, params);
    if (result != CUDA_SUCCESS) return result;
    *node = add_node(graph, std::move(w), after, n_after);
    return CUDA_SUCCESS;
}
#define ADD_KERNEL_NODE(name, P)                                                                   \
    EXPORT CUresult CUDAAPI name(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,       \
                                 size_t n_after, const P *params) {                                \
        return add_kernel_node(node, graph, after, n_after, params);                               \
    }
ADD_KERNEL_NODE(cuGraphAddKernelNode, CUDA_KERNEL_NODE_PARAMS_v1)
ADD_KERNEL_NODE(cuGraphAddKernelNode_v2, CUDA_KERNEL_NODE_PARAMS_v2)

EXPORT CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
                                             const CUgraphNode *after, size_t n_after,
                                             const CUDA_MEMCPY3D *p, CUcontext context) {
    BEGIN;
    CHECK(node && p && nodes_of(graph, after, n_after), INVALID);
    CHECK(!context || context == here, CUDA_ERROR_INVALID_CONTEXT);
    CHECK(p->Height == 1 && p->Depth == 1 && p->WidthInBytes, CUDA_ERROR_NOT_SUPPORTED);
    CHECK(!p->srcY && !p->srcZ && !p->srcLOD && !p->dstY && !p->dstZ && !p->dstLOD &&
              !p->reserved0 && !p->reserved1,
          INVALID);
    struct work w = {};
    w.kind = COPY;
    w.context = here;
    w.size = p->WidthInBytes;
    if (p->srcMemoryType == CU_MEMORYTYPE_DEVICE) {
        CHECK(on_device(p->srcDevice + p->srcXInBytes, w.size), INVALID);
        w.from = (const unsigned char *)p->srcDevice + p->srcXInBytes;
    } else {
        CHECK(p->srcMemoryType == CU_MEMORYTYPE_HOST && p->srcHost, INVALID);
        w.from = (const unsigned char *)p->srcHost + p->srcXInBytes;
    }
    if (p->dstMemoryType == CU_MEMORYTYPE_DEVICE) {
        CHECK(on_device(p->dstDevice + p->dstXInBytes, w.size), INVALID);
        w.to = (unsigned char *)p->dstDevice + p->dstXInBytes;
    } else {
        CHECK(p->dstMemoryType == CU_MEMORYTYPE_HOST && p->dstHost, INVALID);
        w.to = (unsigned char *)p->dstHost + p->dstXInBytes;
    }
    *node = add_node(graph, std::move(w), after, n_after);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
                                             const CUgraphNode *after, size_t n_after,
                                             const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
    BEGIN;
    CHECK(node && p && nodes_of(graph, after, n_after), INVALID);
    CHECK(!context || context == here, CUDA_ERROR_INVALID_CONTEXT);
    CHECK(p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4, INVALID);
    CHECK(p->height == 1, p->height ? CUDA_ERROR_NOT_SUPPORTED : INVALID);
    CHECK(p->width && p->width <= MEMORY_SIZE && p->dst % p->elementSize == 0 &&
              on_device(p->dst, p->width * p->elementSize),
          INVALID);
    struct work w = {};
    w.kind = FILL;
    w.context = here;
    w.to = (void *)p->dst;
    w.size = p->width;
    w.value = p->value;
    w.element_size = p->elementSize;
    *node = add_node(graph, std::move(w), after, n_after);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph,
                                            const CUgraphNode *after, size_t n_after) {
    BEGIN;
    CHECK(node && nodes_of(graph, after, n_after), INVALID);
    struct work w = {};
    w.kind = EMPTY;
    w.context = here;
    *node = add_node(graph, std::move(w), after, n_after);
    return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                                    unsigned long long flags) {
    BEGIN;
    CHECK(exec && flags < 16, INVALID);
    CHECK(graphs.count(graph), CUDA_ERROR_INVALID_HANDLE);
    auto *made = new CUgraphExec_st;
    for (auto &node : graph->nodes) { // dependencies come first
        std::vector<size_t> after;
        for (CUgraphNode before : node->after)
            after.push_back(made->numbers[before]);
        made->numbers[node.get()] = made->work.size();
        made->work.push_back(node->work);
        made->after.push_back(after);
    }
    execs.insert(made);
    *exec = made;
    return CUDA_SUCCESS;
}

template <class P>
static CUresult set_kernel_node(CUgraphExec exec, CUgraphNode node, const P *params) {
    BEGIN;
    CHECK(execs.count(exec), CUDA_ERROR_INVALID_HANDLE);
    auto found = exec->numbers.find(node);
    CHECK(found != exec->numbers.end() && exec->work[found->second].kind == KERNEL, INVALID);
    struct work w;
    CUresult result = node_work(here, &w, params);
    if (result != CUDA_SUCCESS) return result;
    exec->work[found->second] = std::move(w);
    return CUDA_SUCCESS;
}
#define SET_KERNEL_NODE(name, P)                                                                   \
    EXPORT CUresult CUDAAPI name(CUgraphExec exec, CUgraphNode node, const P *params) {            \
        return set_kernel_node(exec, node, params);                                                \
    }
SET_KERNEL_NODE(cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1)
SET_KERNEL_NODE(cuGraphExecKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS_v2)

EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
    LOCK;
    CHECK(execs.erase(exec), CUDA_ERROR_INVALID_HANDLE);
    delete exec;
    return CUDA_SUCCESS;
}

// Runs the nodes in an order that the edges allow. An order other than "forward" reveals a missing
// edge.
EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    BEGIN;
    CHECK(execs.count(exec) && stream_exists(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(!captures(stream), CUDA_ERROR_NOT_SUPPORTED);
    size_t n = exec->work.size();
    std::vector<size_t> waits(n);
    std::vector<std::vector<size_t>> before(n);
    std::set<size_t> ready;
    for (size_t i = 0; i < n; i++) {
        waits[i] = exec->after[i].size();
        for (size_t j : exec->after[i])
            before[j].push_back(i);
        if (waits[i] == 0) ready.insert(i);
    }
    while (!ready.empty()) {
        auto next = std::next(ready.begin(), ree_emulator_choose((uint32_t)ready.size()));
        size_t i = *next;
        ready.erase(next);
        CUresult result = run_work(exec->work[i]);
        if (result != CUDA_SUCCESS) return result;
        for (size_t j : before[i])
            if (--waits[j] == 0) ready.insert(j);
    }
    return CUDA_SUCCESS;
}

// Errors and entry points.

EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name) {
    CHECK(name, INVALID);
    switch ((int)error) {
#define NAME(e)                                                                                    \
    case e: *name = #e; return CUDA_SUCCESS;
        NAME(CUDA_SUCCESS)
        NAME(CUDA_ERROR_INVALID_VALUE)
        NAME(CUDA_ERROR_OUT_OF_MEMORY)
        NAME(CUDA_ERROR_NOT_INITIALIZED)
        NAME(CUDA_ERROR_INVALID_DEVICE)
        NAME(CUDA_ERROR_INVALID_CONTEXT)
        NAME(CUDA_ERROR_INVALID_PTX)
        NAME(CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        NAME(CUDA_ERROR_INVALID_IMAGE)
        NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        NAME(CUDA_ERROR_INVALID_HANDLE)
        NAME(CUDA_ERROR_OPERATING_SYSTEM)
        NAME(CUDA_ERROR_NOT_FOUND)
        NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
        NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        NAME(CUDA_ERROR_NOT_SUPPORTED)
        NAME(CUDA_ERROR_ILLEGAL_STATE)
        NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
#undef NAME
    default: *name = NULL; return INVALID;
    }
}

EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text) {
    CHECK(text, INVALID);
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS && last_error[0]) {
        *text = last_error;
        return CUDA_SUCCESS;
    }
    return cuGetErrorName(error, text);
}

// Returns the newest available version of a function.
EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                            cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *status) {
    CHECK(symbol && function && version > 0 && flags < 4, INVALID);
    Dl_info info;
    void *self =
        dladdr((const void *)cuInit, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    CHECK(self, CUDA_ERROR_NOT_FOUND);
    *function = dlsym(self, (std::string(symbol) + "_v2").c_str());
    if (!*function) *function = dlsym(self, symbol);
    dlclose(self);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
