// Opens both sides of a comparison and runs them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "compare.h"
#include "start.h"
#include "trace_options.h"

// Opening

static enum ree_status load_tokenizer(struct compare_job *job) {
    const struct compare_options *o = job->o;
    const char *path = o->tokenizer;
    if (!path) path = ree_generator_info(job->generators[0])->folder;
    enum ree_status status = ree_tokenizer_load(path, &job->tokenizer, &job->err);
    bool optional = !o->tokenizer && o->prompts[0].kind == PROMPT_IDS && status == REE_NOT_FOUND;
    if (status != REE_OK) job->tokenizer = NULL;
    return optional ? REE_OK : status;
}

// Sets job->eos to the ids that end a text: those that the model's files name, then those of its
// tokenizer. With --ignore-eos there are none.
static enum ree_status find_eos(struct compare_job *job) {
    const struct ree_generator_info *info = ree_generator_info(job->generators[0]);
    const int32_t *more = NULL;
    size_t n_more = job->tokenizer ? ree_tokenizer_eos(job->tokenizer, &more) : 0;
    if (job->o->ignore_eos) return REE_OK;
    job->eos = malloc((info->n_eos + n_more + 1) * sizeof *job->eos);
    if (!job->eos) return memory_error(&job->err);
    for (size_t i = 0; i < info->n_eos; i++)
        job->eos[job->n_eos++] = info->eos[i];
    for (size_t i = 0; i < n_more; i++)
        job->eos[job->n_eos++] = more[i];
    return REE_OK;
}

static enum ree_status open_sides(struct compare_job *job) {
    const struct compare_options *o = job->o;
    for (int k = 0; k < 2; k++) {
        TRY(cli_device_open(&o->devices[k], &job->devices[k], &job->err));
        if (o->n_prompts) {
            struct ree_model_options model = {.size = sizeof model, .progress = cli_reports};
            struct ree_generator_options options = {.size = sizeof options,
                                                    .model = &model,
                                                    .prefill_chunk = (uint32_t)o->chunk,
                                                    .max_batch = 1,
                                                    .exact_lengths = true};
            cli_quantize_model(&o->quantize, &model);
            TRY(ree_generator_create(o->model, job->devices[k], &options, &job->generators[k],
                                     &job->err));
        } else {
            TRY(ree_session_create(job->models[k], job->devices[k], NULL, &job->sessions[k],
                                   &job->err));
        }
    }
    return sandbox_close(&job->err);
}

// Running

static enum ree_status run(struct compare_job *job) {
    const struct compare_options *o = job->o;
    const struct ree_compare_options options = {.size = sizeof options,
                                                .fault = o->fault,
                                                .max_new_tokens = o->max_new_tokens,
                                                .eos = job->eos,
                                                .n_eos = job->n_eos};
    struct ree_generator *const *g = job->generators;
    enum ree_status status =
        o->n_prompts
            ? ree_compare_generators(g[0], g[1], &job->prompts.list[0], &options, &job->comparison,
                                     &job->err)
            : ree_compare_sessions(job->sessions[0], job->sessions[1], o->inputs.tensors,
                                   o->inputs.n_tensors, &options, &job->comparison, &job->err);
    bool is_fault = o->fault && strstr(job->err.message, "does not exist; the run had");
    if (status == REE_INVALID && is_fault) return prefix_error(&job->err, "--inject-fault");
    return status;
}

static enum ree_status save_page(struct compare_job *job) {
    char *html;
    TRY(ree_comparison_html(job->comparison, job->o->model, &html, &job->err));
    enum ree_status status = ree_file_write(job->o->html, html, strlen(html), &job->err);
    free(html);
    return status;
}

static int report(struct compare_job *job) {
    budget_results();
    const struct compare_options *o = job->o;
    struct compare_report *r = &job->report;
    struct strbuf text;
    r->model = o->model;
    r->comparison = job->comparison;
    r->result = ree_comparison_result(job->comparison);
    r->is_text = o->n_prompts > 0;
    for (int k = 0; k < 2; k++) {
        r->devices[k] = ree_device_name(job->devices[k]);
        r->sets[k] = o->devices[k].options.operation_set;
    }
    if (o->html && save_page(job) != REE_OK) {
        cli_fail(&job->err);
        return COMPARE_CANNOT;
    }
    strbuf_init(&text);
    if (o->json)
        compare_report_json(r, &text);
    else
        compare_report_text(r, o->all, &text);
    if (cli_print(&text)) return COMPARE_CANNOT;
    return r->result->first.found ? COMPARE_DIFFERS : 0;
}

static enum ree_status load_models(struct compare_job *job) {
    struct ree_model_options options = {.size = sizeof options,
                                        .progress = {.report = cli_progress}};
    cli_quantize_model(&job->o->quantize, &options);
    for (int k = 0; k < 2; k++)
        TRY(ree_model_load(job->o->model, &options, &job->models[k], &job->err));
    return REE_OK;
}

int compare_work(struct compare_job *job, struct compare_options *o) {
    enum ree_status status = REE_OK;
    if (!o->n_prompts) {
        // The inputs are loaded before the devices are opened, so that a missing input is reported
        // immediately.
        status = load_models(job);
        if (status == REE_OK && run_inputs_load(&o->inputs, job->models[0])) return COMPARE_CANNOT;
    }
    if (status == REE_OK) status = open_sides(job);
    if (status == REE_OK && o->n_prompts) {
        status = load_tokenizer(job);
        if (status == REE_OK &&
            prompts_load(&job->prompts, o->prompts, 1, job->tokenizer, NULL, false))
            return COMPARE_CANNOT;
        if (status == REE_OK) status = find_eos(job);
    }
    if (status == REE_OK) status = run(job);
    cli_progress_end();
    if (status == REE_OK) return report(job);
    cli_fail(&job->err);
    return COMPARE_CANNOT;
}

void compare_finish(struct compare_job *job) {
    ree_comparison_destroy(job->comparison); // before what it refers to
    for (int k = 0; k < 2; k++) {
        ree_session_destroy(job->sessions[k]);
        ree_generator_destroy(job->generators[k]);
        cli_device_close(job->devices[k]);
    }
    for (int k = 0; k < 2; k++)
        ree_model_destroy(job->models[k]);
    prompts_finish(&job->prompts);
    ree_tokenizer_destroy(job->tokenizer);
    free(job->eos);
}
