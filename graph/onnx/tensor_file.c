// A file that holds one TensorProto, as ONNX's test data do.
#include "graph/onnx/reader.h"

#include <string.h>

static enum ree_status load(const struct ree_mapping *file, const char *path,
                            struct ree_onnx_reader *reader, struct ree_tensor *out) {
    struct ree_error *err = reader->err;
    if (!ree_onnx_reader_set_folder(reader, path)) return ree_onnx_no_memory(reader);
    ProtobufCMessage *message;
    REE_TRY(ree_decode(&reader->decoder, &onnx__tensor_proto__descriptor, file->data, file->size,
                       &message, err));
    const Onnx__TensorProto *proto = (const Onnx__TensorProto *)message;
    struct ree_value value = {0};
    REE_TRY(ree_onnx_read_tensor(reader, proto, &value));
    if (!value.data)
        return ree_fail(err, REE_UNSUPPORTED, "tensors of type %s are not supported",
                        ree_onnx_type_name(value.dtype));
    REE_TRY(ree_tensor_init(out, proto->name, value.dtype, value.rank, value.dims, err));
    if (value.nbytes) memcpy(out->data, value.data, value.nbytes);
    return REE_OK;
}

enum ree_status ree_onnx_tensor_load(const char *path, struct ree_tensor *out_tensor,
                                     struct ree_error *err) {
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
        status = load(file, path, &reader, out_tensor);
        ree_onnx_reader_finish(&reader);
        ree_mappings_destroy(&mappings);
        ree_arena_finish(&arena);
        ree_mapping_destroy(file);
    }
    return status == REE_OK ? REE_OK : ree_onnx_fail_file(err, path);
}
