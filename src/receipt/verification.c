// The public functions of verification: what a verification runs, and in which order.
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/generator.h"
#include "pipeline/pipeline.h"
#include "receipt/receipt_internal.h"
#include "receipt/receipt_object.h"
#include "receipt/verify.h"
#include "session/model.h"
#include "trace/record.h"

struct ree_verify_job {
    const struct ree_receipt *receipt;
    struct ree_verify_options options; // its paths are owned
    // Its pointers model and session point to the two structs after it. Its partition_plan is owned
    // if owns_plan is set.
    struct ree_generator_options run;
    struct ree_model_options run_model;
    struct ree_session_options run_session;
    bool owns_paths, owns_plan;
    bool is_loaded;
    struct ree_device **devices;
    size_t n_devices;
    struct ree_generator *generator; // only for a receipt of a text
    struct ree_tokenizer *tokenizer;
    struct ree_model *model; // only for a receipt of tensors
    struct ree_pipeline *pipeline;
    struct ree_recorder *recorder; // only during a run that makes a trace
    uint64_t n_steps;              // number of steps that the recorder received
};

static enum ree_status no_memory_if_failed(const struct ree_verification *v,
                                           struct ree_error *err) {
    return v->failed ? ree_no_memory(err) : REE_OK;
}

bool ree_verification_is_decided(const struct ree_verification *v) {
    const struct ree_verify_job *job = v->job;
    if (v->cannot[0] || !v->is_pending) return true;
    // After a difference a receipt of tensors is not run: the model may be another one, with other
    // inputs.
    return job->is_loaded && job->receipt->kind == REE_RECEIPT_TENSORS && v->differs;
}

// Checks the receipt without the model

static enum ree_status read_options(struct ree_verify_job *job,
                                    const struct ree_verify_options *options,
                                    struct ree_error *err) {
    struct ree_verify_options *o = &job->options;
    REE_TRY(ree_options_read(o, sizeof *o, options, "ree_verify_options", err));
    if (o->trace_path) o->trace = true;
    // Copy all strings before a failure can be returned, so that destroy releases none of the
    // caller's.
    const char *tokenizer = o->tokenizer, *trace_path = o->trace_path;
    o->tokenizer = tokenizer ? ree_strdup(tokenizer) : NULL;
    o->trace_path = trace_path ? ree_strdup(trace_path) : NULL;
    job->owns_paths = true;
    if ((tokenizer && !o->tokenizer) || (trace_path && !o->trace_path)) return ree_no_memory(err);
    return REE_OK;
}

static enum ree_status check_receipt(struct ree_verification *v, struct ree_error *err) {
    const struct ree_verify_options *o = &v->job->options;
    const struct ree_receipt *receipt = v->job->receipt;
    const char *path = receipt->object ? receipt->object->path : NULL;
    char key[65];
    if (o->public_key) REE_TRY(ree_key_parse(o->public_key, key, err));
    ree_verify_receipt(v, receipt);
    ree_verify_request(v, receipt, o->request);
    if (o->public_key) ree_verify_key(v, receipt, key);
    if (!v->cannot[0] && o->trace && !receipt->has_trace)
        return ree_fail(err, REE_INVALID, "%s%sthis receipt has no trace to compare with",
                        path ? path : "", path ? ": " : "");
    return no_memory_if_failed(v, err);
}

enum ree_status ree_verification_create(const struct ree_receipt *receipt,
                                        const struct ree_verify_options *options,
                                        struct ree_verification **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out = NULL;
    struct ree_verification *v = ree_alloc(sizeof *v);
    if (!v) return ree_no_memory(err);
    ree_verification_init(v);
    v->is_pending = true;
    v->job = ree_alloc_zeroed(1, sizeof *v->job);
    enum ree_status status = v->job ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) {
        v->job->receipt = receipt;
        status = read_options(v->job, options, err);
    }
    if (status == REE_OK) status = check_receipt(v, err);
    if (status != REE_OK) {
        ree_verification_destroy(v);
        return status;
    }
    *out = v;
    return REE_OK;
}

// Releases what ree_verification_load makes.
static void unload(struct ree_verify_job *job) {
    ree_tokenizer_destroy(job->tokenizer);
    ree_generator_destroy(job->generator);
    ree_model_destroy(job->model);
    ree_free(job->devices);
    if (job->owns_plan) ree_free((char *)(uintptr_t)job->run.partition_plan);
    job->tokenizer = NULL;
    job->generator = NULL;
    job->model = NULL;
    job->devices = NULL;
    job->owns_plan = false;
}

void ree_verification_destroy(struct ree_verification *v) {
    REE_FLOAT_ENV_API();
    if (!v) return;
    if (v->job) {
        ree_recorder_destroy(v->job->recorder);
        ree_pipeline_destroy(v->job->pipeline);
        unload(v->job);
        if (v->job->owns_paths) {
            ree_free((char *)(uintptr_t)v->job->options.tokenizer);
            ree_free((char *)(uintptr_t)v->job->options.trace_path);
        }
        ree_free(v->job);
    }
    ree_verification_finish(v);
    ree_free(v);
}

// Loads the model

static enum ree_status read_run(struct ree_verify_job *job, const struct ree_generator_options *run,
                                struct ree_error *err) {
    REE_TRY(ree_options_read(&job->run, sizeof job->run, run, "ree_generator_options", err));
    REE_TRY(ree_options_read(&job->run_model, sizeof job->run_model, job->run.model,
                             "ree_model_options", err));
    REE_TRY(ree_options_read(&job->run_session, sizeof job->run_session, job->run.session,
                             "ree_session_options", err));
    job->run.model = &job->run_model;
    job->run.session = &job->run_session;
    if (job->run.partition_plan) {
        job->run.partition_plan = ree_strdup(job->run.partition_plan);
        job->owns_plan = true;
        if (!job->run.partition_plan) return ree_no_memory(err);
    }
    if (job->options.trace && job->run_model.no_fold) return ree_receipt_needs_folding(err);
    if (job->run.rank) return ree_fail(err, REE_UNSUPPORTED, "verification runs in one process");
    return REE_OK;
}

// Takes the devices of the run. They must have the operation set reproducible, because the bits of
// other operation sets depend on the device.
static enum ree_status take_devices(struct ree_verify_job *job, struct ree_device *device,
                                    struct ree_error *err) {
    size_t n = 1 + job->run.n_more_devices;
    job->devices = ree_alloc_zeroed(n, sizeof(struct ree_device *));
    if (!job->devices) return ree_no_memory(err);
    job->n_devices = n;
    job->devices[0] = device;
    for (size_t i = 1; i < n; i++)
        job->devices[i] = job->run.more_devices[i - 1];
    for (size_t i = 0; i < n; i++)
        if (ree_device_operation_set(job->devices[i]) != REE_REPRODUCIBLE)
            return ree_fail(err, REE_INVALID,
                            "verification requires the operation set 'reproducible', but %s is "
                            "opened with '%s'",
                            ree_device_name(job->devices[i]),
                            ree_operation_set_name(ree_device_operation_set(job->devices[i])));
    return REE_OK;
}

static enum ree_status load_text(struct ree_verify_job *job, const char *path,
                                 struct ree_error *err) {
    const struct ree_receipt *r = job->receipt;
    const struct ree_verify_options *o = &job->options;
    struct ree_generator_options run = job->run;
    run.all_logits = r->logits_sha256[0];
    // The metadata that allows other lengths is in no hash.
    run.exact_lengths = true;
    // NaNs in a prompt, and so the hash, may depend on the chunk.
    if (run.all_logits) run.prefill_chunk = 0;
    REE_TRY(ree_generator_create(path, job->devices[0], &run, &job->generator, err));
    // In ree-receipt/1 a model that is not proved to be causal ran with any chunk.
    if (o->trace || (r->trace_chunk && r->version == 1 && !job->generator->causality.is_proved))
        job->generator->options.prefill_chunk = r->trace_chunk;
    const char *tokenizer =
        o->tokenizer ? o->tokenizer : ree_generator_info(job->generator)->folder;
    struct ree_error why;
    enum ree_status status = ree_tokenizer_load(tokenizer, &job->tokenizer, &why);
    // A receipt that has only token ids requires no tokenizer. If the receipt requires one,
    // ree_verify_text reports that.
    if (status == REE_OK || (status == REE_NOT_FOUND && !o->tokenizer)) return REE_OK;
    return ree_fail(err, status, "%s", why.message);
}

static enum ree_status load_model(struct ree_verify_job *job, const char *path,
                                  struct ree_error *err) {
    if (job->receipt->kind == REE_RECEIPT_TEXT) return load_text(job, path, err);
    return ree_model_load(path, &job->run_model, &job->model, err);
}

static enum ree_status load(struct ree_verify_job *job, const char *path, struct ree_device *device,
                            const struct ree_generator_options *run, struct ree_error *err) {
    REE_TRY(read_run(job, run, err));
    REE_TRY(take_devices(job, device, err));
    return load_model(job, path, err);
}

// The graph of a checkpoint's folder depends on the type of its activations and on the quantisation
// of its embedding table. `activations` is REE_DTYPE_NONE, and `table` 0, for the default.
struct variant {
    enum ree_dtype activations;
    uint32_t table;
};

// Loads the model as a variant, and compares its graph with the receipt's.
// Computes the model's hash of the graph as the receipt's version has it.
static enum ree_status hash_graph(const struct ree_verify_job *job, const struct ree_model *model,
                                  char hex[65], struct ree_error *err) {
    ree_digest digest;
    if (job->receipt->version > 1) return ree_model_graph_sha256(model, hex, err);
    REE_TRY(ree_identity_graph_version_1(&model->identity, digest, err));
    ree_hex(digest, hex);
    return REE_OK;
}

static enum ree_status try_variant(const struct ree_verify_job *job, const char *path,
                                   const struct variant *variant, bool *out_loads, bool *out_same,
                                   struct ree_error *err) {
    struct ree_model_options options = job->run_model;
    struct ree_model *model;
    char hash[65];
    *out_loads = *out_same = false;
    if (variant->activations != REE_DTYPE_NONE) options.activations = variant->activations;
    if (variant->table) options.quantize_table = variant->table;
    options.no_fold = true;
    options.on_pass = NULL;
    enum ree_status status = ree_model_load(path, &options, &model, err);
    if (status == REE_NO_MEMORY || status == REE_CANCELLED || status == REE_IO) return status;
    // for example because the path is not a checkpoint's folder
    if (status != REE_OK) return REE_OK;
    status = hash_graph(job, model, hash, err);
    ree_model_destroy(model);
    *out_loads = true;
    *out_same = status == REE_OK && strcmp(hash, job->receipt->graph_sha256) == 0;
    return status;
}

// If the receipt's graph is not the graph of the model as it was loaded, finds the variant whose
// graph it is; *out is zero if there is none. Without quantisation, tries other types of
// activations, unless the caller chose one. With quantisation, tries int8 activations, a table that
// is not quantised, and both, each only if the caller did not choose it. The hash decides, so
// nothing that the receipt states has to be believed.
static enum ree_status find_variant(const struct ree_verify_job *job,
                                    const struct ree_model *loaded, const char *path,
                                    struct variant *out, struct ree_error *err) {
    static const struct variant plain[] = {{.activations = REE_BF16}, {.activations = REE_F16}};
    const struct ree_model_options *o = &job->run_model;
    struct variant tries[3];
    size_t n = 0;
    if (!o->quantize_bits && !o->activations) {
        memcpy(tries, plain, sizeof plain);
        n = 2;
    } else if (o->quantize_bits) { // each try quantises all weights
        const bool table = !o->quantize_table, activations = !o->activations;
        if (activations) tries[n++] = (struct variant){.activations = REE_I8};
        if (table) tries[n++] = (struct variant){.table = REE_QUANTIZE_KEEP};
        if (table && activations) tries[n++] = (struct variant){REE_I8, REE_QUANTIZE_KEEP};
    }
    char hash[65];
    *out = (struct variant){0};
    if (!n) return REE_OK;
    REE_TRY(hash_graph(job, loaded, hash, err));
    bool loads = true, same = strcmp(hash, job->receipt->graph_sha256) == 0;
    for (size_t i = 0; i < n && loads && !same; i++) {
        REE_TRY(try_variant(job, path, &tries[i], &loads, &same, err));
        if (same) *out = tries[i];
    }
    return REE_OK;
}

// Loads the model, once more if the receipt is of another variant.
static enum ree_status load_variant(struct ree_verification *v, const char *path,
                                    struct ree_device *device,
                                    const struct ree_generator_options *run,
                                    struct ree_error *err) {
    struct ree_verify_job *job = v->job;
    struct variant variant;
    REE_TRY(load(job, path, device, run, err));
    REE_TRY(find_variant(job, ree_verification_model(v), path, &variant, err));
    if (variant.activations != REE_DTYPE_NONE || variant.table) {
        unload(job);
        REE_TRY(read_run(job, run, err));
        REE_TRY(take_devices(job, device, err));
        if (variant.activations != REE_DTYPE_NONE) job->run_model.activations = variant.activations;
        if (variant.table) job->run_model.quantize_table = variant.table;
        REE_TRY(load_model(job, path, err));
        if (variant.activations != REE_DTYPE_NONE)
            ree_verify_add(v, "activations", REE_VERIFY_AGREES, "%s",
                           ree_dtype_name(variant.activations));
        if (variant.table) ree_verify_add(v, "embedding table", REE_VERIFY_AGREES, "not quantised");
    }
    return ree_verify_model(v, job->receipt, ree_verification_model(v), &job->options.progress,
                            err);
}

enum ree_status ree_verification_load(struct ree_verification *v, const char *path,
                                      struct ree_device *device,
                                      const struct ree_generator_options *run,
                                      struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_verify_job *job = v->job;
    if (ree_verification_is_decided(v)) return REE_OK;
    if (job->devices) return ree_fail(err, REE_INVALID, "the model is already loaded");
    enum ree_status status = load_variant(v, path, device, run, err);
    if (status != REE_OK) { // the caller may try again, with another path or device
        unload(job);
        return status;
    }
    job->is_loaded = true;
    return no_memory_if_failed(v, err);
}

const struct ree_model *ree_verification_model(const struct ree_verification *v) {
    return v->job->generator ? v->job->generator->model : v->job->model;
}

const struct ree_tokenizer *ree_verification_tokenizer(const struct ree_verification *v) {
    return v->job->tokenizer;
}

// Runs the model

static enum ree_status count_step(void *user, uint64_t step, const ree_digest *digests,
                                  struct ree_error *err) {
    struct ree_verify_job *job = user;
    (void)digests, (void)err;
    job->n_steps = step + 1;
    return REE_OK;
}

// Starts to record the trace of the run. Does nothing if no trace is requested, or if the model
// will not run.
static enum ree_status begin_trace(struct ree_verification *v, struct ree_pipeline *pipeline,
                                   size_t n_kv_caches, const struct ree_kv_cache_spec *kv_caches,
                                   struct ree_error *err) {
    struct ree_verify_job *job = v->job;
    const struct ree_receipt *r = job->receipt;
    if (!job->options.trace || v->differs) return REE_OK;
    // The receipt's hashes are the model's, since they agreed.
    const bool is_old = r->version == 1;
    struct ree_trace_header_options options = {.version = is_old ? REE_TRACE_NAMED : 0,
                                               .graph_sha256 = r->graph_sha256,
                                               .weights_sha256 = r->weights_sha256,
                                               .operation_set = REE_REPRODUCIBLE,
                                               .prefill_chunk = r->trace_chunk,
                                               .is_secret = r->is_private,
                                               .n_kv_caches = n_kv_caches,
                                               .kv_caches = kv_caches,
                                               .progress = job->options.progress};
    REE_TRY(ree_recorder_create(ree_verification_model(v), &options, job->options.trace_path,
                                &job->recorder, err));
    ree_recorder_on_step(job->recorder, count_step, job);
    struct ree_observer observer = ree_recorder_observer(job->recorder);
    return ree_pipeline_observe(pipeline, &observer, err);
}

static enum ree_status end_trace(struct ree_verification *v, struct ree_error *err) {
    struct ree_verify_job *job = v->job;
    struct ree_recorder *recorder = job->recorder;
    struct ree_record_summary summary;
    if (!job->n_steps) {
        if (job->options.trace)
            ree_verify_add(v, "trace", REE_VERIFY_NOT_CHECKED, "the model was not run");
        return REE_OK;
    }
    job->recorder = NULL;
    REE_TRY(ree_recorder_finish(recorder, &summary, err));
    ree_verify_trace(v, job->receipt, summary.root, summary.n_steps);
    return REE_OK;
}

static enum ree_status run_text(struct ree_verification *v, const struct ree_verify_inputs *inputs,
                                struct ree_error *err) {
    struct ree_verify_job *job = v->job;
    const struct ree_verify_options *o = &job->options;
    struct ree_generator *g = job->generator;
    struct ree_prompt asked;
    if (o->request) asked = (struct ree_prompt){o->request->tokens, o->request->n_tokens};
    struct ree_verify_text what = {.receipt = job->receipt,
                                   .generator = g,
                                   .tokenizer = job->tokenizer,
                                   .has_other_tokenizer = o->tokenizer != NULL,
                                   .prompt = o->request ? &asked : inputs->prompt,
                                   .ignores_eos = o->ignores_eos,
                                   .stepwise = o->stepwise || o->trace,
                                   .traced = o->trace};
    REE_TRY(begin_trace(v, g->pipeline, g->roles.n_kv_caches, g->roles.kv_caches, err));
    REE_TRY(ree_verify_text(v, &what, err));
    return end_trace(v, err);
}

static enum ree_status run_tensors(struct ree_verification *v,
                                   const struct ree_verify_inputs *inputs, struct ree_error *err) {
    struct ree_verify_job *job = v->job;
    struct ree_pipeline_options divided = {.n_stages = job->run.n_partitions,
                                           .plan_path = job->run.partition_plan,
                                           .max_memory = job->run.max_device_memory,
                                           .session = job->run_session};
    REE_TRY(ree_pipeline_create(job->model, job->devices, job->n_devices, &divided, NULL, 0,
                                REE_NO_INPUT, &job->pipeline, err));
    struct ree_verify_tensors what = {.receipt = job->receipt,
                                      .model = job->model,
                                      .pipeline = job->pipeline,
                                      .n_inputs = inputs->n_tensors,
                                      .inputs = inputs->tensors,
                                      .traced = job->options.trace};
    REE_TRY(begin_trace(v, job->pipeline, 0, NULL, err));
    REE_TRY(ree_verify_tensors(v, &what, err));
    return end_trace(v, err);
}

static enum ree_status check_inputs(const struct ree_verify_job *job,
                                    const struct ree_verify_inputs *inputs, struct ree_error *err) {
    bool is_text = job->receipt->kind == REE_RECEIPT_TEXT;
    if (is_text && inputs->n_tensors)
        return ree_fail(err, REE_INVALID, "this is a receipt of a text: it has no input tensors");
    if (!is_text && inputs->prompt)
        return ree_fail(err, REE_INVALID, "this is a receipt of tensors: it has no prompt");
    if (job->options.request && inputs->prompt)
        return ree_fail(err, REE_INVALID, "the request already has the prompt");
    return REE_OK;
}

enum ree_status ree_verification_run(struct ree_verification *v,
                                     const struct ree_verify_inputs *inputs,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_verify_job *job = v->job;
    struct ree_verify_inputs given;
    REE_TRY(ree_options_read(&given, sizeof given, inputs, "ree_verify_inputs", err));
    REE_TRY(check_inputs(job, &given, err));
    if (ree_verification_is_decided(v)) return REE_OK;
    if (!job->is_loaded || job->pipeline || job->recorder)
        return ree_fail(err, REE_INVALID, "the model is not loaded, or an earlier run failed");
    bool is_text = job->receipt->kind == REE_RECEIPT_TEXT;
    REE_TRY(is_text ? run_text(v, &given, err) : run_tensors(v, &given, err));
    REE_TRY(no_memory_if_failed(v, err));
    v->is_pending = false;
    return REE_OK;
}

enum ree_status ree_verify(const struct ree_receipt *receipt, const char *path,
                           struct ree_device *device, const struct ree_generator_options *run,
                           const struct ree_verify_options *options,
                           const struct ree_verify_inputs *inputs, struct ree_verification **out,
                           struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(ree_verification_create(receipt, options, out, err));
    enum ree_status status = ree_verification_load(*out, path, device, run, err);
    if (status == REE_OK) status = ree_verification_run(*out, inputs, err);
    if (status == REE_OK) return REE_OK;
    ree_verification_destroy(*out);
    *out = NULL;
    return status;
}

// The result

size_t ree_verification_checks(const struct ree_verification *v,
                               const struct ree_verify_check **out_checks) {
    *out_checks = v->checks;
    return v->n;
}

const char *ree_verification_reason(const struct ree_verification *v) {
    if (v->cannot[0]) return v->cannot;
    return v->is_pending && !v->differs ? "the model was not run" : "";
}

const char *ree_verification_stepwise(const struct ree_verification *v) {
    return v->stepwise;
}

size_t ree_verification_runs(const struct ree_verification *v, double *out_seconds) {
    if (out_seconds) *out_seconds = v->run_seconds;
    return v->n_runs;
}
