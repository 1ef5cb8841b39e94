#include "graph/onnx/decode.h"

#include "base/progress.h"
#include "graph/onnx/wire.h"

#include <string.h>

// A decoded message is larger than its encoding: an empty sub-message of two bytes becomes a struct
// and a pointer. Real models stay below a factor of 20. The limit stops input that is made to
// exhaust memory.
#define LIMIT_FACTOR 128
#define LIMIT_BASE ((size_t)1 << 20)
#define REPORT_EVERY ((size_t)16 << 20)

// Stored before every allocation. `owner` is the mapping that contains the allocation, or NULL if
// the allocation is small and in the arena.
struct prefix {
    _Alignas(16) struct ree_mapping *owner;
    bool moved; // a graph owns the mapping
};
#define LARGE_PREFIX 64 // keeps large data aligned to 64 bytes

static struct prefix *prefix_of(const void *data) {
    return (struct prefix *)((unsigned char *)(uintptr_t)data - sizeof(struct prefix));
}

// Returns the bytes that an allocation counts against the limit: its size and the larger of the two
// prefixes, rounded up to 64.
static size_t charge(size_t size) {
    return (size + 2 * LARGE_PREFIX - 1) & ~(size_t)63;
}

static void report(struct ree_decoder *decoder) {
    // The progress is an estimate: decoding is about as far as memory has been allocated for it.
    if (decoder->used - decoder->reported < REPORT_EVERY) return;
    decoder->reported = decoder->used;
    size_t done = decoder->used < decoder->total ? decoder->used : decoder->total;
    decoder->cancelled =
        ree_progress_report(decoder->progress, "reading", done, decoder->total, NULL) != REE_OK;
}

static void *decoder_alloc(void *data, size_t size) {
    struct ree_decoder *decoder = data;
    if (decoder->cancelled) return NULL; // protobuf-c then stops
    if (size > decoder->limit || charge(size) > decoder->limit - decoder->used) {
        decoder->over_limit = true;
        return NULL;
    }
    unsigned char *memory;
    struct ree_mapping *owner = NULL;
    if (size < REE_DECODE_LARGE) {
        unsigned char *block = ree_arena_alloc(&decoder->small, sizeof(struct prefix) + size);
        if (!block) return NULL;
        memory = block + sizeof(struct prefix);
    } else {
        owner = ree_mapping_of_size(LARGE_PREFIX + size);
        if (!owner) return NULL;
        ree_mapping_link(&decoder->large, owner);
        memory = owner->data + LARGE_PREFIX;
    }
    *prefix_of(memory) = (struct prefix){.owner = owner};
    decoder->used += charge(size);
    report(decoder);
    return memory;
}

// Small allocations are freed with the arena. Large ones are freed immediately: protobuf-c's
// bookkeeping for a message's fields is much larger than the fields.
static void decoder_free(void *data, void *memory) {
    struct ree_decoder *decoder = data;
    struct ree_mapping *owner = memory ? prefix_of(memory)->owner : NULL;
    if (!owner) return;
    decoder->used -= charge(owner->size - LARGE_PREFIX);
    if (decoder->reported > decoder->used) decoder->reported = decoder->used;
    ree_mapping_unlink(&decoder->large, owner);
    ree_mapping_destroy(owner);
}

void ree_decoder_init(struct ree_decoder *decoder) {
    memset(decoder, 0, sizeof *decoder);
    decoder->allocator = (ProtobufCAllocator){decoder_alloc, decoder_free, decoder};
    ree_arena_init(&decoder->small);
}

void ree_decoder_finish(struct ree_decoder *decoder) {
    ree_arena_finish(&decoder->small);
    ree_mappings_destroy(&decoder->large);
}

enum ree_status ree_decode(struct ree_decoder *decoder, const ProtobufCMessageDescriptor *type,
                           const void *bytes, size_t nbytes, ProtobufCMessage **out,
                           struct ree_error *err) {
    *out = NULL;
    REE_TRY(ree_wire_check(type, bytes, nbytes, err));
    decoder->total = nbytes;
    // The wire check has bounded nbytes below 2^31, so this does not overflow.
    if (decoder->limit == 0) decoder->limit = LIMIT_BASE + (size_t)LIMIT_FACTOR * nbytes;
    *out = protobuf_c_message_unpack(type, &decoder->allocator, nbytes, bytes);
    if (decoder->cancelled) return ree_fail(err, REE_CANCELLED, "cancelled");
    if (*out) return REE_OK;
    if (decoder->over_limit)
        return ree_fail(err, REE_INVALID,
                        "decoding its %zu bytes requires more than %zu bytes of memory; the file "
                        "is not a normal model",
                        nbytes, decoder->limit);
    // The wire check has found all errors in the bytes, so memory is exhausted.
    return ree_fail(err, REE_NO_MEMORY, "out of memory while decoding %zu bytes", nbytes);
}

bool ree_decoder_move_array(struct ree_decoder *decoder, const void *data,
                            struct ree_mapping **list) {
    struct ree_mapping *owner = prefix_of(data)->owner;
    if (!owner) return false;
    if (prefix_of(data)->moved) return true;
    prefix_of(data)->moved = true;
    ree_mapping_unlink(&decoder->large, owner);
    ree_mapping_link(list, owner);
    return true;
}
