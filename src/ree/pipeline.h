// Pipelines: run a model in several stages, on one device or several.
#ifndef REE_PIPELINE_H
#define REE_PIPELINE_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// A model divided into stages that run one after another, each on one of several devices. The
// output bits do not depend on the division. plan.h shows where a model is divided and why.
struct ree_pipeline;

struct ree_stages_options {
    size_t size; // sizeof this struct
    // Number of stages. 0: one; with several devices, the stages that the model's nodes name, or
    // else one per device.
    uint32_t n_partitions;
    // Path of a plan file (ree_plan_save, or `ree-run plan`) with the stage boundaries; NULL: ree
    // chooses the boundaries.
    const char *partition_plan;
    // Memory budget per device in bytes; 0: no limit. With a budget, the model runs in n_partitions
    // stages, or in as many as needed, and a stage's weights are on the device only while it runs.
    uint64_t max_device_memory;
    const struct ree_session_options *session; // NULL: defaults
};

// Divides the model into stages and creates a session for each. Stage i, counted from 0, runs on
// device i modulo n_devices; n_devices is at least 1. The model and the devices must outlive the
// pipeline. `options` may be NULL. Fails with REE_INVALID if the devices were opened with different
// operation sets, or if the model cannot be divided as the options require.
REE_API enum ree_status ree_pipeline_open(struct ree_model *model,
                                          struct ree_device *const *devices, size_t n_devices,
                                          const struct ree_stages_options *options,
                                          struct ree_pipeline **out_pipeline,
                                          struct ree_error *err);
REE_API void ree_pipeline_destroy(struct ree_pipeline *pipeline);
// Runs the model once. Inputs, outputs and errors are those of ree_session_run.
REE_API enum ree_status ree_pipeline_run(struct ree_pipeline *pipeline,
                                         const struct ree_tensor *inputs, size_t n_inputs,
                                         struct ree_tensor *outputs, struct ree_error *err);
// Writes the statistics of the stages' sessions, summed over all stages. The caller sets
// out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_pipeline_stats(const struct ree_pipeline *pipeline,
                                           struct ree_session_stats *out_stats,
                                           struct ree_error *err);

REE_API size_t ree_pipeline_n_stages(const struct ree_pipeline *pipeline);
// Returns the name of the value that the stage's last node computes ("ends_with" in plan files);
// NULL for the last stage. Borrowed from the pipeline.
REE_API const char *ree_pipeline_stage_end(const struct ree_pipeline *pipeline, size_t stage);

// Returns the pipeline that runs a generator's model. Borrowed from the generator.
REE_API struct ree_pipeline *ree_generator_pipeline(struct ree_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
