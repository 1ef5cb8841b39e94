// The protobuf wire format, checked before anything is decoded or allocated.
// https://protobuf.dev/programming-guides/encoding/
#ifndef REE_GRAPH_ONNX_WIRE_H
#define REE_GRAPH_ONNX_WIRE_H

#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

// Messages within messages, the outermost counted. A graph in an attribute of a node costs three.
#define REE_WIRE_MAX_DEPTH 100
// What the decoder accepts; protobuf itself sets this limit.
#define REE_WIRE_MAX_SIZE INT32_MAX

// Checks that `bytes` are one whole message of the described type: every tag, length and number
// lies inside its message, every declared field has its declared wire type, strings hold no NUL, no
// single sub-message comes twice (protobuf would merge the two, which no exporter means), and
// nesting is at most REE_WIRE_MAX_DEPTH deep, which bounds the decoder's recursion. Messages name
// the field ("graph.node.attribute") and the byte.
enum ree_status ree_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                               size_t nbytes, struct ree_error *err);

#endif
