// The probe tests a device's arithmetic instead of trusting it.
//
// When a device is first opened, each primitive runs over the vectors of probe_vectors.h in each
// form that the device could use (shaders/include/primitives.glsl). The bits are compared with
// those of the scalar source compiled as C. The first form without a wrong result is used. Integers
// are the last form and are tested only if they are needed. A device that computes them incorrectly
// is rejected. The results are kept in the cache folder. Later starts repeat only the first trial,
// the native forms: if its results differ from the recorded ones, the device is probed again. A
// process whose own child has just probed the driver (driver_trial.c) repeats nothing.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "device/probe_vectors.h"
#include "shaders.h"

#include <string.h>

_Static_assert(REE_VK_N_PRIMITIVES == REE_PROBE_N_PRIMITIVES, "the primitives of probe_vectors.h");

const char *ree_vk_primitive_name(enum ree_vk_primitive primitive) {
    return ree_probe_primitives[primitive].name;
}

static const char *const form_names[REE_VK_N_FORMS] = {"native", "float64", "float32", "integer"};

const char *ree_vk_form_name(enum ree_vk_form form) {
    return form_names[form];
}

// The test vectors and the device's buffers, in host-visible memory.
struct probe {
    struct ree_probe_vectors vectors;
    struct ree_device_buffer *block, *inputs, *results;
};

enum ree_status ree_vk_run_vectors(struct ree_vk *vk, const struct ree_vk_step *step,
                                   const struct ree_device_buffer *block, uint32_t n,
                                   struct ree_error *err) {
    struct ree_vk_pipeline *pipeline;
    REE_TRY(ree_vk_pipeline_get(vk, step, NULL, &pipeline, err));
    VkCommandBuffer commands = vk->transfer_commands;
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    REE_VK_TRY(err, vk->vk.vkBeginCommandBuffer(commands, &info), "cannot record the probe");
    ree_vk_record_groups(vk, commands, pipeline->handle, block->address, 0, (n + 63) / 64);
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    vk->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    REE_VK_TRY(err, vk->vk.vkEndCommandBuffer(commands), "cannot record the probe");
    return ree_vk_submit(vk, commands, err);
}

// The tests in their order. The form float64 exists only for fma. Conversions, comparisons and
// rounding have only native and integer forms; the integer forms are in a separate shader.
struct trial {
    enum ree_vk_form form;
    uint32_t shader;
    uint32_t first, last; // range of operations
};
static const struct trial trials[] = {
    {REE_VK_NATIVE, REE_VK_SHADER_PROBE, 0, REE_PROBE_N_OPERATIONS - 1},
    {REE_VK_FLOAT64, REE_VK_SHADER_PROBE_F64, REE_PROBE_FMA, REE_PROBE_FMA},
    {REE_VK_FLOAT32, REE_VK_SHADER_PROBE, 0, REE_PROBE_FMA},
    {REE_VK_INTEGER, REE_VK_SHADER_PROBE, 0, REE_PROBE_FMA},
    {REE_VK_INTEGER, REE_VK_SHADER_PROBE_CONVERSIONS, REE_PROBE_FMA + 1,
     REE_PROBE_N_OPERATIONS - 1},
};

// Returns whether integers are the only remaining form of a primitive, after the other forms were
// tested.
static bool needs_integers(const struct ree_vk_verdict *verdict, int p) {
    for (int form = REE_VK_NATIVE; p <= REE_VK_FMA && form < REE_VK_INTEGER; form++)
        if (verdict->allowed[form]) return false;
    return true;
}

static bool is_forced(const struct ree_device_options *options, enum ree_vk_form form) {
    return ree_forced_form(options) && strcmp(ree_forced_form(options), form_names[form]) == 0;
}

// Returns whether the trial runs operations of the primitive.
static bool runs(const struct trial *trial, int p) {
    const struct ree_probe_primitive *primitive = &ree_probe_primitives[p];
    return primitive->first <= trial->last && primitive->first + primitive->n > trial->first;
}

// Runs a trial over n vectors, starting with `begin`, and sets vk->verdicts[p].form to the form
// that each primitive used. That is the trial's form only for primitives that the trial runs, and
// integers only for primitives that need them, unless `all` is set: the code for the others would
// burden the driver's compiler. broken, n_broken: operations whose results the shader falsifies,
// for tests.
static enum ree_status run(struct ree_vk *vk, struct probe *probe, const struct trial *trial,
                           uint32_t begin, uint32_t n, uint32_t broken, uint32_t n_broken, bool all,
                           struct ree_error *err) {
    uint64_t block[17] = {0}; // block layout of program.c: 128 bytes, then the parameters
    block[0] = probe->inputs->address + begin * sizeof(struct ree_probe_vector);
    block[1] = probe->results->address + begin * sizeof(uint32_t);
    block[16] = n;
    memcpy(probe->block->mapped, block, sizeof block);

    struct ree_vk_forms forms = {.guarded = vk->guarded};
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        forms.of[p] = vk->verdicts[p].form =
            !runs(trial, p) ||
                    (trial->form == REE_VK_INTEGER && !all && !needs_integers(&vk->verdicts[p], p))
                ? REE_VK_NATIVE
                : trial->form;
    struct ree_vk_step step = {
        .shader = trial->shader,
        .local_size = 64,
        .forms = forms,
        .n_spec = 3,
        .spec = {trial->form, broken, n_broken},
    };
    return ree_vk_run_vectors(vk, &step, probe->block, n, err);
}

static void judge(struct ree_vk *vk, const struct probe *probe, enum ree_vk_form form,
                  uint32_t begin, uint32_t n) {
    const uint32_t *results = (const uint32_t *)(const void *)probe->results->mapped;
    for (uint32_t p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        struct ree_vk_verdict *verdict = &vk->verdicts[p];
        if (verdict->form != form) continue;
        struct ree_probe_count count =
            ree_probe_judge(&probe->vectors, results, begin, n, &ree_probe_primitives[p]);
        if (count.n_vectors == 0) continue;
        verdict->tried[form] = true;
        verdict->allowed[form] = count.n_wrong == 0;
        verdict->n_wrong[form] = count.n_wrong;
        verdict->n_vectors = count.n_vectors;
        memcpy(verdict->example[form], count.example, sizeof count.example);
    }
}

// Returns the range of a trial's vectors. The vectors are ordered by operation.
static void range_of(const struct ree_probe_vectors *v, const struct trial *trial, uint32_t *begin,
                     uint32_t *n) {
    uint32_t i = 0;
    while (i < v->n && v->list[i].operation < trial->first)
        i++;
    *begin = i;
    while (i < v->n && v->list[i].operation <= trial->last)
        i++;
    *n = i - *begin;
}

static bool is_needed(const struct ree_vk *vk, const struct trial *trial,
                      const struct ree_device_options *options) {
    bool forced = is_forced(options, trial->form);
    if (trial->form == REE_VK_NATIVE || trial->first > REE_PROBE_FMA) return true;
    if (trial->form == REE_VK_INTEGER) {
        for (int p = REE_VK_ADD; p <= REE_VK_FMA; p++)
            if (needs_integers(&vk->verdicts[p], p)) return true;
        return forced;
    }
    if (trial->form == REE_VK_FLOAT64)
        return vk->has_float64 && (forced || !vk->verdicts[REE_VK_FMA].allowed[REE_VK_NATIVE]);
    for (int p = REE_VK_ADD; p < REE_VK_FMA; p++)
        if (!vk->verdicts[p].allowed[REE_VK_NATIVE]) return true;
    const bool *fma = vk->verdicts[REE_VK_FMA].allowed;
    return forced || (!fma[REE_VK_NATIVE] && !fma[REE_VK_FLOAT64]);
}

static enum ree_status create_buffers(struct ree_vk *vk, struct probe *probe,
                                      struct ree_error *err) {
    uint64_t size = probe->vectors.n * sizeof(struct ree_probe_vector);
    REE_TRY(ree_vk_host_buffer_create(vk, 256, &probe->block, err));
    REE_TRY(ree_vk_host_buffer_create(vk, size, &probe->inputs, err));
    REE_TRY(ree_vk_host_buffer_create(vk, probe->vectors.n * 4, &probe->results, err));
    memcpy(probe->inputs->mapped, probe->vectors.list, size);
    return REE_OK;
}

static enum ree_status try_forms(struct ree_vk *vk, struct probe *probe,
                                 const struct ree_device_options *options, struct ree_error *err) {
    uint32_t broken = 0, n_broken = 0;
    bool integers_too = false;
    if (ree_broken_primitive(options)) {
        const char *name = ree_broken_primitive(options);
        integers_too = strncmp(name, "integer ", 8) == 0;
        int p = ree_probe_find(ree_probe_primitives, REE_PROBE_N_PRIMITIVES,
                               name + (integers_too ? 8 : 0));
        if (p < 0) return ree_fail(err, REE_INVALID, "unknown primitive '%s'", name);
        broken = ree_probe_primitives[p].first;
        n_broken = ree_probe_primitives[p].n;
    }
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *t = &trials[i];
        if (!is_needed(vk, t, options)) continue;
        uint32_t begin, n;
        range_of(&probe->vectors, t, &begin, &n);
        uint32_t n_now = t->form == REE_VK_INTEGER && !integers_too ? 0 : n_broken;
        REE_TRY(run(vk, probe, t, begin, n, broken, n_now, is_forced(options, t->form), err));
        judge(vk, probe, t->form, begin, n);
    }
    return REE_OK;
}

// Returns the first form to consider. Conversions, comparisons and rounding always use the integer
// form, because it is only a few integer operations.
static int first_form(int primitive) {
    return primitive > REE_VK_FMA ? REE_VK_INTEGER : REE_VK_NATIVE;
}

static bool has_right_forms(const struct ree_vk *vk) {
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        bool right = false;
        for (int form = first_form(p); form < REE_VK_N_FORMS; form++)
            right = right || vk->verdicts[p].allowed[form];
        if (!right) return false;
    }
    return true;
}

// Chooses the form of each primitive: the first that passed, or the requested one.
static enum ree_status choose(struct ree_vk *vk, const char *force, struct ree_error *err) {
    int forced = 0;
    while (force && forced < REE_VK_N_FORMS && strcmp(force, form_names[forced]))
        forced++;
    if (forced == REE_VK_N_FORMS)
        return ree_fail(err, REE_INVALID,
                        "'%s' is not a form; forms are native, float64, float32 and integer",
                        force);
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        struct ree_vk_verdict *verdict = &vk->verdicts[p];
        int form = first_form(p);
        while (form < REE_VK_INTEGER && !verdict->allowed[form])
            form++;
        if (!verdict->allowed[form]) {
            const uint32_t *e = verdict->example[form];
            return ree_fail(err, REE_UNSUPPORTED,
                            "'%s' cannot be used: it computes %s wrongly even in integers, in %u "
                            "of %u vectors, e.g. %08x %08x %08x gives %08x, not %08x",
                            vk->base.name, ree_probe_primitives[p].name, verdict->n_wrong[form],
                            verdict->n_vectors, e[0], e[1], e[2], e[3], e[4]);
        }
        bool has_choice = p <= REE_VK_FMA && (forced != REE_VK_FLOAT64 || p == REE_VK_FMA);
        if (force && has_choice) {
            if (!verdict->tried[forced])
                return ree_fail(err, REE_UNSUPPORTED, "'%s' has no %s form of %s", vk->base.name,
                                force, ree_probe_primitives[p].name);
            if (!verdict->allowed[forced])
                return ree_fail(err, REE_UNSUPPORTED,
                                "'%s' computes %s wrongly in the %s form: %u of %u vectors",
                                vk->base.name, ree_probe_primitives[p].name, force,
                                verdict->n_wrong[forced], verdict->n_vectors);
            form = forced;
        }
        verdict->form = (enum ree_vk_form)form;
    }
    return REE_OK;
}

// Tests everything, as if nothing were known.
static enum ree_status test_all(struct ree_vk *vk, struct probe *probe,
                                const struct ree_device_options *options, struct ree_error *err) {
    memset(vk->verdicts, 0, sizeof vk->verdicts);
    memset(vk->observations, 0, sizeof vk->observations);
    vk->guarded = false;
    REE_TRY(try_forms(vk, probe, options, err));
    if (!has_right_forms(vk)) {
        // Integers are wrong in their plain form. Test again with guards, which prevent a compiler
        // from treating words as floats.
        memset(vk->verdicts, 0, sizeof vk->verdicts);
        vk->guarded = true;
        REE_TRY(try_forms(vk, probe, options, err));
    }
    return ree_vk_count_loops(vk, err);
}

// Repeats the trial of the native forms. *out_same: its results are the recorded ones. They may
// differ on another card of the same model, on a device that fails, and for a driver in another
// floating-point environment: all these have the same identity.
static enum ree_status repeat_native(struct ree_vk *vk, struct probe *probe, bool *out_same,
                                     struct ree_error *err) {
    struct ree_vk_verdict recorded[REE_VK_N_PRIMITIVES];
    uint32_t begin, n;
    memcpy(recorded, vk->verdicts, sizeof recorded);
    range_of(&probe->vectors, &trials[0], &begin, &n);
    REE_TRY(run(vk, probe, &trials[0], begin, n, 0, 0, false, err));
    judge(vk, probe, trials[0].form, begin, n);
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        recorded[p].form = vk->verdicts[p].form;
    *out_same = memcmp(recorded, vk->verdicts, sizeof recorded) == 0;
    return REE_OK;
}

enum ree_status ree_vk_probe(struct ree_vk *vk, const struct ree_device_options *options,
                             struct ree_error *err) {
    const bool can_record =
        !options->validation && !ree_forced_form(options) && !ree_broken_primitive(options);
    bool is_known = can_record && !ree_probes_again(options) && ree_vk_probe_recall(vk);
    struct probe probe = {0};
    enum ree_status status = ree_probe_vectors_init(&probe.vectors, err);
    if (status == REE_OK) status = create_buffers(vk, &probe, err);
    if (status == REE_OK && is_known && !vk->was_just_tried)
        status = repeat_native(vk, &probe, &is_known, err);
    if (status == REE_OK && !is_known) status = test_all(vk, &probe, options, err);
    const bool had_observed = ree_vk_has_observed(vk);
    if (status == REE_OK && options->all_facts) status = ree_vk_observe(vk, err);
    ree_vk_buffer_destroy(&vk->base, probe.block);
    ree_vk_buffer_destroy(&vk->base, probe.inputs);
    ree_vk_buffer_destroy(&vk->base, probe.results);
    ree_probe_vectors_finish(&probe.vectors);
    if (status != REE_OK) return ree_fail_prefix(err, "probing '%s'", vk->base.name);
    vk->forced = ree_forced_form(options) != NULL;
    REE_TRY(choose(vk, ree_forced_form(options), err));
    // A device that is rejected is probed again at the next start.
    if (can_record && !(is_known && ree_vk_has_observed(vk) == had_observed)) ree_vk_probe_keep(vk);
    return REE_OK;
}
