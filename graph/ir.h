// A model as a graph: values (tensors) and nodes, as ONNX means them. Knows no device and no RepOp.
//
// Ownership: everything lives in the graph's arena and dies with it, also strings and attribute
// arrays. Constant data may point into a file mapping that the graph owns. Subgraphs (If, Loop)
// share the arena of the outermost.
#ifndef REE_GRAPH_IR_H
#define REE_GRAPH_IR_H

#include "base/arena.h"
#include "base/status.h"
#include "base/strbuf.h"

struct ree_node;
struct ree_graph;

// A tensor in the graph: an input, an initializer or a node's output.
struct ree_value {
    const char *name;
    enum ree_dtype dtype; // REE_DTYPE_NONE until inferred; a number outside the enum is an ONNX
                          // type that ree lacks (ree_onnx_type_name, ree_graph_check_supported)
    bool has_shape;       // declared or inferred rank
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];        // -1: not known before run time
    const char *symbols[REE_MAX_RANK]; // NULL, or the name of an unknown dimension
    // Constant contents, dense little-endian, `nbytes` long, readable up to the next multiple of 4
    // (of strings: const char *, NUL-terminated); NULL: not constant.
    const void *data;
    size_t nbytes;
    enum ree_kind kind; // of a sequence, dtype and shape are its items'
    bool nullable;      // of ONNX's optional type: a run may find it absent
    bool is_input, is_output;
    struct ree_node *producer; // NULL for inputs and initializers
    struct ree_graph *graph;   // whose values it is among; NULL for an attribute's tensor
    uint32_t id;               // index into graph->values
    uint32_t number;           // among the values of all graphs of the model (ree_graph_number)
    uint32_t n_uses;           // node inputs and graph outputs that refer to it, subgraphs included
};

enum ree_attr_kind {
    REE_ATTR_INT,
    REE_ATTR_FLOAT,
    REE_ATTR_STRING,
    REE_ATTR_TENSOR,
    REE_ATTR_GRAPH,
    REE_ATTR_INTS,
    REE_ATTR_FLOATS,
    REE_ATTR_STRINGS,
    REE_ATTR_TYPE, // `tensor`, without contents
};

struct ree_attr {
    const char *name;
    enum ree_attr_kind kind;
    int64_t i;
    float f;
    const char *s; // NUL-terminated, s_size bytes before the NUL
    size_t s_size;
    struct ree_value *tensor; // constant, not among graph->values
    struct ree_graph *graph;
    size_t n; // elements of the arrays below
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
};

struct ree_metadata {
    const char *key, *value;
};

// What a file says of a node that means nothing for its bits: no part of a model's identity.
struct ree_node_notes {
    bool has_stage; // device_configurations: the first that has a pipeline_stage
    int32_t stage;
    size_t n_metadata; // metadata_props: pipeline_stage and those that begin with "ree."
    struct ree_metadata *metadata;
};

struct ree_node {
    const char *name; // may be ""
    const char *op_type;
    const char *domain; // "" for ONNX's own ("ai.onnx" is normalised to "")
    int64_t opset;      // the imported version of its domain
    size_t n_inputs;
    struct ree_value **inputs; // NULL where an optional input is omitted
    size_t n_outputs;
    struct ree_value **outputs; // NULL where omitted
    size_t n_attrs;
    struct ree_attr *attrs;
    uint32_t id;                        // index into graph->nodes
    const struct ree_node_notes *notes; // NULL: none. Of a function's node without any: the call's
};

struct ree_opset_import {
    const char *domain;
    int64_t version;
};

struct ree_mapping; // a mapped file or a block of memory (graph/mapping.h); owned by the graph

struct ree_graph {
    struct ree_arena *arena; // the outermost graph's own_arena
    struct ree_arena own_arena;
    const char *name;
    const char *file; // path for messages; "" when read from memory
    int64_t ir_version;
    size_t n_opsets;
    struct ree_opset_import *opsets;
    size_t n_metadata;
    struct ree_metadata *metadata;

    size_t n_values, values_capacity;
    struct ree_value **values;
    size_t n_nodes, nodes_capacity;
    struct ree_node **nodes; // in an order in which producers come first
    size_t n_inputs; // initializers that are also listed as inputs included, with is_input and data
                     // set
    struct ree_value **inputs;
    size_t n_outputs;
    struct ree_value **outputs;
    struct ree_graph *parent; // of a subgraph
    struct ree_mapping *mappings;
    const char *notes;  // of the loader for the user, a line each, in the arena; NULL: none
    bool lacked_memory; // a pass gave up
};

struct ree_graph *ree_graph_create(void); // NULL when memory is exhausted
void ree_graph_destroy(struct ree_graph *graph);
// A graph within `parent`, in its arena, with the same file and opsets. NULL when memory is
// exhausted.
struct ree_graph *ree_graph_add_subgraph(struct ree_graph *parent);
// Adds a value; the name is copied. NULL when memory is exhausted.
struct ree_value *ree_graph_add_value(struct ree_graph *graph, const char *name);
int64_t ree_graph_opset(const struct ree_graph *graph, const char *domain); // 0: not imported
int64_t ree_opset_find(const struct ree_opset_import *imports, size_t n, const char *domain);
// Readable text, one line per node: "%y:float32[1,8,28,28] = Conv(%x, %w) {kernel_shape=[5,5]} #
// name".
void ree_graph_print(const struct ree_graph *graph, struct ree_strbuf *out);
// Numbers the values of the graph and its subgraphs; returns how many there are.
uint32_t ree_graph_number(struct ree_graph *graph);
// Recomputes n_uses of every value, subgraphs' values included.
void ree_graph_count_uses(struct ree_graph *graph);
// Calls `visit` with the place of every value that a node reads: its inputs, and in its subgraphs
// the inputs of their nodes and their outputs. The place may be written to. Values of the subgraphs
// themselves are among them; value->graph tells.
void ree_node_visit_uses(struct ree_node *node, void (*visit)(void *user, struct ree_value **use),
                         void *user);
// Fails, naming the node, where one reads a constant or an input of a type that ree lacks. Loading
// does not ask for this, so that such models can be inspected.
enum ree_status ree_graph_check_supported(const struct ree_graph *graph, struct ree_error *err);

// Attributes of a node, with defaults, which also stand for an attribute of another kind; that one
// was asked for as another kind than it has is remembered (ree_node_misread).
const struct ree_attr *ree_node_attr(const struct ree_node *node, const char *name); // NULL: absent
int64_t ree_node_int(const struct ree_node *node, const char *name, int64_t fallback);
float ree_node_float(const struct ree_node *node, const char *name, float fallback);
const char *ree_node_string(const struct ree_node *node, const char *name, const char *fallback);
// Returns the array and its length; NULL and 0 when absent.
const int64_t *ree_node_ints(const struct ree_node *node, const char *name, size_t *out_n);
const float *ree_node_floats(const struct ree_node *node, const char *name, size_t *out_n);
// The attribute of the node that was last asked for as another kind, by this thread; NULL: none.
// Asking forgets it.
const struct ree_attr *ree_node_misread(const struct ree_node *node,
                                        enum ree_attr_kind *out_wanted);
const char *ree_attr_kind_name(enum ree_attr_kind kind); // "an integer"
// "node 'conv1' (Conv)", or "node #12 (Conv)" for a nameless one. Writes at most size bytes.
const char *ree_node_label(const struct ree_node *node, char *out, size_t size);

// ONNX files (graph/onnx/). `folder` of external data is that of `path`; memory has none. A `path`
// that is a folder is a Hugging Face checkpoint (graph/hf/).
enum ree_status ree_onnx_load(const char *path,
                              void (*on_progress)(void *, const char *, uint64_t, uint64_t),
                              void *user, struct ree_graph **out_graph, struct ree_error *err);
enum ree_status ree_onnx_load_memory(const void *bytes, size_t nbytes, struct ree_graph **out_graph,
                                     struct ree_error *err);
// Bytes in memory, read as if they were the file at `path`. `data` is the external data whose
// location is data->location, and is taken over, also on failure; NULL: all of it is in the folder.
enum ree_status ree_onnx_load_as(const char *path, const void *bytes, size_t nbytes,
                                 struct ree_mapping *data,
                                 void (*on_progress)(void *, const char *, uint64_t, uint64_t),
                                 void *user, struct ree_graph **out_graph, struct ree_error *err);
// The name of a TensorProto.DataType, also of those that are not in enum ree_dtype
// ("float8e4m3fn"); "unknown type" for numbers that ONNX has not given out.
const char *ree_onnx_type_name(int64_t data_type);
// A file holding one serialised TensorProto, or where `port` says so a SequenceProto or an
// OptionalProto; `port` may be NULL.
enum ree_status ree_onnx_tensor_load(const char *path, const struct ree_port *port,
                                     struct ree_tensor *out_tensor, struct ree_error *err);

// Passes (graph/passes/): each takes the graph to an equivalent one, subgraphs first. Returns
// whether it changed. A pass that gave up for want of memory sets the graph's `lacked_memory`: the
// graph still computes the same, but is not the one that this model has everywhere else (in traces,
// in plans).
bool ree_pass_dead_code(struct ree_graph *graph);
bool ree_pass_identity(
    struct ree_graph *graph); // Identity, Dropout at inference, Cast to its own type
bool ree_pass_common_subexpressions(struct ree_graph *graph);
// MatMul with a transposed or widened constant becomes ree.internal.MatMul with attributes transB
// and widened. What made that constant is left for the pass of dead code.
bool ree_pass_factors(struct ree_graph *graph);
// `output` [batch, sequence, n], the result of a product with a constant matrix, becomes [batch,
// rows, n] with the rows that a new int64 input `name` [batch, rows, 1] lists. What the product's
// input is made of is computed for these rows alone as far back as nothing mixes rows. False: the
// output is not made that way, and the graph is as it was.
bool ree_pass_select_rows(struct ree_graph *graph, struct ree_value *output, const char *name);

#endif
