// Writes valid and invalid ONNX models for tests: a small protobuf writer, and functions for the
// messages that most tests need. The field numbers are those of ONNX's onnx.proto; they are
// repeated here, so that the tests do not rely on the schema of the reader that they test.
//
// A struct pb is a protobuf message being written; {0} is an empty one. Functions that take a
// struct pb by value release it.
#ifndef REE_TESTS_MODEL_WRITER_H
#define REE_TESTS_MODEL_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct pb {
    unsigned char *data;
    size_t size, capacity;
};

// These functions append a field with number `field` to message `m`, except pb_raw and pb_number,
// which append bare bytes and a bare varint without a tag. If memory is short, they end the
// program.
void pb_raw(struct pb *m, const void *bytes, size_t n);
void pb_number(struct pb *m, uint64_t value);
void pb_int(struct pb *m, uint32_t field, int64_t value);
void pb_float(struct pb *m, uint32_t field, float value);
void pb_bytes(struct pb *m, uint32_t field, const void *bytes, size_t n);
void pb_text(struct pb *m, uint32_t field, const char *s);
void pb_sub(struct pb *m, uint32_t field, struct pb sub);
void pb_packed(struct pb *m, uint32_t field, size_t n, const int64_t *values);
void pb_free(struct pb *m);

// ModelProto
enum { MODEL_IR = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_METADATA = 14, MODEL_FUNCTION = 25 };
// GraphProto
enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE = 15
};
// NodeProto
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 7 };
// AttributeProto
enum {
    ATTR_NAME = 1,
    ATTR_F,
    ATTR_I,
    ATTR_S,
    ATTR_T,
    ATTR_G,
    ATTR_FLOATS,
    ATTR_INTS,
    ATTR_STRINGS,
    ATTR_TYPE = 20,
    ATTR_REF = 21,
    ATTR_SPARSE = 22
};
// TensorProto
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};

// Returns a model of IR version 8 and opset 13 that contains `graph`.
struct pb pb_model(struct pb graph);
struct pb pb_opset(const char *domain, int64_t version);
// Returns a TypeProto of a tensor; elem_type is ONNX's number of the data type. A dim of -1 is
// written without a size, other negative dims are written unchanged.
struct pb pb_tensor_type(int elem_type, size_t rank, const int64_t *dims);
struct pb pb_value(const char *name, int elem_type, size_t rank, const int64_t *dims);
struct pb pb_value_of(const char *name, struct pb type);
// Returns a NodeProto. `inputs` and `outputs` are names separated by commas: "x,,w" has three
// inputs, of which the second is omitted. An empty `op` or `name` is not written.
struct pb pb_node(const char *op, const char *name, const char *inputs, const char *outputs);
struct pb pb_tensor(const char *name, int type, size_t rank, const int64_t *dims, const void *raw,
                    size_t n);
struct pb pb_entry(const char *key, const char *value);
// Returns a TensorProto whose data are in another file. Of location, offset, length and checksum,
// those that are NULL are not written.
struct pb pb_external(const char *name, int type, size_t rank, const int64_t *dims,
                      const char *location, const char *offset, const char *length,
                      const char *checksum);
struct pb pb_attr_int(const char *name, int64_t value);
struct pb pb_attr_graph(const char *name, struct pb graph);
struct pb pb_attr_tensor(const char *name, struct pb tensor);

// Returns a small model with most features of the format: tensors with raw and with typed data,
// attributes of most kinds, an If with two branches that read outer values, a symbolic dimension,
// metadata.
struct pb pb_sample_model(void);

#endif
