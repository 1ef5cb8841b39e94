// Self-tests: every pipeline runs a small hard problem before it is used.
//
// The probe tests single operations in its own modules. It does not test how the driver compiles
// the modules that dispatches run. So before a dispatch's pipelines are first used, its twin
// (device/selftest/twin.h) runs on them, with the same forms and specialization, and the results
// are compared with the CPU's by bytes. If they differ, the dispatch is encoded in the next form,
// which is tested too. Verdicts are recorded under a digest of the driver and the pipeline, so the
// next start does not repeat the tests.
//
// Twins have strengths. If the dispatch's sums fit one chunk, the twin's sums do too, and it does
// not test how the same pipeline adds chunks. So a pipeline keeps the strength of the strongest
// twin that it passed. A later dispatch that allows a stronger twin causes another test.
#include "device/selftest/twin.h"
#include "device/selftest/twin_run.h"
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LADDER 7

enum strength {
    WITH_ONES_IN_A_CHUNK, // sizes of 1 stay 1, one-chunk sums stay in one chunk
    WITH_ONES,
    IN_A_CHUNK,
    FULL,
    // Code that only long rows reach (shaders/include/rows.glsl). MANY_CHUNKS: more chunks than one
    // pass handles (row_chunks), so several passes over the terms of chunks. LONG_ROWS: more chunks
    // than threads, so several passes over the row.
    MANY_CHUNKS,
    LONG_ROWS,
    N_STRENGTHS
};

struct ree_vk_forms ree_vk_first_forms(const struct ree_vk *vk) {
    struct ree_vk_forms forms = {.dot8 = vk->has_dot8, .guarded = vk->guarded};
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        forms.of[p] = vk->verdicts[p].form;
    return forms;
}

// Fills the list of forms to try, starting with the device's choice. Returns their number.
static uint32_t make_ladder(const struct ree_vk *vk, struct ree_vk_forms ladder[MAX_LADDER]) {
    struct ree_vk_forms chosen = ree_vk_first_forms(vk);
    uint32_t n = 0;
    ladder[n++] = chosen;
    if (vk->forced) return n; // a test requested only this form
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

// Returns thresholds with which a twin takes the same code path as the original dispatch, although
// its lengths differ. Variant 0 has the device's own thresholds; in the others work is never or
// always split. Each step of an encoding is reached by one of the variants, not necessarily the
// same one.
#define N_VARIANTS 10
#define FEW                                                                                        \
    .enough_groups = UINT64_MAX, .many_outputs = UINT64_MAX, .many_vectors = UINT64_MAX,           \
    .many_rows = UINT64_MAX
static struct ree_vk_thresholds thresholds_of(const struct ree_vk *vk, int variant) {
    const uint64_t most = UINT64_MAX;
    // The device's own thresholds, but one workgroup per row, and never or always split by chunks.
    // If small and tiny products have code of their own (their thresholds are not 0), the twin
    // counts as a small product, whatever its sizes are. The `_tiny` variants also treat it as a
    // tiny product, and give each row one thread.
    struct ree_vk_thresholds unsplit = vk->thresholds;
    unsplit.enough_groups = 0;
    unsplit.many_rows = most;
    if (unsplit.small_product) unsplit.small_product = most;
    unsplit.tiny_product = unsplit.few_elements = 0;
    struct ree_vk_thresholds split = unsplit;
    split.enough_groups = most;
    struct ree_vk_thresholds unsplit_tiny = unsplit, split_tiny = split;
    if (vk->thresholds.tiny_product) {
        unsplit_tiny.tiny_product = unsplit_tiny.few_elements = most;
        split_tiny.tiny_product = split_tiny.few_elements = most;
    }
    const struct ree_vk_thresholds others[N_VARIANTS - 1] = {
        unsplit,
        split,
        unsplit_tiny,
        split_tiny,
        // one step, one thread per row
        {.long_row = most, .long_tiles = most, .long_loops = most},
        // chunks, and small groups for rows
        {FEW, .long_row = most, .long_tiles = most, .long_loops = most},
        // chunks caused by long loops: products of many rows; large groups for rows
        {FEW, .max_split_scratch = most},
        // products with one row per thread, by chunks
        {FEW},
        // products with one row per thread, without chunks
        {.long_row = most, .long_loops = most},
    };
    return variant == 0 ? vk->thresholds : others[variant - 1];
}

// Encodes a dispatch's twin under one variant. *out_taken: whether it can be encoded.
static enum ree_status encode_twin(struct ree_vk *vk, const struct ree_dispatch *twin, int variant,
                                   const struct ree_vk_forms *forms, struct ree_vk_encoding *out,
                                   bool *out_taken, struct ree_error *err) {
    const struct ree_vk_thresholds own = vk->thresholds;
    vk->thresholds = thresholds_of(vk, variant);
    enum ree_status status = ree_vk_encode(vk, twin, forms, out, err);
    vk->thresholds = own;
    *out_taken = status == REE_OK;
    // Not an error: this variant's loops would be too long for this driver.
    return status == REE_UNSUPPORTED ? REE_OK : status;
}

// The pipelines of an encoding. Steps without workgroups are omitted.
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

// Returns whether a twin of this strength would add to what is known about the pipeline.
static bool needs(const struct ree_vk_pipeline *pipeline, enum strength strength) {
    return pipeline->state == REE_TEST_UNKNOWN ||
           (pipeline->state == REE_TEST_PASSED && pipeline->strength < strength);
}
static bool any_needs(const struct pipelines *pipelines, enum strength strength) {
    for (uint32_t i = 0; i < pipelines->n; i++)
        if (needs(pipelines->list[i], strength)) return true;
    return false;
}

// Counts the pipelines of `wanted` that need a test of this strength and that the encoding uses.
// *out_foreign: the number of the encoding's steps that use pipelines not in `wanted`.
static uint32_t n_covered(const struct ree_vk_encoding *encoding, const struct pipelines *wanted,
                          enum strength strength, uint32_t *out_foreign) {
    bool found[REE_VK_MAX_STEPS] = {false};
    uint32_t n = 0;
    *out_foreign = 0;
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        bool is_wanted = encoding->steps[s].n_groups == 0;
        for (uint32_t i = 0; i < wanted->n && encoding->steps[s].n_groups > 0; i++)
            if (ree_vk_same_pipeline(&encoding->steps[s], wanted->steps[i]))
                is_wanted = found[i] = true;
        *out_foreign += !is_wanted;
    }
    for (uint32_t i = 0; i < wanted->n; i++)
        n += found[i] && needs(wanted->list[i], strength);
    return n;
}

// Returns whether a pipeline only prepares operands for others, in the same way in every form.
static bool prepares(const struct ree_vk_pipeline *pipeline) {
    switch (pipeline->shader) {
    case REE_VK_SHADER_MATMUL_PACK:
    case REE_VK_SHADER_MATMUL_INT8_PACK:
    case REE_VK_SHADER_MATMUL_WIDEN:
    case REE_VK_SHADER_CONV_PACK:
    case REE_VK_SHADER_ATTENTION_WIDEN: return true;
    default: return false;
    }
}

static enum ree_status run_twin(struct ree_vk *vk, struct ree_twin *twin,
                                const struct ree_vk_encoding *encoding,
                                char out_text[REE_TWIN_TEXT_SIZE], struct ree_error *err) {
    const struct ree_dispatch *d = &twin->dispatch;
    const struct ree_program source = {
        .dispatches = d, .n_dispatches = 1, .n_slots = d->n_operands};
    struct ree_device_program *program = NULL;
    const bool halves = true;
    REE_TRY(ree_vk_program_assemble(vk, &source, encoding, halves, &program, err));
    vk->wait_limit = vk->test_seconds;
    enum ree_status status = ree_twin_run(&vk->base, twin, program, out_text, err);
    vk->wait_limit = 0;
    ree_vk_program_destroy(&vk->base, program);
    return status;
}

// Formats "matmul_pack, matmul_dot8 (add native, fma float64): operand 2, byte 0 is ..., not ..."
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
#define PASSED_TEXT "4294967295 pipelines so far" // the longest value of the text

static void set_state(struct ree_vk *vk, struct ree_vk_pipeline *pipeline,
                      enum ree_test_state state) {
    if (pipeline->state == REE_TEST_PASSED) vk->n_passed--;
    pipeline->state = state;
    if (state == REE_TEST_PASSED) vk->n_passed++;
    if (vk->passed_text) snprintf(vk->passed_text, sizeof PASSED_TEXT, PASSED_FORMAT, vk->n_passed);
}

// Adds a fact with this text unless there is one: pipelines that failed together share one fact.
static void note_failure(struct ree_vk *vk, const char *text) {
    for (size_t i = 0; i < vk->facts.n; i++)
        if (strcmp(vk->facts.list[i].name, "failed") == 0 &&
            strcmp(vk->facts.list[i].value, text) == 0)
            return;
    ree_facts_add(&vk->facts, "self-test", "failed", "%s", text);
}

// Computes the key under which the record states that the pipeline passed a strength. The key of a
// failure is the digest itself.
static void key_of(const struct ree_vk_pipeline *pipeline, enum strength strength,
                   unsigned char key[REE_SHA256_SIZE]) {
    memcpy(key, pipeline->digest, REE_SHA256_SIZE);
    key[0] ^= (unsigned char)(strength + 1);
}

static void note_verdict(struct ree_vk *vk, struct ree_vk_pipeline *pipeline,
                         enum strength strength, const char *failure) {
    unsigned char key[REE_SHA256_SIZE];
    set_state(vk, pipeline, failure ? REE_TEST_FAILED : REE_TEST_PASSED);
    if (failure) {
        ree_test_record_add(&vk->tests, pipeline->digest, REE_TEST_FAILED, failure);
        return;
    }
    pipeline->strength = strength;
    key_of(pipeline, strength, key);
    ree_test_record_add(&vk->tests, key, REE_TEST_PASSED, NULL);
}

// Runs the twin on its encoding and sets the verdict of all its pipelines that need one. If any of
// them computes, a failure applies only to those that compute. A defect in a pipeline that prepares
// their operands shows when the next form fails too.
static enum ree_status judge(struct ree_vk *vk, struct ree_twin *twin,
                             const struct ree_vk_encoding *encoding, enum strength strength,
                             struct ree_error *err) {
    struct pipelines pipelines;
    char what[REE_TWIN_TEXT_SIZE], text[REE_TWIN_TEXT_SIZE];
    bool any_computes = false;
    REE_TRY(get_pipelines(vk, encoding, &pipelines, err));
    enum ree_status status = run_twin(vk, twin, encoding, what, err);
    if (status != REE_OK) {
        describe(vk, &pipelines, &encoding->forms, err ? err->message : "", text);
        return ree_fail(err, status, "the self-test of %s", text);
    }
    vk->n_tests_run++;
    if (what[0]) {
        describe(vk, &pipelines, &encoding->forms, what, text);
        note_failure(vk, text);
    }
    for (uint32_t i = 0; i < pipelines.n; i++)
        if ((needs(pipelines.list[i], strength) || pipelines.list[i]->state == REE_TEST_FAILED) &&
            !prepares(pipelines.list[i]))
            any_computes = true;
    for (uint32_t i = 0; i < pipelines.n; i++) {
        struct ree_vk_pipeline *pipeline = pipelines.list[i];
        // A pipeline that already passed keeps its verdict: the failure is attributed to the
        // others.
        if (!needs(pipeline, strength)) continue;
        if (what[0] && any_computes && prepares(pipeline)) continue;
        note_verdict(vk, pipeline, strength, what[0] ? text : NULL);
    }
    return REE_OK;
}

// Returns the maximum number of threads in a workgroup that computes a row (encode_rows.c).
static uint32_t row_threads(const struct ree_vk *vk) {
    return vk->is_cpu ? vk->subgroup.subgroupSize : 128;
}

// Returns the maximum number of a row's chunks that one pass handles.
static uint32_t row_chunks(const struct ree_vk *vk) {
    return row_threads(vk) < 8 ? row_threads(vk) : 8;
}

// The largest numbers of rows and columns that a thread of a dispatch's products computes; 0: no
// product has tiles.
struct tile {
    uint32_t rows, columns;
};
static void add_tile(struct tile *tile, const struct ree_vk_step *step) {
    if (step->rows > tile->rows) tile->rows = step->rows;
    if (step->columns > tile->columns) tile->columns = step->columns;
}

static struct ree_twin_size size_of(const struct ree_vk *vk, const struct tile *tile,
                                    enum strength strength) {
    // Threads of a group that computes a product. `columns` below is at least one tile of the group
    // and a part of the next, and `rows` is more than a thread computes.
    const uint32_t lanes = vk->is_cpu ? vk->subgroup.subgroupSize : 64;
    const uint32_t n_chunks = strength == LONG_ROWS     ? row_threads(vk) + 1
                              : strength == MANY_CHUNKS ? row_chunks(vk) + 2
                                                        : 6;
    const bool keeps_ones = strength < IN_A_CHUNK;
    // One chunk and a few more keys. A CPU driver takes longer to run an attention than to compile
    // it.
    const uint32_t n_keys = strength > FULL ? n_chunks * REE_CHUNK - 6 : REE_CHUNK + 5;
    return (struct ree_twin_size){
        .elements = 1511, // not a multiple of the elements of a word
        .columns = (tile->columns == 1 ? 2 : REE_VK_TILE_COLUMNS) * lanes + 5,
        .length = 603, // two chunks and a part that fills no vector
        .long_length = n_chunks * REE_CHUNK - 6,
        .long_from = 1024, // encode_rows.c
        .one_chunk = strength == WITH_ONES_IN_A_CHUNK || strength == IN_A_CHUNK,
        .keeps_ones = keeps_ones,
        .few_rows = REE_VK_FEW_ROWS,
        .rows = tile->rows == 1 ? REE_VK_FEW_ROWS : 19,
        .few_queries = 8, // encode_attention.c
        .keys = n_keys,
    };
}

// Returns the strongest test that the dispatch requires.
static enum strength strongest(const struct ree_vk *vk, const struct ree_dispatch *dispatch) {
    const union ree_params *p = &dispatch->params;
    uint32_t n = 0;
    switch (dispatch->op) {
    case REE_REPOP_SOFTMAX: n = p->softmax.k; break;
    case REE_REPOP_NORM: n = p->norm.cols; break;
    case REE_REPOP_ATTENTION: n = p->attention.kv_len; break;
    default: break;
    }
    if (n > (uint64_t)row_threads(vk) * REE_CHUNK) return LONG_ROWS;
    return n > row_chunks(vk) * REE_CHUNK ? MANY_CHUNKS : FULL;
}

// Finds the unused variant whose twin uses the largest number of the pipelines of `wanted` that
// need a test. Among equal ones, chooses the variant with the smallest number of other pipelines,
// which would be compiled only for this test. *out_variant: N_VARIANTS if no twin uses any.
static enum ree_status best_variant(struct ree_vk *vk, const struct ree_dispatch *small,
                                    const struct ree_vk_forms *forms,
                                    const struct pipelines *wanted, enum strength strength,
                                    const bool used[N_VARIANTS], int *out_variant,
                                    struct ree_error *err) {
    uint32_t most = 0, fewest = 0;
    *out_variant = N_VARIANTS;
    for (int v = 0; v < N_VARIANTS; v++) {
        struct ree_vk_encoding reached;
        bool taken;
        uint32_t foreign = 0;
        if (used[v]) continue;
        REE_TRY(encode_twin(vk, small, v, forms, &reached, &taken, err));
        const uint32_t n = taken ? n_covered(&reached, wanted, strength, &foreign) : 0;
        if (n == 0 || n < most || (n == most && foreign >= fewest)) continue;
        *out_variant = v;
        most = n;
        fewest = foreign;
    }
    return REE_OK;
}

// Runs twins of this strength for the pipelines of `wanted` that need one.
static enum ree_status test_strength(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     const struct ree_vk_forms *forms,
                                     const struct pipelines *wanted, enum strength strength,
                                     struct ree_error *err) {
    struct tile tile = {0, 0};
    for (uint32_t i = 0; i < wanted->n; i++)
        add_tile(&tile, wanted->steps[i]);
    const struct ree_twin_size size = size_of(vk, &tile, strength);
    struct ree_dispatch small;
    struct ree_twin twin;
    bool is_made = false, used[N_VARIANTS] = {false};
    enum ree_status status = ree_twin_dispatch(dispatch, &size, &small, err);
    if (status == REE_UNSUPPORTED) return REE_OK; // the dispatch has no elements
    while (status == REE_OK && !any_in_state(wanted, REE_TEST_FAILED)) {
        struct ree_vk_encoding reached;
        bool taken;
        int v;
        status = best_variant(vk, &small, forms, wanted, strength, used, &v, err);
        if (status != REE_OK || v == N_VARIANTS) break;
        used[v] = true;
        if (!is_made) status = ree_twin_init(&twin, dispatch, &size, err);
        if (!is_made && status != REE_OK) ree_twin_finish(&twin);
        is_made = status == REE_OK;
        if (is_made) status = encode_twin(vk, &twin.dispatch, v, forms, &reached, &taken, err);
        if (is_made && status == REE_OK) status = judge(vk, &twin, &reached, strength, err);
    }
    if (is_made) ree_twin_finish(&twin);
    return status;
}

// Returns whether twins of this strength can add information. If the driver does not limit loops,
// one-chunk twins take the same code as the longer ones.
static bool is_of_use(const struct ree_vk *vk, enum strength strength) {
    return vk->loop_budget != UINT64_MAX ||
           (strength != WITH_ONES_IN_A_CHUNK && strength != IN_A_CHUNK);
}

enum verdict { PASSED, FAILED, NOT_REACHED };

// Tests the pipelines that the encoding uses. *why: the first difference of a failed pipeline, if
// it is recorded and *why is still NULL.
static enum ree_status test(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                            const struct ree_vk_encoding *encoding, enum verdict *out,
                            const char **why, struct ree_error *err) {
    struct pipelines wanted;
    *out = FAILED;
    REE_TRY(get_pipelines(vk, encoding, &wanted, err));
    for (int s = strongest(vk, dispatch); s >= 0; s--) {
        if (!is_of_use(vk, (enum strength)s)) continue;
        if (!any_needs(&wanted, (enum strength)s) || any_in_state(&wanted, REE_TEST_FAILED)) break;
        // If the CPU cannot compute the reference, that is an error and no reason to continue
        // untested.
        REE_TRY(test_strength(vk, dispatch, &encoding->forms, &wanted, (enum strength)s, err));
    }
    for (uint32_t i = 0; i < wanted.n; i++) {
        if (wanted.list[i]->state != REE_TEST_FAILED) continue;
        const struct ree_test_entry *entry =
            ree_test_record_find(&vk->tests, wanted.list[i]->digest);
        if (entry && !*why) *why = entry->text;
        return REE_OK;
    }
    *out = any_in_state(&wanted, REE_TEST_UNKNOWN) ? NOT_REACHED : PASSED;
    return REE_OK;
}

// Records each pipeline that is used although no twin reaches it.
static enum ree_status note_untested(struct ree_vk *vk, const struct ree_vk_encoding *encoding,
                                     struct ree_error *err) {
    struct pipelines pipelines;
    REE_TRY(get_pipelines(vk, encoding, &pipelines, err));
    for (uint32_t i = 0; i < pipelines.n; i++) {
        struct ree_vk_pipeline *pipeline = pipelines.list[i];
        if (pipeline->state != REE_TEST_UNKNOWN || pipeline->counted) continue;
        pipeline->counted = true;
        vk->n_untested++;
        const char *name = vk->modules[pipeline->shader].name;
        bool known = false;
        for (size_t f = 0; f < vk->facts.n; f++)
            known = known || (strcmp(vk->facts.list[f].name, "not tested") == 0 &&
                              strcmp(vk->facts.list[f].value, name) == 0);
        if (!known) ree_facts_add(&vk->facts, "self-test", "not tested", "%s", name);
    }
    return REE_OK;
}

enum ree_status ree_vk_encode_tested(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err) {
    struct ree_vk_forms ladder[MAX_LADDER];
    uint32_t n = make_ladder(vk, ladder);
    const char *why = NULL;
    for (uint32_t i = 0; i < n; i++) {
        enum verdict verdict;
        enum ree_status status = ree_vk_encode(vk, dispatch, &ladder[i], out, err);
        // This form, and with it the later ones, needs longer loops than this driver allows. The
        // error below reports the wrong result of an earlier form.
        if (status == REE_UNSUPPORTED && why) break;
        if (status == REE_OK) status = test(vk, dispatch, out, &verdict, &why, err);
        // A driver that cannot compile one form may compile the next.
        if (status == REE_DEVICE && !vk->is_lost && i + 1 < n) continue;
        REE_TRY(status);
        if (verdict == PASSED) return REE_OK;
        if (verdict == FAILED) continue;
        // No twin reaches this code. Use the last form, which computes with integers, because there
        // a compiler has the least to change.
        if (i + 1 < n)
            i = n - 2;
        else
            return note_untested(vk, out, err);
    }
    return ree_fail(err, REE_UNSUPPORTED, "'%s' computes RepOp %s wrongly in every form%s%s",
                    vk->base.name, ree_repop_name(dispatch->op), why ? ", first " : "",
                    why ? why : "");
}

enum ree_status ree_vk_find_unreached(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      const struct ree_vk_encoding *encoding, bool *out_weak,
                                      uint32_t *out_steps, struct ree_error *err) {
    struct tile tile = {0, 0};
    *out_steps = 0;
    *out_weak = false;
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        add_tile(&tile, &encoding->steps[s]);
        if (encoding->steps[s].n_groups > 0) *out_steps |= 1u << s;
    }
    for (int strength = FULL; strength >= 0 && *out_steps; strength--) {
        struct ree_dispatch twin;
        if (!is_of_use(vk, (enum strength)strength)) continue;
        const struct ree_twin_size size = size_of(vk, &tile, (enum strength)strength);
        enum ree_status status = ree_twin_dispatch(dispatch, &size, &twin, err);
        if (status == REE_UNSUPPORTED) return REE_OK;
        REE_TRY(status);
        *out_weak = strength < FULL;
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

void ree_vk_take_record(struct ree_vk *vk, struct ree_vk_pipeline *pipeline) {
    const struct ree_test_entry *failure = ree_test_record_find(&vk->tests, pipeline->digest);
    set_state(vk, pipeline, failure ? REE_TEST_FAILED : REE_TEST_UNKNOWN);
    if (failure) note_failure(vk, failure->text ? failure->text : "");
    for (int s = N_STRENGTHS - 1; s >= 0 && pipeline->state == REE_TEST_UNKNOWN; s--) {
        unsigned char key[REE_SHA256_SIZE];
        key_of(pipeline, (enum strength)s, key);
        const struct ree_test_entry *entry = ree_test_record_find(&vk->tests, key);
        if (!entry || entry->state != REE_TEST_PASSED) continue;
        pipeline->strength = (uint32_t)s;
        set_state(vk, pipeline, REE_TEST_PASSED);
    }
}

void ree_vk_reject_pipeline(struct ree_vk *vk, struct ree_vk_pipeline *pipeline, const char *why) {
    set_state(vk, pipeline, REE_TEST_FAILED);
    ree_facts_add(&vk->facts, "self-test", "failed", "%s", why);
}
