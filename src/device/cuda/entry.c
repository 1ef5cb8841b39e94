// The functions of a device's vtable. Each makes the device's context current on the calling thread
// and then restores the caller's: a process may use several devices, any thread may call, and the
// program that loads libree may use CUDA itself. Without this, memory would be allocated on
// whatever device the thread used last.
#include "device/cuda/cuda.h"

#include "base/progress.h"

enum ree_status ree_cuda_enter(struct ree_cuda *cuda, struct ree_error *err) {
    REE_CUDA_CALL(context_push(cuda->context), "cannot use the device");
    return REE_OK;
}

void ree_cuda_leave(struct ree_cuda *cuda) {
    CUcontext own;
    cuda->driver.context_pop(&own);
}

static enum ree_status buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    *out = NULL;
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status = ree_cuda_buffer_create(cuda, size, out, err);
    ree_cuda_leave(cuda);
    return status;
}

static void buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    const bool entered = ree_cuda_enter(cuda, NULL) == REE_OK;
    ree_cuda_buffer_destroy(cuda, buffer);
    if (entered) ree_cuda_leave(cuda);
}

static enum ree_status buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status = ree_cuda_buffer_write(cuda, buffer, offset, data, size, err);
    ree_cuda_leave(cuda);
    return status;
}

static enum ree_status buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status = ree_cuda_buffer_read(cuda, buffer, offset, data, size, err);
    ree_cuda_leave(cuda);
    return status;
}

static enum ree_status program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    (void)constants; // the kernels read constants unchanged
    (void)copies_capacity;
    struct ree_cuda *cuda = ree_cuda_of(device);
    *out = NULL;
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status = ree_cuda_program_create(cuda, program, out, err);
    ree_cuda_leave(cuda);
    return status;
}

static void program_destroy(struct ree_device *device, struct ree_device_program *program) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    const bool entered = ree_cuda_enter(cuda, NULL) == REE_OK;
    ree_cuda_program_destroy(cuda, program);
    if (entered) ree_cuda_leave(cuda);
}

static enum ree_status program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    REE_TRY(ree_cuda_enter(cuda, err));
    const enum ree_status status =
        ree_cuda_program_run(cuda, program, slots, options && options->measures, err);
    ree_cuda_leave(cuda);
    if (status != REE_OK || !options) return status;
    const uint32_t n = ree_cuda_program_size(program);
    return ree_progress_report(&options->progress, REE_RUNNING, n, n, err);
}

static bool program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    if (ree_cuda_enter(cuda, NULL) != REE_OK) return false;
    const bool measured = ree_cuda_program_times(cuda, program, out_seconds);
    ree_cuda_leave(cuda);
    return measured;
}

static enum ree_status program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err) {
    return ree_cuda_program_kernels(ree_cuda_of(device), program, sink, err);
}

const struct ree_device_vtable ree_cuda_vtable = {
    .destroy = ree_cuda_destroy,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_run = program_run,
    .program_times = program_times,
    .program_kernels = program_kernels,
    .facts = ree_cuda_facts,
};
