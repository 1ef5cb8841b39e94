// Creates and runs programs: sequences of RepOps, recorded once and submitted at each run. A long
// program is recorded as several segments (program_internal.h).
//
// Every dispatch has a block in memory: the addresses of its operands, the address for a fault
// report, and its parameters (read by shaders/include/ree.glsl). A step's push constant is the
// block's address. Buffers may change between runs; then only the addresses in the blocks are
// rewritten.
//
// If memory is not unified, the host writes the blocks into a host-visible copy, and the first
// segment begins with copying them to the device.
#include "device/vulkan/program_internal.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

// A block, as declared in shaders/include/ree.glsl. The parameters follow it.
struct block_header {
    uint64_t operands[REE_MAX_OPERANDS]; // device addresses
    uint64_t fault;                      // device address of a struct ree_vk_fault
    uint64_t scratch;                    // 0 if the dispatch requires none
    uint32_t dispatch;                   // index in the program
    uint32_t unused[3];
};
_Static_assert(sizeof(struct block_header) == 128, "shaders/include/ree.glsl relies on it");

// Creation

static enum ree_status create_queries(struct ree_vk *vk, struct ree_device_program *program,
                                      struct ree_error *err) {
    if (!vk->timestamp_mask || program->info.n_dispatches == 0) return REE_OK;
    VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = program->info.n_dispatches + 1,
    };
    REE_VK_TRY(err, vk->vk.vkCreateQueryPool(vk->handle, &info, NULL, &program->queries),
               "cannot create a query pool");
    return REE_OK;
}

static enum ree_status fill_blocks(struct ree_vk *vk, struct ree_device_program *program,
                                   const struct ree_vk_encoding *encodings, struct ree_error *err) {
    uint64_t size = sizeof(struct ree_vk_fault), scratch_bytes = 0;
    for (uint32_t i = 0; i < program->info.n_dispatches; i++) {
        program->block_offsets[i] = size;
        size += (sizeof(struct block_header) + encodings[i].params_size + 63) / 64 * 64;
        if (encodings[i].scratch_bytes > scratch_bytes) scratch_bytes = encodings[i].scratch_bytes;
    }
    REE_TRY(ree_vk_host_buffer_create(vk, size, &program->blocks_host, err));
    program->blocks = program->blocks_host;
    if (!vk->unified) {
        program->blocks = NULL;
        REE_TRY(ree_vk_buffer_create(&vk->base, size, &program->blocks, err));
    }
    if (scratch_bytes)
        REE_TRY(ree_vk_buffer_create(&vk->base, scratch_bytes, &program->scratch, err));
    for (uint32_t i = 0; i < program->info.n_dispatches; i++) {
        uint8_t *block = program->blocks_host->mapped + program->block_offsets[i];
        struct block_header header = {
            .fault = program->blocks->address,
            .scratch = encodings[i].scratch_bytes ? program->scratch->address : 0,
            .dispatch = i,
        };
        memcpy(block, &header, sizeof header);
        memcpy(block + sizeof header, &encodings[i].params, encodings[i].params_size);
    }
    return REE_OK;
}

static enum ree_status copy_source(struct ree_device_program *program,
                                   const struct ree_program *source, struct ree_error *err) {
    REE_TRY(ree_program_info_init(&program->info, source, err));
    program->block_offsets =
        ree_alloc_zeroed(source->n_dispatches + 1, sizeof *program->block_offsets);
    program->bound = ree_alloc_zeroed(source->n_slots + 1, sizeof *program->bound);
    if (!program->block_offsets || !program->bound)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    return REE_OK;
}

static enum ree_status build(struct ree_vk *vk, struct ree_device_program *program,
                             const struct ree_program *source,
                             const struct ree_vk_encoding *encodings, struct ree_error *err) {
    REE_TRY(copy_source(program, source, err));
    REE_TRY(fill_blocks(vk, program, encodings, err));
    REE_TRY(create_queries(vk, program, err));
    REE_TRY(ree_vk_launches_init(vk, program, source, encodings, err));
    REE_TRY(ree_vk_program_cut(vk, program, 0, err));
    return ree_vk_check_validation(vk, err);
}

enum ree_status ree_vk_program_assemble(struct ree_vk *vk, const struct ree_program *source,
                                        const struct ree_vk_encoding *encodings, bool halves,
                                        struct ree_device_program **out, struct ree_error *err) {
    *out = NULL;
    struct ree_device_program *program = ree_alloc_zeroed(1, sizeof *program);
    if (!program) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    program->halves = halves;
    enum ree_status status = build(vk, program, source, encodings, err);
    if (status != REE_OK) {
        ree_vk_program_destroy(&vk->base, program);
        return status;
    }
    *out = program;
    return REE_OK;
}

enum ree_status ree_vk_program_create(struct ree_device *device, const struct ree_program *source,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    (void)constants; // the shaders read constants unchanged
    (void)copies_capacity;
    *out = NULL;
    struct ree_vk *vk = ree_vk_of(device);
    struct ree_vk_encoding *encodings =
        ree_alloc_zeroed(source->n_dispatches + 1, sizeof *encodings);
    if (!encodings) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    ree_vk_pipelines_prepare(vk, source);
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; i < source->n_dispatches && status == REE_OK; i++) {
        status = ree_vk_encode_tested(vk, &source->dispatches[i], &encodings[i], err);
        if (status != REE_OK) ree_fail_prefix(err, "%s", ree_program_info_label(source, i));
    }
    ree_vk_pipelines_join(vk);
    if (status == REE_OK) status = ree_vk_program_assemble(vk, source, encodings, false, out, err);
    ree_free(encodings);
    ree_vk_pipelines_save(vk);
    return status;
}

void ree_vk_program_destroy(struct ree_device *device, struct ree_device_program *program) {
    if (!program) return;
    struct ree_vk *vk = ree_vk_of(device);
    ree_vk_program_discard(vk, program, 0);
    if (program->queries) vk->vk.vkDestroyQueryPool(vk->handle, program->queries, NULL);
    ree_vk_buffer_destroy(device, program->scratch);
    if (program->blocks != program->blocks_host) ree_vk_buffer_destroy(device, program->blocks);
    ree_vk_buffer_destroy(device, program->blocks_host);
    ree_program_info_finish(&program->info);
    ree_free(program->block_offsets);
    ree_free(program->bound);
    ree_free(program->launches);
    ree_free(program->segments);
    ree_free(program);
}

// Running

static enum ree_status bind_slots(struct ree_device_program *program,
                                  struct ree_device_buffer *const *slots, struct ree_error *err) {
    bool same = program->is_bound;
    for (uint32_t s = 0; s < program->info.n_slots; s++) {
        uint64_t address = slots[s] ? slots[s]->address : 0;
        same = same && program->bound[s] == address;
        program->bound[s] = address;
    }
    if (same) return REE_OK;
    program->is_bound = false;
    for (uint32_t i = 0; i < program->info.n_dispatches; i++) {
        struct block_header *header =
            (struct block_header *)(program->blocks_host->mapped + program->block_offsets[i]);
        for (uint32_t o = 0; o < program->info.n_operands[i]; o++) {
            const struct ree_operand *operand = &program->info.operands[i][o];
            const struct ree_device_buffer *buffer = slots[operand->slot];
            if (!buffer || operand->offset > buffer->size ||
                operand->size > buffer->size - operand->offset)
                return ree_fail(err, REE_INTERNAL, "%s: operand %u is outside its buffer",
                                program->info.labels[i], o);
            header->operands[o] = buffer->address + operand->offset;
        }
    }
    program->is_bound = true;
    return REE_OK;
}

// A run in progress. Segments 0 to n_done - 1 are done; the device has the following ones up to
// n_submitted - 1.
struct run {
    struct ree_device_program *program;
    uint32_t n_submitted, n_done;
    double submitted[REE_VK_N_IN_FLIGHT]; // when segment i was submitted, at i % N_IN_FLIGHT
    double done;                          // when segment n_done - 1 was done
    const struct ree_progress *progress;  // NULL: report nothing
    double reported;                      // time of the last report
    enum ree_status status;               // result of the reports
    struct ree_error *err;
};

// Reports how many dispatches are done. Timestamps could show progress within a segment, but until
// the device has reset them they are those of the last run.
static void report(struct ree_vk *vk, void *user) {
    (void)vk;
    struct run *run = user;
    const struct ree_device_program *program = run->program;
    if (!run->progress || run->status != REE_OK) return;
    uint32_t done = run->n_done > 0 ? program->segments[run->n_done - 1].end.n_dispatches : 0;
    run->reported = ree_clock();
    run->status =
        ree_progress_report(run->progress, REE_RUNNING, done, program->info.n_dispatches, run->err);
}

static bool is_complete(const struct ree_device_program *program) {
    const uint32_t n = program->n_segments;
    return n > 0 && program->segments[n - 1].end.launch == program->n_launches;
}

// Cuts the segments that are not yet submitted again, if they would now be too long, or if the run
// has not begun and fewer segments would suffice.
static enum ree_status adapt(struct ree_vk *vk, struct run *run, struct ree_error *err) {
    struct ree_device_program *program = run->program;
    const uint32_t first = run->n_submitted;
    // An earlier run failed to cut the whole program into segments.
    if (first == 0 && !is_complete(program)) return ree_vk_program_cut(vk, program, 0, err);
    bool slower = vk->pace > 2 * program->pace &&
                  program->segments[first].work * vk->pace > vk->submission_seconds;
    bool faster = first == 0 && program->n_segments > 1 && 2 * vk->pace < program->pace;
    return slower || faster ? ree_vk_program_cut(vk, program, first, err) : REE_OK;
}

static enum ree_status submit_next(struct ree_vk *vk, struct run *run, struct ree_error *err) {
    struct ree_device_program *program = run->program;
    const uint32_t slot = run->n_submitted % REE_VK_N_IN_FLIGHT;
    enum ree_status status = adapt(vk, run, err);
    if (status == REE_OK)
        status = ree_vk_queue_submit(vk, program->segments[run->n_submitted].commands,
                                     vk->fences[slot], err);
    if (status != REE_OK) return status;
    run->submitted[slot] = ree_clock();
    run->n_submitted++;
    return REE_OK;
}

static enum ree_status wait_next(struct ree_vk *vk, struct run *run, struct ree_error *err) {
    const uint32_t slot = run->n_done % REE_VK_N_IN_FLIGHT;
    REE_TRY(ree_vk_queue_wait(vk, vk->fences[slot], report, run, err));
    const double now = ree_clock(), submitted = run->submitted[slot];
    const double began = run->n_done > 0 && run->done > submitted ? run->done : submitted;
    ree_vk_pace_note(vk, run->program->segments[run->n_done].work, now - began);
    run->done = now;
    run->n_done++;
    return REE_OK;
}

#define REPORT_SECONDS 0.25

// Two segments are in flight, so that the device need not wait for the host between them.
static enum ree_status run_segments(struct ree_vk *vk, struct run *run, struct ree_error *err) {
    const struct ree_device_program *program = run->program;
    do {
        while (run->n_submitted - run->n_done < REE_VK_N_IN_FLIGHT &&
               (run->n_submitted < program->n_segments || run->n_submitted == 0))
            REE_TRY(submit_next(vk, run, err));
        REE_TRY(wait_next(vk, run, err));
        if (run->n_done < program->n_segments && ree_clock() - run->reported > REPORT_SECONDS)
            report(vk, run);
        REE_TRY(run->status);
    } while (run->n_done < program->n_segments);
    return REE_OK;
}

// After a failure, waits for the segments that the device still has.
static void drain(struct ree_vk *vk, struct run *run) {
    struct ree_error ignored;
    run->progress = NULL;
    while (!vk->is_lost && run->n_done < run->n_submitted)
        if (wait_next(vk, run, &ignored) != REE_OK) break;
}

static enum ree_status fail_run(struct ree_vk *vk, struct run *run, enum ree_status status,
                                struct ree_error *err) {
    const struct ree_device_program *program = run->program;
    uint32_t done = run->n_done > 0 ? program->segments[run->n_done - 1].end.n_dispatches : 0;
    if (vk->is_lost && done < program->info.n_dispatches)
        ree_fail_prefix(err, "%s", program->info.labels[done]);
    drain(vk, run);
    return status;
}

enum ree_status ree_vk_program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    struct ree_vk *vk = ree_vk_of(device);
    REE_TRY(bind_slots(program, slots, err));
    struct ree_vk_fault *fault = (struct ree_vk_fault *)program->blocks_host->mapped;
    memset(fault, 0, sizeof *fault);
    program->is_timed = false;
    struct run run = {.program = program,
                      .progress = options && options->progress.report ? &options->progress : NULL,
                      .reported = ree_clock(),
                      .status = REE_OK,
                      .err = err};
    enum ree_status status = run_segments(vk, &run, err);
    if (status != REE_OK) return fail_run(vk, &run, status, err);
    program->is_timed = true;
    REE_TRY(ree_vk_check_validation(vk, err));
    return ree_program_info_fault(&program->info, "Vulkan", fault->dispatch, fault->low,
                                  fault->high, err);
}

bool ree_vk_program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    struct ree_vk *vk = ree_vk_of(device);
    // If the last run did not write all timestamps, waiting for them would not end.
    if (!program->queries || !program->is_timed) return false;
    size_t n = program->info.n_dispatches + 1;
    uint64_t *ticks = ree_alloc_zeroed(n, sizeof *ticks);
    if (!ticks) return false;
    VkResult result = vk->vk.vkGetQueryPoolResults(
        vk->handle, program->queries, 0, (uint32_t)n, n * sizeof *ticks, ticks, sizeof *ticks,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    for (size_t i = 0; i + 1 < n && result == VK_SUCCESS; i++)
        out_seconds[i] = ree_vk_seconds_between(vk, ticks[i], ticks[i + 1]);
    ree_free(ticks);
    return result == VK_SUCCESS;
}

static bool is_first_use(const struct ree_device_program *program, uint32_t launch) {
    for (uint32_t i = 0; i < launch; i++)
        if (program->launches[i].pipeline == program->launches[launch].pipeline) return false;
    return true;
}

enum ree_status ree_vk_program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err) {
    struct ree_vk *vk = ree_vk_of(device);
    for (uint32_t i = 0; i < program->n_launches; i++)
        if (is_first_use(program, i))
            REE_TRY(ree_vk_pipeline_show(vk, program->launches[i].pipeline, sink, err));
    return REE_OK;
}
