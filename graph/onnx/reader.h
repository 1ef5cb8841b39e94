// Shared by the files of the ONNX reader, which turn decoded protobuf messages into the IR and
// check everything. Functions report what is wrong; their callers prefix the message with the
// location.
#ifndef REE_GRAPH_ONNX_READER_H
#define REE_GRAPH_ONNX_READER_H

#include "graph/ir/ir.h"
#include "graph/onnx/decode.h"
#include "onnx.pb-c.h"

// Throughout ree, a tensor has at most this many elements, and no dimension is larger.
#define REE_ONNX_MAX_ELEMENTS INT32_MAX

// A function that the model defines.
struct ree_function {
    const char *domain, *name, *overload;
    const Onnx__FunctionProto *proto;
    size_t n_bytes; // encoded size in bytes
    size_t n_opsets;
    struct ree_opset_import *opsets;
};

// A call of a function while the function's nodes are inlined.
struct ree_call {
    const struct ree_call *outer; // the enclosing call; NULL: none
    // depth: 1 for a call outside of functions, 2 for a call in a called function, and so on.
    // number: 1 for the first call that was read, 2 for the second, and so on.
    uint32_t depth, number;
    const struct ree_function *function;
    const struct ree_node *node; // the calling node, with the call's inputs, outputs and attributes
};

struct ree_onnx_reader {
    struct ree_arena *arena;       // memory of the graph that is read
    struct ree_mapping **mappings; // list of the mappings that the graph keeps
    // external data files; moved to `mappings` when the reader finishes
    struct ree_mapping *files;
    struct ree_decoder decoder;
    struct ree_arena scratch; // temporary memory; ree_onnx_reader_finish releases it
    size_t n_functions;
    struct ree_function *functions; // sorted by domain, name and overload
    uint32_t n_calls;
    // Nodes and encoded bytes of the called functions, summed over all calls.
    size_t inlined_nodes, inlined_bytes;
    const char *folder;    // folder of the external data; NULL: none
    int folder_fd;         // descriptor of `folder`; -1: not open yet
    int64_t owner;         // user id of the model file's owner; -1: unknown
    struct ree_error *err; // where all functions report errors; never NULL
};

void ree_onnx_reader_init(struct ree_onnx_reader *reader, struct ree_arena *arena,
                          struct ree_mapping **mappings, struct ree_error *err);
void ree_onnx_reader_finish(struct ree_onnx_reader *reader);
// Allows external data, which is searched for in the folder of `path`, the model's file. Returns
// false if memory is exhausted.
bool ree_onnx_reader_set_folder(struct ree_onnx_reader *reader, const char *path);

// Fails with REE_NO_MEMORY.
enum ree_status ree_onnx_no_memory(struct ree_onnx_reader *reader);
// Prefixes the message in *err with the file's name and returns err->status. Names in messages come
// from the model. Characters that would end the line, or that a terminal would interpret, become
// '?'.
enum ree_status ree_onnx_fail_file(struct ree_error *err, const char *file);
// Returns a string of a decoded message; "" if it is absent (NULL).
static inline const char *ree_onnx_text(const char *s) {
    return s ? s : "";
}
const char *ree_onnx_domain(const char *domain); // returns "" for NULL and for "ai.onnx"

// Reads the operator sets that a model or a function imports (model.c). Fails if a version is not a
// positive int32, or if one set is imported in two versions.
enum ree_status ree_onnx_read_opsets(struct ree_onnx_reader *reader, size_t n,
                                     Onnx__OperatorSetIdProto *const *protos,
                                     struct ree_opset_import **out, size_t *out_n);

enum ree_status ree_onnx_read_metadata(struct ree_onnx_reader *reader, size_t n,
                                       Onnx__StringStringEntryProto *const *protos,
                                       struct ree_metadata **out, size_t *out_n);

// Reads a type (type.c): sets kind, dtype, shape and symbols of `value`. Accepts a tensor, a
// sequence of tensors, or an optional of either. Fails for any other type.
enum ree_status ree_onnx_read_type(struct ree_onnx_reader *reader, const Onnx__TypeProto *proto,
                                   struct ree_value *value);
// Writes the type and shape of `value`, such as "float32[2,?,n]", into the caller's buffer of
// `size` bytes, cut if it is longer. Returns `out`.
const char *ree_onnx_type_text(const struct ree_value *value, char *out, size_t size);

// Reads a tensor (tensor.c): sets dtype, shape and data of `value`, or only dtype and shape if ree
// does not have the type.
enum ree_status ree_onnx_read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     struct ree_value *value);

// Fails if the open file `fd` has several hard links and another owner than the model. `owner` is
// the user id of the model's owner. Such a file may be a name in the model's folder for another
// user's file, made by someone who was not allowed to read that file. A user who links his own
// files is not affected, because the owner is the same.
enum ree_status ree_onnx_check_links(int fd, int64_t owner, struct ree_error *err);
// Reads external data (external.c): sets *out to the `nbytes` bytes that `proto` refers to. They
// are in the mapped file if their offset is a multiple of `alignment`, else in a copy.
enum ree_status ree_onnx_read_external(struct ree_onnx_reader *reader,
                                       const Onnx__TensorProto *proto, size_t nbytes,
                                       size_t alignment, const void **out);
// Opens a file below an open folder for reading; the caller owns *out_fd. `location` must be
// relative and must not contain "..". No symbolic link in it may lead out of the folder, except
// links of a Hugging Face cache (ree_onnx_open_blob). Following any other link requires openat2
// with RESOLVE_BENEATH; if the kernel lacks it, these links are refused. `use_openat2` is false
// only in tests.
enum ree_status ree_onnx_open_beneath(int folder_fd, const char *location, bool use_openat2,
                                      int *out_fd, struct ree_error *err);
// Opens `location` if it is a link of a Hugging Face cache into the cache's folder of blobs
// (hub_cache.c). Returns a descriptor that the caller owns, or -1 if it is not such a link.
int ree_onnx_open_blob(int folder_fd, const char *location);

// What defines a name (scope.c). A name is looked up in its own graph first, then in the enclosing
// graphs.
enum ree_name_kind { REE_NAME_INPUT, REE_NAME_INITIALIZER, REE_NAME_OUTPUT };

struct ree_name {
    const char *name;
    enum ree_name_kind kind;
    uint32_t index; // index of the input, of the initializer, or of the node with the output
    uint32_t order; // index in the list of all inputs, then initializers, then node outputs
    struct ree_value *value;
};

struct ree_scope {
    const struct ree_scope *outer;
    const struct ree_call *call; // the call whose function contains these names; NULL: none
    size_t n;
    struct ree_name *names; // sorted by name
    // The value of each initializer. An initializer that is the default of an input shares the
    // input's value.
    struct ree_value **initializers;
    struct ree_value **outputs; // outputs of all nodes, concatenated; NULL: omitted
};

// Makes the scope of a graph. Adds all values that `proto` defines to `graph`: inputs, initializers
// and node outputs. Fails if a name is missing or defined twice. `outer` is the scope of the
// enclosing graph; NULL if there is none.
enum ree_status ree_scope_init(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                               struct ree_graph *graph, const struct ree_scope *outer,
                               struct ree_scope *scope);
// Makes the scope of a called function; `proto` holds the function's inputs and nodes as a graph.
// The function's inputs and outputs become the values that the call has as inputs and outputs. All
// other values are added to `graph`.
enum ree_status ree_scope_init_call(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_call *call,
                                    struct ree_scope *scope);
struct ree_value *ree_scope_find(const struct ree_scope *scope, const char *name); // NULL: unknown
// The value that ree_scope_find returns for an input of a function that the call omits.
extern struct ree_value ree_scope_omitted;

// Attributes (attribute.c).
enum ree_status ree_onnx_read_attribute(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto, struct ree_graph *graph,
                                        const struct ree_scope *scope, struct ree_attr *attr);
enum ree_status ree_onnx_read_attributes(struct ree_onnx_reader *reader,
                                         const Onnx__NodeProto *proto, struct ree_graph *graph,
                                         const struct ree_scope *scope, struct ree_node *node);

// Functions (function.c).
enum ree_status ree_onnx_read_functions(struct ree_onnx_reader *reader,
                                        const Onnx__ModelProto *model);
const struct ree_function *ree_onnx_find_function(const struct ree_onnx_reader *reader,
                                                  const Onnx__NodeProto *node); // NULL: none
// Appends the nodes of `function` to `graph`, in place of `node`, which calls the function. `scope`
// is the scope that contains `node`.
enum ree_status ree_onnx_inline(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                const struct ree_scope *scope, const struct ree_node *node,
                                const struct ree_function *function);
// Resolves `proto`, an attribute in a function's body that refers to an attribute of the function:
// sets *out to the value that the call gives, else to the function's default. *out_found is false
// if there is neither.
enum ree_status ree_onnx_read_reference(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto,
                                        const struct ree_call *call, struct ree_attr *out,
                                        bool *out_found);

// Reads a graph and its subgraphs (graph.c) into `graph`, which must be new, with opsets and file
// set. `outer` is the scope of the enclosing graph; NULL for the main graph.
enum ree_status ree_onnx_read_graph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *outer);
// Appends the nodes of `proto` to `graph`; `scope` holds their values. Calls of functions are
// inlined.
enum ree_status ree_onnx_read_nodes(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *scope);
enum ree_status ree_onnx_append_node(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                     struct ree_node *node);
// Sorts the nodes topologically, producers first (order.c). If their order is valid, it is kept.
// Fails if the graph has a cycle.
enum ree_status ree_onnx_order_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph);

#endif
