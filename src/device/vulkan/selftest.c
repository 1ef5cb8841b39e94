// Self-tests: every pipeline runs a small hard problem before anything counts on it.
//
// The probe tries one operation at a time, in modules of its own; what a driver's compiler makes of
// the modules that run is another matter. So before a dispatch's pipelines are first used, its twin
// (device/selftest/twin.h) runs on them, with the same forms and specialization, and the results
// are compared with the CPU's by bytes. Where they differ, the dispatch is encoded in the next
// form, and that one is tested in turn. Verdicts are kept in the record, under a digest of the
// driver and of the pipeline, so that the next start pays nothing.
#include "device/selftest/twin.h"
#include "device/vulkan/vulkan.h"
#include "shaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE 512
#define MAX_LADDER 7

// The forms to try, the device's choice first. Returns how many.
static uint32_t make_ladder(const struct ree_vk *vk, struct ree_vk_forms ladder[MAX_LADDER]) {
    struct ree_vk_forms chosen = {.dot8 = vk->has_dot8, .guarded = vk->guarded};
    uint32_t n = 0;
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        chosen.of[p] = vk->verdicts[p].form;
    ladder[n++] = chosen;
    if (vk->forced) return n; // a test asked for this form and no other
    chosen.dot8 = 0;
    if (vk->has_dot8) ladder[n++] = chosen;
    for (uint32_t form = chosen.of[REE_VK_FMA] + 1; form < REE_VK_INTEGER; form++) {
        const struct ree_vk_verdict *fma = &vk->verdicts[REE_VK_FMA];
        bool exists = form != REE_VK_FLOAT64 || vk->has_float64;
        if (!exists || (fma->tried[form] && !fma->allowed[form])) continue;
        ladder[n] = chosen;
        ladder[n++].of[REE_VK_FMA] = form;
    }
    ladder[n] = chosen;
    for (int p = 0; p <= REE_VK_FMA; p++)
        ladder[n].of[p] = REE_VK_INTEGER;
    n++;
    if (!vk->guarded) {
        ladder[n] = ladder[n - 1];
        ladder[n++].guarded = 1;
    }
    return n;
}

// The thresholds under which a twin takes the way that its original took: the device's own, or such
// that work is never or always split.
static struct ree_vk_thresholds thresholds_of(const struct ree_vk *vk, int variant) {
    static const struct ree_vk_thresholds never = {0, 0, 0, 0};
    static const struct ree_vk_thresholds always = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    return variant == 0 ? vk->thresholds : variant == 1 ? never : always;
}
#define N_VARIANTS 3

// The pipelines of an encoding. Steps without work groups have none here.
struct pipelines {
    uint32_t n;
    const struct ree_vk_step *steps[REE_VK_MAX_STEPS];
    struct ree_vk_pipeline *list[REE_VK_MAX_STEPS];
};

static enum ree_status get_pipelines(struct ree_vk *vk, const struct ree_vk_encoding *encoding,
                                     struct pipelines *out, struct ree_error *err) {
    out->n = 0;
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        const struct ree_vk_step *step = &encoding->steps[s];
        if (step->n_groups == 0) continue;
        REE_TRY(ree_vk_pipeline_get(vk, step, encoding->expr, &out->list[out->n], err));
        out->steps[out->n++] = step;
    }
    return REE_OK;
}

static bool any_in_state(const struct pipelines *pipelines, enum ree_test_state state) {
    for (uint32_t i = 0; i < pipelines->n; i++)
        if (pipelines->list[i]->state == state) return true;
    return false;
}

// Whether the encoding has a pipeline that is still unknown among those wanted.
static bool covers(const struct ree_vk_encoding *encoding, const struct pipelines *wanted) {
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        for (uint32_t i = 0; i < wanted->n; i++)
            if (wanted->list[i]->state == REE_TEST_UNKNOWN && encoding->steps[s].n_groups > 0 &&
                ree_vk_same_pipeline(&encoding->steps[s], wanted->steps[i]))
                return true;
    return false;
}

// Runs a twin with the contents of one round. *out_text: what is wrong, "" if nothing is.
static enum ree_status run_round(struct ree_vk *vk, struct ree_twin *twin, uint32_t round,
                                 struct ree_device_program *program,
                                 struct ree_device_buffer *const *buffers, char out_text[TEXT_SIZE],
                                 struct ree_error *err) {
    void *results[REE_MAX_OPERANDS] = {NULL};
    const struct ree_dispatch *d = &twin->dispatch;
    REE_TRY(ree_twin_fill(twin, round, err));
    for (uint32_t i = 0; i < d->n_operands; i++)
        REE_TRY(ree_vk_buffer_write(&vk->base, buffers[i], 0, twin->contents[i],
                                    d->operands[i].size, err));
    enum ree_status status = ree_vk_program_run(&vk->base, program, buffers, err);
    if (status == REE_INVALID) { // an index out of range, where all are inside
        snprintf(out_text, TEXT_SIZE, "%s", err->message);
        return REE_OK;
    }
    REE_TRY(status);
    for (uint32_t i = 0; i < d->n_operands; i++) {
        if (!twin->expected[i]) continue;
        results[i] = twin->contents[i];
        REE_TRY(ree_vk_buffer_read(&vk->base, buffers[i], 0, results[i], d->operands[i].size, err));
    }
    struct ree_twin_difference difference;
    if (!ree_twin_matches(twin, results, &difference))
        snprintf(out_text, TEXT_SIZE, "operand %u, byte %llu is %08x, not %08x (round %u)",
                 difference.operand, (unsigned long long)difference.byte, difference.is,
                 difference.should_be, round);
    return REE_OK;
}

static enum ree_status run_twin(struct ree_vk *vk, struct ree_twin *twin,
                                const struct ree_vk_encoding *encoding, char out_text[TEXT_SIZE],
                                struct ree_error *err) {
    const struct ree_dispatch *d = &twin->dispatch;
    const struct ree_program source = {
        .dispatches = d, .n_dispatches = 1, .n_slots = d->n_operands};
    struct ree_device_program *program = NULL;
    struct ree_device_buffer *buffers[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = ree_vk_program_assemble(vk, &source, encoding, &program, err);
    for (uint32_t i = 0; i < d->n_operands && status == REE_OK; i++)
        status = ree_vk_buffer_create(&vk->base, d->operands[i].size, &buffers[i], err);
    // A driver's progress is the model's, not the test's.
    void (*on_progress)(void *, uint64_t, uint64_t) = vk->base.on_progress;
    vk->base.on_progress = NULL;
    out_text[0] = '\0';
    for (uint32_t round = 0; round < REE_HARD_ROUNDS && status == REE_OK && !out_text[0]; round++)
        status = run_round(vk, twin, round, program, buffers, out_text, err);
    vk->base.on_progress = on_progress;
    ree_vk_program_destroy(&vk->base, program);
    for (uint32_t i = 0; i < d->n_operands; i++)
        ree_vk_buffer_destroy(&vk->base, buffers[i]);
    return status;
}

// "matmul_pack, matmul_dot8 (add native, fma float64): operand 2, byte 0 is ..., not ..."
static void describe(const struct ree_vk *vk, const struct pipelines *pipelines,
                     const struct ree_vk_forms *forms, const char *what, char out[TEXT_SIZE]) {
    size_t n = 0;
    for (uint32_t i = 0; i < pipelines->n && n < TEXT_SIZE / 2; i++)
        n += (size_t)snprintf(out + n, TEXT_SIZE - n, "%s%s", i ? ", " : "",
                              vk->modules[pipelines->list[i]->shader].name);
    snprintf(out + n, TEXT_SIZE - n, " (add %s, fma %s): %s",
             ree_vk_form_name((enum ree_vk_form)forms->of[REE_VK_ADD]),
             ree_vk_form_name((enum ree_vk_form)forms->of[REE_VK_FMA]), what);
}

// Runs the twin on its encoding and gives the verdict to all its pipelines that had none.
static enum ree_status judge(struct ree_vk *vk, struct ree_twin *twin,
                             const struct ree_vk_encoding *encoding, struct ree_error *err) {
    struct pipelines pipelines;
    char what[TEXT_SIZE], text[TEXT_SIZE];
    REE_TRY(get_pipelines(vk, encoding, &pipelines, err));
    REE_TRY(run_twin(vk, twin, encoding, what, err));
    vk->n_tests_run++;
    enum ree_test_state state = what[0] ? REE_TEST_FAILED : REE_TEST_PASSED;
    if (what[0]) {
        describe(vk, &pipelines, &encoding->forms, what, text);
        ree_facts_add(&vk->facts, "self-test", "failed", "%s", text);
    }
    for (uint32_t i = 0; i < pipelines.n; i++) {
        struct ree_vk_pipeline *pipeline = pipelines.list[i];
        if (pipeline->state == REE_TEST_FAILED || pipeline->state == state) continue;
        // Steps that passed elsewhere are right; the culprit is among the others.
        if (what[0] && pipeline->state == REE_TEST_PASSED &&
            any_in_state(&pipelines, REE_TEST_UNKNOWN))
            continue;
        pipeline->state = state;
        ree_test_record_add(&vk->tests, pipeline->digest, state, what[0] ? text : NULL);
    }
    return REE_OK;
}

static struct ree_twin_size size_of(const struct ree_vk *vk) {
    // A row of tiles and a part of the next: 4 columns for each thread of a group.
    uint32_t lanes = vk->is_cpu ? vk->subgroup.subgroupSize : 64;
    return (struct ree_twin_size){
        .elements = 1500,
        .columns = 4 * lanes + 5,
        .length = 600,
        .long_length = 1300,
        .long_from = 1024, // encode_rows.c
        .one_chunk = vk->loop_budget != UINT64_MAX,
        .few_rows = 4,    // encode_matmul.c
        .few_queries = 8, // encode_attention.c
    };
}

// Tests what the encoding needs; *out_passed: all its pipelines did.
static enum ree_status test(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                            const struct ree_vk_encoding *encoding, bool *out_passed,
                            struct ree_error *err) {
    struct pipelines wanted;
    *out_passed = false;
    REE_TRY(get_pipelines(vk, encoding, &wanted, err));
    if (any_in_state(&wanted, REE_TEST_UNKNOWN) && !any_in_state(&wanted, REE_TEST_FAILED)) {
        struct ree_twin twin;
        const struct ree_twin_size size = size_of(vk);
        const struct ree_vk_thresholds own = vk->thresholds;
        enum ree_status status = ree_twin_init(&twin, dispatch, &size, err);
        bool has_twin = status == REE_OK;
        if (status == REE_UNSUPPORTED) status = REE_OK; // no elements
        for (int v = 0; v < N_VARIANTS && has_twin && status == REE_OK; v++) {
            struct ree_vk_encoding reached;
            vk->thresholds = thresholds_of(vk, v);
            status = ree_vk_encode(vk, &twin.dispatch, &encoding->forms, &reached, err);
            vk->thresholds = own;
            if (status == REE_OK && covers(&reached, &wanted))
                status = judge(vk, &twin, &reached, err);
        }
        ree_twin_finish(&twin);
        // That the CPU cannot say what is right is an error, not a reason to go on untested.
        REE_TRY(status);
    }
    for (uint32_t i = 0; i < wanted.n; i++) {
        if (wanted.list[i]->state == REE_TEST_FAILED) return REE_OK;
        if (wanted.list[i]->state != REE_TEST_UNKNOWN) continue;
        wanted.list[i]->state = REE_TEST_IMPOSSIBLE;
        if (vk->n_untested++ == 0)
            ree_facts_add(&vk->facts, "self-test", "not tested", "%s",
                          vk->modules[wanted.list[i]->shader].name);
    }
    *out_passed = true;
    return REE_OK;
}

enum ree_status ree_vk_encode_tested(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    struct ree_vk_forms ladder[MAX_LADDER];
    uint32_t n = make_ladder(vk, ladder);
    for (uint32_t i = 0; i < n; i++) {
        bool passed;
        REE_TRY(ree_vk_encode(vk, dispatch, &ladder[i], out, err));
        REE_TRY(test(vk, dispatch, out, &passed, err));
        if (passed) return REE_OK;
    }
    return ree_fail(err, REE_UNSUPPORTED,
                    "'%s' computes RepOp %s wrongly in every form ('ree-run devices' says where)",
                    vk->base.name, ree_repop_name(dispatch->op));
}

void ree_vk_selftest_facts(struct ree_vk *vk) {
    size_t n_passed = 0;
    for (size_t i = 0; i < vk->tests.n; i++)
        n_passed += vk->tests.entries[i].state == REE_TEST_PASSED;
    ree_facts_add(&vk->facts, "self-test", "passed", "%zu pipelines so far",
                  n_passed ? n_passed - 1 : 0); // one entry says that the driver was met
    for (size_t i = 0; i < vk->tests.n; i++)
        if (vk->tests.entries[i].state == REE_TEST_FAILED)
            ree_facts_add(&vk->facts, "self-test", "failed", "%s", vk->tests.entries[i].text);
}
