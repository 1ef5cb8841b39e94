// The pipelines of a program are created on other threads, each once, while the calling thread gets
// them one by one. A pipeline whose creation failed there is created when it is needed.
#include "device/vulkan/encode.h"
#include "device/vulkan/vulkan.h"
#include "device_cases.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define N_DISPATCHES 12
#define MAX_CREATED 200

static struct ree_error err;
static PFN_vkCreateComputePipelines real_create;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t created_by[MAX_CREATED];
static uint32_t n_created, n_refused, refuse_every;

static VkResult VKAPI_PTR create(VkDevice device, VkPipelineCache cache, uint32_t n,
                                 const VkComputePipelineCreateInfo *infos,
                                 const VkAllocationCallbacks *allocator, VkPipeline *out) {
    usleep(2000); // every thread gets its share
    pthread_mutex_lock(&lock);
    REQUIRE(n_created < MAX_CREATED);
    created_by[n_created++] = pthread_self();
    const bool refuses = refuse_every && n_created % refuse_every == 0;
    n_refused += refuses;
    pthread_mutex_unlock(&lock);
    return refuses ? VK_ERROR_UNKNOWN : real_create(device, cache, n, infos, allocator, out);
}

// Encodes the dispatches one by one and gets their pipelines. may_fail: the driver has refused
// some.
static void get_all(struct ree_vk *vk, const struct ree_program *program, bool may_fail) {
    const struct ree_vk_forms forms = ree_vk_first_forms(vk);
    for (uint32_t i = 0; i < program->n_dispatches; i++) {
        static struct ree_vk_encoding encoding;
        REQUIRE(ree_vk_encode(vk, &program->dispatches[i], &forms, &encoding, &err) == REE_OK);
        for (uint32_t s = 0; s < encoding.n_steps; s++) {
            struct ree_vk_pipeline *pipeline;
            if (encoding.steps[s].n_groups == 0) continue;
            const enum ree_status status =
                ree_vk_pipeline_get(vk, &encoding.steps[s], encoding.expr, &pipeline, &err);
            CHECK_MSG(status == REE_OK || (may_fail && status == REE_DEVICE), "%s", err.message);
        }
    }
}

// Waits until another thread has begun to create a pipeline.
static void wait_for_others(void) {
    bool has_begun = false;
    for (int i = 0; i < 60000 && !has_begun; i++) {
        usleep(1000);
        pthread_mutex_lock(&lock);
        has_begun = n_created > 0 && !pthread_equal(created_by[0], pthread_self());
        pthread_mutex_unlock(&lock);
    }
    CHECK(has_begun);
}

// refuses: every how many-th creation fails; 0: none. waits: for the other threads, before the
// pipelines are needed.
static void prepare(const struct ree_program *program, uint32_t refuses, bool waits) {
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    real_create = vk->vk.vkCreateComputePipelines;
    vk->vk.vkCreateComputePipelines = create;
    n_created = n_refused = 0;
    refuse_every = refuses;
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    const bool is_parallel = CPU_COUNT(&allowed) > 1;
    ree_vk_pipelines_prepare(vk, program);
    if (waits) {
        ree_vk_pipelines_join(vk);
        CHECK(!is_parallel || n_created >= N_DISPATCHES / 2);
    }
    const uint32_t n_prepared = n_created;
    if (waits && is_parallel && !refuses) {
        ree_vk_pipelines_prepare(vk, program); // there is nothing left
        ree_vk_pipelines_join(vk);
        CHECK_MSG(n_created == n_prepared, "%u pipelines, then %u", n_prepared, n_created);
    }
    if (waits) refuse_every = 0;
    if (is_parallel) wait_for_others();
    get_all(vk, program, refuse_every > 0);
    if (waits && is_parallel && !refuses) CHECK(n_created == n_prepared);
    CHECK(!refuses || n_refused > 0 || !is_parallel);
    ree_vk_pipelines_join(vk);
    refuse_every = 0;
    const uint32_t n_all = n_created;
    get_all(vk, program, refuses > 0);
    CHECK(n_created == n_all);
    device->vtable->destroy(device);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    static struct test_case cases[N_DISPATCHES];
    static struct ree_dispatch dispatches[N_DISPATCHES];
    static const enum ree_repop ops[] = {REE_REPOP_MAP, REE_REPOP_NORM, REE_REPOP_MATMUL};
    uint32_t n = 0;
    for (uint64_t seed = 1; n < N_DISPATCHES; seed++) {
        struct rng rng = {.state = seed * 7919};
        const enum ree_repop op = ops[n % (sizeof ops / sizeof *ops)];
        if (case_generators[op](&rng, &cases[n])) {
            dispatches[n] = cases[n].dispatch;
            n++;
        } else {
            test_case_finish(&cases[n]);
        }
    }
    const struct ree_program program = {.dispatches = dispatches, .n_dispatches = n};
    prepare(&program, 0, true);
    prepare(&program, 3, true);
    prepare(&program, 0, false);
    prepare(&program, 3, false);
    for (uint32_t i = 0; i < n; i++)
        test_case_finish(&cases[i]);
    return test_finish();
}
