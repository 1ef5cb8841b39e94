// Verifies the receipt of a training by repeating its steps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "receipt/receipt_internal.h"
#include "session/model.h"
#include "train/training.h"
#include "train/training_receipt.h"

#define MAX_CHECKS 12

struct ree_training_verification {
    struct ree_arena arena; // owns the details of the checks
    struct ree_verify_check checks[MAX_CHECKS];
    size_t n_checks;
    bool is_other_set; // the receipt promises no bits
    uint64_t first, n_steps;
    double seconds;
};

// What a verification works with.
struct job {
    const struct ree_training_receipt *r;
    struct ree_training_verify_options options;
    struct ree_training *t;
    struct ree_training_verification *v;
    size_t point;     // index of the point at which the repeated steps begin
    size_t end_point; // index of the point at which they end
    ree_digest chain;
};

__attribute__((format(printf, 5, 6))) static enum ree_status
add_check(struct ree_training_verification *v, const char *name, enum ree_verify_outcome outcome,
          struct ree_error *err, const char *format, ...) {
    struct ree_verify_check *check = &v->checks[v->n_checks++];
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(check->name, sizeof check->name, "%s", name);
    check->outcome = outcome;
    check->detail = ree_arena_strdup(&v->arena, text);
    return check->detail ? REE_OK : ree_no_memory(err);
}

static bool differs(const struct ree_training_verification *v) {
    for (size_t i = 0; i < v->n_checks; i++)
        if (v->checks[i].outcome == REE_VERIFY_DIFFERS) return true;
    return false;
}

// Adds a check that compares a hash of the receipt with the verifier's own.
static enum ree_status compare(struct job *job, const char *name, const char *stated,
                               const char *own, struct ree_error *err) {
    if (!strcmp(stated, own)) return add_check(job->v, name, REE_VERIFY_AGREES, err, "%s", "");
    return add_check(job->v, name, REE_VERIFY_DIFFERS, err, "SHA-256 is %s, but the receipt has %s",
                     own, stated);
}

static enum ree_status check_signature(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    bool failed = false;
    char key[65] = "";
    if (job->options.public_key) REE_TRY(ree_key_parse(job->options.public_key, key, err));
    if (!r->is_signed && !key[0]) return REE_OK;
    bool ok = r->is_signed &&
              ree_hash_signature_holds(r->receipt_hash, r->public_key, r->signature, &failed);
    if (failed) return ree_no_memory(err);
    if (!r->is_signed)
        return add_check(job->v, "signature", REE_VERIFY_DIFFERS, err, "the receipt is not signed");
    if (!ok)
        return add_check(job->v, "signature", REE_VERIFY_DIFFERS, err,
                         "it is not a signature of this receipt by the key %s", r->public_key);
    if (key[0] && strcmp(key, r->public_key))
        return add_check(job->v, "signature", REE_VERIFY_DIFFERS, err,
                         "the receipt is signed with the key %s", r->public_key);
    return add_check(job->v, "signature", REE_VERIFY_AGREES, err, "signed with the key %s",
                     r->public_key);
}

// Compares the step and the samples.
static enum ree_status check_origin(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    struct ree_training *t = job->t;
    REE_TRY(ree_training_hash(t, err));
    REE_TRY(compare(job, "graph", r->graph_sha256, t->hashes.graph, err));
    REE_TRY(compare(job, "weights", r->weights_sha256, t->hashes.weights, err));
    REE_TRY(compare(job, "roles", r->roles_sha256, t->roles_sha256, err));
    REE_TRY(compare(job, "samples", r->data_sha256, t->data_sha256, err));
    uint64_t batch_size = (uint64_t)t->step.batch_size;
    if (r->seed != t->options.seed)
        return add_check(job->v, "batches", REE_VERIFY_DIFFERS, err,
                         "the receipt has seed %llu, but a seed without effect must be 0",
                         (unsigned long long)r->seed);
    if (r->n_samples == t->batches.n_samples && r->batch_size == batch_size)
        return add_check(job->v, "batches", REE_VERIFY_AGREES, err,
                         "%llu samples of %llu in each step, %s, seed %llu",
                         (unsigned long long)batch_size, (unsigned long long)t->batches.n_samples,
                         r->in_order ? "in order" : "shuffled", (unsigned long long)r->seed);
    return add_check(job->v, "batches", REE_VERIFY_DIFFERS, err,
                     "%llu samples of %llu in each step, but the receipt has %llu of %llu",
                     (unsigned long long)batch_size, (unsigned long long)t->batches.n_samples,
                     (unsigned long long)r->batch_size, (unsigned long long)r->n_samples);
}

// Starts from a checkpoint, which must have the states of one of the receipt's points.
static enum ree_status start_from_checkpoint(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    struct ree_training *t = job->t;
    struct ree_dataset *file;
    uint64_t step;
    char hex[65];
    REE_TRY(ree_training_read_checkpoint(t, job->options.checkpoint, &file, &step, err));
    ree_training_set_states(t, file, step);
    ree_dataset_destroy(file);
    REE_TRY(ree_training_sha256(t, hex, err));
    for (job->point = 0; job->point < r->n_points; job->point++)
        if (r->points[job->point].step == step) break;
    if (job->point >= r->n_points)
        return ree_fail(err, REE_INVALID,
                        "%s: it is a state after %llu steps, for which the "
                        "receipt has no point",
                        job->options.checkpoint, (unsigned long long)step);
    if (strcmp(r->points[job->point].states_sha256, hex))
        return ree_fail(err, REE_INVALID,
                        "%s: its states after %llu steps have the SHA-256 %s, but "
                        "the receipt has %s",
                        job->options.checkpoint, (unsigned long long)step, hex,
                        r->points[job->point].states_sha256);
    return REE_OK;
}

// Sets the states and the chain before the first repeated step, and checks what can be.
static enum ree_status begin(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    const struct ree_training_point *first = &r->points[0];
    ree_digest states;
    char hex[65];
    if (first->step == 0) { // the states are still the initial ones
        REE_TRY(ree_training_sha256(job->t, hex, err));
        REE_TRY(compare(job, "initial states", first->states_sha256, hex, err));
    }
    if (differs(job->v)) return REE_OK;
    if (job->options.checkpoint) {
        REE_TRY(start_from_checkpoint(job, err));
    } else if (first->step > 0) {
        return ree_fail(err, REE_INVALID,
                        "the training of the receipt continued after %llu steps, so a checkpoint "
                        "with this state is needed",
                        (unsigned long long)first->step);
    }
    // The chain's first value follows from the first states; later ones are the receipt's word.
    ree_unhex(first->states_sha256, states);
    ree_chain_begin(first->step, states, job->chain);
    ree_hex(job->chain, hex);
    if (strcmp(hex, first->chain_sha256))
        REE_TRY(compare(job, "chain", first->chain_sha256, hex, err));
    if (job->point > 0) ree_unhex(r->points[job->point].chain_sha256, job->chain);
    return REE_OK;
}

// Chooses the last point. Fails if n_steps does not reach the next one.
static enum ree_status choose_end(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    uint64_t from = r->points[job->point].step;
    job->end_point = r->n_points - 1;
    if (job->point == job->end_point)
        return ree_fail(err, REE_INVALID,
                        "the checkpoint is the receipt's last state, so no step "
                        "follows that could be checked");
    while (job->options.n_steps && r->points[job->end_point].step - from > job->options.n_steps)
        job->end_point--;
    if (job->end_point > job->point) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the receipt's next point is %llu steps away, more than the "
                    "%llu that may be repeated",
                    (unsigned long long)(r->points[job->point + 1].step - from),
                    (unsigned long long)job->options.n_steps);
}

static enum ree_status report_difference(struct job *job, size_t point, const char *states,
                                         struct ree_error *err) {
    const struct ree_training_point *p = &job->r->points[point];
    unsigned long long step = p->step, before = p[-1].step;
    if (strcmp(states, p->states_sha256))
        return add_check(job->v, "steps", REE_VERIFY_DIFFERS, err,
                         "the states after step %llu have the SHA-256 %s, but the receipt has %s; "
                         "those after step %llu agree",
                         step, states, p->states_sha256, before);
    return add_check(job->v, "steps", REE_VERIFY_DIFFERS, err,
                     "a loss or a state after step %llu and up to step %llu differs", before, step);
}

// Other versions of ree may transform the step's graph differently, so that its trace has other
// nodes.
static enum ree_status compare_trace(struct job *job, const char *root, struct ree_error *err) {
    const char *version = job->r->ree_version;
    bool is_other = version && strcmp(version, ree_version()) != 0;
    if (!is_other || !strcmp(root, job->r->trace_root))
        return compare(job, "trace", job->r->trace_root, root, err);
    return add_check(job->v, "trace", REE_VERIFY_NOT_CHECKED, err,
                     "the roots differ, but the receipt states that ree %.32s made it: verify the "
                     "trace with that version",
                     version);
}

// Compares the root of the trace, if all steps were repeated.
static enum ree_status check_trace(struct job *job, struct ree_recording **recording,
                                   struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    struct ree_recorded recorded = {.size = sizeof recorded};
    struct ree_recording *made = *recording;
    *recording = NULL;
    if (!r->trace_root[0]) return REE_OK;
    if (!made)
        return add_check(job->v, "trace", REE_VERIFY_NOT_CHECKED, err,
                         "it was not computed again (--trace)");
    REE_TRY(ree_recording_finish(made, &recorded, err));
    if (job->point == 0 && job->end_point == r->n_points - 1)
        return compare_trace(job, recorded.root, err);
    return add_check(job->v, "trace", REE_VERIFY_NOT_CHECKED, err,
                     "its root is over all steps, and not all were repeated");
}

static enum ree_status repeat(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    uint64_t from = r->points[job->point].step;
    uint64_t total = r->points[job->end_point].step - from;
    job->v->first = from + 1;
    for (size_t i = job->point + 1; i <= job->end_point; i++) {
        while (job->t->n_steps < r->points[i].step) {
            REE_TRY(ree_progress_report(&job->options.progress, "verifying steps",
                                        job->t->n_steps - from, total, err));
            REE_TRY(ree_training_step(job->t, NULL, err));
            job->v->n_steps++;
        }
        const struct ree_training_point *own = &job->t->log.last;
        if (strcmp(own->states_sha256, r->points[i].states_sha256) ||
            strcmp(own->chain_sha256, r->points[i].chain_sha256))
            return report_difference(job, i, own->states_sha256, err);
    }
    return add_check(job->v, "steps", REE_VERIFY_AGREES, err, "steps %llu to %llu",
                     (unsigned long long)job->v->first, (unsigned long long)(from + total));
}

// Says what was not checked.
static enum ree_status report_rest(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    uint64_t last = r->points[r->n_points - 1].step, end = r->points[job->end_point].step;
    if (job->options.checkpoint && r->points[job->point].step > 0)
        REE_TRY(add_check(job->v, "steps before", REE_VERIFY_NOT_CHECKED, err,
                          "steps 1 to %llu, which gave the checkpoint",
                          (unsigned long long)r->points[job->point].step));
    if (end == last) return REE_OK;
    return add_check(job->v, "steps after", REE_VERIFY_NOT_CHECKED, err, "steps %llu to %llu",
                     (unsigned long long)end + 1, (unsigned long long)last);
}

static enum ree_status verify(struct job *job, struct ree_error *err) {
    const struct ree_training_receipt *r = job->r;
    REE_TRY(check_signature(job, err));
    REE_TRY(check_origin(job, err));
    if (strcmp(r->operation_set, ree_operation_set_name(REE_REPRODUCIBLE))) {
        job->v->is_other_set = true;
        return add_check(job->v, "operation set", REE_VERIFY_NOT_CHECKED, err,
                         "'%s' promises no bits that another device could compare",
                         r->operation_set);
    }
    if (job->options.trace && job->t->model->no_fold) return ree_receipt_needs_folding(err);
    if (job->options.trace && !r->trace_root[0])
        return ree_fail(err, REE_INVALID, "the receipt has no trace that could be compared");
    if (differs(job->v)) return REE_OK;
    REE_TRY(begin(job, err));
    if (differs(job->v)) return REE_OK;
    REE_TRY(choose_end(job, err));
    // Records with the interval of the whole receipt: only the last point is read.
    REE_TRY(ree_training_record(job->t, REE_TRAINING_MAX_STEPS, err));
    memcpy(job->t->log.chain, job->chain, sizeof job->chain);
    struct ree_recording *recording = NULL;
    const struct ree_record_options trace = {.size = sizeof trace,
                                             .trace = job->options.trace,
                                             .graph_sha256 = job->t->hashes.graph,
                                             .weights_sha256 = job->t->hashes.weights};
    if (job->options.trace) REE_TRY(ree_training_trace(job->t, &trace, &recording, err));
    double start = ree_clock();
    enum ree_status status = repeat(job, err);
    job->v->seconds = ree_clock() - start;
    if (status == REE_OK && !differs(job->v)) status = check_trace(job, &recording, err);
    ree_recording_destroy(recording);
    REE_TRY(status);
    return report_rest(job, err);
}

enum ree_status ree_training_verify(const struct ree_training_receipt *receipt,
                                    struct ree_model *model, struct ree_device *device,
                                    const struct ree_dataset *dataset,
                                    const struct ree_training_verify_options *options,
                                    struct ree_training_verification **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct job job = {.r = receipt};
    if (!err) err = &local; // messages are extended
    *out = NULL;
    REE_TRY(ree_options_read(&job.options, sizeof job.options, options,
                             "ree_training_verify_options", err));
    if (ree_device_operation_set(device) != REE_REPRODUCIBLE)
        return ree_fail(err, REE_INVALID, "verifying requires the operation set 'reproducible'");
    struct ree_training_options training = {.size = sizeof training,
                                            .seed = receipt->seed,
                                            .in_order = receipt->in_order,
                                            .no_fuse = job.options.no_fuse,
                                            .progress = job.options.progress};
    job.v = ree_alloc_zeroed(1, sizeof *job.v);
    if (!job.v) return ree_no_memory(err);
    ree_arena_init(&job.v->arena);
    enum ree_status status = ree_training_create(model, device, dataset, &training, &job.t, err);
    if (status == REE_OK) status = verify(&job, err);
    ree_training_destroy(job.t);
    if (status == REE_OK)
        *out = job.v;
    else
        ree_training_verification_destroy(job.v);
    return status;
}

void ree_training_verification_destroy(struct ree_training_verification *v) {
    REE_FLOAT_ENV_API();
    if (!v) return;
    ree_arena_finish(&v->arena);
    ree_free(v);
}

enum ree_verify_verdict
ree_training_verification_verdict(const struct ree_training_verification *v) {
    if (differs(v)) return REE_VERIFIED_FALSE;
    if (v->is_other_set) return REE_VERIFIED_NOT;
    for (size_t i = 0; i < v->n_checks; i++)
        if (v->checks[i].outcome == REE_VERIFY_NOT_CHECKED) return REE_VERIFIED_PARTLY;
    return REE_VERIFIED;
}

size_t ree_training_verification_checks(const struct ree_training_verification *v,
                                        const struct ree_verify_check **out) {
    *out = v->checks;
    return v->n_checks;
}

uint64_t ree_training_verification_steps(const struct ree_training_verification *v,
                                         uint64_t *out_first, double *out_seconds) {
    if (out_first) *out_first = v->first;
    if (out_seconds) *out_seconds = v->seconds;
    return v->n_steps;
}
