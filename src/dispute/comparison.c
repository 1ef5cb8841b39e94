// Compares two devices for a program: runs both sides and collects the result (dispute/compare.h).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "dispute/compare.h"
#include "dispute/compare_text.h"
#include "dispute/html.h"
#include "dispute/suspects.h"
#include "session/profile.h"
#include "trace/fault.h"

#define MAX_SUSPECTS 32

struct ree_comparison {
    const struct ree_model *model; // model of side A
    struct ree_session *sessions[2];
    unsigned n_observed; // number of sessions that have an observer
    struct ree_compare *compare;
    struct ree_compare_result result;
    bool has_fault, has_suspects;
    struct ree_fault fault;
    struct ree_suspect suspects[MAX_SUSPECTS];
    // the strings that `suspects` points to
    char names[MAX_SUSPECTS][48], verdicts[MAX_SUSPECTS][200];
    int32_t *ids;
    size_t n_ids;
};

static enum ree_status observe(struct ree_comparison *c, const struct ree_roles *roles,
                               const char *fault, struct ree_error *err) {
    REE_TRY(ree_compare_create(c->model, roles ? roles->kv_caches : NULL,
                               roles ? roles->n_kv_caches : 0, &c->compare, err));
    for (unsigned k = 0; k < 2; k++) {
        struct ree_observer observer = ree_compare_observer(c->compare, k);
        // If the node differs, ree_suspects_repops finds its RepOps in the measurements.
        ree_session_measure(c->sessions[k], true);
        REE_TRY(ree_session_observe(c->sessions[k], &observer, err));
        c->n_observed++;
    }
    c->has_fault = fault != NULL;
    if (!fault) return REE_OK;
    REE_TRY(ree_fault_parse(fault, c->model, &c->fault, err));
    return ree_session_inject(c->sessions[1], &c->fault, err);
}

// Suspects

struct search {
    struct ree_comparison *comparison;
    unsigned side;
};

static void add_suspect(void *user, const struct ree_device_fact *fact) {
    struct search *search = user;
    struct ree_comparison *c = search->comparison;
    size_t i = c->result.n_suspects;
    if (i == MAX_SUSPECTS) return;
    // Copies, because a device's facts may change while it runs.
    snprintf(c->names[i], sizeof c->names[i], "%s", fact->name);
    snprintf(c->verdicts[i], sizeof c->verdicts[i], "%s", fact->value);
    c->suspects[i] = (struct ree_suspect){search->side, c->names[i], c->verdicts[i]};
    c->result.n_suspects++;
}

// Called after each step. Finds suspects after the step with the first difference, because
// ree_suspects_repops knows only the latest run.
static void on_step(void *user) {
    struct ree_comparison *c = user;
    struct ree_compare_result result = ree_compare_result(c->compare);
    if (!result.first.found || c->has_suspects) return;
    c->has_suspects = true;
    const struct ree_node *node = c->model->graph->nodes[result.first.node];
    uint32_t repops =
        ree_suspects_repops(c->sessions[0], node) | ree_suspects_repops(c->sessions[1], node);
    for (unsigned k = 0; k < 2; k++) {
        struct search search = {c, k};
        ree_suspects_find(ree_session_device(c->sessions[k]), repops, add_suspect, &search);
    }
}

// Running

static enum ree_status run_once(struct ree_comparison *c, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_error *err) {
    for (int k = 0; k < 2; k++) {
        size_t n = c->model->n_outputs;
        struct ree_tensor *outputs = ree_alloc_zeroed(n + 1, sizeof *outputs);
        if (!outputs) return ree_no_memory(err);
        enum ree_status status = ree_session_run(c->sessions[k], inputs, n_inputs, outputs, err);
        for (size_t i = 0; i < n; i++)
            ree_tensor_finish(&outputs[i]);
        ree_free(outputs);
        REE_TRY(status);
    }
    on_step(c);
    return REE_OK;
}

// If the fault's step does not exist, nothing differs. Without this check that would look like an
// undetected fault.
static enum ree_status conclude(struct ree_comparison *c, struct ree_error *err) {
    struct ree_compare_result result = ree_compare_result(c->compare);
    result.n_suspects = c->result.n_suspects;
    result.suspects = c->suspects;
    result.n_ids = c->n_ids;
    result.ids = c->ids;
    c->result = result;
    if (!c->has_fault || c->fault.run < result.n_steps) return REE_OK;
    return ree_fault_not_reached(&c->fault, result.n_steps, err);
}

// Removes the observers, so that the sessions may run again without effect on the comparison.
static void end_observation(struct ree_comparison *c) {
    while (c->n_observed > 0)
        ree_session_end_observation(c->sessions[--c->n_observed]);
}

static enum ree_status check_models(const struct ree_model *a, const struct ree_model *b,
                                    struct ree_error *err) {
    if (a == b) return REE_OK;
    char hashes[2][65];
    REE_TRY(ree_model_graph_sha256(a, hashes[0], err));
    REE_TRY(ree_model_graph_sha256(b, hashes[1], err));
    if (strcmp(hashes[0], hashes[1]) != 0 || a->graph->n_nodes != b->graph->n_nodes)
        return ree_fail(err, REE_INVALID, "the two sides have different models");
    return REE_OK;
}

static enum ree_status compare_sessions(struct ree_comparison *c, const struct ree_tensor *inputs,
                                        size_t n_inputs, const struct ree_compare_options *options,
                                        struct ree_error *err) {
    REE_TRY(check_models(c->model, ree_session_model(c->sessions[1]), err));
    REE_TRY(observe(c, NULL, options->fault, err));
    REE_TRY(run_once(c, inputs, n_inputs, err));
    return conclude(c, err);
}

enum ree_status ree_compare_sessions(struct ree_session *a, struct ree_session *b,
                                     const struct ree_tensor *inputs, size_t n_inputs,
                                     const struct ree_compare_options *requested,
                                     struct ree_comparison **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_compare_options options;
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, requested, "ree_compare_options", err));
    struct ree_comparison *c = ree_alloc_zeroed(1, sizeof *c);
    if (!c) return ree_no_memory(err);
    c->model = ree_session_model(a);
    c->sessions[0] = a;
    c->sessions[1] = b;
    enum ree_status status = compare_sessions(c, inputs, n_inputs, &options, err);
    end_observation(c);
    if (status == REE_OK)
        *out = c;
    else
        ree_comparison_destroy(c);
    return status;
}

static enum ree_status compare_generators(struct ree_comparison *c,
                                          struct ree_generator *const sides[2],
                                          const struct ree_prompt *prompt,
                                          const struct ree_compare_options *options,
                                          struct ree_error *err) {
    if (!c->sessions[0] || !c->sessions[1])
        return ree_fail(err, REE_UNSUPPORTED,
                        "a model that runs in several stages is not compared");
    if (sides[0]->options.prefill_chunk != sides[1]->options.prefill_chunk)
        return ree_fail(err, REE_INVALID, "the two sides have different values of prefill_chunk");
    REE_TRY(check_models(sides[0]->model, sides[1]->model, err));
    REE_TRY(observe(c, &sides[0]->roles, options->fault, err));
    struct ree_compare_text text = {
        .generators = {sides[0], sides[1]},
        .prompt = prompt->ids,
        .n_prompt = prompt->n,
        .max_new_tokens = options->max_new_tokens,
        .eos = options->eos,
        .n_eos = options->n_eos,
        .on_step = on_step,
        .user = c,
    };
    REE_TRY(ree_compare_text(&text, &c->ids, &c->n_ids, err));
    return conclude(c, err);
}

enum ree_status ree_compare_generators(struct ree_generator *a, struct ree_generator *b,
                                       const struct ree_prompt *prompt,
                                       const struct ree_compare_options *requested,
                                       struct ree_comparison **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_compare_options options;
    struct ree_generator *const sides[2] = {a, b};
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, requested, "ree_compare_options", err));
    struct ree_comparison *c = ree_alloc_zeroed(1, sizeof *c);
    if (!c) return ree_no_memory(err);
    c->model = a->model;
    for (int k = 0; k < 2; k++)
        c->sessions[k] = ree_pipeline_session(sides[k]->pipeline);
    enum ree_status status = compare_generators(c, sides, prompt, &options, err);
    end_observation(c);
    if (status == REE_OK)
        *out = c;
    else
        ree_comparison_destroy(c);
    return status;
}

// The result

const struct ree_compare_result *ree_comparison_result(const struct ree_comparison *c) {
    return &c->result;
}

enum ree_status ree_comparison_node(const struct ree_comparison *c, size_t node,
                                    struct ree_node_info *out, struct ree_error *err) {
    const struct ree_graph *graph = c->model->graph;
    if (node >= graph->n_nodes)
        return ree_fail(err, REE_NOT_FOUND, "node %zu does not exist; the model has %zu", node,
                        graph->n_nodes);
    const struct ree_node *n = graph->nodes[node];
    struct ree_node_info info = {.name = n->name ? n->name : "",
                                 .domain = n->domain,
                                 .op_type = n->op_type,
                                 .n_inputs = (uint32_t)n->n_inputs,
                                 .n_outputs = (uint32_t)n->n_outputs};
    return ree_stats_write(out, &info, sizeof info, "ree_node_info", err);
}

enum ree_status ree_comparison_html(const struct ree_comparison *c, const char *title,
                                    char **out_html, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_strbuf text;
    struct ree_html_compare page = {.model = title, .graph = c->model->graph, .result = &c->result};
    for (int k = 0; k < 2; k++)
        page.devices[k] = ree_device_name(ree_session_device(c->sessions[k]));
    ree_strbuf_init(&text);
    ree_html_compare(&page, &text);
    *out_html = ree_strbuf_take(&text);
    return *out_html ? REE_OK : ree_no_memory(err);
}

void ree_comparison_destroy(struct ree_comparison *c) {
    REE_FLOAT_ENV_API();
    if (!c) return;
    ree_compare_destroy(c->compare);
    ree_free(c->ids);
    ree_free(c);
}
