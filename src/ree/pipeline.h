// Pipelines: a model in several stages, on one device or several.
#ifndef REE_PIPELINE_H
#define REE_PIPELINE_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// A model divided into stages that run one after another, each on its own device. The output bits
// do not depend on the division. plan.h shows where a model is divided and why.
struct ree_pipeline;

struct ree_stages_options {
    size_t size; // sizeof this struct
    // Stages. 0: one; with several devices, the stages that the nodes name, or one per device.
    uint32_t n_partitions;
    // Plan file (ree_plan_save, or `ree-run plan`) with the stage boundaries; NULL: ree chooses
    // them.
    const char *partition_plan;
    // Memory budget per device in bytes; 0: no limit. With a budget the model runs in as many
    // stages as needed, and a stage's weights are on the device only while it runs.
    uint64_t max_device_memory;
    const struct ree_session_options *session; // NULL: defaults
};

// Divides the model into stages, each with a session of its own. Stage i, from 0, runs on device i
// modulo n_devices; n_devices is at least 1. The model and the devices must outlive the pipeline.
// `options` may be NULL. Fails with REE_INVALID if the devices are opened with different operation
// sets, or if the model cannot be divided in this way.
REE_API enum ree_status ree_pipeline_open(struct ree_model *model,
                                          struct ree_device *const *devices, size_t n_devices,
                                          const struct ree_stages_options *options,
                                          struct ree_pipeline **out_pipeline,
                                          struct ree_error *err);
REE_API void ree_pipeline_destroy(struct ree_pipeline *pipeline);
// Runs the model once. Takes the same inputs as ree_session_run, returns the same outputs, and
// fails with the same errors.
REE_API enum ree_status ree_pipeline_run(struct ree_pipeline *pipeline,
                                         const struct ree_tensor *inputs, size_t n_inputs,
                                         struct ree_tensor *outputs, struct ree_error *err);
// Sums over the stages. The caller sets out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_pipeline_stats(const struct ree_pipeline *pipeline,
                                           struct ree_session_stats *out_stats,
                                           struct ree_error *err);

REE_API size_t ree_pipeline_n_stages(const struct ree_pipeline *pipeline);
// The name of the value that the stage's last node computes, as plan files contain it; NULL for the
// last stage. Borrowed from the pipeline.
REE_API const char *ree_pipeline_stage_end(const struct ree_pipeline *pipeline, size_t stage);

// The pipeline that runs a generator's model. Borrowed from the generator.
REE_API struct ree_pipeline *ree_generator_pipeline(struct ree_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
