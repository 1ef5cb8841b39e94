// ree-run verify: checks by a new run whether a receipt is true.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "ree.h"
#include "receipts.h"
#include "option_table.h"
#include "start.h"
#include "verify_options.h"
#include "verify_report.h"
#include "verify_training.h"

struct job {
    struct verify_options *o;
    struct ree_receipt *receipt;
    const struct ree_receipt_info *info;
    struct ree_request *request; // with --request
    struct ree_verification *v;
    struct prompts prompts;
};

// Errors about the model, the device or the inputs leave a receipt unchecked.
static int cannot(const struct ree_error *err) {
    cli_fail(err);
    return CLI_CANNOT;
}

static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

// Reads what the receipt does not contain, and runs the model.
static int run_model(struct job *job) {
    struct verify_options *o = job->o;
    struct ree_error err;
    const struct ree_model *model = ree_verification_model(job->v);
    if (job->info->kind == REE_RECEIPT_TEXT &&
        prompts_load(&job->prompts, o->prompts, o->n_prompts, ree_verification_tokenizer(job->v),
                     o->chat_family, o->raw))
        return CLI_CANNOT;
    if (job->info->kind == REE_RECEIPT_TENSORS && run_inputs_load(&o->inputs, model))
        return CLI_CANNOT;
    struct ree_verify_inputs inputs = {.size = sizeof inputs,
                                       .prompt = job->prompts.n ? job->prompts.list : NULL,
                                       .tensors = o->inputs.tensors,
                                       .n_tensors = o->inputs.n_tensors};
    return ree_verification_run(job->v, &inputs, &err) == REE_OK ? 0 : cannot(&err);
}

static int verify(struct job *job) {
    struct verify_options *o = job->o;
    struct ree_error err;
    char key[65];
    bool text = job->info->kind == REE_RECEIPT_TEXT;
    if (text ? o->inputs.n_args || o->inputs.random : o->n_prompts > 0) {
        cli_error(text ? "%s: is a receipt of a text: give the prompt, not --input"
                       : "%s: is a receipt of tensors: give --input, not a prompt",
                  o->receipt);
        return CLI_USAGE;
    }
    if (cli_path_read_from(o->trace)) {
        cli_error("--trace: %s is also a file to be read, and is not replaced", o->trace);
        return CLI_USAGE;
    }
    int code = cli_receipt_salt(job->receipt, o->receipt, o->salt);
    if (code) return code == CLI_USAGE ? code : CLI_CANNOT;
    if (o->request && ree_request_load(o->request, &job->request, &err) != REE_OK)
        return cannot(&err);
    if (o->key && !cli_public_key(o->key, key)) return CLI_CANNOT;
    struct ree_verify_options options = {.size = sizeof options,
                                         .tokenizer = o->tokenizer,
                                         .request = job->request,
                                         .public_key = o->key ? key : NULL,
                                         .stepwise = o->stepwise,
                                         .ignores_eos = o->ignore_eos,
                                         .trace = o->trace,
                                         .trace_path = o->trace,
                                         .progress = cli_reports};
    if (ree_verification_create(job->receipt, &options, &job->v, &err) != REE_OK)
        return cannot(&err);
    // The devices are opened only if the receipt's own contents do not decide.
    if (ree_verification_is_decided(job->v)) return 0;
    if (cli_stages_open(&o->stages, &o->device, &err) != REE_OK) return cannot(&err);
    // Progress shows the single runs only for tensors: a text takes many runs.
    struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    struct ree_session_options session = {.size = sizeof session,
                                          .no_fuse = o->no_fuse,
                                          .progress = {.report = text ? progress : cli_progress}};
    struct ree_generator_options run = {.size = sizeof run,
                                        .model = &model,
                                        .session = &session,
                                        .prefill_chunk = (uint32_t)o->chunk};
    cli_quantize_model(&o->quantize, &model);
    cli_stages_generator(&o->stages, &run);
    if (ree_verification_load(job->v, o->model, o->stages.devices[0], &run, &err) != REE_OK)
        return cannot(&err);
    if (text) cli_print_notes(ree_verification_model(job->v));
    return ree_verification_is_decided(job->v) ? 0 : run_model(job);
}

// Reports what the prover chose, and what it states without proof.
static void report_claims(const struct ree_receipt_info *r, bool is_requested, struct strbuf *out) {
    const struct ree_sampling *s = r->sampling;
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
    verify_print_claims(claims, sizeof claims / sizeof *claims, out);
}

static void report_text(const struct job *job, struct strbuf *out) {
    const struct ree_verification *v = job->v;
    enum ree_verify_verdict verdict = ree_verification_verdict(v);
    const struct ree_verify_check *checks;
    size_t n = ree_verification_checks(v, &checks);
    verify_print_checks(checks, n, out);
    report_claims(job->info, job->o->request != NULL, out);
    const char *stepwise = ree_verification_stepwise(v), *reason = ree_verification_reason(v);
    if (stepwise[0]) {
        strbuf_printf(out, "\nran token by token: ");
        cli_append_name(out, stepwise);
        strbuf_append(out, "\n", 1);
    }
    strbuf_printf(out, "\n%s", ree_verify_verdict_name(verdict));
    if (verdict != REE_VERIFIED_FALSE && reason[0]) {
        strbuf_append(out, ": ", 2);
        cli_append_name(out, reason);
    }
    double seconds;
    size_t n_runs = ree_verification_runs(v, &seconds);
    if (n_runs)
        strbuf_printf(out, " (%zu run%s of the model, %.3f s; %s)", n_runs, n_runs == 1 ? "" : "s",
                      seconds, cli_stages_device(&job->o->stages));
    strbuf_append(out, "\n", 1);
}

static void report_json(const struct job *job, struct strbuf *out) {
    const struct ree_verification *v = job->v;
    const struct ree_verify_check *all;
    const char *stepwise = ree_verification_stepwise(v), *reason = ree_verification_reason(v);
    double seconds;
    size_t n_runs = ree_verification_runs(v, &seconds), n = ree_verification_checks(v, &all);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "result", ree_verify_verdict_name(ree_verification_verdict(v)));
    if (reason[0]) cJSON_AddStringToObject(root, "reason", reason);
    verify_add_checks(all, n, root, out);
    if (job->o->stages.n_devices)
        cJSON_AddStringToObject(root, "device", cli_stages_device(&job->o->stages));
    if (stepwise[0]) cJSON_AddStringToObject(root, "token_by_token", stepwise);
    cJSON_AddNumberToObject(root, "runs", (double)n_runs);
    cJSON_AddNumberToObject(root, "run_seconds", seconds);
    cli_append_json(out, root, false);
}

static int report(struct job *job) {
    struct strbuf text;
    budget_results();
    strbuf_init(&text);
    if (job->o->json)
        report_json(job, &text);
    else
        report_text(job, &text);
    if (cli_print(&text)) return CLI_CANNOT;
    return verify_exit_code(ree_verification_verdict(job->v));
}

static int run(struct verify_options *o) {
    struct ree_error err;
    struct job job = {.o = o};
    if (cli_receipt_load(o->receipt, &job.receipt, &err) != REE_OK) return cannot(&err);
    job.info = ree_receipt_info(job.receipt);
    int code = verify(&job);
    if (!code) code = report(&job);
    ree_verification_destroy(job.v);
    prompts_finish(&job.prompts);
    cli_stages_finish(&o->stages);
    ree_request_destroy(job.request);
    ree_receipt_destroy(job.receipt);
    return code;
}

int ree_run_verify(int argc, char **argv) {
    struct verify_options o;
    if (cli_wants_help(argc, argv)) return verify_options_help();
    int code = CLI_USAGE;
    if (verify_options_parse(&o, argc, argv)) {
        const struct cli_start start = {.uses = sandbox_uses(o.device.spec), .cannot = CLI_CANNOT};
        code = cli_start(&start);
        if (!code) code = o.data ? verify_training(&o) : run(&o);
    }
    verify_options_finish(&o);
    return code;
}
