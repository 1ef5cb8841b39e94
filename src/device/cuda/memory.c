// Device memory. Small buffers are parts of slabs. A released small buffer waits for the next
// buffer of its size class, because the driver's own allocation waits for the device. Transfers use
// pinned memory in two halves, so that one half is filled while the other is transferred.
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

#define ALIGNMENT ((uint64_t)256)
#define SLAB ((uint64_t)32 << 20)
#define SMALL ((uint64_t)1 << 20) // larger buffers have their own memory

struct ree_cuda_slab {
    struct ree_cuda_slab *next;
    CUdeviceptr address;
    uint64_t used;
};

// Returns the size class, and the bytes that its buffers reserve. From 4 * ALIGNMENT on there are
// four classes per power of two, so at most a fifth of a buffer is wasted.
static uint32_t class_of(uint64_t size, uint64_t *out_reserved) {
    uint64_t reserved = ALIGNMENT;
    uint32_t class = 0;
    while (reserved < size) {
        uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(reserved));
        uint64_t step = power / 4 < ALIGNMENT ? ALIGNMENT : power / 4;
        reserved += step;
        class ++;
    }
    *out_reserved = reserved;
    return class;
}

static bool is_small(const struct ree_device_buffer *buffer) {
    return buffer->reserved <= SMALL;
}

static enum ree_status out_of_memory(struct ree_cuda *cuda, uint64_t size, struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "CUDA: device '%s' has no memory for another %llu bytes",
                    cuda->base.name, (unsigned long long)size);
}

static enum ree_status take_from_slab(struct ree_cuda *cuda, struct ree_device_buffer *buffer,
                                      struct ree_error *err) {
    if (!cuda->slabs || cuda->slabs->used + buffer->reserved > SLAB) {
        struct ree_cuda_slab *slab = ree_alloc_zeroed(1, sizeof *slab);
        if (!slab) return ree_no_memory(err);
        CUresult result = cuda->driver.memory_alloc(&slab->address, SLAB);
        if (result != CUDA_SUCCESS) {
            ree_free(slab);
            if (result == CUDA_ERROR_OUT_OF_MEMORY) return out_of_memory(cuda, SLAB, err);
            return ree_cuda_fail(&cuda->driver, err, result, "cannot allocate memory");
        }
        slab->next = cuda->slabs;
        cuda->slabs = slab;
    }
    buffer->address = cuda->slabs->address + cuda->slabs->used;
    cuda->slabs->used += buffer->reserved;
    return REE_OK;
}

enum ree_status ree_cuda_buffer_create(struct ree_cuda *cuda, uint64_t size,
                                       struct ree_device_buffer **out, struct ree_error *err) {
    *out = NULL;
    if (size > cuda->base.max_buffer_size) return out_of_memory(cuda, size, err);
    uint64_t reserved;
    uint32_t class = class_of(size, &reserved);
    if (reserved <= SMALL && cuda->unused[class]) {
        *out = cuda->unused[class];
        cuda->unused[class] = (*out)->next;
        (*out)->size = size;
        return REE_OK;
    }
    struct ree_device_buffer *buffer = ree_alloc_zeroed(1, sizeof *buffer);
    if (!buffer) return ree_no_memory(err);
    buffer->size = size;
    buffer->reserved = reserved;
    enum ree_status status = REE_OK;
    if (reserved <= SMALL) {
        status = take_from_slab(cuda, buffer, err);
    } else {
        // Large buffers are rounded up only to ALIGNMENT, because weights may fill a device.
        buffer->reserved = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        CUresult result = cuda->driver.memory_alloc(&buffer->address, buffer->reserved);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
            status = out_of_memory(cuda, size, err);
        else if (result != CUDA_SUCCESS)
            status = ree_cuda_fail(&cuda->driver, err, result, "cannot allocate memory");
    }
    if (status != REE_OK) {
        ree_free(buffer);
        return status;
    }
    *out = buffer;
    return REE_OK;
}

void ree_cuda_buffer_destroy(struct ree_cuda *cuda, struct ree_device_buffer *buffer) {
    if (!buffer) return;
    if (!is_small(buffer)) {
        cuda->driver.memory_free(buffer->address);
        ree_free(buffer);
        return;
    }
    uint64_t reserved;
    uint32_t class = class_of(buffer->reserved, &reserved);
    buffer->next = cuda->unused[class];
    cuda->unused[class] = buffer;
}

enum ree_status ree_cuda_memory_init(struct ree_cuda *cuda, struct ree_error *err) {
    REE_CUDA_CALL(host_alloc(&cuda->staging, 2 * REE_CUDA_STAGING, 0),
                  "cannot allocate pinned memory");
    for (int half = 0; half < 2; half++)
        REE_CUDA_CALL(event_create(&cuda->staged[half], CU_EVENT_BLOCKING_SYNC),
                      "cannot create an event");
    return REE_OK;
}

void ree_cuda_memory_finish(struct ree_cuda *cuda) {
    for (uint32_t c = 0; c < REE_CUDA_N_CLASSES; c++)
        while (cuda->unused[c]) {
            struct ree_device_buffer *buffer = cuda->unused[c];
            cuda->unused[c] = buffer->next;
            ree_free(buffer); // its memory is part of a slab
        }
    while (cuda->slabs) {
        struct ree_cuda_slab *slab = cuda->slabs;
        cuda->slabs = slab->next;
        cuda->driver.memory_free(slab->address);
        ree_free(slab);
    }
    for (int half = 0; half < 2; half++)
        if (cuda->staged[half]) cuda->driver.event_destroy(cuda->staged[half]);
    if (cuda->staging) cuda->driver.host_free(cuda->staging);
}

static enum ree_status check_range(const struct ree_device_buffer *buffer, uint64_t offset,
                                   uint64_t size, struct ree_error *err) {
    if (offset <= buffer->size && size <= buffer->size - offset) return REE_OK;
    return ree_fail(err, REE_INTERNAL, "CUDA: a transfer exceeds its buffer");
}

static uint8_t *half_of(struct ree_cuda *cuda, uint64_t i) {
    return (uint8_t *)cuda->staging + i % 2 * REE_CUDA_STAGING;
}

enum ree_status ree_cuda_buffer_write(struct ree_cuda *cuda, struct ree_device_buffer *buffer,
                                      uint64_t offset, const void *data, uint64_t size,
                                      struct ree_error *err) {
    REE_TRY(check_range(buffer, offset, size, err));
    const uint8_t *from = data;
    for (uint64_t i = 0, at = 0; at < size; i++, at += REE_CUDA_STAGING) {
        uint64_t part = size - at < REE_CUDA_STAGING ? size - at : REE_CUDA_STAGING;
        // The half is free again once its last transfer has completed. A new event counts as
        // completed.
        REE_CUDA_CALL(event_wait(cuda->staged[i % 2]), "cannot write to the device");
        memcpy(half_of(cuda, i), from + at, part);
        REE_CUDA_CALL(copy_up(buffer->address + offset + at, half_of(cuda, i), part, cuda->stream),
                      "cannot write to the device");
        REE_CUDA_CALL(event_record(cuda->staged[i % 2], cuda->stream),
                      "cannot write to the device");
    }
    return REE_OK;
}

enum ree_status ree_cuda_buffer_read(struct ree_cuda *cuda, struct ree_device_buffer *buffer,
                                     uint64_t offset, void *data, uint64_t size,
                                     struct ree_error *err) {
    REE_TRY(check_range(buffer, offset, size, err));
    const uint64_t n_parts = (size + REE_CUDA_STAGING - 1) / REE_CUDA_STAGING;
    uint8_t *to = data;
    // Part i is in transfer while part i-1 is copied out.
    for (uint64_t i = 0; i <= n_parts && n_parts > 0; i++) {
        if (i < n_parts) {
            uint64_t at = i * REE_CUDA_STAGING;
            uint64_t part = size - at < REE_CUDA_STAGING ? size - at : REE_CUDA_STAGING;
            REE_CUDA_CALL(
                copy_down(half_of(cuda, i), buffer->address + offset + at, part, cuda->stream),
                "cannot read from the device");
            REE_CUDA_CALL(event_record(cuda->staged[i % 2], cuda->stream),
                          "cannot read from the device");
        }
        if (i == 0) continue;
        uint64_t at = (i - 1) * REE_CUDA_STAGING;
        uint64_t part = size - at < REE_CUDA_STAGING ? size - at : REE_CUDA_STAGING;
        REE_CUDA_CALL(event_wait(cuda->staged[(i - 1) % 2]), "cannot read from the device");
        memcpy(to + at, half_of(cuda, i - 1), part);
    }
    return REE_OK;
}
