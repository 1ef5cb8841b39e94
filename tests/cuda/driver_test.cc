// The stand-in driver: it has every kernel, runs kernels by launches and by graphs, and refuses
// what the real driver refuses.
#include "api.h"
#include "device/cuda/kernel_interface.h"
#include "driver_types.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>

static int n_failures;
#define EXPECT(is, should)                                                                         \
    do {                                                                                           \
        int result_ = (int)(is);                                                                   \
        if (result_ != (int)(should)) {                                                            \
            printf("line %d: %s is %d, not %d\n", __LINE__, #is, result_, (int)(should));          \
            n_failures++;                                                                          \
        }                                                                                          \
    } while (0)

static void *library;
template <class F> static F function(const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        printf("the library has no %s\n", name);
        exit(1);
    }
    return (F)symbol;
}
#define CALL(name, ...) function<CUresult (*)(__VA_ARGS__)>(#name)

struct copy_args {
    struct ree_cuda_header h;
    struct ree_cuda_copy_params p;
};
static struct copy_args copy_of(CUdeviceptr from, CUdeviceptr to, uint32_t n) {
    struct copy_args a = {};
    a.h.operands[0] = from, a.h.operands[1] = to;
    a.h.sizes[0] = a.h.sizes[1] = n * 4;
    a.h.extra[0] = n;
    a.p.elem_size = 4;
    return a;
}

int main() {
    library = dlopen(REE_CUDA_EMULATOR, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    auto retain = CALL(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice);
    auto release = CALL(cuDevicePrimaryCtxRelease_v2, CUdevice);
    auto set_current = CALL(cuCtxSetCurrent, CUcontext);
    auto push = CALL(cuCtxPushCurrent_v2, CUcontext);
    auto pop = CALL(cuCtxPopCurrent_v2, CUcontext *);
    auto event_create = CALL(cuEventCreate, CUevent *, unsigned);
    auto event_record = CALL(cuEventRecord, CUevent, CUstream);
    auto stream_create = CALL(cuStreamCreate, CUstream *, unsigned);
    auto set_options = function<int (*)(const char *)>("ree_emulator_options");
    auto synchronize = CALL(cuCtxSynchronize, void);
    auto load = CALL(cuModuleLoadData, CUmodule *, const void *);
    auto get_function = CALL(cuModuleGetFunction, CUfunction *, CUmodule, const char *);
    auto get_attribute = CALL(cuFuncGetAttribute, int *, CUfunction_attribute, CUfunction);
    auto set_attribute = CALL(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int);
    auto alloc = CALL(cuMemAlloc_v2, CUdeviceptr *, size_t);
    auto free_memory = CALL(cuMemFree_v2, CUdeviceptr);
    auto up = CALL(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t);
    auto down = CALL(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t);
    auto fill = CALL(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t);
    auto launch = CALL(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, unsigned, CUstream, void **, void **);
    auto graph_create = CALL(cuGraphCreate, CUgraph *, unsigned);
    auto graph_destroy = CALL(cuGraphDestroy, CUgraph);
    auto add_kernel = CALL(cuGraphAddKernelNode_v2, CUgraphNode *, CUgraph, const CUgraphNode *,
                           size_t, const CUDA_KERNEL_NODE_PARAMS *);
    auto add_memset = CALL(cuGraphAddMemsetNode, CUgraphNode *, CUgraph, const CUgraphNode *,
                           size_t, const CUDA_MEMSET_NODE_PARAMS *, CUcontext);
    auto instantiate =
        CALL(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long);
    auto exec_set = CALL(cuGraphExecKernelNodeSetParams_v2, CUgraphExec, CUgraphNode,
                         const CUDA_KERNEL_NODE_PARAMS *);
    auto exec_destroy = CALL(cuGraphExecDestroy, CUgraphExec);
    auto graph_launch = CALL(cuGraphLaunch, CUgraphExec, CUstream);
    auto last_error = function<const char *(*)(void)>("ree_emulator_last_error");

    CUcontext context;
    CUdeviceptr a, b, c;
    EXPECT(retain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(CALL(cuInit, unsigned)(0), CUDA_SUCCESS);
    EXPECT(retain(&context, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(retain(&context, 0), CUDA_SUCCESS);
    EXPECT(alloc(&a, 4096), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(set_current(context), CUDA_SUCCESS);

    // Every kernel.
    CUmodule module;
    CUfunction copy;
    EXPECT(load(&module, "anything"), CUDA_SUCCESS);
    EXPECT(get_function(&copy, module, "ree_nothing"), CUDA_ERROR_NOT_FOUND);
#define MODULE(name)
#define KERNEL(name) EXPECT(get_function(&copy, module, "ree_" #name), CUDA_SUCCESS);
#include "device/cuda/kernels.def"
    EXPECT(get_function(&copy, module, "ree_copy_words"), CUDA_SUCCESS);

    // Memory.
    uint32_t words[1024], back[1024];
    for (uint32_t i = 0; i < 1024; i++)
        words[i] = i * 3;
    EXPECT(alloc(&a, 4096), CUDA_SUCCESS);
    EXPECT(alloc(&b, 4096), CUDA_SUCCESS);
    EXPECT(alloc(&c, 4096), CUDA_SUCCESS);
    EXPECT(down(back, b, 4096), CUDA_SUCCESS);
    EXPECT(back[7], 0xCDCDCDCD);
    EXPECT(up(a, words, 4096), CUDA_SUCCESS);
    EXPECT(up(a + 4, words, 4096), CUDA_ERROR_INVALID_VALUE);
    EXPECT(down(back, a - 4, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(free_memory(a + 256), CUDA_ERROR_INVALID_VALUE);

    // Launches.
    struct copy_args args = copy_of(a, b, 1024);
    void *params[] = {&args}, *no_handle = &args;
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    EXPECT(down(back, b, 4096), CUDA_SUCCESS);
    EXPECT(memcmp(back, words, 4096), 0);
    EXPECT(launch(copy, 2, 1, 1, 2048, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(copy, 2, 1, 1, 1024, 1, 1, 0, NULL, params, NULL),
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(launch(copy, 0, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch((CUfunction)no_handle, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL),
           CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, (CUstream)no_handle, params, NULL),
           CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 64 << 10, NULL, params, NULL),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(set_attribute(copy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(set_attribute(copy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10),
           CUDA_SUCCESS);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 64 << 10, NULL, params, NULL), CUDA_SUCCESS);

    // The kernel's own shared arrays count too: a launch may have 48 KiB with them, or more after
    // an opt-in, up to the device's limit.
    CUfunction softmax;
    CUgraph graph;
    CUgraphNode first;
    CUDA_KERNEL_NODE_PARAMS node = {};
    int own = 0, dynamic = 0;
    const int limit = (int)REE_EMULATOR_STATIC_SHARED, most = (int)REE_EMULATOR_MAX_SHARED;
    EXPECT(get_function(&softmax, module, "ree_softmax_rows"), CUDA_SUCCESS);
    EXPECT(get_attribute(&own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, softmax), CUDA_SUCCESS);
    EXPECT(get_attribute(&dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, softmax),
           CUDA_SUCCESS);
    EXPECT(own > 0 && dynamic == limit - own, true);
    node.func = softmax;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 128, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    node.sharedMemBytes = (unsigned)(limit - own);
    EXPECT(graph_create(&graph, 0), CUDA_SUCCESS);
    EXPECT(add_kernel(&first, graph, NULL, 0, &node), CUDA_SUCCESS);
    node.sharedMemBytes++;
    EXPECT(add_kernel(&first, graph, NULL, 0, &node), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(softmax, 1, 1, 1, 128, 1, 1, node.sharedMemBytes, NULL, params, NULL),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(set_attribute(softmax, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - own + 1),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(set_attribute(softmax, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - own),
           CUDA_SUCCESS);
    node.sharedMemBytes = (unsigned)(most - own);
    EXPECT(add_kernel(&first, graph, NULL, 0, &node), CUDA_SUCCESS);
    EXPECT(graph_destroy(graph), CUDA_SUCCESS);

    // A graph: a to b, then b to c; b is cleared first. A node copies its arguments when it is
    // added.
    CUgraphNode clear, second;
    CUgraphExec exec;
    EXPECT(graph_create(&graph, 0), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS zero = {};
    zero.dst = b, zero.elementSize = 4, zero.width = 1024, zero.height = 1;
    EXPECT(add_memset(&clear, graph, NULL, 0, &zero, context), CUDA_SUCCESS);
    zero.width = 1025;
    EXPECT(add_memset(&clear, graph, NULL, 0, &zero, context), CUDA_ERROR_INVALID_VALUE);
    node = {};
    node.func = copy;
    node.gridDimX = 2, node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 128, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    EXPECT(add_kernel(&first, graph, &clear, 1, &node), CUDA_SUCCESS);
    args = copy_of(b, c, 1024);
    EXPECT(add_kernel(&second, graph, &first, 1, &node), CUDA_SUCCESS);
    memset(&args, 0, sizeof args);
    EXPECT(instantiate(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT(graph_launch(exec, NULL), CUDA_SUCCESS);
    EXPECT(down(back, c, 4096), CUDA_SUCCESS);
    EXPECT(memcmp(back, words, 4096), 0);
    EXPECT(fill(c, 0, 4096), CUDA_SUCCESS);
    args = copy_of(b, c, 8); // only the executable graph's second copy becomes smaller
    EXPECT(exec_set(exec, second, &node), CUDA_SUCCESS);
    EXPECT(exec_set(exec, clear, &node), CUDA_ERROR_INVALID_VALUE);
    EXPECT(graph_launch(exec, NULL), CUDA_SUCCESS);
    EXPECT(down(back, c, 4096), CUDA_SUCCESS);
    EXPECT(back[7] == 21 && back[8] == 0, true);

    // Freed memory, and the sticky error.
    EXPECT(free_memory(c), CUDA_SUCCESS);
    EXPECT(free_memory(c), CUDA_ERROR_INVALID_VALUE);
    EXPECT(up(c, words, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(synchronize(), CUDA_SUCCESS);
    EXPECT(graph_launch(exec, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(strstr(last_error(), "kernel ree_copy_words") && strstr(last_error(), "operand 1"),
           true);
    EXPECT(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(up(a, words, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(exec_destroy(exec), CUDA_SUCCESS);
    EXPECT(exec_destroy(exec), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(graph_destroy(graph), CUDA_SUCCESS);
    EXPECT(release(0), CUDA_SUCCESS);
    EXPECT(retain(&context, 0), CUDA_SUCCESS);
    EXPECT(synchronize(), CUDA_SUCCESS);

    // Two devices. What belongs to one context is an error in the other; a thread begins without a
    // context.
    CUcontext other, now = NULL;
    CUdeviceptr far;
    CUevent event;
    CUstream stream;
    CUdevice device = 7;
    EXPECT(set_options("devices=2"), 0);
    EXPECT(retain(&other, 1), CUDA_SUCCESS);
    EXPECT(push(other), CUDA_SUCCESS);
    EXPECT(CALL(cuCtxGetDevice, CUdevice *)(&device), CUDA_SUCCESS);
    EXPECT(device, 1);
    EXPECT(alloc(&far, 4096), CUDA_SUCCESS);
    EXPECT(up(far, words, 4096), CUDA_SUCCESS);
    EXPECT(up(a, words, 4096), CUDA_ERROR_INVALID_VALUE);
    EXPECT(free_memory(a), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(event_create(&event, 0), CUDA_SUCCESS);
    EXPECT(stream_create(&stream, 0), CUDA_SUCCESS);
    args = copy_of(a, b, 1024);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(get_function(&copy, module, "ree_copy_words"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(pop(&now), CUDA_SUCCESS);
    EXPECT(now == other, true);
    EXPECT(event_record(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, stream, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    args = copy_of(far, b, 1024);
    EXPECT(launch(copy, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(strstr(last_error(), "operand 0") && strstr(last_error(), "of this device"), true);
    EXPECT(set_current(other), CUDA_SUCCESS); // the other context still works
    EXPECT(synchronize(), CUDA_SUCCESS);
    std::thread([&] {
        CUcontext none = other;
        CUdeviceptr memory;
        EXPECT(CALL(cuCtxGetCurrent, CUcontext *)(&none), CUDA_SUCCESS);
        EXPECT(none == NULL, true);
        EXPECT(alloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
        EXPECT(free_memory(far), CUDA_ERROR_INVALID_CONTEXT);
        EXPECT(pop(&none), CUDA_ERROR_INVALID_CONTEXT);
    }).join();
    EXPECT(free_memory(far), CUDA_SUCCESS);
    EXPECT(release(1), CUDA_SUCCESS);
    EXPECT(synchronize(), CUDA_ERROR_INVALID_CONTEXT);

    // cuGetProcAddress returns the newest version.
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    auto address = CALL(cuGetProcAddress_v2, const char *, void **, int, cuuint64_t,
                        CUdriverProcAddressQueryResult *);
    EXPECT(address("cuMemAlloc", &found, 12000, 0, &status), CUDA_SUCCESS);
    EXPECT(found == dlsym(library, "cuMemAlloc_v2"), true);
    EXPECT(address("cuNothing", &found, 12000, 0, &status), CUDA_SUCCESS);
    EXPECT(found == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, true);
    printf(n_failures ? "%d failures\n" : "ok\n", n_failures);
    return n_failures != 0;
}
