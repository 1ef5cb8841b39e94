#include "dispute/referee.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispute/bind.h"
#include "dispute/referee_internal.h"
#include "dispute/training_rules.h"
#include "base/memory.h"
#include "base/status.h"

static bool same(const ree_digest a, const ree_digest b) {
    return memcmp(a, b, sizeof(ree_digest)) == 0;
}

const char *ree_verdict_text(enum ree_verdict verdict) {
    static const char *const texts[] = {"A is right", "B is right", "neither is right"};
    return (size_t)verdict < sizeof texts / sizeof *texts ? texts[verdict] : "?";
}

// Checking that the claim is of this model

static enum ree_status check_numerics(const struct ree_claim *c, struct ree_error *err) {
    if (strcmp(c->numerics, ree_numerics_version()) != 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the runs used the numerics version '%.32s', but this ree has %s",
                        c->numerics, ree_numerics_version());
    if (strcmp(c->operation_set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the operation set is '%.32s'; right results are defined only for %s",
                        c->operation_set, ree_operation_set_name(REE_REPRODUCIBLE));
    return REE_OK;
}

static enum ree_status check_model(const struct ree_claim *c, const struct ree_opened *m,
                                   struct ree_error *err) {
    if (strcmp(c->graph_sha256, m->header.graph_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the model's graph is not the graph of the traces");
    if (strcmp(c->weights_sha256, m->header.weights_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the model's weights are not the weights of the traces");
    if (!same(c->header, m->header.digest))
        return ree_fail(
            err, REE_INVALID,
            "the traces do not have the header that this version of ree makes from the model: they "
            "were made by another version or with --no-fold, or were altered");
    if (c->n_nodes != m->header.n_nodes || c->n_step_inputs != m->header.n_inputs)
        return ree_fail(err, REE_INVALID,
                        "the model's number of nodes or inputs differs from the claim's");
    return REE_OK;
}

// Checking that the roots are those of receipts

static enum ree_status bind(const struct ree_claim *c, const struct ree_referee_options *options,
                            struct ree_ruling *out, struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++) {
        if (!options->receipts[k]) continue;
        char lie[REE_BIND_LIE];
        REE_TRY(ree_bind_side(c, k, options->receipts[k], options->keys[k], options->request, lie,
                              err));
        out->is_bound[k] = true;
        if (lie[0]) ree_ruling_wrong(out, k, "its receipt: %s", lie);
    }
    if (!options->training) return REE_OK;
    if (options->receipts[0] || options->receipts[1])
        return ree_fail(err, REE_INVALID, "a claim is either about trainings or about other runs");
    if (!options->training->receipts[0] || !options->training->receipts[1])
        return ree_training_terms_check(options->training, err);
    REE_TRY(ree_training_terms_bind(options->training, c, err));
    out->is_bound[0] = out->is_bound[1] = true;
    return REE_OK;
}

static enum ree_status judge_chunks(const struct ree_referee_options *options,
                                    const struct ree_opened *model, struct ree_ruling *out,
                                    struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++) {
        char lie[REE_CHUNK_LIE];
        if (!options->receipts[k]) continue;
        REE_TRY(ree_stated_chunk_lie(options->receipts[k], model, lie, err));
        if (lie[0]) ree_ruling_wrong(out, k, "%s", lie);
    }
    return REE_OK;
}

static enum ree_status derive_stated_runs(const struct ree_referee_options *options,
                                          struct ree_hearing *hearing, struct ree_arena *arena,
                                          struct ree_error *err) {
    REE_TRY(ree_rules_make(hearing->model, arena, &hearing->rules, err));
    if (options->training)
        REE_TRY(ree_training_rules_make(options->training, hearing->model, &hearing->rules, err));
    struct ree_stated_run stated_runs[2] = {{0}, {0}};
    for (unsigned k = 0; k < 2; k++)
        if (options->receipts[k] &&
            ree_stated_run_make(options->receipts[k], &hearing->rules, &options->tokens[k], arena,
                                &stated_runs[k], err) != REE_OK)
            return ree_fail_prefix(err, "%c's receipt", "AB"[k]);
    memcpy(hearing->stated_runs, stated_runs, sizeof stated_runs);
    hearing->has_receipts = options->receipts[0] && options->receipts[1];
    if (!hearing->has_receipts) return REE_OK;
    REE_TRY(ree_stated_run_compare(&stated_runs[0], &stated_runs[1], err));
    return ree_stated_run_compare_inputs(&stated_runs[0], &stated_runs[1], hearing->model, err);
}

// Compares the number of steps that a receipt states with that of its root. Claims of every kind
// state the number of steps of both roots.
static void count_steps(const struct ree_hearing *hearing, struct ree_ruling *out) {
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_stated_run *t = &hearing->stated_runs[k];
        unsigned long long n = hearing->claim->sides[k].n_steps;
        if (hearing->training && ree_training_terms_n_steps(hearing->training, k) != n)
            ree_ruling_wrong(out, k, "its receipt states %llu steps, but its root has %llu",
                             (unsigned long long)ree_training_terms_n_steps(hearing->training, k),
                             n);
        if (!t->receipt) continue;
        if (t->receipt->trace_steps != n)
            ree_ruling_wrong(out, k, "its receipt states %llu steps, but its root has %llu",
                             (unsigned long long)t->receipt->trace_steps, n);
        if (!ree_stated_run_has_steps(t, n))
            ree_ruling_wrong(
                out, k, "the tokens of its receipt require %s%llu steps, but its root has %llu",
                t->may_end_early ? "at most " : "", (unsigned long long)t->n_steps, n);
    }
}

// Judging

void ree_ruling_wrong(struct ree_ruling *r, unsigned k, const char *format, ...) {
    if (r->is_wrong[k]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->why[k], sizeof r->why[k], format, args);
    va_end(args);
    r->is_wrong[k] = true;
}

static enum ree_status judge(const struct ree_hearing *hearing, struct ree_ruling *out,
                             struct ree_error *err) {
    switch (hearing->claim->kind) {
    case REE_CLAIM_OF_NODE:
        return ree_referee_node(hearing->claim, hearing->model, hearing->recorded, out, err);
    case REE_CLAIM_OF_INPUT: return ree_referee_input(hearing, out, err);
    case REE_CLAIM_OF_TOKEN: return ree_referee_token(hearing, out, err);
    case REE_CLAIM_OF_HEADER: return ree_referee_header(hearing, out, err);
    case REE_CLAIM_OF_LENGTH: return ree_referee_length(hearing, out, err);
    }
    return ree_fail(err, REE_INTERNAL, "the claim has an unknown kind");
}

static bool is_named(const struct ree_ruling *r) {
    return r->is_wrong[0] || r->is_wrong[1];
}

// Both parties are judged by everything that is available: a lie of one party must not hide a lie
// of the other.
static enum ree_status decide(const struct ree_hearing *hearing, struct ree_ruling *out,
                              struct ree_error *err) {
    struct ree_error why;
    count_steps(hearing, out);
    const bool has_rule =
        !hearing->lacks_training_rules || hearing->claim->kind != REE_CLAIM_OF_INPUT;
    enum ree_status status = has_rule ? judge(hearing, out, err) : REE_OK;
    if (status == REE_NO_MEMORY) return status;
    if (hearing->claim->kind != REE_CLAIM_OF_LENGTH &&
        ree_referee_receipts(hearing, out, &why) == REE_NO_MEMORY)
        return ree_no_memory(err);
    if (!is_named(out)) REE_TRY(status);
    if (!is_named(out))
        return ree_fail(err, REE_INVALID, "the claim shows no error: neither party breaks a rule");
    out->verdict = !out->is_wrong[0]   ? REE_VERDICT_A
                   : !out->is_wrong[1] ? REE_VERDICT_B
                                       : REE_VERDICT_NEITHER;
    return REE_OK;
}

enum ree_status ree_referee_opened(const struct ree_claim *c, struct ree_opened *model,
                                   const struct ree_referee_options *options,
                                   struct ree_ruling *out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    struct ree_recorded_folder recorded = {.path = options->folder};
    struct ree_hearing hearing = {.claim = c,
                                  .model = model,
                                  .training = options->training,
                                  .recorded = options->folder ? &recorded : NULL,
                                  .is_requested = options->request != NULL};
    memset(out, 0, sizeof *out);
    out->misread[0] = out->misread[1] = out->wrong[0] = out->wrong[1] = -1;
    REE_TRY(ree_claim_check(c, err));
    REE_TRY(check_numerics(c, err));
    REE_TRY(bind(c, options, out, err));
    REE_TRY(check_model(c, model, err));
    REE_TRY(judge_chunks(options, model, out, err));
    for (unsigned k = 0; k < 2 && options->training; k++) {
        char lie[REE_TRAINING_LIE];
        REE_TRY(ree_training_terms_lie(options->training, k, model, NULL, lie, err));
        if (lie[0]) ree_ruling_wrong(out, k, "its receipt: %s", lie);
    }
    enum ree_status same =
        options->training ? ree_training_terms_check(options->training, err) : REE_OK;
    if (!is_named(out)) REE_TRY(same);
    struct ree_arena arena;
    ree_arena_init(&arena);
    enum ree_status status = derive_stated_runs(options, &hearing, &arena, err);
    // If one receipt is already known to lie, the receipts need not be of the same run. Each is
    // judged by itself. Rules for the inputs of a training follow from both receipts: without them
    // inputs are not judged, because a false receipt must not decide what the other party reads.
    if (status != REE_NO_MEMORY && is_named(out)) {
        hearing.lacks_training_rules = options->training && (status != REE_OK || same != REE_OK);
        status = REE_OK;
    }
    if (status == REE_OK) status = decide(&hearing, out, err);
    ree_recorded_folder_finish(&recorded);
    ree_arena_finish(&arena);
    return status;
}

// Rejects what can be rejected before the model is loaded.
static enum ree_status check_early(const struct ree_claim *c,
                                   const struct ree_referee_options *options,
                                   struct ree_error *err) {
    struct ree_ruling unused = {0};
    REE_TRY(ree_claim_check(c, err));
    REE_TRY(check_numerics(c, err));
    return bind(c, options, &unused, err);
}

enum ree_status ree_referee(const struct ree_claim *c, const struct ree_referee_options *options,
                            struct ree_ruling *out, struct ree_error *err) {
    struct ree_opened opened = {0};
    memset(out, 0, sizeof *out);
    REE_TRY(check_early(c, options, err));
    const struct ree_open_options open = {.operation_set = REE_REPRODUCIBLE,
                                          .prefill_chunk = c->prefill_chunk,
                                          .version = c->trace_version,
                                          .progress = options->progress};
    enum ree_status status = ree_open_model(options->model, &open, &opened, err);
    if (status == REE_OK) status = ree_referee_opened(c, &opened, options, out, err);
    ree_opened_finish(&opened);
    return status;
}

enum ree_status ree_referee_same(struct ree_opened *model,
                                 const struct ree_referee_options *options, struct ree_ruling *out,
                                 struct ree_error *err) {
    struct ree_hearing hearing = {.model = model, .is_requested = options->request != NULL};
    struct ree_arena arena;
    memset(out, 0, sizeof *out);
    ree_arena_init(&arena);
    enum ree_status status = derive_stated_runs(options, &hearing, &arena, err);
    if (status == REE_OK) status = ree_referee_receipts(&hearing, out, err);
    for (unsigned k = 0; k < 2 && status == REE_OK; k++)
        out->is_withheld[k] =
            hearing.stated_runs[k].receipt->kind == REE_RECEIPT_TEXT && !hearing.stated_runs[k].ids;
    ree_arena_finish(&arena);
    return status;
}

void ree_ruling_finish(struct ree_ruling *ruling) {
    ree_free(ruling->outputs);
    ruling->outputs = NULL;
}
