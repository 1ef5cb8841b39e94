// Creates the pipelines of a whole program on other threads, while the calling thread tests those
// that are ready. Drivers of GPUs compile while they create a pipeline, so this shortens the first
// run of a model. Drivers of processors compile the rest when a pipeline first runs, one after the
// other: the earlier the first self-test, the earlier they begin. Pipelines that only self-tests
// use are created one by one.
#include "device/vulkan/encode.h"
#include "device/vulkan/vulkan.h"

#include <sched.h>

static uint32_t n_processors(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (uint32_t)CPU_COUNT(&allowed) : 1;
}

void ree_vk_pipelines_prepare(struct ree_vk *vk, const struct ree_program *program) {
    const uint32_t n_threads = n_processors();
    // With the validation layer, pipelines are created one by one, so that its messages name the
    // right one.
    if (n_threads < 2 || vk->messenger) return;
    const struct ree_vk_forms forms = ree_vk_first_forms(vk);
    struct ree_vk_cached_pipeline *list = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_dispatches; i++) {
        struct ree_error err;
        struct ree_vk_encoding encoding;
        if (ree_vk_encode(vk, &program->dispatches[i], &forms, &encoding, &err) != REE_OK) continue;
        for (uint32_t s = 0; s < encoding.n_steps; s++)
            if (encoding.steps[s].n_groups > 0)
                n += ree_vk_pipeline_plan(vk, &encoding.steps[s], encoding.expr, &list);
    }
    // A single one is left to ree_vk_pipeline_get. The calling thread keeps a processor.
    const uint32_t n_others = n_threads - 1;
    ree_vk_pipelines_start(vk, list, n < 2 ? 0 : n < n_others ? n : n_others);
}
