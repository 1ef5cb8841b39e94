// Loads kernels. Modules of kernels are embedded in the binary. A module is loaded when a program
// first uses one of its kernels.
#include "device/cuda/cuda.h"
#include "kernels.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define MODULE(m)
#define KERNEL(k) "ree_" #k,
#include "device/cuda/kernels.def"
};

// Returns the module of a kernel. In kernels.def a module precedes its kernels.
static enum ree_cuda_module module_of(enum ree_cuda_kernel kernel) {
    enum { // the number of kernels before each module
#define MODULE(m) BEFORE_##m, SKIP_##m = BEFORE_##m - 1,
#define KERNEL(k) COUNT_##k,
#include "device/cuda/kernels.def"
    };
    static const int before[] = {
#define MODULE(m) BEFORE_##m,
#define KERNEL(k)
#include "device/cuda/kernels.def"
    };
    int module = REE_CUDA_N_MODULES - 1;
    while (before[module] > (int)kernel)
        module--;
    return (enum ree_cuda_module)module;
}

const char *ree_cuda_kernel_name(enum ree_cuda_kernel kernel) {
    return names[kernel];
}

void ree_cuda_kernel_show(enum ree_cuda_kernel kernel, const struct ree_kernel_sink *sink) {
    static const unsigned char fatbin[4] = {0x50, 0xED, 0x55, 0xBA};
    const struct ree_cuda_image *image = &ree_cuda_images[module_of(kernel)];
    struct ree_kernel shown = {.name = names[kernel], .format = ""};
    if (image->data) {
        shown.code = image->data;
        shown.nbytes = (size_t)(image->end - image->data);
        shown.format = shown.nbytes > 4 && memcmp(image->data, fatbin, 4) == 0 ? "fatbin" : "PTX";
    }
    sink->each(sink->user, &shown);
}

const char *ree_cuda_no_kernels(void) {
    return ree_cuda_images[0].data
               ? NULL
               : "this ree was built with REE_CUDA=OFF, so it has no CUDA kernels";
}

enum ree_status ree_cuda_function(struct ree_cuda *cuda, enum ree_cuda_kernel kernel,
                                  uint32_t shared_bytes, CUfunction *out, struct ree_error *err) {
    char what[128];
    if (!cuda->functions[kernel]) {
        enum ree_cuda_module module = module_of(kernel);
        const struct ree_cuda_image *image = &ree_cuda_images[module];
        if (!cuda->modules[module]) {
            // The tests' emulator contains the kernels and ignores the data.
            const void *data = image->data ? image->data : "";
            snprintf(what, sizeof what,
                     "cannot load the kernels of '%s', made by CUDA %u.%u, by a driver for CUDA "
                     "%d.%d",
                     image->name, ree_cuda_build.toolkit / 1000, ree_cuda_build.toolkit % 1000 / 10,
                     cuda->driver.version / 1000, cuda->driver.version % 1000 / 10);
            REE_CUDA_CALL(module_load(&cuda->modules[module], data), what);
        }
        snprintf(what, sizeof what, "no kernel '%s'", names[kernel]);
        CUfunction function;
        int static_shared = 0;
        REE_CUDA_CALL(module_function(&function, cuda->modules[module], names[kernel]), what);
        REE_CUDA_CALL(function_get(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
                      what);
        cuda->static_shared[kernel] = (uint32_t)static_shared;
        cuda->functions[kernel] = function;
    }
    *out = cuda->functions[kernel];
    // More than 48 KiB, including the kernel's static arrays, requires an opt-in. The opt-in's
    // value counts only dynamic memory.
    if (cuda->static_shared[kernel] + shared_bytes > 48u << 10 &&
        shared_bytes > cuda->shared_set[kernel]) {
        snprintf(what, sizeof what, "cannot get %u bytes of shared memory for kernel '%s'",
                 shared_bytes, names[kernel]);
        REE_CUDA_CALL(
            function_set(*out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes),
            what);
        cuda->shared_set[kernel] = shared_bytes;
    }
    return REE_OK;
}

void ree_cuda_modules_finish(struct ree_cuda *cuda) {
    for (int m = 0; m < REE_CUDA_N_MODULES; m++)
        if (cuda->modules[m]) cuda->driver.module_unload(cuda->modules[m]);
}
