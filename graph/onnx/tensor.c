#include "graph/onnx/reader.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "ONNX data is little-endian and is used without conversion");

#define TEXT_SIZE 160

static enum ree_status read_dims(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                 struct ree_value *value, int64_t *out_count) {
    if (proto->n_dims > REE_MAX_RANK)
        return ree_fail(reader->err, REE_UNSUPPORTED, "has rank %zu; at most %d is supported",
                        proto->n_dims, REE_MAX_RANK);
    value->has_shape = true;
    value->rank = (uint32_t)proto->n_dims;
    bool too_large = false;
    for (uint32_t i = 0; i < value->rank; i++) {
        value->dims[i] = proto->dims[i];
        if (value->dims[i] < 0)
            return ree_fail(reader->err, REE_INVALID, "dimension %u is %lld", i,
                            (long long)value->dims[i]);
        too_large |= value->dims[i] > REE_ONNX_MAX_ELEMENTS;
    }
    bool counted = ree_count_elements(value->rank, value->dims, out_count);
    if (too_large || !counted || *out_count > REE_ONNX_MAX_ELEMENTS) {
        char text[TEXT_SIZE];
        return ree_fail(reader->err, REE_UNSUPPORTED, "%s has more than %d elements",
                        ree_onnx_type_text(value, text, sizeof text), REE_ONNX_MAX_ELEMENTS);
    }
    return REE_OK;
}

// The fields that can hold a tensor's elements.
enum field { NONE, RAW, FLOATS, INT32S, INT64S, DOUBLES, UINT64S, STRINGS, N_FIELDS };
static const char *const field_names[N_FIELDS] = {
    "no field",   "raw_data",    "float_data",  "int32_data",
    "int64_data", "double_data", "uint64_data", "string_data",
};

static enum field field_of_type(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32: return FLOATS;
    case REE_F64: return DOUBLES;
    case REE_I64: return INT64S;
    case REE_U32:
    case REE_U64: return UINT64S;
    case REE_STRING: return STRINGS;
    default: return INT32S;
    }
}

// Finds the field that holds the elements, and its number of elements (of bytes, for raw_data).
// More than one field is an error.
static enum ree_status find_field(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                  enum field *out, size_t *out_n) {
    const size_t sizes[N_FIELDS] = {
        [RAW] = proto->raw_data.len,      [FLOATS] = proto->n_float_data,
        [INT32S] = proto->n_int32_data,   [INT64S] = proto->n_int64_data,
        [DOUBLES] = proto->n_double_data, [UINT64S] = proto->n_uint64_data,
        [STRINGS] = proto->n_string_data,
    };
    *out = NONE;
    for (enum field f = RAW; f < N_FIELDS; f++) {
        if (!sizes[f]) continue;
        if (*out != NONE)
            return ree_fail(reader->err, REE_INVALID, "has both %s and %s", field_names[*out],
                            field_names[f]);
        *out = f;
    }
    *out_n = sizes[*out];
    return REE_OK;
}

// Allocates `nbytes` bytes in the arena, readable up to the next multiple of 4. Not NULL for an
// empty tensor, unless memory is exhausted.
static void *alloc_data(struct ree_onnx_reader *reader, size_t nbytes) {
    return ree_arena_alloc(reader->arena, nbytes ? (nbytes + 3) & ~(size_t)3 : 4);
}

// Uses an array of the decoded message that already has the tensor's layout. Takes ownership of it
// if possible, else copies it.
static enum ree_status take(struct ree_onnx_reader *reader, const void *data, size_t nbytes,
                            struct ree_value *value) {
    value->nbytes = nbytes;
    if (nbytes && ree_decoder_move_array(&reader->decoder, data, reader->mappings)) {
        value->data = data;
        return REE_OK;
    }
    void *copy = alloc_data(reader, nbytes);
    if (!copy) return ree_onnx_no_memory(reader);
    if (nbytes) memcpy(copy, data, nbytes);
    value->data = copy;
    return REE_OK;
}

// Bytes of `count` elements in raw_data and in external files, where elements of less than a byte
// are packed.
static size_t packed_size(enum ree_dtype dtype, size_t count) {
    return (size_t)(((uint64_t)count * ree_dtype_bits(dtype) + 7) / 8);
}

static bool is_packed(enum ree_dtype dtype) {
    return ree_dtype_bits(dtype) % 8 != 0;
}

// Unpacks elements (the first in the lowest bits) to one byte each. Ignores unused bits of the last
// byte.
static enum ree_status unpack(struct ree_onnx_reader *reader, const unsigned char *packed,
                              size_t count, struct ree_value *value) {
    uint32_t bits = ree_dtype_bits(value->dtype), per_byte = 8 / bits;
    unsigned char mask = (unsigned char)((1u << bits) - 1);
    unsigned char sign = value->dtype == REE_I4 ? 8 : value->dtype == REE_I2 ? 2 : 0;
    unsigned char *data = alloc_data(reader, count);
    if (!data) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < count; i++) {
        unsigned char element = packed[i / per_byte] >> (i % per_byte * bits) & mask;
        data[i] = (unsigned char)((element ^ sign) - sign);
    }
    value->data = data;
    value->nbytes = count;
    return REE_OK;
}

// Unpacks bytes of packed elements that are stored in int32_data, one byte per number.
static enum ree_status unpack_numbers(struct ree_onnx_reader *reader,
                                      const Onnx__TensorProto *proto, size_t count,
                                      struct ree_value *value) {
    size_t n = packed_size(value->dtype, count);
    unsigned char *packed = alloc_data(reader, n);
    if (!packed) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < n; i++) {
        // Some writers sign-extend the byte.
        if (proto->int32_data[i] < INT8_MIN || proto->int32_data[i] > UINT8_MAX)
            return ree_fail(reader->err, REE_INVALID,
                            "number %zu in int32_data is %d, expected a byte of packed elements", i,
                            proto->int32_data[i]);
        packed[i] = (unsigned char)proto->int32_data[i];
    }
    return unpack(reader, packed, count, value);
}

// Converts elements that ONNX stores as int32 or uint64 in the message back to their own size.
static enum ree_status narrow(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                              size_t count, struct ree_value *value) {
    int64_t low = 0, high = 0;
    switch (value->dtype) {
    case REE_BOOL: high = 1; break;
    case REE_U8: high = UINT8_MAX; break;
    case REE_I8: low = INT8_MIN, high = INT8_MAX; break;
    case REE_I16: low = INT16_MIN, high = INT16_MAX; break;
    case REE_U32: high = UINT32_MAX; break;
    default: // the bits of float types, and uint16
        high = ree_dtype_size(value->dtype) == 1 ? UINT8_MAX : UINT16_MAX;
    }
    size_t size = ree_dtype_size(value->dtype);
    unsigned char *data = alloc_data(reader, count * size);
    if (!data) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < count; i++) {
        bool wide = value->dtype == REE_U32;
        if (wide && proto->uint64_data[i] > UINT32_MAX)
            return ree_fail(reader->err, REE_INVALID, "element %zu is %llu, outside %s", i,
                            (unsigned long long)proto->uint64_data[i],
                            ree_onnx_type_name(value->dtype));
        int64_t element = wide ? (int64_t)proto->uint64_data[i] : proto->int32_data[i];
        if (element < low || element > high)
            return ree_fail(reader->err, REE_INVALID, "element %zu is %lld, outside %s", i,
                            (long long)element, ree_onnx_type_name(value->dtype));
        memcpy(data + i * size, &element, size); // the low-order bytes
    }
    value->data = data;
    value->nbytes = count * size;
    return REE_OK;
}

static enum ree_status read_typed(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                  size_t count, struct ree_value *value) {
    size_t nbytes = count * ree_dtype_size(value->dtype);
    if (is_packed(value->dtype)) return unpack_numbers(reader, proto, count, value);
    switch (value->dtype) {
    case REE_F32: return take(reader, proto->float_data, nbytes, value);
    case REE_F64: return take(reader, proto->double_data, nbytes, value);
    case REE_I32: return take(reader, proto->int32_data, nbytes, value);
    case REE_I64: return take(reader, proto->int64_data, nbytes, value);
    case REE_U64: return take(reader, proto->uint64_data, nbytes, value);
    default: return narrow(reader, proto, count, value);
    }
}

// Converts strings to an array of pointers, as in struct ree_tensor.
static enum ree_status read_strings(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                    size_t count, struct ree_value *value) {
    const char **strings = ree_arena_alloc_array(reader->arena, count + 1, sizeof *strings);
    if (!strings) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < count; i++) {
        const ProtobufCBinaryData *s = &proto->string_data[i];
        if (s->len && memchr(s->data, 0, s->len))
            return ree_fail(reader->err, REE_UNSUPPORTED, "string %zu contains a NUL byte", i);
        strings[i] = ree_arena_strndup(reader->arena, (const char *)s->data, s->len);
        if (!strings[i]) return ree_onnx_no_memory(reader);
    }
    value->data = strings;
    value->nbytes = count * sizeof *strings;
    return REE_OK;
}

// Raw bools are stored as bytes; all code that reads them relies on 0 and 1.
static enum ree_status check_bools(struct ree_onnx_reader *reader, const struct ree_value *value) {
    const unsigned char *data = value->data;
    for (size_t i = 0; i < value->nbytes; i++)
        if (data[i] > 1)
            return ree_fail(reader->err, REE_INVALID, "element %zu of a bool tensor is %u", i,
                            data[i]);
    return REE_OK;
}

static enum ree_status read_external(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     size_t count, struct ree_value *value) {
    size_t nbytes = packed_size(value->dtype, count), element_size = ree_dtype_size(value->dtype);
    enum field field;
    size_t n;
    REE_TRY(find_field(reader, proto, &field, &n));
    if (field != NONE)
        return ree_fail(reader->err, REE_INVALID, "has both external data and %s",
                        field_names[field]);
    // Kernels read whole 32-bit words, so narrower types must also be aligned to 4 bytes.
    size_t alignment = element_size > 4 ? element_size : 4;
    REE_TRY(ree_onnx_read_external(reader, proto, nbytes, alignment, &value->data));
    if (is_packed(value->dtype)) return unpack(reader, value->data, count, value);
    value->nbytes = nbytes;
    return value->dtype == REE_BOOL ? check_bools(reader, value) : REE_OK;
}

static enum ree_status read_inline(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                   size_t count, struct ree_value *value) {
    enum field field, expected = field_of_type(value->dtype);
    size_t n, nbytes = packed_size(value->dtype, count);
    char text[TEXT_SIZE];
    ree_onnx_type_text(value, text, sizeof text);
    REE_TRY(find_field(reader, proto, &field, &n));
    if (field == RAW && value->dtype == REE_STRING)
        return ree_fail(reader->err, REE_INVALID, "strings cannot be in raw_data");
    if (field == RAW) {
        if (n != nbytes)
            return ree_fail(reader->err, REE_INVALID,
                            "raw_data has %zu bytes, but %s requires %zu bytes", n, text, nbytes);
        if (is_packed(value->dtype)) return unpack(reader, proto->raw_data.data, count, value);
        REE_TRY(take(reader, proto->raw_data.data, nbytes, value));
        return value->dtype == REE_BOOL ? check_bools(reader, value) : REE_OK;
    }
    if (field != NONE && field != expected)
        return ree_fail(reader->err, REE_INVALID,
                        "its values are in %s, but values of %s must be in %s", field_names[field],
                        text, field_names[expected]);
    size_t n_values = is_packed(value->dtype) ? nbytes : count;
    if (n != n_values)
        return ree_fail(reader->err, REE_INVALID, "%s has %zu values, but %s requires %zu",
                        field_names[expected], n, text, n_values);
    if (value->dtype == REE_STRING) return read_strings(reader, proto, count, value);
    return read_typed(reader, proto, count, value);
}

enum ree_status ree_onnx_read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                     struct ree_value *value) {
    if (proto->segment)
        return ree_fail(reader->err, REE_UNSUPPORTED, "tensors in segments are not supported");
    if (proto->data_type <= 0) return ree_fail(reader->err, REE_INVALID, "has no data type");
    value->dtype = (enum ree_dtype)proto->data_type;
    int64_t count;
    REE_TRY(read_dims(reader, proto, value, &count));
    if (ree_dtype_size(value->dtype) == 0 && value->dtype != REE_STRING) return REE_OK;
    switch (proto->data_location) {
    case ONNX__TENSOR_PROTO__LOCATION__LOCATION_INLINE:
        return read_inline(reader, proto, (size_t)count, value);
    case ONNX__TENSOR_PROTO__LOCATION__LOCATION_EXTERNAL:
        if (value->dtype == REE_STRING)
            return ree_fail(reader->err, REE_INVALID, "strings cannot be external data");
        return read_external(reader, proto, (size_t)count, value);
    default:
        return ree_fail(reader->err, REE_INVALID, "has the unknown data location %d",
                        proto->data_location);
    }
}
