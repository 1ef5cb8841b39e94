// Records a program: its launches with their barriers, cut into segments.
#include "device/vulkan/program_internal.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

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

// Launches

// Adds the launches of one dispatch. *waits: a barrier must precede the next launch.
static enum ree_status add_launches(struct ree_vk *vk, struct ree_device_program *program,
                                    uint32_t index, const struct ree_dispatch *dispatch,
                                    const struct ree_vk_encoding *encoding, bool *waits,
                                    struct ree_error *err) {
    double work[REE_VK_MAX_STEPS];
    ree_vk_work_of(vk, dispatch, encoding, work);
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        const struct ree_vk_step *step = &encoding->steps[s];
        if (s > 0) *waits = true;
        if (step->n_groups == 0) continue;
        if (step->n_groups > UINT32_MAX)
            return ree_fail(err, REE_UNSUPPORTED,
                            "%s requires %llu work groups, more than device '%s' supports",
                            program->info.labels[index], (unsigned long long)step->n_groups,
                            vk->base.name);
        struct ree_vk_pipeline *pipeline;
        REE_TRY(ree_vk_pipeline_get(vk, step, encoding->expr, &pipeline, err));
        program->launches[program->n_launches++] = (struct ree_vk_launch){
            .pipeline = pipeline->handle,
            .n_groups = step->n_groups,
            .work = work[s],
            .dispatch = index,
            .barrier = *waits,
        };
        *waits = false;
    }
    return REE_OK;
}

enum ree_status ree_vk_launches_init(struct ree_vk *vk, struct ree_device_program *program,
                                     const struct ree_program *source,
                                     const struct ree_vk_encoding *encodings,
                                     struct ree_error *err) {
    size_t n_steps = 0;
    for (uint32_t i = 0; i < source->n_dispatches; i++)
        n_steps += encodings[i].n_steps;
    program->launches = ree_alloc_zeroed(n_steps + 1, sizeof *program->launches);
    if (!program->launches) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    struct hazards hazards = {0};
    enum ree_status status = REE_OK;
    bool waits = false;
    for (uint32_t i = 0; i < source->n_dispatches && status == REE_OK; i++) {
        const struct ree_dispatch *dispatch = &source->dispatches[i];
        bool needs_barrier = false;
        status =
            note_dispatch(&hazards, dispatch, encodings[i].scratch_bytes > 0, &needs_barrier, err);
        // If a dispatch has no groups, its barrier precedes the next launch.
        waits = waits || needs_barrier;
        if (status == REE_OK)
            status = add_launches(vk, program, i, dispatch, &encodings[i], &waits, err);
    }
    ree_free(hazards.list);
    return status;
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

static void record_timestamp(struct ree_vk *vk, const struct ree_device_program *program,
                             VkCommandBuffer commands, uint32_t index) {
    if (program->queries)
        vk->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, program->queries,
                                   index);
}

// Writes the timestamps of the dispatches that are complete before the cursor's launch.
static void complete_dispatches(struct ree_vk *vk, const struct ree_device_program *program,
                                VkCommandBuffer commands, struct ree_vk_cursor *cursor) {
    uint32_t n_dispatches = cursor->launch < program->n_launches
                                ? program->launches[cursor->launch].dispatch
                                : program->info.n_dispatches;
    while (cursor->n_dispatches < n_dispatches)
        record_timestamp(vk, program, commands, ++cursor->n_dispatches);
}

static void record_begin(struct ree_vk *vk, const struct ree_device_program *program,
                         VkCommandBuffer commands) {
    if (program->blocks != program->blocks_host) {
        VkBufferCopy all = {.srcOffset = program->blocks_host->offset,
                            .dstOffset = program->blocks->offset,
                            .size = program->blocks->size};
        vk->vk.vkCmdCopyBuffer(commands, program->blocks_host->handle, program->blocks->handle, 1,
                               &all);
    }
    // Make all writes of earlier submissions visible to this program. The host's writes are visible
    // to every submission that follows them, because the memory is coherent.
    barrier(vk, commands, REE_VK_STAGES, VK_ACCESS_MEMORY_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    if (program->queries)
        vk->vk.vkCmdResetQueryPool(commands, program->queries, 0, program->info.n_dispatches + 1);
    record_timestamp(vk, program, commands, 0);
}

static void record_end(struct ree_vk *vk, const struct ree_device_program *program,
                       VkCommandBuffer commands) {
    if (program->blocks != program->blocks_host) {
        barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
        VkBufferCopy fault = {.srcOffset = program->blocks->offset,
                              .dstOffset = program->blocks_host->offset,
                              .size = sizeof(struct ree_vk_fault)};
        vk->vk.vkCmdCopyBuffer(commands, program->blocks->handle, program->blocks_host->handle, 1,
                               &fault);
    }
    barrier(vk, commands, REE_VK_STAGES, VK_ACCESS_MEMORY_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT);
}

static void record_launch(struct ree_vk *vk, const struct ree_device_program *program,
                          VkCommandBuffer commands, const struct ree_vk_launch *launch,
                          uint64_t first_group, uint64_t n_groups) {
    const uint64_t block = program->blocks->address + program->block_offsets[launch->dispatch];
    // The barrier also covers the launches of earlier segments, because they precede it in
    // submission order. Pieces of one launch are independent, so only the first needs the barrier.
    if (launch->barrier && first_group == 0)
        barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    uint64_t half = program->halves ? n_groups / 2 : 0;
    if (half) ree_vk_record_groups(vk, commands, launch->pipeline, block, first_group, half);
    ree_vk_record_groups(vk, commands, launch->pipeline, block, first_group + half,
                         n_groups - half);
}

// Cutting

// Returns how many groups of the launch, from first_group on, go into the current segment. 0: the
// segment ends before them. `used` and `capacity` are the segment's work so far and its maximum
// work; *out_work receives the work of these groups. A launch is cut only if its work exceeds a
// whole segment; its pieces then have nearly equal size.
static uint64_t groups_that_fit(const struct ree_vk_launch *launch, uint64_t first_group,
                                double used, double capacity, double *out_work) {
    uint64_t left = launch->n_groups - first_group;
    double work_left = launch->work * (double)left / (double)launch->n_groups;
    *out_work = work_left;
    if (used + work_left <= capacity) return left;
    if (used > 0) return 0;
    uint64_t n_pieces = (uint64_t)fmin(ceil(work_left / capacity), (double)left);
    uint64_t n_groups = (left + n_pieces - 1) / n_pieces;
    *out_work = work_left * (double)n_groups / (double)left;
    return n_groups;
}

// Records segment->commands from segment->begin on, up to about `capacity` of work. Sets
// segment->end and segment->work.
static enum ree_status record_segment(struct ree_vk *vk, const struct ree_device_program *program,
                                      struct ree_vk_segment *segment, double capacity,
                                      struct ree_error *err) {
    VkCommandBuffer commands = segment->commands;
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    REE_VK_TRY(err, vk->vk.vkBeginCommandBuffer(commands, &begin), "cannot record");
    struct ree_vk_cursor at = segment->begin;
    if (at.launch == 0 && at.group == 0) {
        record_begin(vk, program, commands);
        complete_dispatches(vk, program, commands, &at);
    }
    while (at.launch < program->n_launches) {
        const struct ree_vk_launch *launch = &program->launches[at.launch];
        double work;
        uint64_t n = groups_that_fit(launch, at.group, segment->work, capacity, &work);
        if (n == 0) break;
        record_launch(vk, program, commands, launch, at.group, n);
        segment->work += work;
        at.group += n;
        if (at.group < launch->n_groups) break;
        at.group = 0;
        at.launch++;
        complete_dispatches(vk, program, commands, &at);
    }
    if (at.launch == program->n_launches) record_end(vk, program, commands);
    segment->end = at;
    REE_VK_TRY(err, vk->vk.vkEndCommandBuffer(commands), "cannot record");
    return REE_OK;
}

static enum ree_status add_segment(struct ree_vk *vk, struct ree_device_program *program,
                                   const struct ree_vk_cursor *begin, struct ree_vk_segment **out,
                                   struct ree_error *err) {
    if (program->n_segments == program->segments_capacity) {
        uint32_t capacity = 2 * program->segments_capacity + 1;
        struct ree_vk_segment *segments =
            ree_realloc(program->segments, capacity * sizeof *segments);
        if (!segments) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
        program->segments = segments;
        program->segments_capacity = capacity;
    }
    struct ree_vk_segment *segment = &program->segments[program->n_segments];
    *segment = (struct ree_vk_segment){.begin = *begin};
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->command_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    REE_VK_TRY(err, vk->vk.vkAllocateCommandBuffers(vk->handle, &info, &segment->commands),
               "cannot create a command buffer");
    program->n_segments++;
    *out = segment;
    return REE_OK;
}

static enum ree_status cut_from(struct ree_vk *vk, struct ree_device_program *program,
                                struct ree_vk_cursor at, struct ree_error *err) {
    const double capacity = vk->submission_seconds / vk->pace;
    program->pace = vk->pace;
    do {
        struct ree_vk_segment *segment = NULL;
        REE_TRY(add_segment(vk, program, &at, &segment, err));
        REE_TRY(record_segment(vk, program, segment, capacity, err));
        at = segment->end;
    } while (at.launch < program->n_launches);
    return REE_OK;
}

enum ree_status ree_vk_program_cut(struct ree_vk *vk, struct ree_device_program *program,
                                   uint32_t first, struct ree_error *err) {
    const struct ree_vk_cursor begin =
        first < program->n_segments ? program->segments[first].begin : (struct ree_vk_cursor){0};
    ree_vk_program_discard(vk, program, first);
    enum ree_status status = cut_from(vk, program, begin, err);
    if (status != REE_OK) ree_vk_program_discard(vk, program, first);
    return status;
}

void ree_vk_program_discard(struct ree_vk *vk, struct ree_device_program *program, uint32_t first) {
    while (program->n_segments > first) {
        VkCommandBuffer commands = program->segments[--program->n_segments].commands;
        vk->vk.vkFreeCommandBuffers(vk->handle, vk->command_pool, 1, &commands);
    }
}
