#include "graph/onnx/wire.h"

#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

struct level {
    const ProtobufCMessageDescriptor *type;
    const ProtobufCFieldDescriptor *field; // the field being read
    size_t end;                            // end of the message
    // bit i: the singular sub-message of field index i was read
    uint64_t seen;
};

struct walk {
    const uint8_t *bytes;
    size_t at;
    uint32_t depth;
    struct level levels[REE_WIRE_MAX_DEPTH];
    struct ree_error *err;
};

// Fails with "graph.node.attribute: <what> (byte 1234)".
__attribute__((format(printf, 3, 4))) static enum ree_status
fail(const struct walk *walk, enum ree_status status, const char *format, ...) {
    struct ree_strbuf path;
    ree_strbuf_init(&path);
    for (uint32_t i = 0; i < walk->depth && path.size < 200; i++) {
        const ProtobufCFieldDescriptor *field = walk->levels[i].field;
        if (field) ree_strbuf_printf(&path, "%s%s", path.size ? "." : "", field->name);
    }
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    ree_fail(walk->err, status, "%s%s%s%s (byte %zu)",
             status == REE_INVALID ? "malformed protobuf: " : "", path.data ? path.data : "",
             path.size ? ": " : "", what, walk->at);
    ree_strbuf_finish(&path);
    return status;
}

// Reads a varint of at most `max_bytes` bytes that must end before `end`.
static bool read_varint(struct walk *walk, size_t end, unsigned max_bytes, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned i = 0; i < max_bytes && walk->at < end; i++) {
        uint8_t byte = walk->bytes[walk->at++];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static enum wire_type wire_type_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return LENGTH;
    default: return VARINT;
    }
}

// Checks packed numbers in one length-delimited field, up to `end`.
static enum ree_status check_packed(struct walk *walk, enum wire_type element, size_t end) {
    size_t size = end - walk->at;
    if (element == FIXED32 || element == FIXED64) {
        size_t width = element == FIXED32 ? 4 : 8;
        if (size % width != 0)
            return fail(walk, REE_INVALID, "%zu bytes is not a multiple of the element size %zu",
                        size, width);
    } else {
        uint64_t ignored;
        while (walk->at < end)
            if (!read_varint(walk, end, 10, &ignored))
                return fail(walk, REE_INVALID, "a number is truncated or longer than 10 bytes");
    }
    walk->at = end;
    return REE_OK;
}

static enum ree_status enter(struct walk *walk, const ProtobufCMessageDescriptor *type,
                             size_t end) {
    if (walk->depth == REE_WIRE_MAX_DEPTH)
        return fail(walk, REE_UNSUPPORTED, "messages are nested more than %d deep",
                    REE_WIRE_MAX_DEPTH);
    walk->levels[walk->depth++] = (struct level){.type = type, .end = end};
    return REE_OK;
}

// Checks a length-delimited field: its length and its contents.
static enum ree_status check_length_delimited(struct walk *walk, struct level *level) {
    uint64_t length;
    if (!read_varint(walk, level->end, 5, &length))
        return fail(walk, REE_INVALID, "a length is truncated or longer than 5 bytes");
    if (length > level->end - walk->at)
        return fail(walk, REE_INVALID,
                    "is truncated: its length is %llu bytes, but only %zu bytes remain",
                    (unsigned long long)length, level->end - walk->at);
    size_t end = walk->at + (size_t)length;
    const ProtobufCFieldDescriptor *field = level->field;
    if (!field || field->type == PROTOBUF_C_TYPE_BYTES) {
        walk->at = end;
        return REE_OK;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (length && memchr(walk->bytes + walk->at, 0, (size_t)length))
            return fail(walk, REE_INVALID, "a string contains a NUL byte");
        walk->at = end;
        return REE_OK;
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return check_packed(walk, wire_type_of(field->type), end);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        uint64_t bit = UINT64_C(1) << (field - level->type->fields);
        if (level->seen & bit) return fail(walk, REE_INVALID, "occurs twice");
        level->seen |= bit;
    }
    return enter(walk, field->descriptor, end);
}

static enum ree_status check_field(struct walk *walk, struct level *level) {
    uint64_t tag;
    if (!read_varint(walk, level->end, 5, &tag) || tag > UINT32_MAX)
        return fail(walk, REE_INVALID, "a field's tag is truncated or longer than 5 bytes");
    unsigned wire_type = tag & 7;
    uint32_t number = (uint32_t)(tag >> 3);
    if (number == 0) return fail(walk, REE_INVALID, "a field has the number 0");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(level->type, number);
    level->field = field;
    if (field) {
        enum wire_type expected = wire_type_of(field->type);
        bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && wire_type == LENGTH;
        if (wire_type != expected && !packed)
            return fail(walk, REE_INVALID, "has wire type %u, expected %d", wire_type,
                        (int)expected);
    }
    uint64_t ignored;
    switch (wire_type) {
    case VARINT:
        if (!read_varint(walk, level->end, 10, &ignored))
            return fail(walk, REE_INVALID, "a number is truncated or longer than 10 bytes");
        return REE_OK;
    case FIXED32:
    case FIXED64: {
        size_t width = wire_type == FIXED32 ? 4 : 8;
        if (level->end - walk->at < width)
            return fail(walk, REE_INVALID, "is truncated: %zu of %zu bytes", level->end - walk->at,
                        width);
        walk->at += width;
        return REE_OK;
    }
    case LENGTH: return check_length_delimited(walk, level);
    default:
        return fail(walk, REE_INVALID, "field %u has the unknown wire type %u", number, wire_type);
    }
}

enum ree_status ree_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                               size_t nbytes, struct ree_error *err) {
    if (nbytes > REE_WIRE_MAX_SIZE)
        return ree_fail(
            err, REE_UNSUPPORTED,
            "%zu bytes exceed protobuf's limit of 2 GiB; store the weights in external data files",
            nbytes);
    struct walk walk = {.bytes = bytes, .err = err};
    REE_TRY(enter(&walk, type, nbytes));
    while (walk.depth > 0) {
        struct level *level = &walk.levels[walk.depth - 1];
        if (walk.at == level->end) {
            walk.depth--;
            continue;
        }
        level->field = NULL;
        REE_TRY(check_field(&walk, level));
    }
    return REE_OK;
}
