#include "graph/hf/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

void ree_writer_init(struct ree_writer *w, struct ree_error *err) {
    memset(w, 0, sizeof *w);
    ree_arena_init(&w->arena);
    w->err = err;
}

void ree_writer_finish(struct ree_writer *w) {
    struct ree_writer_list *lists[] = {&w->nodes,  &w->initializers, &w->inputs,    &w->outputs,
                                       &w->opsets, &w->metadata,     &w->attributes};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        ree_free(lists[i]->items);
    ree_arena_finish(&w->arena);
    memset(w, 0, sizeof *w);
}

bool ree_writer_ok(const struct ree_writer *w) {
    return w->status == REE_OK;
}

static void no_memory(struct ree_writer *w) {
    ree_writer_fail(w, REE_NO_MEMORY, "out of memory");
}

static void append(struct ree_writer *w, struct ree_writer_list *list, void *item) {
    if (!ree_writer_ok(w)) return;
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        void **grown = ree_realloc(list->items, capacity * sizeof *grown);
        if (!grown) {
            no_memory(w);
            return;
        }
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->n++] = item;
}

static void *allocate(struct ree_writer *w, size_t n, size_t size) {
    void *p = ree_writer_ok(w) ? ree_arena_alloc_array(&w->arena, n ? n : 1, size) : NULL;
    if (!p) no_memory(w);
    return p;
}

// protobuf-c declares strings as non-const, but only reads those of a message that it packs.
static char *text_of(struct ree_writer *w, const char *s) {
    char *copy = ree_writer_ok(w) ? ree_arena_strdup(&w->arena, s) : NULL;
    if (!copy) no_memory(w);
    return copy;
}

// Makes a protobuf message in the arena and appends it to `list`, if not NULL. NULL after a
// failure.
static void *new_message(struct ree_writer *w, struct ree_writer_list *list, size_t size,
                         const void *init) {
    void *message = allocate(w, 1, size);
    if (!message) return NULL;
    memcpy(message, init, size);
    if (list) append(w, list, message);
    return ree_writer_ok(w) ? message : NULL;
}

const char *ree_writer_name(struct ree_writer *w, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        ree_writer_fail(w, REE_UNSUPPORTED, "a name is too long");
    const char *name = text_of(w, text);
    return name ? name : "";
}

void ree_writer_opset(struct ree_writer *w, const char *domain, int64_t version) {
    const Onnx__OperatorSetIdProto init = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *opset = new_message(w, &w->opsets, sizeof init, &init);
    if (!opset) return;
    opset->domain = text_of(w, domain);
    opset->has_version = true;
    opset->version = version;
}

static void append_entry(struct ree_writer *w, struct ree_writer_list *list, const char *key,
                         const char *value) {
    const Onnx__StringStringEntryProto init = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    Onnx__StringStringEntryProto *entry = new_message(w, list, sizeof init, &init);
    if (!entry) return;
    entry->key = text_of(w, key);
    entry->value = text_of(w, value);
}

void ree_writer_metadata(struct ree_writer *w, const char *key, const char *value) {
    append_entry(w, &w->metadata, key, value);
}

void ree_writer_port(struct ree_writer *w, bool is_output, const char *name, enum ree_dtype dtype,
                     uint32_t rank, const struct ree_writer_dim *dims) {
    const Onnx__ValueInfoProto info_init = ONNX__VALUE_INFO_PROTO__INIT;
    const Onnx__TypeProto type_init = ONNX__TYPE_PROTO__INIT;
    const Onnx__TypeProto__Tensor tensor_init = ONNX__TYPE_PROTO__TENSOR__INIT;
    const Onnx__TensorShapeProto shape_init = ONNX__TENSOR_SHAPE_PROTO__INIT;
    const Onnx__TensorShapeProto__Dimension dim_init = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    Onnx__ValueInfoProto *info =
        new_message(w, is_output ? &w->outputs : &w->inputs, sizeof info_init, &info_init);
    Onnx__TypeProto *type = new_message(w, NULL, sizeof type_init, &type_init);
    Onnx__TypeProto__Tensor *tensor = new_message(w, NULL, sizeof tensor_init, &tensor_init);
    Onnx__TensorShapeProto *shape = new_message(w, NULL, sizeof shape_init, &shape_init);
    Onnx__TensorShapeProto__Dimension **list = allocate(w, rank, sizeof(void *));
    if (!info || !type || !tensor || !shape || !list) return;
    info->name = text_of(w, name);
    info->type = type;
    type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = (int32_t)dtype;
    tensor->shape = shape;
    shape->n_dim = rank;
    shape->dim = list;
    for (uint32_t i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *dim = new_message(w, NULL, sizeof dim_init, &dim_init);
        if (!dim) return;
        list[i] = dim;
        if (dims[i].symbol) {
            dim->dim_param = text_of(w, dims[i].symbol);
        } else {
            dim->has_dim_value = true;
            dim->dim_value = dims[i].size;
        }
    }
}

// Attaches the attributes that were set since the last node was written to that node.
static void close_node(struct ree_writer *w) {
    if (!ree_writer_ok(w) || !w->nodes.n || !w->attributes.n) return;
    Onnx__NodeProto *node = w->nodes.items[w->nodes.n - 1];
    node->attribute = allocate(w, w->attributes.n, sizeof(void *));
    if (!node->attribute) return;
    memcpy(node->attribute, w->attributes.items, w->attributes.n * sizeof(void *));
    node->n_attribute = w->attributes.n;
    w->attributes.n = 0;
}

static char **copy_names(struct ree_writer *w, const char *const *names, size_t *out_n) {
    size_t n = 0;
    while (names[n])
        n++;
    char **copies = allocate(w, n, sizeof *copies);
    for (size_t i = 0; copies && i < n; i++)
        copies[i] = text_of(w, names[i]);
    *out_n = n;
    return copies;
}

void ree_writer_node(struct ree_writer *w, const char *name, const char *type,
                     const char *const *in, const char *const *out) {
    close_node(w);
    const Onnx__NodeProto init = ONNX__NODE_PROTO__INIT;
    Onnx__NodeProto *node = new_message(w, &w->nodes, sizeof init, &init);
    if (!node) return;
    node->name = text_of(w, name);
    node->op_type = text_of(w, type);
    node->input = copy_names(w, in, &node->n_input);
    node->output = copy_names(w, out, &node->n_output);
}

const char *ree_writer_op(struct ree_writer *w, const char *name, const char *type,
                          const char *const *in) {
    ree_writer_node(w, name, type, in, (const char *const[]){name, NULL});
    return name;
}

static Onnx__AttributeProto *new_attribute(struct ree_writer *w, const char *name, int32_t kind) {
    const Onnx__AttributeProto init = ONNX__ATTRIBUTE_PROTO__INIT;
    Onnx__AttributeProto *attribute = new_message(w, &w->attributes, sizeof init, &init);
    if (!attribute) return NULL;
    attribute->name = text_of(w, name);
    attribute->has_type = true;
    attribute->type = kind;
    return attribute;
}

void ree_writer_int(struct ree_writer *w, const char *name, int64_t value) {
    Onnx__AttributeProto *a = new_attribute(w, name, ONNX__ATTRIBUTE_PROTO__KIND__KIND_INT);
    if (!a) return;
    a->has_i = true;
    a->i = value;
}

void ree_writer_ints(struct ree_writer *w, const char *name, size_t n, const int64_t *values) {
    Onnx__AttributeProto *a = new_attribute(w, name, ONNX__ATTRIBUTE_PROTO__KIND__KIND_INTS);
    int64_t *copy = allocate(w, n, sizeof *copy);
    if (!a || !copy) return;
    memcpy(copy, values, n * sizeof *copy);
    a->n_ints = n;
    a->ints = copy;
}

void ree_writer_float(struct ree_writer *w, const char *name, float value) {
    Onnx__AttributeProto *a = new_attribute(w, name, ONNX__ATTRIBUTE_PROTO__KIND__KIND_FLOAT);
    if (!a) return;
    a->has_f = true;
    a->f = value;
}

void ree_writer_text(struct ree_writer *w, const char *name, const char *value) {
    Onnx__AttributeProto *a = new_attribute(w, name, ONNX__ATTRIBUTE_PROTO__KIND__KIND_STRING);
    char *copy = text_of(w, value);
    if (!a || !copy) return;
    a->has_s = true;
    a->s = (ProtobufCBinaryData){.len = strlen(copy), .data = (uint8_t *)copy};
}

void ree_writer_rename(struct ree_writer *w, const char *output) {
    if (!ree_writer_ok(w)) return;
    ((Onnx__NodeProto *)w->nodes.items[w->nodes.n - 1])->output[0] = text_of(w, output);
}

void ree_writer_domain(struct ree_writer *w, const char *domain) {
    if (!ree_writer_ok(w)) return;
    ((Onnx__NodeProto *)w->nodes.items[w->nodes.n - 1])->domain = text_of(w, domain);
}

// Returns the initializer of that name: the existing one, or a new one (*out_new is then true).
static Onnx__TensorProto *find_initializer(struct ree_writer *w, const char *name, bool *out_new) {
    *out_new = false;
    for (size_t i = w->initializers.n; i > 0; i--) {
        Onnx__TensorProto *t = w->initializers.items[i - 1];
        if (ree_writer_ok(w) && !strcmp(t->name, name)) return t;
    }
    const Onnx__TensorProto init = ONNX__TENSOR_PROTO__INIT;
    Onnx__TensorProto *t = new_message(w, &w->initializers, sizeof init, &init);
    if (!t) return NULL;
    t->name = text_of(w, name);
    *out_new = true;
    return ree_writer_ok(w) ? t : NULL;
}

static Onnx__TensorProto *new_initializer(struct ree_writer *w, const char *name,
                                          enum ree_dtype dtype, uint32_t rank,
                                          const int64_t *dims) {
    bool is_new;
    Onnx__TensorProto *t = find_initializer(w, name, &is_new);
    if (!t || !is_new) return NULL;
    t->has_data_type = true;
    t->data_type = (int32_t)dtype;
    t->n_dims = rank;
    t->dims = allocate(w, rank, sizeof *t->dims);
    if (!t->dims) return NULL;
    if (rank) memcpy(t->dims, dims, rank * sizeof *dims);
    return t;
}

static const char *inline_data(struct ree_writer *w, const char *name, enum ree_dtype dtype,
                               uint32_t rank, size_t n, const void *values) {
    int64_t dim = (int64_t)n;
    Onnx__TensorProto *t = new_initializer(w, name, dtype, rank, &dim);
    size_t nbytes = n * ree_dtype_size(dtype);
    void *copy = allocate(w, nbytes, 1);
    if (!t || !copy) return ree_writer_ok(w) ? name : "";
    memcpy(copy, values, nbytes);
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){.len = nbytes, .data = copy};
    return name;
}

const char *ree_writer_i64s(struct ree_writer *w, size_t n, const int64_t *values) {
    char text[256] = "const.i64s";
    size_t at = strlen(text);
    for (size_t i = 0; i < n && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "," : ".",
                               (long long)values[i]);
    return inline_data(w, ree_writer_name(w, "%s", text), REE_I64, 1, n, values);
}

const char *ree_writer_i64(struct ree_writer *w, int64_t value) {
    return inline_data(w, ree_writer_name(w, "const.i64.%lld", (long long)value), REE_I64, 0, 1,
                       &value);
}

const char *ree_writer_f32(struct ree_writer *w, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return inline_data(w, ree_writer_name(w, "const.f32.%08x", bits), REE_F32, 0, 1, &value);
}

const char *ree_writer_f32s(struct ree_writer *w, const char *name, size_t n, const float *values) {
    return inline_data(w, name, REE_F32, 1, n, values);
}

const char *ree_writer_external(struct ree_writer *w, const char *name, enum ree_dtype dtype,
                                uint32_t rank, const int64_t *dims, const char *location,
                                uint64_t offset, uint64_t length) {
    char number[32];
    Onnx__TensorProto *t = new_initializer(w, name, dtype, rank, dims);
    if (!t) return ree_writer_ok(w) ? name : "";
    struct ree_writer_list entries = {0};
    append_entry(w, &entries, "location", location);
    snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    append_entry(w, &entries, "offset", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)length);
    append_entry(w, &entries, "length", number);
    t->external_data = allocate(w, entries.n, sizeof(void *));
    if (t->external_data) {
        memcpy(t->external_data, entries.items, entries.n * sizeof(void *));
        t->n_external_data = entries.n;
    }
    ree_free(entries.items);
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__LOCATION__LOCATION_EXTERNAL;
    return name;
}

enum ree_status ree_writer_pack(struct ree_writer *w, int64_t ir_version, unsigned char **out,
                                size_t *out_size) {
    close_node(w);
    if (!ree_writer_ok(w)) return w->status;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    static char graph_name[] = "decoder";
    graph.name = graph_name;
    // protobuf-c itself reads an array of pointers to messages as an array of void pointers.
    graph.n_node = w->nodes.n;
    graph.node = (void *)w->nodes.items;
    graph.n_initializer = w->initializers.n;
    graph.initializer = (void *)w->initializers.items;
    graph.n_input = w->inputs.n;
    graph.input = (void *)w->inputs.items;
    graph.n_output = w->outputs.n;
    graph.output = (void *)w->outputs.items;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = true;
    model.ir_version = ir_version;
    model.graph = &graph;
    model.n_opset_import = w->opsets.n;
    model.opset_import = (void *)w->opsets.items;
    model.n_metadata_props = w->metadata.n;
    model.metadata_props = (void *)w->metadata.items;
    size_t size = onnx__model_proto__get_packed_size(&model);
    *out = ree_alloc(size ? size : 1);
    if (!*out) return ree_no_memory(w->err);
    *out_size = onnx__model_proto__pack(&model, *out);
    return REE_OK;
}
