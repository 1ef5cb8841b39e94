// Self-tests: every pipeline runs a small hard problem before anything counts on it.
//
// The probe tries one operation at a time, in modules of its own; what a driver's compiler makes of
// the modules that run is another matter. So before a dispatch's pipelines are first used, its twin
// (device/selftest/twin.h) runs on them, with the same forms and specialization, and the results
// are compared with the CPU's by bytes. Where they differ, the dispatch is encoded in the next
// form, and that one is tested in turn. Verdicts are kept in the record, under a digest of the
// driver and of the pipeline, so that the next start pays nothing.
#include "device/selftest/twin.h"
#include "device/selftest/twin_run.h"
#include "device/vulkan/vulkan.h"
#include "shaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// The thresholds under which a twin takes the way that its original took, whatever the lengths of
// either: the device's own (variant 0), or such that work is never or always split. Each step of an
// encoding is reached by one of them, not necessarily the same.
#define N_VARIANTS 6
#define FEW                                                                                        \
    .enough_groups = UINT64_MAX, .many_outputs = UINT64_MAX, .many_lines = UINT64_MAX,             \
    .many_rows = UINT64_MAX
static struct ree_vk_thresholds thresholds_of(const struct ree_vk *vk, int variant) {
    const uint64_t most = UINT64_MAX;
    const struct ree_vk_thresholds others[N_VARIANTS - 1] = {
        // one step, a thread for each row
        {.long_row = most, .long_tiles = most, .long_loops = most},
        // chunks, and small groups for rows
        {FEW, .long_row = most, .long_tiles = most, .long_loops = most},
        // the same by long loops: products of many rows, by chunks; large groups for rows
        {FEW, .max_split_scratch = most},
        // products of one row in a thread, by chunks
        {FEW},
        // products of one row in a thread, without chunks
        {.long_row = most, .long_loops = most},
    };
    return variant == 0 ? vk->thresholds : others[variant - 1];
}

// Encodes a dispatch's twin under one variant. *out_taken: whether it can be.
static enum ree_status encode_twin(struct ree_vk *vk, const struct ree_dispatch *twin, int variant,
                                   const struct ree_vk_forms *forms, struct ree_vk_encoding *out,
                                   bool *out_taken, struct ree_error *err) {
    const struct ree_vk_thresholds own = vk->thresholds;
    vk->thresholds = thresholds_of(vk, variant);
    enum ree_status status = ree_vk_encode(vk, twin, forms, out, err);
    vk->thresholds = own;
    *out_taken = status == REE_OK;
    // Too long for this driver in this way.
    return status == REE_UNSUPPORTED ? REE_OK : status;
}

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

// Whether the encoding uses a pipeline of `wanted` that has no verdict yet.
static bool covers(const struct ree_vk_encoding *encoding, const struct pipelines *wanted) {
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        for (uint32_t i = 0; i < wanted->n; i++)
            if (wanted->list[i]->state == REE_TEST_UNKNOWN && encoding->steps[s].n_groups > 0 &&
                ree_vk_same_pipeline(&encoding->steps[s], wanted->steps[i]))
                return true;
    return false;
}

static enum ree_status run_twin(struct ree_vk *vk, struct ree_twin *twin,
                                const struct ree_vk_encoding *encoding,
                                char out_text[REE_TWIN_TEXT_SIZE], struct ree_error *err) {
    const struct ree_dispatch *d = &twin->dispatch;
    const struct ree_program source = {
        .dispatches = d, .n_dispatches = 1, .n_slots = d->n_operands};
    struct ree_device_program *program = NULL;
    REE_TRY(ree_vk_program_assemble(vk, &source, encoding, &program, err));
    enum ree_status status = ree_twin_run(&vk->base, twin, program, out_text, err);
    ree_vk_program_destroy(&vk->base, program);
    return status;
}

// "matmul_pack, matmul_dot8 (add native, fma float64): operand 2, byte 0 is ..., not ..."
static void describe(const struct ree_vk *vk, const struct pipelines *pipelines,
                     const struct ree_vk_forms *forms, const char *what,
                     char out[REE_TWIN_TEXT_SIZE]) {
    size_t n = 0;
    for (uint32_t i = 0; i < pipelines->n && n < REE_TWIN_TEXT_SIZE / 2; i++)
        n += (size_t)snprintf(out + n, REE_TWIN_TEXT_SIZE - n, "%s%s", i ? ", " : "",
                              vk->modules[pipelines->list[i]->shader].name);
    snprintf(out + n, REE_TWIN_TEXT_SIZE - n, " (add %s, fma %s): %s",
             ree_vk_form_name((enum ree_vk_form)forms->of[REE_VK_ADD]),
             ree_vk_form_name((enum ree_vk_form)forms->of[REE_VK_FMA]), what);
}

#define PASSED_FORMAT "%u pipelines so far"
#define PASSED_TEXT "4294967295 pipelines so far" // as long as it becomes

static void set_state(struct ree_vk *vk, struct ree_vk_pipeline *pipeline,
                      enum ree_test_state state) {
    if (pipeline->state == REE_TEST_PASSED) vk->n_passed--;
    pipeline->state = state;
    if (state == REE_TEST_PASSED) vk->n_passed++;
    if (vk->passed_text) snprintf(vk->passed_text, sizeof PASSED_TEXT, PASSED_FORMAT, vk->n_passed);
}

// One fact for all pipelines that failed together.
static void note_failure(struct ree_vk *vk, const char *text) {
    for (size_t i = 0; i < vk->facts.n; i++)
        if (strcmp(vk->facts.list[i].name, "failed") == 0 &&
            strcmp(vk->facts.list[i].value, text) == 0)
            return;
    ree_facts_add(&vk->facts, "self-test", "failed", "%s", text);
}

// Runs the twin on its encoding and gives the verdict to all its pipelines that had none.
static enum ree_status judge(struct ree_vk *vk, struct ree_twin *twin,
                             const struct ree_vk_encoding *encoding, struct ree_error *err) {
    struct pipelines pipelines;
    char what[REE_TWIN_TEXT_SIZE], text[REE_TWIN_TEXT_SIZE];
    REE_TRY(get_pipelines(vk, encoding, &pipelines, err));
    REE_TRY(run_twin(vk, twin, encoding, what, err));
    vk->n_tests_run++;
    enum ree_test_state state = what[0] ? REE_TEST_FAILED : REE_TEST_PASSED;
    if (what[0]) {
        describe(vk, &pipelines, &encoding->forms, what, text);
        note_failure(vk, text);
    }
    const bool any_unknown = any_in_state(&pipelines, REE_TEST_UNKNOWN);
    for (uint32_t i = 0; i < pipelines.n; i++) {
        struct ree_vk_pipeline *pipeline = pipelines.list[i];
        if (pipeline->state == REE_TEST_FAILED || pipeline->state == state) continue;
        // A pipeline that passed before keeps its verdict; the failure is charged to those without.
        if (what[0] && pipeline->state == REE_TEST_PASSED && any_unknown) continue;
        set_state(vk, pipeline, state);
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
        .few_rows = 4, // encode_matmul.c
        .rows = 19,
        .few_queries = 8, // encode_attention.c
    };
}

// Tests what the encoding needs; *out_passed: all its pipelines did. *why: what is wrong with one
// that did not, if that is known and *why is still NULL.
static enum ree_status test(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                            const struct ree_vk_encoding *encoding, bool *out_passed,
                            const char **why, struct ree_error *err) {
    struct pipelines wanted;
    *out_passed = false;
    REE_TRY(get_pipelines(vk, encoding, &wanted, err));
    if (any_in_state(&wanted, REE_TEST_UNKNOWN) && !any_in_state(&wanted, REE_TEST_FAILED)) {
        struct ree_twin twin;
        const struct ree_twin_size size = size_of(vk);
        enum ree_status status = ree_twin_init(&twin, dispatch, &size, err);
        bool has_twin = status == REE_OK;
        if (status == REE_UNSUPPORTED) status = REE_OK; // no elements
        for (int v = 0; v < N_VARIANTS && has_twin && status == REE_OK; v++) {
            struct ree_vk_encoding reached;
            bool taken;
            status = encode_twin(vk, &twin.dispatch, v, &encoding->forms, &reached, &taken, err);
            if (status == REE_OK && taken && covers(&reached, &wanted))
                status = judge(vk, &twin, &reached, err);
        }
        ree_twin_finish(&twin);
        // That the CPU cannot say what is right is an error, not a reason to go on untested.
        REE_TRY(status);
    }
    for (uint32_t i = 0; i < wanted.n; i++) {
        if (wanted.list[i]->state == REE_TEST_FAILED) {
            const struct ree_test_entry *entry =
                ree_test_record_find(&vk->tests, wanted.list[i]->digest);
            if (entry && !*why) *why = entry->text;
            return REE_OK;
        }
        // It stays unknown: another dispatch's twin may reach it.
        if (wanted.list[i]->state != REE_TEST_UNKNOWN || wanted.list[i]->counted) continue;
        wanted.list[i]->counted = true;
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
    const char *why = NULL;
    for (uint32_t i = 0; i < n; i++) {
        bool passed;
        REE_TRY(ree_vk_encode(vk, dispatch, &ladder[i], out, err));
        enum ree_status status = test(vk, dispatch, out, &passed, &why, err);
        // A driver that cannot compile one form may compile the next.
        if (status == REE_DEVICE && i + 1 < n) continue;
        REE_TRY(status);
        if (passed) return REE_OK;
    }
    return ree_fail(err, REE_UNSUPPORTED, "'%s' computes RepOp %s wrongly in every form%s%s",
                    vk->base.name, ree_repop_name(dispatch->op), why ? ", first " : "",
                    why ? why : "");
}

enum ree_status ree_vk_find_unreached(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      const struct ree_vk_encoding *encoding, uint32_t *out_steps,
                                      struct ree_error *err) {
    struct ree_dispatch twin;
    const struct ree_twin_size size = size_of(vk);
    *out_steps = 0;
    for (uint32_t s = 0; s < encoding->n_steps; s++)
        if (encoding->steps[s].n_groups > 0) *out_steps |= 1u << s;
    enum ree_status status = ree_twin_dispatch(dispatch, &size, &twin, err);
    if (status == REE_UNSUPPORTED) return REE_OK;
    REE_TRY(status);
    for (int v = 0; v < N_VARIANTS; v++) {
        struct ree_vk_encoding reached;
        bool taken;
        REE_TRY(encode_twin(vk, &twin, v, &encoding->forms, &reached, &taken, err));
        for (uint32_t r = 0; taken && r < reached.n_steps; r++)
            for (uint32_t s = 0; s < encoding->n_steps; s++)
                if (reached.steps[r].n_groups > 0 &&
                    ree_vk_same_pipeline(&reached.steps[r], &encoding->steps[s]))
                    *out_steps &= ~(1u << s);
    }
    return REE_OK;
}

void ree_vk_selftest_facts(struct ree_vk *vk) {
    struct ree_facts *facts = &vk->facts;
    size_t n = facts->n;
    ree_facts_add(facts, "self-test", "passed", PASSED_TEXT);
    if (facts->n == n) return;
    vk->passed_text = (char *)facts->list[n].value;
    snprintf(vk->passed_text, sizeof PASSED_TEXT, PASSED_FORMAT, vk->n_passed);
}

void ree_vk_take_record(struct ree_vk *vk, struct ree_vk_pipeline *pipeline,
                        const struct ree_test_entry *tested) {
    set_state(vk, pipeline, tested ? tested->state : REE_TEST_UNKNOWN);
    if (tested && tested->state == REE_TEST_FAILED)
        note_failure(vk, tested->text ? tested->text : "");
}
