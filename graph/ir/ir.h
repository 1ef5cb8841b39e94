// A model as a graph of values (tensors) and nodes, as ONNX defines them. Independent of devices
// and of RepOps.
//
// Ownership: everything, including strings and attribute arrays, is allocated in the graph's arena
// and released with it. Constant data may point into a file mapping that the graph owns. Subgraphs
// (If, Loop) share the arena of the outermost graph.
#ifndef REE_GRAPH_IR_IR_H
#define REE_GRAPH_IR_IR_H

#include "base/arena.h"
#include "base/status.h"
#include "base/strbuf.h"

struct ree_node;
struct ree_graph;

// A tensor in the graph: an input, an initializer or a node's output.
struct ree_value {
    const char *name;
    // REE_DTYPE_NONE until inferred. A number outside the enum is an ONNX type that ree does not
    // have; ree_onnx_type_name names it.
    enum ree_dtype dtype;
    bool has_shape; // the rank is declared or inferred
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];        // -1: not known before run time
    const char *symbols[REE_MAX_RANK]; // name of an unknown dimension, or NULL
    // Constant contents, dense, little-endian, `nbytes` long, readable up to the next multiple of 4
    // bytes. A string tensor has const char * elements, each NUL-terminated. NULL: not constant.
    const void *data;
    size_t nbytes;
    enum ree_kind kind; // tensor or sequence; dtype and shape of a sequence describe its items
    bool nullable;      // has ONNX's optional type: may be absent in a run
    bool is_input, is_output;
    struct ree_node *producer; // NULL for inputs and initializers
    // Graph whose `values` contain this value. NULL for the tensor of an attribute.
    struct ree_graph *graph;
    uint32_t id; // index into graph->values
    // A pass found that declared types contradict each other, or the value that it computed. A node
    // that reads or makes the value fails.
    bool has_two_types;
    // Before the passes, the number in the encoding that graph_sha256 hashes (ree_identity_init).
    // Afterwards the index among the values of all graphs of the model (ree_graph_number).
    uint32_t number;
    // Number of node inputs and graph outputs that refer to the value, including those in
    // subgraphs. Set by ree_graph_count_uses.
    uint32_t n_uses;
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
    REE_ATTR_TYPE, // a type; described by `tensor`, which has no contents
};

struct ree_attr {
    const char *name;
    enum ree_attr_kind kind;
    int64_t i;
    float f;
    const char *s; // string value, NUL-terminated; s_size is its length without the NUL
    size_t s_size;
    // constant (REE_ATTR_TENSOR), or type without contents (REE_ATTR_TYPE); not in graph->values
    struct ree_value *tensor;
    struct ree_graph *graph;
    size_t n; // number of elements of `ints`, `floats` or `strings`
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
};

struct ree_metadata {
    const char *key, *value;
};

// A node's annotations in the file. They do not affect the result bits and are not part of a
// model's identity.
struct ree_node_notes {
    bool has_stage; // whether device_configurations has a pipeline_stage; `stage` is the first one
    int32_t stage;
    // Entries of metadata_props with the key pipeline_stage or a key that begins with "ree.".
    size_t n_metadata;
    struct ree_metadata *metadata;
};

struct ree_node {
    const char *name; // may be ""
    const char *op_type;
    const char *domain; // "" for ONNX's own domain ("ai.onnx" is normalised to "")
    int64_t opset;      // imported version of `domain`
    size_t n_inputs;
    struct ree_value **inputs; // NULL for an omitted optional input
    size_t n_outputs;
    struct ree_value **outputs; // NULL for an omitted output
    size_t n_attrs;
    struct ree_attr *attrs;
    uint32_t id; // index into graph->nodes
    // Annotations; NULL: none. If a function has no annotations, its nodes get the annotations of
    // the node that calls it.
    const struct ree_node_notes *notes;
};

struct ree_opset_import {
    const char *domain;
    int64_t version;
};

struct ree_mapping; // a mapped file or a heap block (graph/ir/mapping.h)

struct ree_graph {
    struct ree_arena *arena; // own_arena of the outermost graph
    struct ree_arena own_arena;
    const char *name;
    const char *file; // path of the model, for messages; "" if it was read from memory
    int64_t ir_version;
    size_t n_opsets;
    struct ree_opset_import *opsets;
    size_t n_metadata;
    struct ree_metadata *metadata;

    size_t n_values, values_capacity;
    struct ree_value **values;
    size_t n_nodes, nodes_capacity;
    struct ree_node **nodes; // topologically sorted: producers come before their users
    // Includes initializers that are also listed as inputs. These have both is_input and data set.
    size_t n_inputs;
    struct ree_value **inputs;
    size_t n_outputs;
    struct ree_value **outputs;
    // (n_outputs): the types that the file declares for a subgraph's outputs. graph_sha256 covers
    // them, and passes do not change them. Only the fields of a type are set. An output that
    // belongs to an enclosing graph has no type here. NULL: the graph was not read as a subgraph.
    const struct ree_value *output_types;
    struct ree_graph *parent; // the enclosing graph; NULL: this is not a subgraph
    struct ree_mapping *mappings;
    // Notes of the loader for the user, one per line, allocated in the arena; NULL: none.
    const char *notes;
    bool lacked_memory; // a pass ran out of memory and left its work undone
};

struct ree_graph *ree_graph_create(void); // NULL when memory is exhausted
// Also releases the graph's mappings. Accepts NULL.
void ree_graph_destroy(struct ree_graph *graph);
// Creates a subgraph of `parent` in the same arena, with the same file and opsets. NULL when memory
// is exhausted.
struct ree_graph *ree_graph_add_subgraph(struct ree_graph *parent);
// Adds a value to graph->values. Copies the name. NULL when memory is exhausted.
struct ree_value *ree_graph_add_value(struct ree_graph *graph, const char *name);
// ree_graph_opset and ree_opset_find return the imported version of a domain; 0: not imported.
int64_t ree_graph_opset(const struct ree_graph *graph, const char *domain);
int64_t ree_opset_find(const struct ree_opset_import *imports, size_t n, const char *domain);
// Appends the graph as readable text, one line per input, constant and node, for example
// "%y:float32[1,8,28,28] = Conv(%x, %w) {kernel_shape=[5,5]} # name".
void ree_graph_print(const struct ree_graph *graph, struct ree_strbuf *out);
// Sets `number` of every value of the graph and its subgraphs, from 0. Returns the number of
// values.
uint32_t ree_graph_number(struct ree_graph *graph);
// Recomputes n_uses of every value, including values of subgraphs.
void ree_graph_count_uses(struct ree_graph *graph);
// Calls `visit` with a pointer to every reference to a value that a node reads: the node's inputs,
// and for each of its subgraphs the inputs of the subgraph's nodes and the subgraph's outputs.
// `visit` may overwrite the reference. References to the subgraph's own values are included; check
// value->graph.
void ree_node_visit_uses(struct ree_node *node, void (*visit)(void *user, struct ree_value **use),
                         void *user);
// Fails with REE_UNSUPPORTED if a node reads a constant or an input of a type that ree does not
// have (the message names the node), or if an output of the graph has such a type. Loading does not
// call this function, so that models with these types can be inspected.
enum ree_status ree_graph_check_supported(const struct ree_graph *graph, struct ree_error *err);

// Attributes of a node. ree_node_attr returns NULL if the attribute is absent. The other functions
// return `fallback` if it is absent or of another kind.
const struct ree_attr *ree_node_attr(const struct ree_node *node, const char *name);
int64_t ree_node_int(const struct ree_node *node, const char *name, int64_t fallback);
float ree_node_float(const struct ree_node *node, const char *name, float fallback);
const char *ree_node_string(const struct ree_node *node, const char *name, const char *fallback);
// Returns the array of the attribute and its length in *out_n; NULL and 0 if it is absent or of
// another kind.
const int64_t *ree_node_ints(const struct ree_node *node, const char *name, size_t *out_n);
const float *ree_node_floats(const struct ree_node *node, const char *name, size_t *out_n);
// Returns whether the node draws random numbers. Without a seed attribute these depend on the name
// of the node's first output. Therefore two random nodes must not be merged, and none may be
// renamed.
bool ree_node_is_random(const struct ree_node *node);
// Returns the name from which a node draws its random numbers: that of its first output. NULL: the
// node draws none, or has a seed. The name is part of the graph's identity.
const char *ree_node_random_name(const struct ree_node *node);
const char *ree_attr_kind_name(enum ree_attr_kind kind); // such as "an integer"
// Writes "node 'conv1' (Conv)", or "node #12 (Conv)" for a node without a name, to `out`, which has
// `size` bytes. Returns `out`.
const char *ree_node_label(const struct ree_node *node, char *out, size_t size);

// Returns the name of a TensorProto.DataType, including types that enum ree_dtype does not have,
// such as "complex64"; "unknown type" for numbers that ONNX does not define.
const char *ree_onnx_type_name(int64_t data_type);

// Passes (graph/passes/). Each pass changes the graph into an equivalent one, subgraphs first, and
// returns whether it changed anything. A pass that runs out of memory gives up and sets the graph's
// `lacked_memory`. The graph then computes the same results, but differs from the graph of this
// model on other machines, for example in traces and plans.
bool ree_pass_dead_code(struct ree_graph *graph);
bool ree_pass_identity(
    // Removes Identity, Dropout at inference, and Cast to the value's own type.
    struct ree_graph *graph);
bool ree_pass_common_subexpressions(struct ree_graph *graph);
// Replaces a MatMul whose constant is transposed or widened by ree.internal.MatMul with the
// attributes transB and widened. Makes a MatMulNBits whose quantised matrix is a reshaped constant
// read the constant itself. The replaced Transpose, Cast and Reshape nodes are left for the dead
// code pass.
bool ree_pass_factors(struct ree_graph *graph);
// Restricts an output of the graph to selected rows. Adds an int64 input `name` [batch, rows, 1]
// that lists the selected rows. `output` [batch, sequence, n], the result of a product with a
// constant matrix, becomes [batch, rows, n]. The nodes before the product are restricted to these
// rows as well, as far back as no node mixes rows. Returns false, with the graph unchanged, if
// `output` is not made that way.
bool ree_pass_select_rows(struct ree_graph *graph, struct ree_value *output, const char *name);

#endif
