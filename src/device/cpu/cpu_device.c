// The CPU as a device: buffers are host memory, and a program runs dispatch by dispatch.
//
// Constant weights of matmul and conv are packed once, when the first program that uses them is
// created. The packed copy belongs to the constant's buffer, so later programs over the same
// weights (another input shape, the next decode step) reuse it.
#include "base/clock.h"
#include "base/container.h"
#include "base/memory.h"
#include "base/progress.h"
#include "device/cpu/cpu_internal.h"
#include "device/cpu/execute.h"
#include "device/cpu/selftest.h"
#include "device/cache_folder.h"
#include "device/facts.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct packed_weights {
    struct packed_weights *next;
    uint64_t offset; // of the weights in their buffer, in bytes
    struct ree_cpu_pack_key key;
    size_t size;
    void *data; // 64-byte aligned
};

struct ree_device_buffer {
    uint8_t *data;
    uint64_t size;
    bool owned;
    struct packed_weights *packed; // copies of parts of this buffer
};

struct program_step {
    struct ree_dispatch dispatch;
    // packed weights by operand number, borrowed from the constants' buffers; NULL: not packed
    const void *packed[REE_CPU_MAX_PACKED];
    char *node_name;
    double seconds; // time of the last run
};

struct ree_device_program {
    struct program_step *steps;
    uint32_t n_steps;
    uint32_t n_slots;
    bool has_run;
};

struct cpu_device {
    struct ree_device base;
    struct ree_cpu_context ctx;
    struct ree_facts facts;
};

static struct cpu_device *cpu(struct ree_device *device) {
    return REE_CONTAINER_OF(device, struct cpu_device, base);
}

// Buffers

#define BUFFER_ALIGNMENT 64

// Large buffers use huge pages if the system supports them: weights are read front to back.
#define HUGE_PAGE ((size_t)2 << 20)

static enum ree_status buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    *out = NULL;
    if (size > device->max_buffer_size)
        return ree_fail(err, REE_NO_MEMORY, "cpu: a buffer of %llu bytes is larger than memory",
                        (unsigned long long)size);
    // The padding permits kernels to access whole words, and vector loads at the end without a
    // special case.
    uint64_t rounded = (size / BUFFER_ALIGNMENT + 1) * BUFFER_ALIGNMENT;
    struct ree_device_buffer *buffer = ree_alloc_zeroed(1, sizeof *buffer);
    void *data = NULL;
    size_t alignment = rounded >= HUGE_PAGE ? HUGE_PAGE : BUFFER_ALIGNMENT;
    if (buffer) data = ree_alloc_aligned(alignment, rounded);
    if (!data) {
        ree_free(buffer);
        return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory (a buffer of %llu bytes)",
                        (unsigned long long)size);
    }
    if (alignment == HUGE_PAGE) madvise(data, rounded, MADV_HUGEPAGE);
    *buffer = (struct ree_device_buffer){.data = data, .size = size, .owned = true};
    *out = buffer;
    return REE_OK;
}

static enum ree_status buffer_wrap(struct ree_device *device, const void *data, uint64_t size,
                                   struct ree_device_buffer **out, struct ree_error *err) {
    (void)device;
    *out = ree_alloc_zeroed(1, sizeof **out);
    if (!*out) return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory");
    // Never written: programs only read constants and inputs.
    **out = (struct ree_device_buffer){.data = (uint8_t *)data, .size = size};
    return REE_OK;
}

static void buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer) {
    (void)device;
    if (!buffer) return;
    while (buffer->packed) {
        struct packed_weights *packed = buffer->packed;
        buffer->packed = packed->next;
        ree_free_aligned(packed->data);
        ree_free(packed);
    }
    if (buffer->owned) ree_free_aligned(buffer->data);
    ree_free(buffer);
}

static enum ree_status check_range(const struct ree_device_buffer *buffer, uint64_t offset,
                                   uint64_t size, struct ree_error *err) {
    if (offset <= buffer->size && size <= buffer->size - offset) return REE_OK;
    return ree_fail(err, REE_INVALID, "cpu: bytes %llu to %llu are outside a buffer of %llu bytes",
                    (unsigned long long)offset, (unsigned long long)(offset + size),
                    (unsigned long long)buffer->size);
}

static enum ree_status buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err) {
    (void)device;
    REE_TRY(check_range(buffer, offset, size, err));
    if (!buffer->owned) return ree_fail(err, REE_INVALID, "cpu: a wrapped buffer is read-only");
    if (size) memcpy(buffer->data + offset, data, size);
    return REE_OK;
}

static enum ree_status buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    (void)device;
    REE_TRY(check_range(buffer, offset, size, err));
    if (size) memcpy(data, buffer->data + offset, size);
    return REE_OK;
}

// Programs

// Returns a packed copy of one constant operand: the buffer's existing copy, or a new one, whose
// size is subtracted from *capacity (in bytes; NULL: no limit). Returns NULL if packing gains
// nothing, if memory is exhausted, or if *capacity is too small.
static const void *packed_copy(struct cpu_device *device, const struct ree_dispatch *dispatch,
                               uint32_t i, struct ree_device_buffer *buffer, uint64_t *capacity) {
    const struct ree_operand *operand = &dispatch->operands[i];
    struct ree_cpu_pack_key key = {0};
    bool is_conv = dispatch->op == REE_REPOP_CONV;
    size_t size = is_conv
                      ? ree_cpu_conv_pack_size(&device->ctx, &dispatch->params.conv, &key)
                      : ree_cpu_matmul_pack_size(&device->ctx, &dispatch->params.matmul, i, &key);
    if (size == 0) return NULL;
    for (struct packed_weights *p = buffer->packed; p; p = p->next)
        if (p->offset == operand->offset && p->size == size &&
            memcmp(&p->key, &key, sizeof key) == 0)
            return p->data;
    if (capacity && size > *capacity) return NULL;
    struct packed_weights *packed = ree_alloc_zeroed(1, sizeof *packed);
    void *data = NULL;
    // Large copies use huge pages: they are read from end to end.
    size_t alignment = size >= HUGE_PAGE ? HUGE_PAGE : BUFFER_ALIGNMENT;
    if (packed) data = ree_alloc_aligned(alignment, size);
    if (!data) {
        ree_free(packed);
        return NULL;
    }
    if (alignment == HUGE_PAGE) madvise(data, size, MADV_HUGEPAGE);
    const void *weights = buffer->data + operand->offset;
    if (is_conv)
        ree_cpu_conv_pack(&device->ctx, &dispatch->params.conv, weights, data);
    else
        ree_cpu_matmul_pack(&device->ctx, &dispatch->params.matmul, i, weights, data);
    *packed = (struct packed_weights){
        .next = buffer->packed, .offset = operand->offset, .key = key, .size = size, .data = data};
    buffer->packed = packed;
    if (capacity) *capacity -= size;
    return data;
}

// Packs B of matmul, or w of conv, if its slot is constant. For blockwise weights the scales and
// zero points must be constant too. Without a copy the kernels pack on the fly.
static void pack_weights(struct cpu_device *device, struct program_step *step,
                         struct ree_device_buffer *const *constants, uint64_t *capacity) {
    const struct ree_dispatch *dispatch = &step->dispatch;
    if (!constants || (dispatch->op != REE_REPOP_MATMUL && dispatch->op != REE_REPOP_CONV)) return;
    const struct ree_matmul_params *p = &dispatch->params.matmul;
    uint32_t n = 2; // weights are operands 1 to n - 1, without the scales of activations
    if (dispatch->op == REE_REPOP_MATMUL) n = ree_matmul_n_operands(p) - (p->a_block != 0);
    for (uint32_t i = 1; i < n; i++)
        if (!constants[dispatch->operands[i].slot]) return;
    // B is packed last: if its scales cannot be packed, packing it would be useless.
    for (uint32_t i = n; i-- > 1;) {
        step->packed[i] =
            packed_copy(device, dispatch, i, constants[dispatch->operands[i].slot], capacity);
        if (!step->packed[i]) return;
    }
}

static void program_destroy(struct ree_device *device, struct ree_device_program *program) {
    (void)device;
    if (!program) return;
    for (uint32_t i = 0; i < program->n_steps; i++)
        ree_free(program->steps[i].node_name);
    ree_free(program->steps);
    ree_free(program);
}

static enum ree_status program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    *out = NULL;
    struct ree_device_program *copy = ree_alloc_zeroed(1, sizeof *copy);
    if (!copy) goto no_memory;
    copy->n_slots = program->n_slots;
    copy->steps =
        ree_alloc_zeroed(program->n_dispatches ? program->n_dispatches : 1, sizeof *copy->steps);
    if (!copy->steps) goto no_memory;
    copy->n_steps = program->n_dispatches;
    for (uint32_t i = 0; i < copy->n_steps; i++) {
        struct program_step *step = &copy->steps[i];
        step->dispatch = program->dispatches[i];
        uint32_t node = step->dispatch.node;
        if (node < program->n_node_names && program->node_names[node]) {
            step->node_name = ree_strdup(program->node_names[node]);
            if (!step->node_name) goto no_memory;
        }
        pack_weights(cpu(device), step, constants, copies_capacity);
    }
    *out = copy;
    return REE_OK;

no_memory:
    program_destroy(device, copy);
    return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory (a program of %u dispatches)",
                    program->n_dispatches);
}

static enum ree_status run_step(struct cpu_device *device, struct program_step *step,
                                struct ree_device_buffer *const *slots, struct ree_error *err) {
    const struct ree_dispatch *dispatch = &step->dispatch;
    void *operands[REE_MAX_OPERANDS];
    for (uint32_t i = 0; i < dispatch->n_operands; i++) {
        const struct ree_operand *operand = &dispatch->operands[i];
        struct ree_device_buffer *buffer = slots[operand->slot];
        if (!buffer)
            return ree_fail(err, REE_INTERNAL, "cpu: slot %u has no bound buffer", operand->slot);
        REE_TRY(check_range(buffer, operand->offset, operand->size, err));
        operands[i] = buffer->data + operand->offset;
    }
    struct ree_cpu_context ctx = device->ctx;
    memcpy(ctx.packed, step->packed, sizeof ctx.packed);
    return ree_cpu_run_dispatch(&ctx, dispatch, operands, err);
}

static enum ree_status program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    program->has_run = false;
    ree_cpu_bind_team(cpu(device)->ctx.n_threads);
    double before = ree_clock();
    for (uint32_t i = 0; i < program->n_steps; i++) {
        struct program_step *step = &program->steps[i];
        enum ree_status status = run_step(cpu(device), step, slots, err);
        if (status != REE_OK) {
            if (err && step->node_name) ree_fail_prefix(err, "%s", step->node_name);
            return status;
        }
        double after = ree_clock();
        step->seconds = after - before;
        before = after;
        if (options)
            REE_TRY(
                ree_progress_report(&options->progress, REE_RUNNING, i + 1, program->n_steps, err));
    }
    program->has_run = true;
    return REE_OK;
}

static bool program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    (void)device;
    if (!program->has_run) return false;
    for (uint32_t i = 0; i < program->n_steps; i++)
        out_seconds[i] = program->steps[i].seconds;
    return true;
}

// A dispatch runs a function of this library, which is named after its RepOp (execute.c).
static enum ree_status program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err) {
    (void)device, (void)err;
    bool done[REE_N_REPOPS] = {false};
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const enum ree_repop op = program->steps[i].dispatch.op;
        char name[32];
        if (done[op]) continue;
        done[op] = true;
        snprintf(name, sizeof name, "ree_cpu_%s", ree_repop_name(op));
        const struct ree_kernel kernel = {.name = name, .format = ""};
        sink->each(sink->user, &kernel);
    }
    return REE_OK;
}

// Facts

static void add_cache_fact(struct cpu_device *device, const char *name, uint64_t size) {
    if (size)
        ree_facts_add(&device->facts, "limit", name, "%llu KiB", (unsigned long long)(size >> 10));
    else
        ree_facts_add(&device->facts, "limit", name, "unknown");
}

static void gather_facts(struct cpu_device *device, const char *cache_dir) {
    enum ree_cpu_isa isa = device->ctx.isa;
    char available[64] = "";
    for (int i = 0; i < REE_N_CPU_ISAS; i++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)i)) continue;
        size_t used = strlen(available);
        snprintf(available + used, sizeof available - used, "%s%s", used ? ", " : "",
                 ree_cpu_isa_name((enum ree_cpu_isa)i));
    }
    struct ree_cpu_caches caches;
    ree_cpu_caches_detect(&caches);
    ree_facts_add(&device->facts, "device", "instruction sets", "%s", available);
    ree_facts_add(&device->facts, "device", "instruction set used", "%s", ree_cpu_isa_name(isa));
    ree_facts_add(&device->facts, "device", "threads", "%u", device->ctx.n_threads);
    add_cache_fact(device, "L1 data cache", caches.l1d);
    add_cache_fact(device, "L2 cache", caches.l2);
    add_cache_fact(device, "L3 cache", caches.l3);
    ree_facts_add(&device->facts, "limit", "memory", "%llu MiB",
                  (unsigned long long)(device->base.max_buffer_size >> 20));
    for (int i = 0; i < REE_N_CPU_ISAS; i++) {
        const char *wrong = ree_cpu_isa_verdict((enum ree_cpu_isa)i);
        if (!wrong) continue;
        ree_facts_add(&device->facts, "self-test", wrong[0] ? "failed" : "passed", "%s%s%s",
                      ree_cpu_isa_name((enum ree_cpu_isa)i), wrong[0] ? ": " : "", wrong);
    }
    char *path = ree_cache_path(cache_dir, REE_CPU_TEST_RESULTS);
    ree_facts_add_cache(&device->facts, path);
    ree_free(path);
    ree_facts_add(&device->facts, "primitive", "add", "native");
    ree_facts_add(&device->facts, "primitive", "mul", "native");
    ree_facts_add(&device->facts, "primitive", "fma", "%s",
                  isa == REE_CPU_PORTABLE ? "native (fmaf of the C library)"
                  : isa == REE_CPU_NEON   ? "native (FMLA)"
                                          : "native (VFMADD)");
    ree_facts_add(&device->facts, "primitive", "div", "native");
    ree_facts_add(&device->facts, "primitive", "sqrt", "native");
    ree_facts_add(&device->facts, "primitive", "conversions", "native");
    ree_facts_add(&device->facts, "primitive", "subnormals", "kept");
    ree_facts_add(&device->facts, "primitive", "elementary functions", "float64, rounded once");
}

static size_t facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct cpu_device *self = REE_CONTAINER_OF(device, const struct cpu_device, base);
    *out_facts = self->facts.list;
    return self->facts.n;
}

// Opening and closing

static void destroy(struct ree_device *device) {
    struct cpu_device *self = cpu(device);
    for (uint32_t i = 0; self->ctx.scratch && i < self->ctx.n_threads; i++)
        ree_cpu_scratch_finish(&self->ctx.scratch[i]);
    ree_free(self->ctx.scratch);
    ree_facts_finish(&self->facts);
    ree_free(self);
}

static const struct ree_device_vtable vtable = {
    .destroy = destroy,
    .buffer_create = buffer_create,
    .buffer_wrap = buffer_wrap,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_run = program_run,
    .program_times = program_times,
    .program_kernels = program_kernels,
    .facts = facts,
};

#define MAX_THREADS 1024

enum ree_status ree_cpu_device_open(const struct ree_device_options *options,
                                    struct ree_device **out, struct ree_error *err) {
    *out = NULL;
    enum ree_cpu_isa isa;
    ree_cpu_use_cache(options->cache_dir);
    REE_TRY(ree_cpu_isa_select_right(options->cpu_isa, options->cache_dir, &isa, err));
    if (options->n_threads > MAX_THREADS)
        return ree_fail(err, REE_INVALID, "cpu: %u threads requested; the maximum is %d",
                        options->n_threads, MAX_THREADS);
    int n_cores = omp_get_num_procs();
    uint32_t n_threads = options->n_threads ? options->n_threads : (uint32_t)n_cores;

    struct cpu_device *device = ree_alloc_zeroed(1, sizeof *device);
    if (!device) return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory");
    device->ctx.scratch = ree_alloc_zeroed(n_threads, sizeof *device->ctx.scratch);
    if (!device->ctx.scratch) {
        ree_free(device);
        return ree_fail(err, REE_NO_MEMORY, "cpu: out of memory");
    }
    device->ctx.n_threads = n_threads;
    device->ctx.isa = isa;
    device->ctx.pairs = REE_CPU_PAIRS_IF_FASTER;
    device->base.vtable = &vtable;
    snprintf(device->base.name, sizeof device->base.name, "cpu (%s, %u thread%s)",
             ree_cpu_isa_name(isa), n_threads, n_threads == 1 ? "" : "s");
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    device->base.max_buffer_size =
        pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : (uint64_t)1 << 40;
    device->base.memory_size = device->base.max_buffer_size;
    device->base.paged_queries = UINT32_MAX;
    gather_facts(device, options->cache_dir);
    if (device->facts.failed) {
        device->base.vtable->destroy(&device->base);
        return ree_fail(err, REE_NO_MEMORY, "cpu: no memory for the device's facts");
    }
    *out = &device->base;
    return REE_OK;
}
