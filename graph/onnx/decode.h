// Checks and decodes protobuf messages. The memory of all messages of a decoder is bounded, counted
// and released together.
#ifndef REE_GRAPH_ONNX_DECODE_H
#define REE_GRAPH_ONNX_DECODE_H

#include "base/arena.h"
#include "graph/ir/mapping.h"

#include <protobuf-c/protobuf-c.h>

// A decoder allocates arrays of at least this many bytes as mappings of their own, so that a graph
// can take them over (ree_decoder_move_array).
#define REE_DECODE_LARGE 4096

struct ree_decoder {
    ProtobufCAllocator allocator;
    struct ree_arena small;
    struct ree_mapping *large;
    // Bytes in use for decoded messages, and their maximum. limit 0: ree_decode sets it in
    // proportion to the size of the message.
    size_t used, limit;
    bool over_limit; // an allocation was refused because of the limit
    // receives progress reports, in bytes of the encoded message; NULL: none
    const struct ree_progress *progress;
    bool cancelled;
    size_t total, reported;
};

void ree_decoder_init(struct ree_decoder *decoder);
void ree_decoder_finish(struct ree_decoder *decoder); // also frees all decoded messages

// Checks one message (ree_wire_check) and decodes it to *out, which the decoder owns. Fails like
// ree_wire_check, and with REE_INVALID if decoding requires more memory than the limit.
enum ree_status ree_decode(struct ree_decoder *decoder, const ProtobufCMessageDescriptor *type,
                           const void *bytes, size_t nbytes, ProtobufCMessage **out,
                           struct ree_error *err);

// Moves `data`, the array of a field of a decoded message, to the list of a graph's mappings
// without copying it. The array is aligned to 64 bytes and followed by zeros up to the next
// multiple of 64. Returns false if the array is smaller than REE_DECODE_LARGE. A repeated call for
// the same array and list returns true and moves nothing.
bool ree_decoder_move_array(struct ree_decoder *decoder, const void *data,
                            struct ree_mapping **list);

#endif
