// Checks the protobuf wire format before anything is decoded or allocated.
// https://protobuf.dev/programming-guides/encoding/
#ifndef REE_GRAPH_ONNX_WIRE_H
#define REE_GRAPH_ONNX_WIRE_H

#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

// Maximum nesting of messages, including the outermost. A graph in an attribute of a node takes
// three levels.
#define REE_WIRE_MAX_DEPTH 100
// Maximum size of a message in bytes. Protobuf itself sets this limit.
#define REE_WIRE_MAX_SIZE INT32_MAX

// Checks that `bytes` are one whole message of the described type:
// - every tag, length and number is inside its message;
// - every declared field has its declared wire type;
// - strings contain no NUL;
// - no singular sub-message occurs twice (protobuf would merge the two, which no exporter intends);
// - nesting is at most REE_WIRE_MAX_DEPTH deep, which bounds the decoder's recursion.
//
// Error messages name the field ("graph.node.attribute") and the byte offset.
enum ree_status ree_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                               size_t nbytes, struct ree_error *err);

#endif
