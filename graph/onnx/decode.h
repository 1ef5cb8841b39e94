// Decodes checked protobuf messages. The memory of all messages is bounded, counted and released
// together.
#ifndef REE_GRAPH_ONNX_DECODE_H
#define REE_GRAPH_ONNX_DECODE_H

#include "base/arena.h"
#include "graph/ir/mapping.h"

#include <protobuf-c/protobuf-c.h>

// Allocations of at least this many bytes are heap mappings of their own, which a graph can take
// over.
#define REE_DECODE_LARGE 4096

struct ree_decoder {
    ProtobufCAllocator allocator;
    struct ree_arena small;
    struct ree_mapping *large;
    size_t used, limit; // bytes in use and allowed; limit 0: in proportion to the message
    bool over_limit;    // an allocation was refused because of the limit
    const struct ree_progress *progress; // in bytes of the encoded message; NULL: off
    bool cancelled;
    size_t total, reported;
};

void ree_decoder_init(struct ree_decoder *decoder);
void ree_decoder_finish(struct ree_decoder *decoder); // frees all messages of the decoder

// Checks (ree_wire_check) and decodes one message. The decoder owns the message.
enum ree_status ree_decode(struct ree_decoder *decoder, const ProtobufCMessageDescriptor *type,
                           const void *bytes, size_t nbytes, ProtobufCMessage **out,
                           struct ree_error *err);

// Moves `data`, the array of a field of a decoded message, to a graph's list without copying it.
// The array is aligned to 64 bytes and followed by zeros up to the next multiple of 64. Returns
// false if the array is too small to have a mapping of its own. A repeated call for the same array
// and list returns true and moves nothing.
bool ree_decoder_give(struct ree_decoder *decoder, const void *data, struct ree_mapping **list);

#endif
