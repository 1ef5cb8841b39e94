// What the parts of the ONNX reader share: from decoded protobuf messages to the IR, with every
// check. Functions report what is wrong; their callers put in front where it is.
#ifndef REE_GRAPH_ONNX_READER_H
#define REE_GRAPH_ONNX_READER_H

#include "graph/ir.h"
#include "graph/onnx/decode.h"
#include "onnx.pb-c.h"

// Tensors have fewer than 2^31 elements throughout ree, and no dimension is larger.
#define REE_ONNX_MAX_ELEMENTS INT32_MAX

// A function that the model defines for itself.
struct ree_function {
    const char *domain, *name, *overload;
    const Onnx__FunctionProto *proto;
    size_t n_bytes; // encoded
    size_t n_opsets;
    struct ree_opset_import *opsets;
};

// A call of a function, while its nodes are read in its place.
struct ree_call {
    const struct ree_call *outer; // the call that this one is part of; NULL: none
    uint32_t depth, number;       // number: of all calls, in the order read
    const struct ree_function *function;
    const struct ree_node *node; // the call itself: inputs, outputs and attributes
};

struct ree_onnx_reader {
    struct ree_arena *arena;       // of what is read
    struct ree_mapping **mappings; // that what is read keeps
    struct ree_mapping *files;     // of external data; join `mappings` when the reader finishes
    struct ree_decoder decoder;
    struct ree_arena scratch; // released with the reader
    size_t n_functions;
    struct ree_function *functions; // sorted
    uint32_t n_calls;
    size_t inlined_nodes, inlined_bytes; // of functions, in all their calls
    const char *folder;                  // where external data lie; NULL: nowhere
    int folder_fd;                       // -1: not open yet
    int64_t owner;                       // user of the model's file; -1: it could not be asked
    struct ree_error *err;               // never NULL
};

void ree_onnx_reader_init(struct ree_onnx_reader *reader, struct ree_arena *arena,
                          struct ree_mapping **mappings, struct ree_error *err);
void ree_onnx_reader_finish(struct ree_onnx_reader *reader);
// Lets external data be found in the folder of `path`. False when memory is exhausted.
bool ree_onnx_reader_set_folder(struct ree_onnx_reader *reader, const char *path);

enum ree_status ree_onnx_no_memory(struct ree_onnx_reader *reader);
// Puts the file in front of the message in *err and returns its status. Names in a message come
// from the file: whatever in them would end the line or reach a terminal as a command becomes '?'.
enum ree_status ree_onnx_fail_file(struct ree_error *err, const char *file);
// A decoded string, "" where it is absent.
static inline const char *ree_onnx_text(const char *s) {
    return s ? s : "";
}
const char *ree_onnx_domain(const char *domain); // the same, "" for "ai.onnx" too

// Operator sets (load.c): what a model or a function imports.
enum ree_status ree_onnx_read_opsets(struct ree_onnx_reader *reader, size_t n,
                                     Onnx__OperatorSetIdProto *const *protos,
                                     struct ree_opset_import **out, size_t *out_n);

enum ree_status ree_onnx_read_metadata(struct ree_onnx_reader *reader, size_t n,
                                       Onnx__StringStringEntryProto *const *protos,
                                       struct ree_metadata **out, size_t *out_n);

// Types (type.c).
// Sets kind, dtype, shape and symbols of `value`: a tensor, a sequence of tensors, or an optional
// one of either. Anything else is refused.
enum ree_status ree_onnx_read_type(struct ree_onnx_reader *reader, const Onnx__TypeProto *proto,
                                   struct ree_value *value);
// "float32[2,?,n]" into a buffer of the caller; returns it.
const char *ree_onnx_type_text(const struct ree_value *value, char *out, size_t size);

// Tensors (tensor.c): sets dtype, shape and data of `value`. Of types that ree lacks, only dtype
// and shape.
enum ree_status ree_onnx_read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     struct ree_value *value);

// Refuses a file that has other names (hard links) and another owner than the model: a name in the
// model's folder for a file from elsewhere, which whoever made the folder could not necessarily
// read. Who shares files between his own folders has one owner.
enum ree_status ree_onnx_check_links(int fd, int64_t owner, struct ree_error *err);
// External data (external.c): *out points to the `nbytes` bytes that the tensor names, in a mapped
// file where its offset is aligned to `alignment`, else in a copy.
enum ree_status ree_onnx_read_external(struct ree_onnx_reader *reader,
                                       const Onnx__TensorProto *proto, size_t nbytes,
                                       size_t alignment, const void **out);
// Opens a file below an open folder for reading; *out_fd is the caller's. `location` is relative,
// has no "..", and no symbolic link in it leads out of the folder, but for those of a Hugging Face
// cache (below). Without the kernel's help (openat2 with RESOLVE_BENEATH; use_openat2 false in
// tests), symbolic links are otherwise refused altogether.
enum ree_status ree_onnx_open_beneath(int folder_fd, const char *location, bool use_openat2,
                                      int *out_fd, struct ree_error *err);
// The one exception (hub_cache.c): `location` as a link of a Hugging Face cache into its folder of
// blobs. -1 where it is no such link; else the caller's descriptor.
int ree_onnx_open_blob(int folder_fd, const char *location);

// Names (scope.c): what a name means within a graph, and else within the graphs around it.
enum ree_name_kind { REE_NAME_INPUT, REE_NAME_INITIALIZER, REE_NAME_OUTPUT };

struct ree_name {
    const char *name;
    enum ree_name_kind kind;
    uint32_t index; // of the input, the initializer, or the node whose output it is
    uint32_t order; // of definition: inputs, initializers, outputs by node
    struct ree_value *value;
};

struct ree_scope {
    const struct ree_scope *outer;
    const struct ree_call *call; // whose function the names are in, or around; NULL: none
    size_t n;
    struct ree_name *names; // sorted
    // An initializer that is an input's default shares that input's value.
    struct ree_value **initializers; // by index
    struct ree_value **outputs;      // of the nodes one after the other; NULL where omitted
};

// Adds all values that `proto` defines to `graph`: inputs, initializers and node outputs. Fails
// where a name is missing or defined twice.
enum ree_status ree_scope_init(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                               struct ree_graph *graph, const struct ree_scope *outer,
                               struct ree_scope *scope);
// The names of a function, given as a graph of its inputs and nodes. Its inputs are the values that
// the call gives, its outputs those that the call wants; the others are added to `graph`.
enum ree_status ree_scope_init_call(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_call *call,
                                    struct ree_scope *scope);
struct ree_value *ree_scope_find(const struct ree_scope *scope, const char *name); // NULL: unknown
// What ree_scope_find gives for an input of a function that the call omits.
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
// Appends the nodes of a function in place of `node`, a call of it. `scope` is that of the call.
enum ree_status ree_onnx_inline(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                const struct ree_scope *scope, const struct ree_node *node,
                                const struct ree_function *function);
// What the function's attribute `proto` refers to: the call's attribute, else the function's
// default, as *out; false in *out_found when there is neither.
enum ree_status ree_onnx_read_reference(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto,
                                        const struct ree_call *call, struct ree_attr *out,
                                        bool *out_found);

// Graphs (graph.c). `graph` is new, with opsets and file set.
enum ree_status ree_onnx_read_graph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *outer);
// Appends the nodes of `proto`, whose values are in `scope`, to the graph; calls of functions
// become the nodes of those.
enum ree_status ree_onnx_read_nodes(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *scope);
enum ree_status ree_onnx_append_node(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                     struct ree_node *node);
// Puts the nodes in an order in which producers come first (order.c); one that has it already stays
// as it is. Fails on a cycle.
enum ree_status ree_onnx_order_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph);

#endif
