// Services of a kernel's context: scratch memory, and the number of threads for a kernel's work.
#include "device/cpu/cpu_internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include "base/memory.h"

#define HUGE_PAGE ((size_t)2 << 20)

// Minimum time that one more thread must save. Opening and closing a parallel region costs 2 to 5
// microseconds, and more if the other threads sleep.
#define NANOSECONDS_PER_THREAD 15000

void *ree_cpu_scratch_get(const struct ree_cpu_context *ctx, uint32_t thread, uint32_t slot,
                          size_t size) {
    struct ree_cpu_scratch *scratch = &ctx->scratch[thread];
    if (size == 0) size = 1;
    if (scratch->size[slot] >= size) return scratch->data[slot];

    // Large blocks use huge pages: packed panels are read with long strides.
    size_t alignment = size >= HUGE_PAGE ? HUGE_PAGE : 64;
    size_t rounded = (size + alignment - 1) & ~(alignment - 1);
    void *data = rounded < size ? NULL : ree_alloc_aligned(alignment, rounded);
    if (!data) return NULL;
    if (alignment == HUGE_PAGE) madvise(data, rounded, MADV_HUGEPAGE);
    ree_free_aligned(scratch->data[slot]);
    scratch->data[slot] = data;
    scratch->size[slot] = rounded;
    return data;
}

enum ree_status ree_cpu_scratch_reserve(const struct ree_cpu_context *ctx, uint32_t n_threads,
                                        uint32_t slot, size_t size, struct ree_error *err) {
    for (uint32_t t = 0; t < n_threads; t++)
        if (!ree_cpu_scratch_get(ctx, t, slot, size)) return ree_cpu_no_memory(err, size);
    return REE_OK;
}

void ree_cpu_scratch_finish(struct ree_cpu_scratch *scratch) {
    for (uint32_t i = 0; i < REE_CPU_SCRATCH_SLOTS; i++) {
        ree_free_aligned(scratch->data[i]);
        scratch->data[i] = NULL;
        scratch->size[i] = 0;
    }
}

enum ree_status ree_cpu_no_memory(struct ree_error *err, size_t size) {
    return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory (%zu bytes of scratch)", size);
}

uint32_t ree_cpu_threads_for(const struct ree_cpu_context *ctx, uint64_t nanoseconds) {
    uint64_t grain = ctx->thread_grain ? ctx->thread_grain : NANOSECONDS_PER_THREAD;
    // libgomp ends the excess threads of a smaller team and creates them again for the next larger
    // one, which takes longer than the work of many dispatches.
    return nanoseconds / grain > 1 ? ctx->n_threads : 1;
}
