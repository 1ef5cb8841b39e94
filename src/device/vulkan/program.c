// Programs: a sequence of RepOps as one command buffer, recorded once and submitted at each run.
//
// Every dispatch has a block in memory: the addresses of its operands, the address for a fault
// report, and its parameters (read by shaders/include/ree.glsl). A step's push constant is the
// block's address. Buffers may change between runs; then only the addresses in the blocks are
// rewritten.
//
// If memory is not unified, the host writes the blocks into a host-visible copy, and the command
// buffer first copies them to the device.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "base/memory.h"
#include "base/progress.h"
#include "device/program_info.h"

#include <stdlib.h>
#include <string.h>

// A block, as declared in shaders/include/ree.glsl. The parameters follow it.
struct block_header {
    uint64_t operands[REE_MAX_OPERANDS]; // device addresses
    uint64_t fault;                      // device address of a struct fault
    uint64_t scratch;                    // 0 if the dispatch requires none
    uint32_t dispatch;                   // index in the program
    uint32_t unused[3];
};
_Static_assert(sizeof(struct block_header) == 128, "shaders/include/ree.glsl relies on it");

// A shader's report of the first index out of range. It is the first of the program's blocks.
struct fault {
    uint32_t dispatch;  // index plus 1; 0: no fault
    uint32_t low, high; // the two halves of the index
    uint32_t unused[13];
};
_Static_assert(sizeof(struct fault) == 64, "blocks are aligned to 64 bytes");

struct ree_device_program {
    struct ree_program_info info;
    uint64_t *block_offsets; // [n_dispatches], bytes
    uint64_t *bound;         // [n_slots], addresses of the last run
    bool is_bound;
    struct ree_device_buffer *blocks_host; // mapped
    struct ree_device_buffer *blocks;      // read by the device; equals blocks_host if unified
    struct ree_device_buffer *scratch;     // NULL if not required
    VkCommandBuffer commands;
    uint32_t last_seen;  // dispatches known to be done, during a run
    VkQueryPool queries; // n_dispatches + 1 timestamps; null if unsupported
};

// Hazards: which ranges were read and written since the last barrier.

struct access {
    uint32_t slot;
    bool write;
    uint64_t begin, end; // bytes
};

struct hazards {
    struct access *list;
    size_t n, capacity;
    bool scratch; // the scratch buffer was used
};

static bool conflicts(const struct hazards *hazards, const struct access *access) {
    for (size_t i = 0; i < hazards->n; i++) {
        const struct access *other = &hazards->list[i];
        if (other->slot == access->slot && (other->write || access->write) &&
            other->begin < access->end && access->begin < other->end)
            return true;
    }
    return false;
}

static bool is_written(const struct ree_dispatch *dispatch, uint32_t operand) {
    if (dispatch->op == REE_REPOP_SCATTER) return operand == 0;
    return operand >= dispatch->n_operands - dispatch->n_outputs;
}

// Decides whether a barrier must precede the dispatch, and records its accesses.
static enum ree_status note_dispatch(struct hazards *hazards, const struct ree_dispatch *dispatch,
                                     bool uses_scratch, bool *out_barrier, struct ree_error *err) {
    bool barrier = uses_scratch && hazards->scratch;
    struct access accesses[REE_MAX_OPERANDS];
    for (uint32_t i = 0; i < dispatch->n_operands; i++) {
        const struct ree_operand *operand = &dispatch->operands[i];
        // Shaders write whole words, so a range ends at a multiple of 4.
        accesses[i] = (struct access){operand->slot, is_written(dispatch, i), operand->offset,
                                      (operand->offset + operand->size + 3) / 4 * 4};
        barrier = barrier || conflicts(hazards, &accesses[i]);
    }
    if (barrier) {
        hazards->n = 0;
        hazards->scratch = false;
    }
    if (hazards->n + dispatch->n_operands > hazards->capacity) {
        size_t capacity = hazards->capacity * 2 + REE_MAX_OPERANDS;
        struct access *list = ree_realloc(hazards->list, capacity * sizeof *list);
        if (!list) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
        hazards->list = list;
        hazards->capacity = capacity;
    }
    memcpy(hazards->list + hazards->n, accesses, dispatch->n_operands * sizeof *accesses);
    hazards->n += dispatch->n_operands;
    hazards->scratch = hazards->scratch || uses_scratch;
    *out_barrier = barrier;
    return REE_OK;
}

// Recording

static void barrier(struct ree_vk *vk, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used) {
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = written,
        .dstAccessMask = used,
    };
    vk->vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void compute_barrier(struct ree_vk *vk, VkCommandBuffer commands) {
    barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static enum ree_status record_dispatch(struct ree_vk *vk, struct ree_device_program *program,
                                       uint32_t index, const struct ree_vk_encoding *encoding,
                                       struct ree_error *err) {
    VkCommandBuffer commands = program->commands;
    uint64_t block = program->blocks->address + program->block_offsets[index];
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        const struct ree_vk_step *step = &encoding->steps[s];
        if (step->n_groups == 0) continue;
        if (s > 0) compute_barrier(vk, commands);
        struct ree_vk_pipeline *pipeline;
        REE_TRY(ree_vk_pipeline_get(vk, step, encoding->expr, &pipeline, err));
        ree_vk_pipeline_bind(vk, commands, pipeline->handle, block);
        uint64_t limit = vk->properties.limits.maxComputeWorkGroupCount[0];
        uint64_t x = step->n_groups < limit ? step->n_groups : limit;
        uint64_t y = (step->n_groups + x - 1) / x;
        if (y > vk->properties.limits.maxComputeWorkGroupCount[1])
            return ree_fail(err, REE_UNSUPPORTED,
                            "%s requires %llu work groups, more than device '%s' supports",
                            program->info.labels[index], (unsigned long long)step->n_groups,
                            vk->base.name);
        vk->vk.vkCmdDispatch(commands, (uint32_t)x, (uint32_t)y, 1);
    }
    if (program->queries)
        vk->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, program->queries,
                                   index + 1);
    return REE_OK;
}

static enum ree_status record(struct ree_vk *vk, struct ree_device_program *program,
                              const struct ree_program *source,
                              const struct ree_vk_encoding *encodings, struct hazards *hazards,
                              struct ree_error *err) {
    VkCommandBuffer commands = program->commands;
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    REE_VK_TRY(err, vk->vk.vkBeginCommandBuffer(commands, &begin), "cannot record");
    // Make all writes of earlier submissions and of the host visible to this submission.
    if (program->blocks != program->blocks_host) {
        VkBufferCopy all = {.srcOffset = program->blocks_host->offset,
                            .dstOffset = program->blocks->offset,
                            .size = program->blocks->size};
        vk->vk.vkCmdCopyBuffer(commands, program->blocks_host->handle, program->blocks->handle, 1,
                               &all);
    }
    barrier(vk, commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    if (program->queries) {
        vk->vk.vkCmdResetQueryPool(commands, program->queries, 0, program->info.n_dispatches + 1);
        vk->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, program->queries,
                                   0);
    }
    for (uint32_t i = 0; i < program->info.n_dispatches; i++) {
        bool needs_barrier;
        REE_TRY(note_dispatch(hazards, &source->dispatches[i], encodings[i].scratch_bytes > 0,
                              &needs_barrier, err));
        if (needs_barrier) compute_barrier(vk, commands);
        REE_TRY(record_dispatch(vk, program, i, &encodings[i], err));
    }
    if (program->blocks != program->blocks_host) {
        barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
        VkBufferCopy fault = {.srcOffset = program->blocks->offset,
                              .dstOffset = program->blocks_host->offset,
                              .size = sizeof(struct fault)};
        vk->vk.vkCmdCopyBuffer(commands, program->blocks->handle, program->blocks_host->handle, 1,
                               &fault);
    }
    barrier(vk, commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    REE_VK_TRY(err, vk->vk.vkEndCommandBuffer(commands), "cannot record");
    return REE_OK;
}

// Creation

static enum ree_status create_queries(struct ree_vk *vk, struct ree_device_program *program,
                                      struct ree_error *err) {
    if (!vk->has_timestamps || program->info.n_dispatches == 0) return REE_OK;
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
    uint64_t size = sizeof(struct fault), scratch_bytes = 0;
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
                             const struct ree_vk_encoding *encodings, struct hazards *hazards,
                             struct ree_error *err) {
    REE_TRY(copy_source(program, source, err));
    REE_TRY(fill_blocks(vk, program, encodings, err));
    REE_TRY(create_queries(vk, program, err));
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->command_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    REE_VK_TRY(err, vk->vk.vkAllocateCommandBuffers(vk->handle, &commands, &program->commands),
               "cannot create a command buffer");
    REE_TRY(record(vk, program, source, encodings, hazards, err));
    return ree_vk_check_validation(vk, err);
}

enum ree_status ree_vk_program_assemble(struct ree_vk *vk, const struct ree_program *source,
                                        const struct ree_vk_encoding *encodings,
                                        struct ree_device_program **out, struct ree_error *err) {
    *out = NULL;
    struct ree_device_program *program = ree_alloc_zeroed(1, sizeof *program);
    if (!program) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    struct hazards hazards = {0};
    enum ree_status status = build(vk, program, source, encodings, &hazards, err);
    ree_free(hazards.list);
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
    (void)constants; // nothing is repacked
    (void)copies_capacity;
    *out = NULL;
    struct ree_vk *vk = ree_vk_of(device);
    struct ree_vk_encoding *encodings =
        ree_alloc_zeroed(source->n_dispatches + 1, sizeof *encodings);
    if (!encodings) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; i < source->n_dispatches && status == REE_OK; i++) {
        status = ree_vk_encode_tested(vk, &source->dispatches[i], &encodings[i], err);
        if (status != REE_OK) ree_fail_prefix(err, "%s", ree_program_info_label(source, i));
    }
    if (status == REE_OK) status = ree_vk_program_assemble(vk, source, encodings, out, err);
    ree_free(encodings);
    return status;
}

void ree_vk_program_destroy(struct ree_device *device, struct ree_device_program *program) {
    if (!program) return;
    struct ree_vk *vk = ree_vk_of(device);
    if (program->commands)
        vk->vk.vkFreeCommandBuffers(vk->handle, vk->command_pool, 1, &program->commands);
    if (program->queries) vk->vk.vkDestroyQueryPool(vk->handle, program->queries, NULL);
    ree_vk_buffer_destroy(device, program->scratch);
    if (program->blocks != program->blocks_host) ree_vk_buffer_destroy(device, program->blocks);
    ree_vk_buffer_destroy(device, program->blocks_host);
    ree_program_info_finish(&program->info);
    ree_free(program->block_offsets);
    ree_free(program->bound);
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

struct watch {
    struct ree_device_program *program;
    const struct ree_progress *progress;
    enum ree_status status;
    struct ree_error *err;
};

// Counts the timestamps written so far. There is one before the first dispatch and one after each.
// A program that the device runs cannot be stopped; the run fails when it ends.
static void report_progress(struct ree_vk *vk, void *user) {
    struct watch *watch = user;
    struct ree_device_program *program = watch->program;
    if (watch->status != REE_OK) return;
    uint32_t done = program->last_seen;
    while (done < program->info.n_dispatches) {
        uint64_t result[2]; // ticks, availability
        if (vk->vk.vkGetQueryPoolResults(
                vk->handle, program->queries, done + 1, 1, sizeof result, result, sizeof result,
                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) != VK_SUCCESS ||
            !result[1])
            break;
        done++;
    }
    program->last_seen = done;
    watch->status = ree_progress_report(watch->progress, REE_RUNNING, done,
                                        program->info.n_dispatches, watch->err);
}

enum ree_status ree_vk_program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    struct ree_vk *vk = ree_vk_of(device);
    REE_TRY(bind_slots(program, slots, err));
    struct fault *fault = (struct fault *)program->blocks_host->mapped;
    memset(fault, 0, sizeof *fault);
    program->last_seen = 0;
    bool reports = options && options->progress.report && program->queries;
    struct watch watch = {.program = program,
                          .progress = reports ? &options->progress : NULL,
                          .status = REE_OK,
                          .err = err};
    REE_TRY(ree_vk_submit(vk, program->commands, reports ? report_progress : NULL, &watch, err));
    REE_TRY(watch.status);
    REE_TRY(ree_vk_check_validation(vk, err));
    return ree_program_info_fault(&program->info, "Vulkan", fault->dispatch, fault->low,
                                  fault->high, err);
}

bool ree_vk_program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    struct ree_vk *vk = ree_vk_of(device);
    if (!program->queries || !program->is_bound) return false;
    size_t n = program->info.n_dispatches + 1;
    uint64_t *ticks = ree_alloc_zeroed(n, sizeof *ticks);
    if (!ticks) return false;
    VkResult result = vk->vk.vkGetQueryPoolResults(
        vk->handle, program->queries, 0, (uint32_t)n, n * sizeof *ticks, ticks, sizeof *ticks,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    double period = vk->properties.limits.timestampPeriod * 1e-9;
    for (size_t i = 0; i + 1 < n && result == VK_SUCCESS; i++)
        out_seconds[i] = (double)(ticks[i + 1] - ticks[i]) * period;
    ree_free(ticks);
    return result == VK_SUCCESS;
}
