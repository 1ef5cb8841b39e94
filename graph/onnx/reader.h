// Shared by the parts of the ONNX reader, which turn decoded protobuf messages into the IR and
// check everything. Functions report what is wrong; their callers prefix the message with the
// location.
#ifndef REE_GRAPH_ONNX_READER_H
#define REE_GRAPH_ONNX_READER_H

#include "graph/ir/ir.h"
#include "graph/onnx/decode.h"
#include "onnx.pb-c.h"

// Throughout ree, tensors have fewer than 2^31 elements, and no dimension is larger.
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
    uint32_t depth, number;       // number: index among all calls, in the order read
    const struct ree_function *function;
    const struct ree_node *node; // the calling node: inputs, outputs and attributes
};

struct ree_onnx_reader {
    struct ree_arena *arena;       // for the graph that is read
    struct ree_mapping **mappings; // list of the mappings that the graph keeps
    // external data files; moved to `mappings` when the reader finishes
    struct ree_mapping *files;
    struct ree_decoder decoder;
    struct ree_arena scratch; // released with the reader
    size_t n_functions;
    struct ree_function *functions; // sorted
    uint32_t n_calls;
    size_t inlined_nodes, inlined_bytes; // nodes and bytes of functions, summed over all calls
    const char *folder;                  // folder of the external data; NULL: none
    int folder_fd;                       // -1: not open yet
    int64_t owner;                       // user id of the model file's owner; -1: unknown
    struct ree_error *err;               // never NULL
};

void ree_onnx_reader_init(struct ree_onnx_reader *reader, struct ree_arena *arena,
                          struct ree_mapping **mappings, struct ree_error *err);
void ree_onnx_reader_finish(struct ree_onnx_reader *reader);
// Allows external data, searched in the folder of `path`. False when memory is exhausted.
bool ree_onnx_reader_set_folder(struct ree_onnx_reader *reader, const char *path);

// Fails with REE_NO_MEMORY.
enum ree_status ree_onnx_no_memory(struct ree_onnx_reader *reader);
// Prefixes the message in *err with the file's name and returns its status. Names in messages come
// from the file. Characters that would end the line, or that a terminal would interpret, become
// '?'.
enum ree_status ree_onnx_fail_file(struct ree_error *err, const char *file);
// A decoded string; "" if absent.
static inline const char *ree_onnx_text(const char *s) {
    return s ? s : "";
}
const char *ree_onnx_domain(const char *domain); // as ree_onnx_text; also "" for "ai.onnx"

// Operator sets (load.c) that a model or a function imports.
enum ree_status ree_onnx_read_opsets(struct ree_onnx_reader *reader, size_t n,
                                     Onnx__OperatorSetIdProto *const *protos,
                                     struct ree_opset_import **out, size_t *out_n);

enum ree_status ree_onnx_read_metadata(struct ree_onnx_reader *reader, size_t n,
                                       Onnx__StringStringEntryProto *const *protos,
                                       struct ree_metadata **out, size_t *out_n);

// Types (type.c).
// Sets kind, dtype, shape and symbols of `value`. Accepts a tensor, a sequence of tensors, or an
// optional of either. Fails for any other type.
enum ree_status ree_onnx_read_type(struct ree_onnx_reader *reader, const Onnx__TypeProto *proto,
                                   struct ree_value *value);
// Writes text such as "float32[2,?,n]" into the caller's buffer and returns the buffer.
const char *ree_onnx_type_text(const struct ree_value *value, char *out, size_t size);

// Tensors (tensor.c). Sets dtype, shape and data of `value`; only dtype and shape if ree does not
// have the type.
enum ree_status ree_onnx_read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     struct ree_value *value);

// Fails for a file that has several hard links and another owner than the model. The file may then
// be a name in the model's folder for a file from elsewhere, and whoever made the folder was not
// necessarily allowed to read it. A user who shares files between folders of his own is not
// affected, because the owner is the same.
enum ree_status ree_onnx_check_links(int fd, int64_t owner, struct ree_error *err);
// External data (external.c). Sets *out to the `nbytes` bytes that the tensor names. They are in
// the mapped file if their offset is aligned to `alignment`, else in a copy.
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

// Names (scope.c). A name is looked up in its graph first, then in the enclosing graphs.
enum ree_name_kind { REE_NAME_INPUT, REE_NAME_INITIALIZER, REE_NAME_OUTPUT };

struct ree_name {
    const char *name;
    enum ree_name_kind kind;
    uint32_t index; // of the input, the initializer, or the node that has the output
    uint32_t order; // order of definition: inputs, initializers, outputs by node
    struct ree_value *value;
};

struct ree_scope {
    const struct ree_scope *outer;
    const struct ree_call *call; // the call whose function contains these names; NULL: none
    size_t n;
    struct ree_name *names; // sorted
    // By index. An initializer that is the default of an input shares the input's value.
    struct ree_value **initializers;
    struct ree_value **outputs; // outputs of all nodes, concatenated; NULL if omitted
};

// Adds all values that `proto` defines to `graph`: inputs, initializers and node outputs. Fails if
// a name is missing or defined twice.
enum ree_status ree_scope_init(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                               struct ree_graph *graph, const struct ree_scope *outer,
                               struct ree_scope *scope);
// The names of a function; `proto` holds the function's inputs and nodes as a graph. The function's
// inputs are bound to the call's inputs, its outputs to the call's outputs. All other values are
// added to `graph`.
enum ree_status ree_scope_init_call(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_call *call,
                                    struct ree_scope *scope);
struct ree_value *ree_scope_find(const struct ree_scope *scope, const char *name); // NULL: unknown
// Returned by ree_scope_find for an input of a function that the call omits.
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
// Appends the nodes of a function instead of `node`, which calls it. `scope` is the scope of the
// call.
enum ree_status ree_onnx_inline(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                const struct ree_scope *scope, const struct ree_node *node,
                                const struct ree_function *function);
// Resolves a reference in the function's attribute `proto` to *out: the call's attribute, else the
// function's default. *out_found is false if there is neither.
enum ree_status ree_onnx_read_reference(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto,
                                        const struct ree_call *call, struct ree_attr *out,
                                        bool *out_found);

// Graphs (graph.c). `graph` must be new, with opsets and file set.
enum ree_status ree_onnx_read_graph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *outer);
// Appends the nodes of `proto`, whose values are in `scope`, to the graph. Calls of functions are
// inlined.
enum ree_status ree_onnx_read_nodes(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *scope);
enum ree_status ree_onnx_append_node(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                     struct ree_node *node);
// Sorts the nodes topologically: producers come first (order.c). A valid order is kept. Fails on a
// cycle.
enum ree_status ree_onnx_order_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph);

#endif
