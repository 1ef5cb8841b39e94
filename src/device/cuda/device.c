// Opens CUDA devices: the driver, a device's primary context, one stream.
#include "device/cuda/cuda.h"
#include "device/cuda/versions.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/memory.h"

void ree_cuda_destroy(struct ree_device *device) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    if (cuda->context) {
        const bool entered = ree_cuda_enter(cuda, NULL) == REE_OK;
        if (cuda->stream) cuda->driver.stream_wait(cuda->stream);
        ree_cublas_close(cuda->cublas);
        ree_cuda_selftest_finish(cuda);
        ree_cuda_jit_finish(cuda);
        ree_cuda_modules_finish(cuda);
        ree_cuda_memory_finish(cuda);
        if (cuda->stream) cuda->driver.stream_destroy(cuda->stream);
        if (entered) ree_cuda_leave(cuda);
        cuda->driver.context_release(cuda->ordinal);
    }
    ree_cuda_driver_close(&cuda->driver);
    ree_facts_finish(&cuda->facts);
    ree_free(cuda);
}

size_t ree_cuda_facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct ree_cuda *cuda = REE_CONTAINER_OF(device, const struct ree_cuda, base);
    *out_facts = cuda->facts.list;
    return cuda->facts.n;
}

// Finds the index of the device that `which` selects: "" the first, an index, or part of a name.
static enum ree_status find(struct ree_cuda *cuda, const char *which, int *out_index,
                            struct ree_error *err) {
    int n = 0;
    REE_CUDA_CALL(device_count(&n), "cannot count devices");
    char *end;
    long index = *which ? strtol(which, &end, 10) : 0;
    if (!*which || (isdigit((unsigned char)*which) && *end == 0)) {
        if (index >= 0 && index < n) {
            *out_index = (int)index;
            return REE_OK;
        }
        return ree_fail(err, REE_NOT_FOUND, "CUDA: device %s does not exist; there %s %d", which,
                        n == 1 ? "is" : "are", n);
    }
    for (int i = 0; i < n; i++) {
        CUdevice device;
        char name[256] = "";
        REE_CUDA_CALL(device_get(&device, i), "cannot open a device");
        REE_CUDA_CALL(device_name(name, sizeof name, device), "cannot read a device's name");
        if (strcasestr(name, which)) {
            *out_index = i;
            return REE_OK;
        }
    }
    return ree_fail(err, REE_NOT_FOUND, "CUDA: no device's name contains '%s'", which);
}

static enum ree_status attribute(struct ree_cuda *cuda, int attribute, uint32_t *out,
                                 struct ree_error *err) {
    int value = 0;
    REE_CUDA_CALL(device_attribute(&value, attribute, cuda->ordinal),
                  "cannot read a device's limits");
    *out = (uint32_t)value;
    return REE_OK;
}

static enum ree_status read_limits(struct ree_cuda *cuda, struct ree_error *err) {
    uint32_t major = 0, minor = 0;
    size_t memory;
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, err));
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, err));
    cuda->capability = major * 10 + minor;
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                      &cuda->limits.n_multiprocessors, err));
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                      &cuda->limits.max_shared, err));
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
                      &cuda->limits.shared_per_multiprocessor, err));
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cuda->l2_size, err));
    REE_CUDA_CALL(device_memory(&memory, cuda->ordinal), "cannot read a device's memory size");
    cuda->memory_size = memory;
    cuda->base.max_buffer_size = cuda->base.memory_size = memory;
    cuda->base.paged_queries = 31; // longer prompts use tiles, which read dense keys and values
    return REE_OK;
}

static enum ree_status collect_facts(struct ree_cuda *cuda, struct ree_error *err) {
    struct ree_facts *f = &cuda->facts;
    const int version = cuda->driver.version;
    uint32_t ratio = 0, clock = 0;
    REE_TRY(
        attribute(cuda, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, &ratio, err));
    REE_TRY(attribute(cuda, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock, err));
    ree_facts_add(f, "device", "name", "%s", cuda->base.name);
    ree_facts_add(f, "device", "driver", "CUDA %d.%d", version / 1000, version % 1000 / 10);
    ree_facts_add(f, "device", "compute capability", "%u.%u", cuda->capability / 10,
                  cuda->capability % 10);
    if (!cuda->driver.has_kernels) {
        const unsigned toolkit = ree_cuda_build.toolkit;
        const char *form = ree_cuda_has_binary(&ree_cuda_build, cuda->capability) ? "machine code"
                           : ree_cuda_build.stored ? "PTX from ree's repository, made by nvcc"
                                                   : "PTX";
        ree_facts_add(f, "device", "kernels", "%s of CUDA %u.%u", form, toolkit / 1000,
                      toolkit % 1000 / 10);
    }
    ree_facts_add(f, "device", "multiprocessors", "%u at %u MHz", cuda->limits.n_multiprocessors,
                  clock / 1000);
    ree_facts_add(f, "device", "float64", "1/%u of the rate of float32", ratio);
    ree_facts_add_bytes(f, "limit", "memory", cuda->memory_size);
    ree_facts_add_bytes(f, "limit", "L2 cache", cuda->l2_size);
    ree_facts_add_bytes(f, "limit", "shared memory of a block", cuda->limits.max_shared);
    if (cuda->cublas)
        ree_facts_add(f, "device", "products", "cuBLAS %s (%s)", ree_cublas_version(cuda->cublas),
                      cuda->operation_set == REE_DEFAULT ? "TF32" : "binary32");
    return REE_OK;
}

// Opens the driver, finds the device and retains its primary context.
static enum ree_status take_device(struct ree_cuda *cuda, const char *which,
                                   struct ree_error *err) {
    int index;
    REE_TRY(ree_cuda_driver_open(&cuda->driver, err));
    if (ree_cuda_no_kernels() && !cuda->driver.has_kernels)
        return ree_fail(err, REE_UNAVAILABLE, "CUDA: %s", ree_cuda_no_kernels());
    REE_TRY(find(cuda, which, &index, err));
    REE_CUDA_CALL(device_get(&cuda->ordinal, index), "cannot open the device");
    REE_CUDA_CALL(device_name(cuda->base.name, sizeof cuda->base.name, cuda->ordinal),
                  "cannot read the device's name");
    REE_CUDA_CALL(context_retain(&cuda->context, cuda->ordinal), "cannot use the device");
    return REE_OK;
}

static enum ree_status prepare(struct ree_cuda *cuda, const struct ree_device_options *options,
                               struct ree_error *err) {
    REE_CUDA_CALL(stream_create(&cuda->stream, CU_STREAM_NON_BLOCKING), "cannot create a stream");
    REE_TRY(read_limits(cuda, err));
    if (!cuda->driver.has_kernels)
        REE_TRY(
            ree_cuda_check_versions(&ree_cuda_build, cuda->capability, cuda->driver.version, err));
    REE_TRY(ree_cuda_memory_init(cuda, err));
    if (cuda->operation_set != REE_REPRODUCIBLE)
        REE_TRY(
            ree_cublas_open(cuda->stream, cuda->operation_set == REE_DEFAULT, &cuda->cublas, err));
    REE_TRY(collect_facts(cuda, err));
    ree_cuda_selftest_init(cuda, options->cache_dir);
    ree_facts_add_cache(&cuda->facts, cuda->tests.path);
    REE_TRY(ree_cuda_jit_init(cuda, err));
    REE_TRY(ree_cuda_probe(cuda, ree_broken_primitive(options), err));
    if (cuda->facts.failed) return ree_fail(err, REE_NO_MEMORY, "no memory for a device's facts");
    return REE_OK;
}

static enum ree_status open_device(struct ree_cuda *cuda, const char *which,
                                   const struct ree_device_options *options,
                                   struct ree_error *err) {
    REE_TRY(take_device(cuda, which, err));
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status = prepare(cuda, options, err);
    ree_cuda_leave(cuda);
    return status;
}

enum ree_status ree_cuda_device_open(const char *which, const struct ree_device_options *options,
                                     struct ree_device **out, struct ree_error *err) {
    *out = NULL;
    struct ree_cuda *cuda = ree_alloc_zeroed(1, sizeof *cuda);
    if (!cuda) return ree_fail(err, REE_NO_MEMORY, "no memory for a device");
    cuda->base.vtable = &ree_cuda_vtable;
    cuda->operation_set = options->operation_set;
    enum ree_status status = open_device(cuda, which, options, err);
    if (status != REE_OK) {
        ree_cuda_destroy(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return REE_OK;
}

size_t ree_cuda_device_list(struct ree_device_listing *out_list, size_t max,
                            const char **out_note) {
    static _Thread_local char note[REE_ERROR_MAX];
    struct ree_cuda_driver driver;
    struct ree_error err;
    int n = 0;
    *out_note = NULL;
    if (ree_cuda_driver_open(&driver, &err) != REE_OK) {
        snprintf(note, sizeof note, "%s", err.message);
        *out_note = note;
        return 0;
    }
    if (ree_cuda_no_kernels() && !driver.has_kernels) {
        snprintf(note, sizeof note, "CUDA: %s", ree_cuda_no_kernels());
        *out_note = note;
    } else {
        driver.device_count(&n);
    }
    for (size_t i = 0; i < (size_t)n && i < max; i++) {
        CUdevice device;
        snprintf(out_list[i].spec, sizeof out_list[i].spec, "cuda:%zu", i);
        if (driver.device_get(&device, (int)i) != CUDA_SUCCESS ||
            driver.device_name(out_list[i].name, sizeof out_list[i].name, device) != CUDA_SUCCESS)
            snprintf(out_list[i].name, sizeof out_list[i].name, "a CUDA device");
    }
    ree_cuda_driver_close(&driver);
    return (size_t)n;
}
