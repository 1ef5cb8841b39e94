// Opens both sides of a comparison and runs them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispute/compare_text.h"
#include "dispute/html.h"
#include "dispute/suspects.h"
#include "base/file.h"
#include "base/status.h"
#include "generate/eos.h"
#include "compare.h"
#include "session/profile.h"
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

static enum ree_status find_eos(struct compare_job *job) {
    const struct ree_generator_info *info = ree_generator_info(job->generators[0]);
    if (job->o->ignore_eos || ree_eos_ids(info, job->tokenizer, &job->eos, &job->n_eos))
        return REE_OK;
    return ree_fail(&job->err, REE_NO_MEMORY, "out of memory");
}

static enum ree_status open_sides(struct compare_job *job) {
    const struct compare_options *o = job->o;
    for (int k = 0; k < 2; k++) {
        REE_TRY(cli_device_open(&o->devices[k], &job->devices[k], &job->err));
        if (o->n_prompts) {
            struct ree_model_options model = {.size = sizeof model, .progress = cli_reports};
            struct ree_generator_options options = {.size = sizeof options,
                                                    .model = &model,
                                                    .prefill_chunk = (uint32_t)o->chunk,
                                                    .max_batch = 1,
                                                    .exact_lengths = true};
            cli_quantize_model(&o->quantize, &model);
            REE_TRY(ree_generator_create(o->model, job->devices[k], &options, &job->generators[k],
                                         &job->err));
            job->sessions[k] = ree_generator_session(job->generators[k]);
        } else {
            REE_TRY(ree_session_create(job->models[k], job->devices[k], NULL, &job->sessions[k],
                                       &job->err));
        }
        // Measuring lets a node's RepOps be found if the node differs.
        ree_session_measure(job->sessions[k], true);
    }
    return sandbox_close(&job->err);
}

static const struct ree_model *model_of(const struct compare_job *job) {
    return job->o->n_prompts ? job->generators[0]->model : job->models[0];
}

static enum ree_status observe(struct compare_job *job) {
    const struct ree_roles *roles = job->o->n_prompts ? &job->generators[0]->roles : NULL;
    REE_TRY(ree_compare_create(model_of(job), roles ? roles->kv_caches : NULL,
                               roles ? roles->n_kv_caches : 0, &job->compare, &job->err));
    for (unsigned k = 0; k < 2; k++) {
        struct ree_observer observer = ree_compare_observer(job->compare, k);
        REE_TRY(ree_session_observe(job->sessions[k], &observer, &job->err));
    }
    if (!job->o->fault) return REE_OK;
    struct ree_fault fault;
    REE_TRY(parse_fault_option(job->o->fault, model_of(job), &fault, &job->err));
    job->fault_step = fault.run;
    return ree_session_inject(job->sessions[1], &fault, &job->err);
}

// Running

struct suspect_search {
    struct compare_report *report;
    unsigned side;
};

static void add_suspect(void *user, const struct ree_device_fact *fact) {
    struct suspect_search *search = user;
    struct compare_report *r = search->report;
    if (r->n_suspects == COMPARE_MAX_SUSPECTS) return;
    struct compare_suspect *s = &r->suspects[r->n_suspects++];
    s->side = search->side;
    snprintf(s->name, sizeof s->name, "%s", fact->name);
    snprintf(s->verdict, sizeof s->verdict, "%s", fact->value);
}

// Called after each step: finds suspects at once, while the latest run has the first difference.
static void on_step(void *user) {
    struct compare_job *job = user;
    struct ree_compare_result result = ree_compare_result(job->compare);
    if (!result.first.found || job->has_suspects) return;
    job->has_suspects = true;
    const struct ree_node *node = model_of(job)->graph->nodes[result.first.node];
    uint32_t repops =
        ree_suspects_repops(job->sessions[0], node) | ree_suspects_repops(job->sessions[1], node);
    for (unsigned k = 0; k < 2; k++) {
        struct suspect_search search = {&job->report, k};
        ree_suspects_find(job->devices[k], repops, add_suspect, &search);
    }
}

static enum ree_status run_text(struct compare_job *job) {
    struct ree_compare_text text = {
        .generators = {job->generators[0], job->generators[1]},
        .prompt = job->prompts.list[0].ids,
        .n_prompt = job->prompts.list[0].n,
        .max_new_tokens = job->o->max_new_tokens,
        .eos = job->eos,
        .n_eos = job->n_eos,
        .on_step = on_step,
        .user = job,
    };
    return ree_compare_text(&text, &job->ids, &job->n_ids, &job->err);
}

static enum ree_status run_inputs(struct compare_job *job) {
    for (int k = 0; k < 2; k++) {
        size_t n = ree_model_n_outputs(job->models[k]);
        struct ree_tensor *outputs = calloc(n + 1, sizeof *outputs);
        if (!outputs) return ree_fail(&job->err, REE_NO_MEMORY, "out of memory");
        enum ree_status status = ree_session_run(job->sessions[k], job->o->inputs.tensors,
                                                 job->o->inputs.n_tensors, outputs, &job->err);
        for (size_t i = 0; i < n; i++)
            ree_tensor_finish(&outputs[i]);
        free(outputs);
        REE_TRY(status);
    }
    on_step(job);
    return REE_OK;
}

// If the fault's step does not exist, nothing differs. Without this check that would look like an
// undetected fault.
static enum ree_status check_fault(struct compare_job *job) {
    uint64_t n = ree_compare_result(job->compare).n_steps;
    if (!job->o->fault || job->fault_step < n) return REE_OK;
    return ree_fail(&job->err, REE_INVALID,
                    "--inject-fault: step %llu does not exist; the run had %llu, counted from 0",
                    (unsigned long long)job->fault_step, (unsigned long long)n);
}

static int report(struct compare_job *job) {
    budget_results();
    const struct compare_options *o = job->o;
    struct compare_report *r = &job->report;
    struct ree_strbuf text;
    r->model = o->model;
    r->graph = model_of(job)->graph;
    r->result = ree_compare_result(job->compare);
    r->is_text = o->n_prompts > 0;
    r->ids = job->ids;
    r->n_ids = job->n_ids;
    for (int k = 0; k < 2; k++) {
        r->devices[k] = ree_device_name(job->devices[k]);
        r->sets[k] = o->devices[k].options.operation_set;
    }
    ree_strbuf_init(&text);
    if (o->html) {
        struct ree_html_compare page = {
            o->model, {r->devices[0], r->devices[1]}, r->graph, &r->result};
        ree_html_compare(&page, &text);
        enum ree_status status = text.failed
                                     ? ree_fail(&job->err, REE_NO_MEMORY, "out of memory")
                                     : ree_file_write(o->html, text.data, text.size, &job->err);
        ree_strbuf_finish(&text);
        if (status != REE_OK) {
            cli_fail(&job->err);
            return COMPARE_CANNOT;
        }
    }
    ree_strbuf_init(&text);
    if (o->json)
        compare_report_json(r, &text);
    else
        compare_report_text(r, o->all, &text);
    if (cli_print(&text)) return COMPARE_CANNOT;
    return r->result.first.found ? COMPARE_DIFFERS : 0;
}

static enum ree_status load_models(struct compare_job *job) {
    struct ree_model_options options = {.size = sizeof options,
                                        .progress = {.report = cli_progress}};
    cli_quantize_model(&job->o->quantize, &options);
    for (int k = 0; k < 2; k++)
        REE_TRY(ree_model_load(job->o->model, &options, &job->models[k], &job->err));
    return REE_OK;
}

int compare_work(struct compare_job *job, struct compare_options *o) {
    enum ree_status status = REE_OK;
    if (!o->n_prompts) {
        // Inputs before the devices: a missing input is reported at once.
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
    if (status == REE_OK) status = observe(job);
    if (status == REE_OK) status = o->n_prompts ? run_text(job) : run_inputs(job);
    cli_progress_end();
    if (status == REE_OK) status = check_fault(job);
    if (status == REE_OK) return report(job);
    cli_fail(&job->err);
    return COMPARE_CANNOT;
}

void compare_finish(struct compare_job *job) {
    for (int k = 0; k < 2; k++) {
        if (!job->generators[k]) ree_session_destroy(job->sessions[k]);
        ree_generator_destroy(job->generators[k]);
        cli_device_close(job->devices[k]);
    }
    ree_compare_destroy(job->compare); // before the model, which it refers to
    for (int k = 0; k < 2; k++)
        ree_model_destroy(job->models[k]);
    prompts_finish(&job->prompts);
    ree_tokenizer_destroy(job->tokenizer);
    free(job->eos);
    free(job->ids);
}
