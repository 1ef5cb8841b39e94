// A loaded model: the graph after its passes, and the data that the public API returns about it.
#ifndef REE_SESSION_MODEL_H
#define REE_SESSION_MODEL_H

#include "base/name_index.h"
#include "graph/ir/identity.h"
#include "graph/ir/ir.h"

struct ree_model {
    struct ree_graph *graph;
    const struct ree_graph *files; // graph that owns the mapped files that `graph` reads
    bool no_fold;
    size_t n_inputs; // weights listed as inputs (before IR version 4) are not counted
    // The last n_free inputs come from an earlier stage and may have any kind, type and shape.
    size_t n_free;
    struct ree_port *inputs;
    const struct ree_value **input_values; // per input: its value in the graph
    struct ree_name_index input_names;     // index of the inputs by name
    size_t n_outputs;
    struct ree_port *outputs;
    size_t n_op_counts;
    struct ree_op_count *op_counts;
    uint32_t n_values; // values in the graph and its subgraphs
    uint64_t weight_bytes;
    size_t n_notes;
    struct ree_model_note *notes; // the texts are in the graph's arena
    bool runnable;                // false after ree_model_inspect
    struct ree_identity identity; // of the graph as loaded, before the passes
};

// Makes a model from a graph built in memory. Takes ownership of the graph, even on failure.
enum ree_status ree_model_from_graph(struct ree_graph *graph,
                                     const struct ree_model_options *options,
                                     struct ree_model **out_model, struct ree_error *err);

// Makes a model from a stage of `whole`, to be run without further passes. Takes ownership of
// stage->graph, even on failure; stage->graph stays valid as long as the model. `whole` must
// outlive the model.
struct ree_stage_graph;
enum ree_status ree_model_of_stage(const struct ree_stage_graph *stage,
                                   const struct ree_model *whole, struct ree_model **out_model,
                                   struct ree_error *err);

// Changes the model so that an output is computed only for selected rows (ree_pass_select_rows);
// the model then has one more input, `name`. Sets *out_done to whether this was possible. Call it
// before creating sessions.
enum ree_status ree_model_select_rows(struct ree_model *model, size_t output, const char *name,
                                      bool *out_done, struct ree_error *err);

// Replaces nodes whose inputs are all constant by their results, also in subgraphs. The CPU
// backend's kernels compute the results. Nodes that cannot be lowered stay; binding reports them.
enum ree_status ree_model_fold(struct ree_graph *graph, const struct ree_progress *progress,
                               struct ree_error *err);

// The run inputs: one value per model input, in the model's order, and a list of all tensors among
// and within them.
struct ree_run_inputs {
    const struct ree_tensor *values;
    size_t n_tensors;
    const struct ree_tensor *tensors;
};

// Infers types and shapes of values as far as the declared inputs determine them. Fails only if
// memory is exhausted.
enum ree_status ree_model_infer(struct ree_graph *graph, struct ree_error *err);
// Like ree_model_infer. Also adds notes about errors that would fail every run, and about wrong
// declared shapes. Ignores nodes that no output depends on.
enum ree_status ree_model_examine(struct ree_model *model, struct ree_error *err);
enum ree_status ree_model_note(struct ree_model *model, bool is_problem, const char *text,
                               struct ree_error *err);

#endif
