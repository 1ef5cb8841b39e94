// A program runs as several submissions of limited length, cut between its dispatches and within
// them. The bytes do not depend on where it is cut, and no workgroup runs twice or without need.
// Between submissions a run can be cancelled, and a lost device ends it with a message. Submissions
// become shorter if the device is slower than predicted.
#include "device/vulkan/program_internal.h"
#include "device_cases.h"

#include <time.h>

static struct ree_error err;

// The driver's functions, and what the test saw or makes them do.
static PFN_vkQueueSubmit real_submit;
static PFN_vkWaitForFences real_wait;
static PFN_vkCmdDispatch real_dispatch;
static PFN_vkCmdPipelineBarrier real_barrier;
static uint32_t n_submitted, n_infinite;
static uint32_t n_barriers; // between steps, in recorded commands
static uint64_t n_groups;   // launched in recorded commands
static uint32_t most_groups_at_once[2];
static double slow_seconds; // a wait takes this much longer
static uint32_t lost_after; // submissions after which the device is lost; 0: never
static bool times_out;      // the next wait ends by its timeout

static VkResult VKAPI_PTR submit(VkQueue queue, uint32_t n, const VkSubmitInfo *infos,
                                 VkFence fence) {
    n_submitted++;
    return real_submit(queue, n, infos, fence);
}

static VkResult VKAPI_PTR wait_for(VkDevice device, uint32_t n, const VkFence *fences, VkBool32 all,
                                   uint64_t timeout) {
    if (timeout > 10000000000u) n_infinite++;
    if (times_out) {
        times_out = false;
        return VK_TIMEOUT;
    }
    VkResult result = real_wait(device, n, fences, all, timeout);
    struct timespec more = {.tv_nsec = (long)(slow_seconds * 1e9)};
    if (slow_seconds > 0) nanosleep(&more, NULL);
    return lost_after && n_submitted > lost_after ? VK_ERROR_DEVICE_LOST : result;
}

static void VKAPI_PTR dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    n_groups += (uint64_t)x * y * z;
    if (x > most_groups_at_once[0]) most_groups_at_once[0] = x;
    if (y > most_groups_at_once[1]) most_groups_at_once[1] = y;
    real_dispatch(commands, x, y, z);
}

static void VKAPI_PTR barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                              VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t n,
                              const VkMemoryBarrier *list, uint32_t n_buffer,
                              const VkBufferMemoryBarrier *buffer, uint32_t n_image,
                              const VkImageMemoryBarrier *image) {
    n_barriers += from == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && from == to;
    real_barrier(commands, from, to, flags, n, list, n_buffer, buffer, n_image, image);
}

static void wrap(struct ree_vk *vk) {
    real_submit = vk->vk.vkQueueSubmit;
    real_wait = vk->vk.vkWaitForFences;
    real_dispatch = vk->vk.vkCmdDispatch;
    real_barrier = vk->vk.vkCmdPipelineBarrier;
    vk->vk.vkCmdPipelineBarrier = barrier;
    vk->vk.vkQueueSubmit = submit;
    vk->vk.vkWaitForFences = wait_for;
    vk->vk.vkCmdDispatch = dispatch;
}

// Random cases of RepOps that store in different ways.
static const int ops[] = {REE_REPOP_COPY, REE_REPOP_MATMUL, REE_REPOP_REDUCE, REE_REPOP_SCATTER};
#define N_CASES 3        // of each RepOp
#define HIGHEST_PACE 1e6 // pace.c

static uint64_t run_cases(struct ree_device *device, const char *what) {
    uint32_t n_printed = 0;
    n_groups = 0;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (uint64_t seed = 1, n_done = 0; n_done < N_CASES; seed++) {
            struct rng rng = {.state = seed * 7919 + (uint64_t)ops[o]};
            struct test_case c = {0};
            // The highest pace: no program is recorded again, which would count its groups twice.
            ree_vk_of(device)->pace = HIGHEST_PACE;
            if (case_generators[ops[o]](&rng, &c)) {
                compare_case(device, what, ops[o], seed, &c, &n_printed);
                n_done++;
            }
            test_case_finish(&c);
        }
    return n_groups;
}

// Each group runs once, whatever the limits of a grid are and wherever a step is cut.
static void groups_run_once(struct ree_device *device) {
    struct ree_vk *vk = ree_vk_of(device);
    uint32_t *limit = vk->properties.limits.maxComputeWorkGroupCount;
    const uint32_t own[2] = {limit[0], limit[1]};
    const double seconds = vk->submission_seconds;
    vk->submission_seconds = 1e9;
    run_cases(device, "first"); // the pipelines' self-tests
    const uint64_t needed = run_cases(device, "whole");
    CHECK(needed > 100);
    vk->submission_seconds = 1e-9;
    n_submitted = 0;
    CHECK_MSG(run_cases(device, "each group alone") == needed, "%llu groups, not %llu",
              (unsigned long long)n_groups, (unsigned long long)needed);
    CHECK(n_submitted == needed);
    vk->submission_seconds = 1e9;
    limit[0] = 5;
    limit[1] = 3;
    most_groups_at_once[0] = most_groups_at_once[1] = 0;
    CHECK_MSG(run_cases(device, "small grids") == needed, "%llu groups, not %llu",
              (unsigned long long)n_groups, (unsigned long long)needed);
    CHECK(most_groups_at_once[0] == 5 && most_groups_at_once[1] > 1 && most_groups_at_once[1] <= 3);
    vk->submission_seconds = 3e-6 * HIGHEST_PACE;
    n_submitted = 0;
    run_cases(device, "pieces in small grids");
    CHECK(n_groups == needed && n_submitted > 2 * sizeof ops / sizeof *ops * N_CASES);
    limit[0] = own[0];
    limit[1] = own[1];
    vk->submission_seconds = seconds;
}

// A chain of products: each reads the result of the one before it, and overwrites the one before
// that.
#define N_PRODUCTS 24
#define SIZE 64
struct chain {
    struct ree_device *device;
    struct ree_device_program *program;
    struct ree_device_buffer *buffers[3]; // the factor of all products, two results
};

static void chain_init(struct chain *chain, struct ree_device *device) {
    static struct ree_dispatch dispatches[N_PRODUCTS];
    static const char *const names[] = {"node 'first' (MatMul)", "node 'later' (MatMul)"};
    static float matrix[SIZE * SIZE];
    const struct ree_device_vtable *vt = device->vtable;
    const uint64_t sizes[3] = {sizeof matrix, sizeof(float[SIZE * SIZE]),
                               sizeof(float[SIZE * SIZE])};
    *chain = (struct chain){.device = device};
    for (uint32_t i = 0; i < SIZE * SIZE; i++)
        matrix[i] = (float)(i * 2654435761u >> 8) * 0x1p-26f - 0.125f;
    for (uint32_t i = 0; i < N_PRODUCTS; i++) {
        dispatches[i] = (struct ree_dispatch){
            .op = REE_REPOP_MATMUL,
            .n_operands = 3,
            .n_outputs = 1,
            .operands = {{1 + i % 2, 0, sizes[1]}, {0, 0, sizes[0]}, {2 - i % 2, 0, sizes[1]}},
            .node = i > 0,
        };
        dispatches[i].params.matmul = dense_products(SIZE, SIZE, SIZE);
    }
    const struct ree_program source = {dispatches, N_PRODUCTS, 3, names, 2};
    for (int i = 0; i < 3; i++) {
        REQUIRE(vt->buffer_create(device, sizes[i], &chain->buffers[i], &err) == REE_OK);
        REQUIRE(vt->buffer_write(device, chain->buffers[i], 0, matrix, sizes[i], &err) == REE_OK);
    }
    CHECK_MSG(vt->program_create(device, &source, NULL, NULL, &chain->program, &err) == REE_OK,
              "%s", err.message);
    REQUIRE(chain->program);
}

static enum ree_status chain_run(struct chain *chain, const struct ree_program_run *options) {
    static float start[SIZE * SIZE];
    for (uint32_t i = 0; i < SIZE * SIZE; i++)
        start[i] = 1.0f / (float)(i + 3);
    const struct ree_device_vtable *vt = chain->device->vtable;
    n_submitted = 0;
    REQUIRE(vt->buffer_write(chain->device, chain->buffers[1], 0, start, sizeof start, &err) ==
            REE_OK);
    return vt->program_run(chain->device, chain->program, chain->buffers, options, &err);
}

// Runs the chain and compares its result with the first call's.
static void chain_check(struct chain *chain) {
    static uint32_t expected[SIZE * SIZE], result[SIZE * SIZE];
    static bool is_first = true;
    enum ree_status status = chain_run(chain, NULL);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    CHECK(chain->device->vtable->buffer_read(chain->device, chain->buffers[1 + N_PRODUCTS % 2], 0,
                                             result, sizeof result, &err) == REE_OK);
    if (is_first) memcpy(expected, result, sizeof result);
    is_first = false;
    CHECK(memcmp(expected, result, sizeof result) == 0);
}

static void chain_finish(struct chain *chain) {
    chain->device->vtable->program_destroy(chain->device, chain->program);
    for (int i = 0; i < 3; i++)
        chain->device->vtable->buffer_destroy(chain->device, chain->buffers[i]);
}

static bool refuse(void *user, const char *what, uint64_t done, uint64_t total) {
    uint64_t *seen = user;
    (void)what;
    *seen = done;
    return done >= total;
}

// A run that is cancelled submits nothing more, and the program can run again.
static void cancelled_run_ends(struct ree_device *device) {
    struct chain chain;
    struct ree_vk *vk = ree_vk_of(device);
    const double seconds = vk->submission_seconds;
    vk->submission_seconds = 1e9;
    vk->pace = 1;
    chain_init(&chain, device);
    chain_check(&chain);
    const uint32_t n_whole = n_submitted;
    chain_finish(&chain);
    vk->submission_seconds = 1e-5;
    vk->pace = 1;
    n_barriers = 0;
    chain_init(&chain, device);
    CHECK_MSG(n_barriers == N_PRODUCTS - 1, "%u barriers", n_barriers);
    chain_check(&chain);
    CHECK_MSG(n_whole == 1 && n_submitted >= N_PRODUCTS, "%u, then %u submissions", n_whole,
              n_submitted);
    uint64_t done = UINT64_MAX;
    const struct ree_program_run options = {.progress = {.report = refuse, .user = &done}};
    times_out = true;
    CHECK(chain_run(&chain, &options) == REE_CANCELLED);
    CHECK_MSG(done < N_PRODUCTS && n_submitted <= REE_VK_N_IN_FLIGHT, "%llu done, %u submissions",
              (unsigned long long)done, n_submitted);
    double times[N_PRODUCTS];
    CHECK(!device->vtable->program_times(device, chain.program, times));
    chain_check(&chain);
    if (vk->timestamp_mask) CHECK(device->vtable->program_times(device, chain.program, times));
    chain_finish(&chain);
    vk->submission_seconds = seconds;
}

// A device that is slower than predicted gets shorter submissions, in the same run already.
static void slow_device(struct ree_device *device) {
    struct chain chain;
    struct ree_vk *vk = ree_vk_of(device);
    const double seconds = vk->submission_seconds;
    vk->pace = 1;
    vk->submission_seconds = 1e9;
    chain_init(&chain, device);
    double work = 0;
    for (uint32_t i = 0; i < chain.program->n_launches; i++)
        work += chain.program->launches[i].work;
    chain_finish(&chain);
    vk->submission_seconds = work / 4.5;
    chain_init(&chain, device);
    const uint32_t n_before = chain.program->n_segments;
    slow_seconds = 0.05;
    chain_check(&chain);
    slow_seconds = 0;
    CHECK_MSG(n_before >= 5 && n_submitted > n_before, "%u segments, %u submissions", n_before,
              n_submitted);
    // The prediction forgets it slowly, down to a limit.
    const double slow = vk->pace;
    CHECK(slow > 1);
    ree_vk_pace_note(vk, 1, slow / 2);
    CHECK(vk->pace < slow && vk->pace > slow * 0.9);
    for (int i = 0; i < 1000; i++)
        ree_vk_pace_note(vk, 1, 1e-3);
    CHECK(vk->pace > 0.1 && vk->pace < 1);
    // Whatever else this machine does, one of these runs is as fast as predicted.
    for (int i = 0; i == 0 || (i < 9 && n_submitted >= n_before); i++) {
        vk->pace = 0.25;
        chain_check(&chain);
    }
    CHECK_MSG(n_submitted < n_before, "%u submissions", n_submitted);
    vk->pace = 0.25;
    // A short submission says nothing, and a long one counts only to some degree.
    const double fast = vk->pace;
    ree_vk_pace_note(vk, 1e-6, 1e-3);
    CHECK(vk->pace == fast);
    ree_vk_pace_note(vk, 1e-3, 1e3);
    CHECK(vk->pace > fast && vk->pace <= 8 * fast);
    chain_finish(&chain);
    vk->pace = 1;
    vk->submission_seconds = seconds;
}

// A lost device ends the run. The message names a node. The device can be closed.
static void lost_device(struct ree_device *device) {
    struct chain chain;
    struct ree_vk *vk = ree_vk_of(device);
    vk->pace = 1;
    vk->submission_seconds = 1e-5;
    chain_init(&chain, device);
    chain_check(&chain);
    // On a slow device the first products have several submissions.
    lost_after = n_submitted / 4;
    enum ree_status status = chain_run(&chain, NULL);
    CHECK_MSG(status == REE_DEVICE && strstr(err.message, "device was lost") &&
                  strstr(err.message, "node 'later' (MatMul)"),
              "%d: %s", status, err.message);
    CHECK_MSG(n_submitted <= lost_after + REE_VK_N_IN_FLIGHT, "%u submissions", n_submitted);
    vk->vk.vkDeviceWaitIdle(vk->handle); // this device was not really lost
    chain_finish(&chain);
    lost_after = 0;
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    struct ree_device_options options = {
        .size = sizeof options, .validation = true, .cache_dir = ""};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    options.validation = false;
    if (status == REE_UNAVAILABLE) status = ree_vulkan_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    REQUIRE(status == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    // A group of the modules for one row does less work, so the slow device would need longer.
    vk->thresholds.small_product = 0;
    wrap(vk);
    for (int staged = 0; staged < 2; staged++) {
        if (staged) ree_vk_force_staging(vk);
        if (!staged) groups_run_once(device);
        cancelled_run_ends(device);
        slow_device(device);
    }
    CHECK_MSG(n_infinite == 0, "%u waits have no time limit", n_infinite);
    lost_device(device);
    device->vtable->destroy(device);
    return test_finish();
}
