// ree-run verify: checks by a new run whether a receipt is true.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "receipt/verify.h"
#include "receipts.h"
#include "option_table.h"
#include "start.h"
#include "verify_options.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2
#define CLI_PARTLY 3

struct job {
    struct verify_options *o;
    struct ree_receipt receipt;
    struct ree_request request; // with --request
    struct ree_prompt asked;    // prompt of the request
    struct ree_verification v;
    struct ree_generator *generator; // for a text
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    struct ree_model *model; // for tensors
    struct ree_pipeline *pipeline;
    struct tracing tracing;
};

// Errors about the model, the device or the inputs leave a receipt unchecked.
static int cannot(const struct ree_error *err) {
    cli_fail(err);
    return CLI_CANNOT;
}

static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static int load_tokenizer(struct job *job) {
    struct ree_error err;
    const char *path = job->o->tokenizer;
    if (!path) path = ree_generator_info(job->generator)->folder;
    enum ree_status status = ree_tokenizer_load(path, &job->tokenizer, &err);
    if (status == REE_OK) return 0;
    job->tokenizer = NULL;
    return status == REE_NOT_FOUND && !job->o->tokenizer ? 0 : cannot(&err);
}

// Does nothing if no trace is requested, or if the model is not run.
static int begin_trace(struct job *job) {
    // The receipt's hashes are the model's, since they agreed.
    struct traced_run run = {.generator = job->generator,
                             .pipeline = job->pipeline,
                             .graph_sha256 = job->receipt.graph_sha256,
                             .weights_sha256 = job->receipt.weights_sha256};
    job->o->tracing.is_secret = job->receipt.is_private;
    if (!job->o->tracing.trace || job->v.differs) return 0;
    return tracing_begin(&job->tracing, &job->o->tracing, &run) ? CLI_CANNOT : 0;
}

static int end_trace(struct job *job) {
    struct ree_traced traced;
    bool has_trace;
    if (!tracing_n_steps(&job->tracing)) {
        if (job->o->tracing.trace)
            ree_verify_add(&job->v, "trace", REE_VERIFY_NOT_CHECKED, "the model was not run");
        return 0;
    }
    if (tracing_end(&job->tracing, &traced, &has_trace)) return CLI_CANNOT;
    if (has_trace) ree_verify_trace(&job->v, &job->receipt, traced.root, traced.n_steps);
    return 0;
}

static int verify_text(struct job *job) {
    const struct verify_options *o = job->o;
    struct ree_error err;
    struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    const struct ree_session_options session = {
        .size = sizeof session, .no_fuse = o->no_fuse, .progress = {.report = progress}};
    struct ree_generator_options options = {
        .size = sizeof options,
        .model = &model,
        .session = &session,
        .prefill_chunk = o->tracing.trace ? job->receipt.trace_chunk : (uint32_t)o->chunk,
        .all_logits = job->receipt.logits_sha256[0],
        .exact_lengths = o->tracing.trace != NULL,
    };
    cli_stages_generator(&o->stages, &options);
    cli_quantize_model(&o->quantize, &model);
    if (ree_generator_create(o->model, o->stages.devices[0], &options, &job->generator, &err) !=
        REE_OK)
        return cannot(&err);
    cli_print_notes(job->generator->model);
    int code = load_tokenizer(job);
    if (!code)
        code = prompts_load(&job->prompts, o->prompts, o->n_prompts, job->tokenizer, o->chat_family,
                            o->raw);
    if (code) return CLI_CANNOT;
    struct ree_verify_text what = {.receipt = &job->receipt,
                                   .generator = job->generator,
                                   .tokenizer = job->tokenizer,
                                   .prompt = o->request       ? &job->asked
                                             : job->prompts.n ? job->prompts.list
                                                              : NULL,
                                   .ignores_eos = o->ignore_eos,
                                   .stepwise = o->stepwise || o->tracing.trace,
                                   .traced = o->tracing.trace != NULL};
    const struct ree_generator *g = job->generator;
    if (ree_verify_model(&job->v, &job->receipt, g->model, &cli_reports, &err) != REE_OK)
        return cannot(&err);
    code = begin_trace(job);
    if (code) return code;
    return ree_verify_text(&job->v, &what, &err) == REE_OK ? end_trace(job) : cannot(&err);
}

static int verify_tensors(struct job *job) {
    struct verify_options *o = job->o;
    struct ree_error err;
    struct ree_model_options model_options = {
        .size = sizeof model_options, .no_fold = o->no_fold, .progress = {.report = cli_progress}};
    struct ree_session_options options = {
        .size = sizeof options, .no_fuse = o->no_fuse, .progress = {.report = cli_progress}};
    cli_quantize_model(&o->quantize, &model_options);
    if (ree_model_load(o->model, &model_options, &job->model, &err) != REE_OK) return cannot(&err);
    if (ree_verify_model(&job->v, &job->receipt, job->model, &cli_reports, &err) != REE_OK)
        return cannot(&err);
    if (job->v.differs) return 0; // its inputs may differ too
    if (run_inputs_load(&o->inputs, job->model)) return CLI_CANNOT;
    struct ree_stages_options divided = cli_stages_pipeline(&o->stages, &options);
    if (ree_pipeline_open(job->model, o->stages.devices, o->stages.n_devices, &divided,
                          &job->pipeline, &err) != REE_OK)
        return cannot(&err);
    struct ree_verify_tensors what = {.receipt = &job->receipt,
                                      .model = job->model,
                                      .pipeline = job->pipeline,
                                      .n_inputs = o->inputs.n_tensors,
                                      .inputs = o->inputs.tensors,
                                      .traced = o->tracing.trace != NULL};
    int code = begin_trace(job);
    if (code) return code;
    return ree_verify_tensors(&job->v, &what, &err) == REE_OK ? end_trace(job) : cannot(&err);
}

static int verify(struct job *job) {
    struct verify_options *o = job->o;
    struct ree_error err;
    bool text = job->receipt.kind == REE_RECEIPT_TEXT;
    if (text ? o->inputs.n_args || o->inputs.random : o->n_prompts > 0) {
        cli_error(text ? "%s: is a receipt of a text: give the prompt, not --input"
                       : "%s: is a receipt of tensors: give --input, not a prompt",
                  o->receipt);
        return CLI_USAGE;
    }
    int code = cli_receipt_salt(&job->receipt, o->receipt, o->salt);
    if (code) return code == CLI_USAGE ? code : CLI_CANNOT;
    if (o->request && ree_request_load(o->request, &job->request, &err) != REE_OK)
        return cannot(&err);
    job->asked = (struct ree_prompt){job->request.tokens, job->request.n_tokens};
    ree_verify_receipt(&job->v, &job->receipt);
    ree_verify_request(&job->v, &job->receipt, o->request ? &job->request : NULL);
    char key[65];
    if (o->key && !cli_public_key(o->key, key)) return CLI_CANNOT;
    if (o->key) ree_verify_key(&job->v, &job->receipt, key);
    if (job->v.cannot[0]) return 0;
    if (o->tracing.trace && !job->receipt.has_trace) {
        cli_error("%s: this receipt has no trace to compare with", o->receipt);
        return CLI_CANNOT;
    }
    if (cli_stages_open(&o->stages, &o->device, &err) != REE_OK) return cannot(&err);
    return text ? verify_text(job) : verify_tensors(job);
}

static const char *outcome_name(enum ree_verify_outcome outcome) {
    static const char *const names[] = {"agrees", "differs", "not checked"};
    return names[outcome];
}

// Reports what the prover chose, and what it states without proof.
static void report_claims(const struct ree_receipt *r, bool is_requested, struct strbuf *out) {
    const struct ree_sampling *s = &r->sampling;
    if (r->kind == REE_RECEIPT_TEXT) {
        strbuf_printf(out, "%s: temperature %.9g",
                      is_requested ? "as requested" : "chosen by the prover",
                      (double)s->temperature);
        if (s->temperature > 0)
            strbuf_printf(out, ", top_k %u, top_p %.9g, min_p %.9g, seed %llu", s->top_k,
                          (double)s->top_p, (double)s->min_p, (unsigned long long)s->seed);
        strbuf_printf(out, ", repetition_penalty %.9g, max_new_tokens %llu, stop texts: ",
                      (double)s->repetition_penalty, (unsigned long long)r->max_new_tokens);
        for (size_t i = 0; i < r->n_stops; i++) {
            strbuf_printf(out, "%s\"", i ? ", " : "");
            cli_append_name(out, r->stops[i]);
            strbuf_printf(out, "\"");
        }
        strbuf_printf(out, "%s\n", r->n_stops ? "" : "none");
    }
    const char *const claims[][2] = {
        {"device", r->device}, {"created", r->created}, {"ree", r->ree_version}};
    bool some = false;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        if (!claims[i][1]) continue;
        strbuf_printf(out, "%s %s ", some ? "," : "claimed, not checked:", claims[i][0]);
        cli_append_name(out, claims[i][1]);
        some = true;
    }
    if (some) strbuf_append(out, "\n", 1);
}

static void report_text(const struct job *job, struct strbuf *out) {
    const struct ree_verification *v = &job->v;
    for (size_t i = 0; i < v->n; i++) {
        cli_append_name(out, v->checks[i].name);
        strbuf_printf(out, ": %s", outcome_name(v->checks[i].outcome));
        if (v->checks[i].detail[0]) strbuf_append(out, ": ", 2);
        cli_append_name(out, v->checks[i].detail);
        strbuf_append(out, "\n", 1);
    }
    report_claims(&job->receipt, job->o->request != NULL, out);
    if (v->stepwise[0]) {
        strbuf_printf(out, "\nran token by token: ");
        cli_append_name(out, v->stepwise);
        strbuf_append(out, "\n", 1);
    }
    strbuf_printf(out, "\n%s", ree_verify_verdict_name(ree_verification_verdict(v)));
    if (!v->differs && v->cannot[0]) {
        strbuf_append(out, ": ", 2);
        cli_append_name(out, v->cannot);
    }
    if (v->n_runs)
        strbuf_printf(out, " (%zu run%s of the model, %.3f s; %s)", v->n_runs,
                      v->n_runs == 1 ? "" : "s", v->run_seconds,
                      cli_stages_device(&job->o->stages));
    strbuf_append(out, "\n", 1);
}

static void report_json(const struct job *job, struct strbuf *out) {
    const struct ree_verification *v = &job->v;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "result", ree_verify_verdict_name(ree_verification_verdict(v)));
    if (v->cannot[0]) cJSON_AddStringToObject(root, "reason", v->cannot);
    cJSON *checks = cJSON_AddArrayToObject(root, "checks");
    for (size_t i = 0; i < v->n; i++) {
        cJSON *check = cJSON_CreateObject();
        cJSON_AddStringToObject(check, "name", v->checks[i].name);
        cJSON_AddStringToObject(check, "outcome", outcome_name(v->checks[i].outcome));
        if (v->checks[i].detail[0]) cJSON_AddStringToObject(check, "detail", v->checks[i].detail);
        json_put(checks, check);
    }
    if (job->o->stages.n_devices)
        cJSON_AddStringToObject(root, "device", cli_stages_device(&job->o->stages));
    if (v->stepwise[0]) cJSON_AddStringToObject(root, "token_by_token", v->stepwise);
    cJSON_AddNumberToObject(root, "runs", (double)v->n_runs);
    cJSON_AddNumberToObject(root, "run_seconds", v->run_seconds);
    if (!checks) out->failed = true;
    cli_append_json(out, root, false);
}

static int report(struct job *job) {
    struct strbuf text;
    budget_results();
    strbuf_init(&text);
    if (job->v.failed) text.failed = true;
    if (job->o->json)
        report_json(job, &text);
    else
        report_text(job, &text);
    if (cli_print(&text)) return CLI_CANNOT;
    static const int codes[] = {0, CLI_PARTLY, CLI_PARTLY, CLI_DIFFERS, CLI_CANNOT};
    return codes[ree_verification_verdict(&job->v)];
}

static int run(struct verify_options *o) {
    struct ree_error err;
    struct job job = {.o = o};
    ree_verification_init(&job.v);
    ree_request_init(&job.request);
    int code =
        ree_receipt_load(o->receipt, &job.receipt, &err) == REE_OK ? verify(&job) : cannot(&err);
    if (!code) code = report(&job);
    tracing_finish(&job.tracing);
    prompts_finish(&job.prompts);
    ree_tokenizer_destroy(job.tokenizer);
    ree_generator_destroy(job.generator);
    ree_pipeline_destroy(job.pipeline);
    ree_model_destroy(job.model);
    cli_stages_finish(&o->stages);
    ree_verification_finish(&job.v);
    ree_receipt_finish(&job.receipt);
    ree_request_finish(&job.request);
    return code;
}

int ree_run_verify(int argc, char **argv) {
    struct verify_options o;
    if (cli_wants_help(argc, argv)) return verify_options_help();
    int code = CLI_USAGE;
    if (verify_options_parse(&o, argc, argv)) {
        const struct cli_start start = {.uses = sandbox_uses(o.device.spec), .cannot = CLI_CANNOT};
        code = cli_start(&start);
        if (!code) code = run(&o);
    }
    verify_options_finish(&o);
    return code;
}
