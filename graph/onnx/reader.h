// What the parts of the ONNX reader share: from decoded protobuf messages to the IR, with every
// check. Functions report what is wrong; their callers put in front where it is.
#ifndef REE_GRAPH_ONNX_READER_H
#define REE_GRAPH_ONNX_READER_H

#include "graph/ir.h"
#include "graph/onnx/decode.h"
#include "onnx.pb-c.h"

// Tensors have fewer than 2^31 elements throughout ree, and no dimension is larger.
#define REE_ONNX_MAX_ELEMENTS INT32_MAX

struct ree_onnx_reader {
    struct ree_arena *arena;       // of what is read
    struct ree_mapping **mappings; // that what is read keeps
    struct ree_mapping *files;     // of external data; join `mappings` when the reader finishes
    struct ree_decoder decoder;
    struct ree_arena scratch; // released with the reader
    const char *folder;       // where external data lie; NULL: nowhere
    int folder_fd;            // -1: not open yet
    struct ree_error *err;    // never NULL
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

// Types (type.c).
// Sets dtype, shape and symbols of `value`. Anything but a tensor is refused.
enum ree_status ree_onnx_read_type(struct ree_onnx_reader *reader, const Onnx__TypeProto *proto,
                                   struct ree_value *value);
// "float32[2,?,n]" into a buffer of the caller; returns it.
const char *ree_onnx_type_text(const struct ree_value *value, char *out, size_t size);

// Tensors (tensor.c): sets dtype, shape and data of `value`. Of types that ree lacks, and of
// strings, only dtype and shape.
enum ree_status ree_onnx_read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     struct ree_value *value);

// External data (external.c): *out points to the `nbytes` bytes that the tensor names, in a mapped
// file where its offset is aligned to `alignment`, else in a copy.
enum ree_status ree_onnx_read_external(struct ree_onnx_reader *reader,
                                       const Onnx__TensorProto *proto, size_t nbytes,
                                       size_t alignment, const void **out);
// Opens a file below an open folder for reading; *out_fd is the caller's. `location` is relative,
// has no "..", and no symbolic link in it leads out of the folder. Without the kernel's help
// (openat2 with RESOLVE_BENEATH; use_openat2 false in tests), symbolic links are refused
// altogether.
enum ree_status ree_onnx_open_beneath(int folder_fd, const char *location, bool use_openat2,
                                      int *out_fd, struct ree_error *err);

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
struct ree_value *ree_scope_find(const struct ree_scope *scope, const char *name); // NULL: unknown

// Attributes (attribute.c).
enum ree_status ree_onnx_read_attributes(struct ree_onnx_reader *reader,
                                         const Onnx__NodeProto *proto, struct ree_graph *graph,
                                         const struct ree_scope *scope, struct ree_node *node);

// Graphs (graph.c). `graph` is new, with opsets and file set.
enum ree_status ree_onnx_read_graph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *outer);
// Puts the nodes in an order in which producers come first (order.c); one that has it already stays
// as it is. Fails on a cycle.
enum ree_status ree_onnx_order_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph);

#endif
