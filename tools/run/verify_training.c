#include "verify_training.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "budget.h"
#include "paths.h"
#include "receipts.h"
#include "sandbox.h"
#include "verify_report.h"

struct job {
    const struct verify_options *o;
    struct ree_training_receipt *receipt;
    const struct ree_training_receipt_info *info;
    struct ree_model *model;
    struct ree_dataset *dataset;
    struct ree_device *device;
    struct ree_training_verification *v;
};

static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static int verify(struct job *job) {
    const struct verify_options *o = job->o;
    struct ree_error err;
    char key[65];
    if (cli_path_read_from(o->trace)) {
        cli_error("--trace: %s is also a file to be read, and is not replaced", o->trace);
        return CLI_USAGE;
    }
    if (o->key && !cli_public_key(o->key, key)) return CLI_CANNOT;
    const struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    const struct ree_training_verify_options options = {.size = sizeof options,
                                                        .public_key = o->key ? key : NULL,
                                                        .checkpoint = o->resume,
                                                        .n_steps = o->n_steps,
                                                        .no_fuse = o->no_fuse,
                                                        .trace = o->trace,
                                                        .progress = {.report = progress}};
    bool ok = ree_training_receipt_load(o->receipt, &job->receipt, &err) == REE_OK &&
              ree_model_load(o->model, &model, &job->model, &err) == REE_OK &&
              ree_dataset_load(o->data, &job->dataset, &err) == REE_OK &&
              cli_device_open(&o->device, &job->device, &err) == REE_OK &&
              sandbox_close(&err) == REE_OK;
    if (ok) {
        job->info = ree_training_receipt_info(job->receipt);
        ok = ree_training_verify(job->receipt, job->model, job->device, job->dataset, &options,
                                 &job->v, &err) == REE_OK;
        cli_progress_end();
    }
    if (ok) return 0;
    cli_fail(&err);
    return CLI_CANNOT;
}

static void report_text(const struct job *job, struct strbuf *out) {
    const struct ree_verify_check *checks;
    size_t n = ree_training_verification_checks(job->v, &checks);
    verify_print_checks(checks, n, out);
    const char *const claims[][2] = {{"device", job->info->device},
                                     {"created", job->info->created},
                                     {"ree", job->info->ree_version}};
    verify_print_claims(claims, sizeof claims / sizeof *claims, out);
    double seconds;
    uint64_t first, n_steps = ree_training_verification_steps(job->v, &first, &seconds);
    strbuf_printf(out, "\n%s", ree_verify_verdict_name(ree_training_verification_verdict(job->v)));
    if (n_steps)
        strbuf_printf(out, " (%llu step%s, %.3f s; %s)", (unsigned long long)n_steps,
                      n_steps == 1 ? "" : "s", seconds, ree_device_name(job->device));
    strbuf_append(out, "\n", 1);
}

static void report_json(const struct job *job, struct strbuf *out) {
    const struct ree_verify_check *checks;
    size_t n = ree_training_verification_checks(job->v, &checks);
    double seconds;
    uint64_t first, n_steps = ree_training_verification_steps(job->v, &first, &seconds);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "result",
                            ree_verify_verdict_name(ree_training_verification_verdict(job->v)));
    verify_add_checks(checks, n, root, out);
    cJSON_AddStringToObject(root, "device", ree_device_name(job->device));
    cJSON_AddNumberToObject(root, "first_step", (double)first);
    cJSON_AddNumberToObject(root, "steps", (double)n_steps);
    cJSON_AddNumberToObject(root, "run_seconds", seconds);
    cli_append_json(out, root, false);
}

int verify_training(const struct verify_options *o) {
    struct job job = {.o = o};
    struct strbuf text;
    int code = verify(&job);
    if (!code) {
        budget_results();
        strbuf_init(&text);
        if (o->json)
            report_json(&job, &text);
        else
            report_text(&job, &text);
        code = cli_print(&text) ? CLI_CANNOT
                                : verify_exit_code(ree_training_verification_verdict(job.v));
    }
    ree_training_verification_destroy(job.v);
    ree_training_receipt_destroy(job.receipt);
    ree_dataset_destroy(job.dataset);
    cli_device_close(job.device);
    ree_model_destroy(job.model);
    return code;
}
