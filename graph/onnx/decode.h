// Decoding of checked protobuf messages with memory that is bounded, counted and released as one.
#ifndef REE_GRAPH_ONNX_DECODE_H
#define REE_GRAPH_ONNX_DECODE_H

#include "base/arena.h"
#include "graph/mapping.h"

#include <protobuf-c/protobuf-c.h>

// Allocations from this size on are heap mappings of their own and can be given to a graph.
#define REE_DECODE_LARGE 4096

struct ree_decoder {
    ProtobufCAllocator allocator;
    struct ree_arena small;
    struct ree_mapping *large;
    size_t used, limit; // bytes; limit 0: in proportion to the message
    bool over_limit;    // the reason why an allocation was refused, if one was
    // Progress in bytes of the encoded message; on_progress may be NULL.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    size_t total, reported;
};

void ree_decoder_init(struct ree_decoder *decoder);
void ree_decoder_finish(struct ree_decoder *decoder); // frees every message it made

// Checks (ree_wire_check) and decodes one message, which lives as long as the decoder.
enum ree_status ree_decode(struct ree_decoder *decoder, const ProtobufCMessageDescriptor *type,
                           const void *bytes, size_t nbytes, ProtobufCMessage **out,
                           struct ree_error *err);

// Moves `data`, the array of a field of a decoded message, to a graph's list without copying it. It
// is then aligned to 64 bytes and zero up to the next multiple of 64. False when it is too small to
// have a mapping of its own. Data given once stay where they are: the same list may ask again.
bool ree_decoder_give(struct ree_decoder *decoder, const void *data, struct ree_mapping **list);

#endif
