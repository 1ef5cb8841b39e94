// A loaded model: the graph after its passes, and what the public API tells about it.
#ifndef REE_SESSION_MODEL_H
#define REE_SESSION_MODEL_H

#include "base/name_index.h"
#include "graph/identity.h"
#include "graph/ir.h"

struct ree_model {
    struct ree_graph *graph;
    const struct ree_graph *files; // the graph that owns the files that this one reads
    bool no_fold;
    size_t n_inputs; // weights in the style before IR version 4 are not among them
    size_t n_free;   // the last ones, of any kind, type and shape: what an earlier stage made
    struct ree_port *inputs;
    const struct ree_value **input_values; // the graph value of each
    struct ree_name_index input_names;     // their places
    size_t n_outputs;
    struct ree_port *outputs;
    size_t n_op_counts;
    struct ree_op_count *op_counts;
    uint32_t n_values; // of the graph and its subgraphs
    uint64_t weight_bytes;
    size_t n_notes;
    struct ree_model_note *notes; // the texts live in the graph's arena
    bool runnable;                // false after ree_model_inspect
    struct ree_identity identity; // of the graph as it was read
};

// A model of a graph made by hand, which it takes over, also on failure.
enum ree_status ree_model_from_graph(struct ree_graph *graph,
                                     const struct ree_model_options *options,
                                     struct ree_model **out_model, struct ree_error *err);

// A model of a stage of `whole`, to be run as it is; takes stage->graph over, also on failure, and
// stage->graph is still there while the model is.
struct ree_stage_graph;
enum ree_status ree_model_of_stage(const struct ree_stage_graph *stage,
                                   const struct ree_model *whole, struct ree_model **out_model,
                                   struct ree_error *err);

// Lets an output be computed for chosen rows alone (ree_pass_select_rows): the model then has one
// more input, `name`. *out_done: whether that was possible. Before sessions are made.
enum ree_status ree_model_select_rows(struct ree_model *model, size_t output, const char *name,
                                      bool *out_done, struct ree_error *err);

// Replaces nodes whose inputs are all constant by their results, computed by the CPU backend's
// kernels, in subgraphs too. Nodes that fail to lower are left for the bind to report.
enum ree_status ree_model_fold(struct ree_graph *graph, struct ree_error *err);

// What a run is given: a value for each of the model's inputs, in order, and all tensors among and
// within them, one after the other.
struct ree_given {
    const struct ree_tensor *values;
    size_t n_tensors;
    const struct ree_tensor *tensors;
};

// Fills in types and shapes of values as far as they follow from the declared inputs. Fails only
// for want of memory.
enum ree_status ree_model_infer(struct ree_graph *graph, struct ree_error *err);
// The same, noting down what a run would refuse whatever it is given, and declared shapes that are
// not so. Nodes that nothing depends on are left out.
enum ree_status ree_model_examine(struct ree_model *model, struct ree_error *err);
enum ree_status ree_model_note(struct ree_model *model, bool is_problem, const char *text,
                               struct ree_error *err);

#endif
