// A loaded model: the graph after its passes, and the data that the public API returns about it.
#ifndef REE_SESSION_MODEL_H
#define REE_SESSION_MODEL_H

#include "base/name_index.h"
#include "graph/ir/identity.h"
#include "graph/ir/ir.h"

struct ree_device_tensor;

struct ree_model {
    struct ree_graph *graph;
    const struct ree_graph *files; // graph that owns the mapped files that `graph` reads
    bool no_fold;
    bool selects_rows; // ree_model_select_rows added an input
    // Number of inputs, without weights that the file lists as inputs (before ONNX IR version 4).
    size_t n_inputs;
    // The last n_free inputs come from an earlier stage and may have any kind, type and shape.
    size_t n_free;
    struct ree_port *inputs;
    const struct ree_value **input_values; // (n_inputs) the value of each input in the graph
    struct ree_name_index input_names;     // index of the inputs by name
    size_t n_outputs;
    struct ree_port *outputs;
    struct ree_name_index output_names; // index of the outputs by name
    size_t n_op_counts;
    struct ree_op_count *op_counts;
    uint32_t n_values; // number of values in the graph and its subgraphs
    uint64_t weight_bytes;
    size_t n_notes;
    struct ree_model_note *notes; // (n_notes) diagnostics; their texts are in the graph's arena
    bool runnable;                // false: made by ree_model_inspect, no session can run it
    struct ree_identity identity; // identity of the graph as loaded, before the passes
};

// Makes a model from a graph built in memory. Takes ownership of the graph, even on failure.
enum ree_status ree_model_from_graph(struct ree_graph *graph,
                                     const struct ree_model_options *options,
                                     struct ree_model **out_model, struct ree_error *err);

// Makes a model from a stage of `whole`. Runs no passes, because those of `whole` have run. Takes
// ownership of stage->graph, even on failure; stage->graph stays valid as long as the model.
// `whole` must outlive the model.
struct ree_stage_graph;
enum ree_status ree_model_of_stage(const struct ree_stage_graph *stage,
                                   const struct ree_model *whole, struct ree_model **out_model,
                                   struct ree_error *err);

// Changes the model so that it computes the output with index `output` only for selected rows
// (ree_pass_select_rows); the model then has one more input, `name`, which selects them. Sets
// *out_done to whether this was possible; if not, or if the model has an input of that name, the
// model is unchanged. Call it before creating sessions.
enum ree_status ree_model_select_rows(struct ree_model *model, size_t output, const char *name,
                                      bool *out_done, struct ree_error *err);

// Replaces nodes whose inputs are all constant by their results, also in subgraphs. The CPU
// backend's kernels compute the results. Nodes that cannot be lowered stay, and binding reports
// them. Nodes whose results would need much memory stay too.
enum ree_status ree_model_fold(struct ree_graph *graph, const struct ree_progress *progress,
                               struct ree_error *err);

// The run inputs: `values` has one value per model input, in the model's order. `tensors` lists the
// tensors of all values, a sequence's items one by one, and then those of a page pool: page table
// and target positions.
struct ree_run_inputs {
    const struct ree_tensor *values;
    size_t n_tensors;
    const struct ree_tensor *tensors;
    // Device tensors. on_device[k]: has the contents of tensors[k], whose `data` is NULL.
    // outputs[i]: receives output i of the model. NULL entries: none. Both arrays are NULL if the
    // run has no device tensors.
    struct ree_device_tensor **on_device;
    struct ree_device_tensor *const *outputs;
};

// Infers the types and shapes of the graph's values as far as the declared inputs determine them,
// and stores them in the values. Fails only if memory is exhausted.
enum ree_status ree_model_infer(struct ree_graph *graph, struct ree_error *err);
// Like ree_model_infer, for what holds in every run: takes no shape from the default values of
// inputs, which a run may replace, and none that the file declares for other values.
enum ree_status ree_model_infer_always(struct ree_graph *graph, struct ree_error *err);
// Like ree_model_infer. Also adds notes about errors that would fail every run, and about wrong
// declared shapes. Ignores nodes that no output depends on.
enum ree_status ree_model_examine(struct ree_model *model, struct ree_error *err);
enum ree_status ree_model_note(struct ree_model *model, bool is_problem, const char *text,
                               struct ree_error *err);

#endif
