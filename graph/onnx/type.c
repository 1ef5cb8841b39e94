#include "graph/onnx/reader.h"

#include <stdio.h>

const char *ree_onnx_type_text(const struct ree_value *value, char *out, size_t size) {
    size_t n = 0;
    // snprintf returns the length that it would have written; text beyond the buffer is omitted.
#define APPEND(...) (n += n < size ? (size_t)snprintf(out + n, size - n, __VA_ARGS__) : 0)
    APPEND("%s", ree_onnx_type_name(value->dtype));
    if (value->has_shape) {
        APPEND("[");
        for (uint32_t i = 0; i < value->rank; i++) {
            if (i) APPEND(",");
            if (value->dims[i] >= 0)
                APPEND("%lld", (long long)value->dims[i]);
            else
                APPEND("%s", value->symbols[i] ? value->symbols[i] : "?");
        }
        APPEND("]");
    }
#undef APPEND
    return out;
}

static enum ree_status read_dim(struct ree_onnx_reader *reader,
                                const Onnx__TensorShapeProto__Dimension *dim,
                                struct ree_value *value, uint32_t i) {
    const char *symbol = ree_onnx_text(dim->dim_param);
    if (dim->has_dim_value && symbol[0])
        return ree_fail(reader->err, REE_INVALID,
                        "dimension %u has both a size and a symbol ('%s')", i, symbol);
    // Some exporters write -1 for an unknown size.
    value->dims[i] = dim->has_dim_value ? dim->dim_value : -1;
    if (value->dims[i] < -1)
        return ree_fail(reader->err, REE_INVALID, "dimension %u is %lld", i,
                        (long long)value->dims[i]);
    if (value->dims[i] > REE_ONNX_MAX_ELEMENTS)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "dimension %u is %lld; at most %d is supported", i,
                        (long long)value->dims[i], REE_ONNX_MAX_ELEMENTS);
    if (symbol[0] && !(value->symbols[i] = ree_arena_strdup(reader->arena, symbol)))
        return ree_onnx_no_memory(reader);
    return REE_OK;
}

static enum ree_status read_shape(struct ree_onnx_reader *reader,
                                  const Onnx__TensorShapeProto *shape, struct ree_value *value) {
    if (shape->n_dim > REE_MAX_RANK)
        return ree_fail(reader->err, REE_UNSUPPORTED, "has rank %zu; at most %d is supported",
                        shape->n_dim, REE_MAX_RANK);
    int64_t known[REE_MAX_RANK];
    for (uint32_t i = 0; i < shape->n_dim; i++) {
        REE_TRY(read_dim(reader, shape->dim[i], value, i));
        known[i] = value->dims[i] < 0 ? 1 : value->dims[i];
    }
    value->has_shape = true;
    value->rank = (uint32_t)shape->n_dim;
    int64_t count;
    if (!ree_count_elements(value->rank, known, &count) || count > REE_ONNX_MAX_ELEMENTS) {
        char text[256];
        return ree_fail(reader->err, REE_UNSUPPORTED, "%s has more than %d elements",
                        ree_onnx_type_text(value, text, sizeof text), REE_ONNX_MAX_ELEMENTS);
    }
    return REE_OK;
}

enum ree_status ree_onnx_read_type(struct ree_onnx_reader *reader, const Onnx__TypeProto *proto,
                                   struct ree_value *value) {
    const struct {
        const char *name;
        bool present;
    } kinds[] = {
        {"a tensor", proto->tensor_type},
        {"a sequence", proto->sequence_type},
        {"an optional value", proto->optional_type},
        {"a map", proto->map_type},
        {"an opaque value", proto->opaque_type},
        {"a sparse tensor", proto->sparse_tensor_type},
    };
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!kinds[i].present) continue;
        if (kind)
            return ree_fail(reader->err, REE_INVALID, "is both %s and %s", kind, kinds[i].name);
        kind = kinds[i].name;
        if (i > 2)
            return ree_fail(reader->err, REE_UNSUPPORTED, "is %s; only tensors are supported",
                            kind);
    }
    const Onnx__TypeProto__Sequence *sequence = proto->sequence_type;
    const Onnx__TypeProto__Sequence *optional = proto->optional_type;
    if (sequence && value->kind == REE_SEQUENCE)
        return ree_fail(reader->err, REE_UNSUPPORTED, "is a sequence of sequences");
    if (optional && (value->nullable || value->kind == REE_SEQUENCE))
        return ree_fail(reader->err, REE_UNSUPPORTED, "contains optional values");
    if (sequence) value->kind = REE_SEQUENCE;
    if (optional) value->nullable = true;
    if (sequence || optional) {
        const Onnx__TypeProto *inner = (sequence ? sequence : optional)->elem_type;
        if (!inner) return ree_fail(reader->err, REE_INVALID, "does not state its element type");
        return ree_onnx_read_type(reader, inner, value);
    }
    const Onnx__TypeProto__Tensor *tensor = proto->tensor_type;
    if (!tensor) return REE_OK;
    if (tensor->elem_type < 0)
        return ree_fail(reader->err, REE_INVALID, "has the unknown element type %d",
                        tensor->elem_type);
    value->dtype = (enum ree_dtype)tensor->elem_type;
    return tensor->shape ? read_shape(reader, tensor->shape, value) : REE_OK;
}
