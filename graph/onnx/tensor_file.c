// Reads a file that holds one value, as ONNX's test data does: a TensorProto, SequenceProto or
// OptionalProto. The file does not tell which of them it is.
#include "base/container.h"
#include "base/memory.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/reader.h"

#include <string.h>

static enum ree_status copy_strings(struct ree_tensor *out, const char *const *strings,
                                    struct ree_error *err) {
    char **copies = out->data;
    for (size_t i = 0; i < out->nbytes / sizeof *copies; i++) {
        copies[i] = ree_strdup(strings[i]);
        if (!copies[i]) return ree_no_memory(err);
    }
    return REE_OK;
}

static enum ree_status load_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                   struct ree_tensor *out) {
    struct ree_error *err = reader->err;
    struct ree_value value = {0};
    REE_TRY(ree_onnx_read_tensor(reader, proto, &value));
    if (!value.data)
        return ree_fail(err, REE_UNSUPPORTED, "tensors of type %s are not supported",
                        ree_onnx_type_name(value.dtype));
    REE_TRY(ree_tensor_init(out, proto->name, value.dtype, value.rank, value.dims, err));
    if (value.dtype == REE_STRING) return copy_strings(out, value.data, err);
    if (value.nbytes) memcpy(out->data, value.data, value.nbytes);
    return REE_OK;
}

static enum ree_status load_sequence(struct ree_onnx_reader *reader,
                                     const Onnx__SequenceProto *proto, const struct ree_port *port,
                                     struct ree_tensor *out) {
    out->kind = REE_SEQUENCE;
    out->dtype = port->dtype;
    if (proto->elem_type != ONNX__SEQUENCE_PROTO__KIND__KIND_TENSOR &&
        proto->elem_type != ONNX__SEQUENCE_PROTO__KIND__KIND_UNDEFINED)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "is a sequence of elements other than tensors");
    for (size_t i = 0; i < proto->n_tensor_values; i++) {
        struct ree_tensor item = {0};
        enum ree_status status = load_tensor(reader, proto->tensor_values[i], &item);
        if (status != REE_OK) {
            ree_tensor_finish(&item);
            return ree_fail_prefix(reader->err, "item %zu", i);
        }
        REE_TRY(ree_sequence_append(out, &item, reader->err));
        if (i == 0) out->dtype = out->items[0].dtype;
        if (out->items[i].dtype != out->dtype)
            return ree_fail(reader->err, REE_INVALID,
                            "item %zu has type %s, but item 0 has type %s", i,
                            ree_dtype_name(out->items[i].dtype), ree_dtype_name(out->dtype));
    }
    return REE_OK;
}

static enum ree_status load_optional(struct ree_onnx_reader *reader,
                                     const Onnx__OptionalProto *proto, const struct ree_port *port,
                                     struct ree_tensor *out) {
    if (proto->tensor_value && proto->sequence_value)
        return ree_fail(reader->err, REE_INVALID, "contains both a tensor and a sequence");
    if (proto->tensor_value) return load_tensor(reader, proto->tensor_value, out);
    if (proto->sequence_value) return load_sequence(reader, proto->sequence_value, port, out);
    if (proto->elem_type > ONNX__OPTIONAL_PROTO__KIND__KIND_SEQUENCE)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "is an optional value of a type other than tensor or sequence");
    out->kind = REE_ABSENT;
    out->dtype = port->dtype;
    return REE_OK;
}

static enum ree_status load(const struct ree_mapping *file, const char *path,
                            const struct ree_port *port, struct ree_onnx_reader *reader,
                            struct ree_tensor *out) {
    if (!ree_onnx_reader_set_folder(reader, path)) return ree_onnx_no_memory(reader);
    bool optional = port && port->nullable, sequence = port && port->kind == REE_SEQUENCE;
    const ProtobufCMessageDescriptor *type = optional   ? &onnx__optional_proto__descriptor
                                             : sequence ? &onnx__sequence_proto__descriptor
                                                        : &onnx__tensor_proto__descriptor;
    ProtobufCMessage *message;
    REE_TRY(ree_decode(&reader->decoder, type, file->data, file->size, &message, reader->err));
    if (optional)
        return load_optional(reader, REE_CONTAINER_OF(message, const Onnx__OptionalProto, base),
                             port, out);
    if (sequence)
        return load_sequence(reader, REE_CONTAINER_OF(message, const Onnx__SequenceProto, base),
                             port, out);
    return load_tensor(reader, REE_CONTAINER_OF(message, const Onnx__TensorProto, base), out);
}

enum ree_status ree_onnx_tensor_load(const char *path, const struct ree_port *port,
                                     struct ree_tensor *out_tensor, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    memset(out_tensor, 0, sizeof *out_tensor);
    struct ree_mapping *file;
    enum ree_status status = ree_mapping_of_path(path, &file, err);
    if (status == REE_OK) {
        struct ree_arena arena;
        struct ree_mapping *mappings = NULL;
        struct ree_onnx_reader reader;
        ree_arena_init(&arena);
        ree_onnx_reader_init(&reader, &arena, &mappings, err);
        status = load(file, path, port, &reader, out_tensor);
        ree_onnx_reader_finish(&reader);
        if (ree_mappings_check(mappings, err) != REE_OK || ree_mapping_check(file, err) != REE_OK)
            status = REE_IO;
        ree_mappings_destroy(&mappings);
        ree_arena_finish(&arena);
        ree_mapping_destroy(file);
    }
    if (status == REE_OK) return REE_OK;
    ree_tensor_finish(out_tensor);
    return ree_onnx_fail_file(err, path);
}
