// Traces, comparisons and disputes through the public headers only, as a program outside the source
// tree uses them: records two traces, one with a flipped bit, finds the difference in three ways,
// makes a claim, lets the referee decide it, and checks that the side with the flipped bit is
// named.
//
//     audit MODEL.onnx INPUT.npy
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test_folder.h"
#include "check.h"

static struct ree_device *device;
static struct ree_model *model;
static struct ree_tensor input;

static void run(struct ree_session *session) {
    size_t n = ree_model_n_outputs(model);
    struct ree_tensor *outputs = calloc(n, sizeof *outputs);
    CHECK(outputs && ree_session_run(session, &input, 1, outputs, &err) == REE_OK);
    while (n > 0)
        ree_tensor_finish(&outputs[--n]);
    free(outputs);
}

// Records a run. `fault` and `values` may be NULL.
static struct ree_recorded record(const char *path, const char *fault, const char *values) {
    struct ree_session *session;
    struct ree_recording *recording;
    struct ree_recorded recorded = {.size = sizeof recorded};
    const struct ree_record_options options = {.size = sizeof options,
                                               .trace = path,
                                               .fault = fault,
                                               .dump_names = values ? "" : NULL,
                                               .dump_folder = values};
    CHECK(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    CHECK(ree_record_session(session, &options, &recording, &err) == REE_OK);
    run(session);
    CHECK(ree_recording_n_steps(recording) == 1);
    CHECK(ree_recording_finish(recording, &recorded, &err) == REE_OK);
    ree_session_destroy(session);
    CHECK(recorded.n_steps == 1 && strlen(recorded.root) == 64 && recorded.prefill_chunk == 0);
    CHECK((recorded.n_files > 0) == (values != NULL) && recorded.n_omitted == 0);
    return recorded;
}

static void test_refusals(const char *path) {
    struct ree_session *session;
    struct ree_recording *recording;
    struct ree_record_options options = {.trace = path};
    CHECK(ree_record_check(&options, &err) == REE_INVALID && strstr(err.message, "size"));
    options = (struct ree_record_options){.size = sizeof options, .fault = "no numbers"};
    CHECK(ree_record_check(&options, &err) == REE_INVALID && strstr(err.message, "NODE:STEP:BIT"));
    options = (struct ree_record_options){.size = sizeof options, .dump_names = "x"};
    CHECK(ree_record_check(&options, &err) == REE_INVALID);
    // A fault in a step that does not exist is not a success.
    options = (struct ree_record_options){.size = sizeof options, .fault = "0:5:1"};
    CHECK(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    CHECK(ree_record_session(session, &options, &recording, &err) == REE_OK);
    run(session);
    CHECK(ree_recording_finish(recording, NULL, &err) == REE_INVALID);
    CHECK(strstr(err.message, "step 5 does not exist"));
    ree_session_destroy(session);
}

static void test_traces(const struct ree_trace *a, const struct ree_trace *b, uint32_t node,
                        const struct ree_recorded recorded[2]) {
    struct ree_trace_info infos[2] = {{.size = sizeof *infos}, {.size = sizeof *infos}};
    struct ree_node_info info = {.size = sizeof info};
    struct ree_diff diff = {.size = sizeof diff};
    char hex[65], *html;
    CHECK(ree_trace_info(a, &infos[0], &err) == REE_OK);
    CHECK(ree_trace_info(b, &infos[1], &err) == REE_OK);
    for (int k = 0; k < 2; k++)
        CHECK(strcmp(infos[k].root, recorded[k].root) == 0 && infos[k].n_steps == 1);
    CHECK(strcmp(infos[0].root, infos[1].root) != 0);
    CHECK(ree_model_graph_sha256(model, hex, &err) == REE_OK);
    CHECK(strcmp(infos[0].graph_sha256, hex) == 0);
    CHECK(strcmp(infos[0].operation_set, "reproducible") == 0);
    CHECK(strcmp(ree_trace_input_name(a, 0), input.name) == 0);
    CHECK(!ree_trace_input_name(a, infos[0].n_inputs));

    CHECK(ree_trace_diff(a, b, &diff, &err) == REE_OK);
    CHECK(diff.kind == REE_DIFF_NODE && diff.step == 0 && diff.node == node);
    CHECK(diff.n_before == node && diff.n_new == 0);
    CHECK(ree_trace_node_differs(a, b, 0, node) && ree_trace_inputs_agree(a, b, 0, node));
    CHECK(!ree_trace_node_differs(a, b, 7, node) && !ree_trace_node_differs(a, b, 0, UINT32_MAX));
    CHECK(ree_trace_node(a, infos[0].n_nodes, &info, &err) == REE_NOT_FOUND);
    CHECK(ree_trace_node(a, node, &info, &err) == REE_OK && info.n_outputs > 0);
    CHECK(!ree_trace_value_agrees(a, b, 0, (int32_t)info.first_output));
    for (uint32_t i = 0; i < info.n_inputs; i++) {
        char *text = ree_trace_value_text(a, info.inputs[i]);
        CHECK(text && text[0]);
        free(text);
    }
    CHECK(!ree_trace_value_text(a, INT32_MAX));
    CHECK(ree_trace_diff(a, a, &diff, &err) == REE_OK && diff.kind == REE_DIFF_SAME);
    CHECK(ree_trace_diff_html(a, b, (const char *const[]){"<a>", "b"}, &html, &err) == REE_OK);
    CHECK(strstr(html, "&lt;a&gt;") && !strstr(html, "<a>") && strstr(html, "First difference"));
    free(html);
}

// Compares two sessions; with the fault, the same node must be found as in the traces.
static void test_compare(const char *fault, uint32_t node, uint64_t bit) {
    for (int with_fault = 0; with_fault < 2; with_fault++) {
        struct ree_session *sessions[2];
        struct ree_comparison *comparison;
        const struct ree_compare_options options = {.size = sizeof options,
                                                    .fault = with_fault ? fault : NULL};
        for (int k = 0; k < 2; k++)
            CHECK(ree_session_create(model, device, NULL, &sessions[k], &err) == REE_OK);
        CHECK(ree_compare_sessions(sessions[0], sessions[1], &input, 1, &options, &comparison,
                                   &err) == REE_OK);
        const struct ree_compare_result *r = ree_comparison_result(comparison);
        CHECK(r->n_steps == 1 && r->first.found == with_fault && (r->n_differ > 0) == with_fault);
        if (with_fault) {
            struct ree_node_info info = {.size = sizeof info};
            char *html;
            CHECK(r->first.node == node && r->first.inputs_agree && r->n_new == 1);
            CHECK(r->first.ulp.n_differ == 1 && r->first.ulp.worst == bit / 32);
            CHECK(ree_comparison_node(comparison, node, &info, &err) == REE_OK);
            CHECK(info.op_type[0] && r->drift[node].n_differ == 1);
            CHECK(ree_comparison_node(comparison, r->n_nodes, &info, &err) == REE_NOT_FOUND);
            CHECK(ree_comparison_html(comparison, "a <model>", &html, &err) == REE_OK);
            CHECK(strstr(html, "a &lt;model&gt;"));
            free(html);
        }
        ree_comparison_destroy(comparison);
        for (int k = 0; k < 2; k++)
            ree_session_destroy(sessions[k]);
    }
}

// Side `wrong` has the flipped bit. The dispute must end with a claim about the node, and the
// referee must name that side.
static void test_dispute(const struct ree_trace *const traces[2], int wrong, uint32_t node,
                         const char *model_path, const char *claim_path, const char *values) {
    const struct ree_disputant parties[2] = {{.trace = traces[0]}, {.trace = traces[1]}};
    const struct ree_dispute_options options = {
        .size = sizeof options, .model = model_path, .wants_transcript = true};
    const struct ree_decide_options with_values = {.size = sizeof with_values, .values = values};
    struct ree_claim_info info = {.size = sizeof info};
    struct ree_dispute_result *result;
    struct ree_decision *decision;
    struct ree_claim *claim;
    CHECK(ree_dispute_hold(parties, &options, &result, &err) == REE_OK);
    CHECK(result->kind == REE_DISPUTE_NODE && result->step == 0 && result->claim);
    CHECK(!result->is_judged && result->same_headers && result->n_messages > 4);
    CHECK(result->transcript_nbytes > 0 && result->transcript[0] == '{');
    CHECK(ree_claim_save(result->claim, claim_path, &err) == REE_OK);
    ree_dispute_result_destroy(result);

    CHECK(ree_claim_load(claim_path, &claim, &err) == REE_OK);
    CHECK(ree_claim_info(claim, &info, &err) == REE_OK);
    CHECK(info.kind == REE_CLAIM_OF_NODE && info.node == node && info.op_type[0]);
    CHECK(ree_claim_decide(claim, model_path, NULL, NULL, &decision, &err) == REE_NOT_FOUND);
    CHECK(ree_claim_decide(claim, model_path, NULL, &with_values, &decision, &err) == REE_OK);
    CHECK(decision->is_wrong[wrong] && !decision->is_wrong[1 - wrong]);
    CHECK(decision->verdict == (wrong == 0 ? REE_VERDICT_B : REE_VERDICT_A));
    CHECK(decision->why[wrong][0] && !decision->why[1 - wrong][0]);
    CHECK(!decision->is_bound[0] && decision->wrong_output[wrong] == 0 && decision->n_loaded > 0);
    CHECK(decision->n_outputs > 0 && strlen(decision->outputs[0]) == 64);
    ree_decision_destroy(decision);
    ree_claim_destroy(claim);
}

int main(int argc, char **argv) {
    char paths[5][512];
    const uint32_t node = 2;
    const uint64_t bit = 32 * 5 + 22; // of element 5
    char fault[32];
    char folder[] = "/tmp/ree-audit-XXXXXX";
    if (argc != 3) return 2;
    CHECK(mkdtemp(folder));
    const char *const names[] = {"a.trace", "b.trace", "values", "claim.json", "values/step-00000"};
    for (int i = 0; i < 5; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    snprintf(fault, sizeof fault, "%u:0:%llu", node, (unsigned long long)bit);
    CHECK(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    CHECK(ree_model_load(argv[1], NULL, &model, &err) == REE_OK);
    CHECK(ree_tensor_load(&input, argv[2], &err) == REE_OK);
    input.name = strdup(ree_model_input(model, 0)->name);

    test_refusals(paths[0]);
    const struct ree_recorded recorded[2] = {record(paths[0], NULL, paths[2]),
                                             record(paths[1], fault, NULL)};
    struct ree_trace *a, *b;
    CHECK(ree_trace_load(paths[0], &a, &err) == REE_OK);
    CHECK(ree_trace_load(paths[1], &b, &err) == REE_OK);
    test_traces(a, b, node, recorded);
    test_compare(fault, node, bit);
    test_dispute((const struct ree_trace *const[]){a, b}, 1, node, argv[1], paths[3], paths[2]);
    test_dispute((const struct ree_trace *const[]){b, a}, 0, node, argv[1], paths[3], paths[2]);
    ree_trace_destroy(a);
    ree_trace_destroy(b);
    ree_tensor_finish(&input);
    ree_model_destroy(model);
    ree_device_destroy(device);
    test_remove_folder(paths[4]);
    test_remove_folder(paths[2]);
    test_remove_folder(folder);
    printf("passed\n");
    return 0;
}
