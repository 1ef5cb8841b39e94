// Plans, pipelines and traces of language models through the public headers only. The same root
// must come from one stage and from three, and a plan must divide a model as it says.
//
//     stages MODEL.onnx INPUT.npy LANGUAGE-MODEL
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test_folder.h"
#include "check.h"

static struct ree_device *device;
static char plan_path[512];

static void test_plan(const char *path) {
    const struct ree_plan_options three = {.size = sizeof three, .n_partitions = 3};
    const struct ree_plan_options from_file = {.size = sizeof from_file, .plan_path = plan_path};
    const struct ree_plan_options none = {.size = sizeof none};
    const struct ree_plan_options both = {
        .size = sizeof both, .n_partitions = 3, .plan_path = plan_path};
    struct ree_plan *plan, *again;
    CHECK(ree_plan_create(path, &none, &plan, &err) == REE_INVALID && !plan);
    CHECK(strstr(err.message, "the nodes name no stages"));
    CHECK(ree_plan_create(path, &both, &plan, &err) == REE_INVALID);
    CHECK(ree_plan_create(path, &three, &plan, &err) == REE_OK);
    CHECK(ree_plan_save(plan, plan_path, &err) == REE_OK);
    CHECK(ree_plan_create(path, &from_file, &again, &err) == REE_OK);

    struct ree_plan_info info = {.size = sizeof info}, info_again = {.size = sizeof info};
    CHECK(ree_plan_info(plan, &info, &err) == REE_OK);
    CHECK(ree_plan_info(again, &info_again, &err) == REE_OK);
    CHECK(info.n_stages == 3 && info_again.n_stages == 3 && info.is_language_model);
    CHECK(strcmp(info.origin, "planned") == 0 && strcmp(info_again.origin, "from the file") == 0);
    CHECK(info.n_kv_caches > 0 && info.context == 1024 && strlen(info.graph_sha256) == 64);
    for (size_t i = 0; i < 3; i++) {
        struct ree_plan_stage stage = {.size = sizeof stage}, same = {.size = sizeof same};
        CHECK(ree_plan_stage(plan, i, &stage, &err) == REE_OK);
        CHECK(ree_plan_stage(again, i, &same, &err) == REE_OK);
        CHECK(stage.n_nodes > 0 && stage.work > 0 && stage.contents[0]);
        CHECK(stage.n_nodes == same.n_nodes && stage.weight_bytes == same.weight_bytes);
        CHECK((stage.ends_with != NULL) == (i < 2) && (stage.cut_bytes > 0) == (i < 2));
        CHECK(!stage.ends_with || strcmp(stage.ends_with, same.ends_with) == 0);
    }
    struct ree_plan_stage small = {.size = offsetof(struct ree_plan_stage, weight_bytes),
                                   .weight_bytes = 7};
    CHECK(ree_plan_stage(plan, 0, &small, &err) == REE_OK);
    CHECK(small.n_nodes > 0 && small.weight_bytes == 7); // fills no more than the caller's size
    CHECK(ree_plan_stage(plan, 3, &small, &err) == REE_NOT_FOUND);
    small.size = 0;
    CHECK(ree_plan_stage(plan, 0, &small, &err) == REE_INVALID);
    char *json;
    CHECK(ree_plan_json(plan, &json, &err) == REE_OK && strstr(json, info.graph_sha256));
    free(json);
    ree_plan_destroy(plan);
    ree_plan_destroy(again);
}

// Runs a model in `n` stages and returns the SHA-256 of its outputs and of its trace.
static void run(const char *path, const char *input_path, uint32_t n, char sha256[65],
                char root[65]) {
    struct ree_model *model;
    struct ree_pipeline *pipeline;
    struct ree_recording *recording;
    struct ree_tensor input, outputs[4];
    struct ree_session_stats stats = {.size = sizeof stats};
    const struct ree_stages_options options = {.size = sizeof options, .n_partitions = n};
    const struct ree_record_options record = {.size = sizeof record, .trace = plan_path};
    struct ree_recorded recorded = {.size = sizeof recorded};
    CHECK(ree_model_load(path, NULL, &model, &err) == REE_OK);
    CHECK(ree_model_n_outputs(model) <= 4 && ree_tensor_load(&input, input_path, &err) == REE_OK);
    input.name = strdup(ree_model_input(model, 0)->name);
    CHECK(ree_model_find_input(model, input.name) == ree_model_input(model, 0));
    CHECK(!ree_model_find_input(model, "no such input"));
    CHECK(ree_pipeline_open(model, &device, 1, &options, &pipeline, &err) == REE_OK);
    CHECK(ree_pipeline_n_stages(pipeline) == n && !ree_pipeline_stage_end(pipeline, n - 1));
    CHECK(n == 1 || ree_pipeline_stage_end(pipeline, 0)[0]);
    CHECK(ree_record_pipeline(pipeline, &record, &recording, &err) == REE_OK);
    CHECK(ree_pipeline_run(pipeline, &input, 1, outputs, &err) == REE_OK);
    CHECK(ree_recording_finish(recording, &recorded, &err) == REE_OK);
    CHECK(ree_pipeline_stats(pipeline, &stats, &err) == REE_OK && stats.weight_bytes > 0);
    ree_tensors_sha256(outputs, ree_model_n_outputs(model), sha256);
    memcpy(root, recorded.root, sizeof recorded.root);
    for (size_t i = 0; i < ree_model_n_outputs(model); i++)
        ree_tensor_finish(&outputs[i]);
    ree_tensor_finish(&input);
    ree_pipeline_destroy(pipeline);
    ree_model_destroy(model);
}

// Generates a text in `n` stages and returns the root of its trace.
static void generate(const char *path, uint32_t n, bool exact_lengths, char root[65]) {
    const int32_t ids[] = {1, 5, 9, 2, 7};
    const struct ree_prompt prompt = {ids, 5};
    const struct ree_generator_options options = {.size = sizeof options,
                                                  .prefill_chunk = 2,
                                                  .n_partitions = n,
                                                  .exact_lengths = exact_lengths};
    const struct ree_generate_options text = {
        .size = sizeof text, .sampling = ree_greedy, .max_new_tokens = 4};
    const struct ree_record_options record = {.size = sizeof record, .trace = plan_path};
    struct ree_recorded recorded = {.size = sizeof recorded};
    struct ree_generator *generator;
    struct ree_recording *recording;
    struct ree_generation generation;
    CHECK(ree_generator_create(path, device, &options, &generator, &err) == REE_OK);
    CHECK(ree_pipeline_n_stages(ree_generator_pipeline(generator)) == n);
    enum ree_status status = ree_record_generator(generator, &record, &recording, &err);
    CHECK(status == (exact_lengths ? REE_OK : REE_UNSUPPORTED));
    if (exact_lengths) {
        CHECK(ree_generate(generator, &prompt, 1, &text, &generation, NULL, &err) == REE_OK);
        CHECK(ree_recording_finish(recording, &recorded, &err) == REE_OK);
        CHECK(recorded.prefill_chunk == 2 && recorded.n_steps == 3 + generation.n - 5 - 1);
        memcpy(root, recorded.root, sizeof recorded.root);
        ree_generation_finish(&generation);
    }
    ree_generator_destroy(generator);
}

int main(int argc, char **argv) {
    char sha256[2][65], roots[2][65];
    char folder[] = "/tmp/ree-stages-XXXXXX";
    if (argc != 4) return 2;
    CHECK(mkdtemp(folder));
    snprintf(plan_path, sizeof plan_path, "%s/plan.json", folder);
    CHECK(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    test_plan(argv[3]);
    snprintf(plan_path, sizeof plan_path, "%s/run.trace", folder);
    run(argv[1], argv[2], 1, sha256[0], roots[0]);
    run(argv[1], argv[2], 3, sha256[1], roots[1]);
    CHECK(strcmp(sha256[0], sha256[1]) == 0 && strcmp(roots[0], roots[1]) == 0);
    generate(argv[3], 1, true, roots[0]);
    generate(argv[3], 3, true, roots[1]);
    CHECK(strcmp(roots[0], roots[1]) == 0);
    generate(argv[3], 1, false, roots[0]);
    ree_device_destroy(device);
    test_remove_folder(folder);
    printf("passed\n");
    return 0;
}
