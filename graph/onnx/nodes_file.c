#include "graph/onnx/nodes_file.h"

#include <string.h>

#include "base/file.h"
#include "graph/onnx/wire.h"
#include "onnx.pb-c.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

// Field numbers from onnx.proto.
enum { MODEL_GRAPH = 7, MODEL_CONFIGURATION = 26, GRAPH_NODE = 1 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_METADATA = 9, NODE_DEVICES = 10 };

struct field {
    uint32_t number;
    size_t start, begin, end; // offsets: of the field; of the contents, if it is length-delimited
    bool is_length;
};

// Reading. The bytes were checked by ree_wire_check, but the following code does not rely on it.

static bool read_varint(const unsigned char *bytes, size_t *at, size_t end, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *out = value;
        return true;
    }
    return false;
}

// Reads the field at *at and advances *at past it.
static bool next_field(const unsigned char *bytes, size_t *at, size_t end, struct field *out) {
    uint64_t tag, value;
    size_t n = 0;
    out->start = *at;
    if (!read_varint(bytes, at, end, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
    out->number = (uint32_t)(tag >> 3);
    out->is_length = (tag & 7) == LENGTH;
    if ((tag & 7) == VARINT || out->is_length) {
        if (!read_varint(bytes, at, end, &value)) return false;
        if (out->is_length && value > end - *at) return false;
        n = out->is_length ? (size_t)value : 0;
    } else if ((tag & 7) == FIXED32 || (tag & 7) == FIXED64) {
        n = (tag & 7) == FIXED32 ? 4 : 8;
        if (n > end - *at) return false;
    } else {
        return false;
    }
    out->begin = *at;
    *at += n;
    out->end = *at;
    return true;
}

static enum ree_status malformed(struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "malformed protobuf");
}

static enum ree_status read_node(struct ree_file_nodes *f, struct ree_file_node *node,
                                 struct ree_error *err) {
    struct field field;
    size_t n_inputs = 0, n_outputs = 0;
    for (size_t at = node->begin; at < node->end;) {
        if (!next_field(f->bytes, &at, node->end, &field)) return malformed(err);
        n_inputs += field.number == NODE_INPUT && field.is_length;
        n_outputs += field.number == NODE_OUTPUT && field.is_length;
    }
    node->inputs = ree_arena_alloc_array(&f->arena, n_inputs, sizeof *node->inputs);
    node->outputs = ree_arena_alloc_array(&f->arena, n_outputs, sizeof *node->outputs);
    if (!node->inputs || !node->outputs) return ree_no_memory(err);
    for (size_t at = node->begin; at < node->end;) {
        if (!next_field(f->bytes, &at, node->end, &field)) return malformed(err);
        bool is_input = field.number == NODE_INPUT;
        if ((!is_input && field.number != NODE_OUTPUT) || !field.is_length) continue;
        const char *name = ree_arena_strndup(&f->arena, (const char *)f->bytes + field.begin,
                                             field.end - field.begin);
        if (!name) return ree_no_memory(err);
        if (is_input)
            node->inputs[node->n_inputs++] = name;
        else
            node->outputs[node->n_outputs++] = name;
    }
    return REE_OK;
}

static enum ree_status find(struct ree_file_nodes *f, struct ree_error *err) {
    struct field field;
    bool found = false;
    REE_TRY(ree_wire_check(&onnx__model_proto__descriptor, f->bytes, f->nbytes, err));
    for (size_t at = 0; at < f->nbytes && !found;) {
        if (!next_field(f->bytes, &at, f->nbytes, &field)) return malformed(err);
        found = field.number == MODEL_GRAPH && field.is_length;
    }
    if (!found) return ree_fail(err, REE_INVALID, "the model has no graph");
    f->graph_field = field.start;
    f->graph_begin = field.begin;
    f->graph_end = field.end;
    size_t n = 0;
    for (size_t at = f->graph_begin; at < f->graph_end;) {
        if (!next_field(f->bytes, &at, f->graph_end, &field)) return malformed(err);
        n += field.number == GRAPH_NODE && field.is_length;
    }
    f->nodes = ree_arena_alloc_array(&f->arena, n, sizeof *f->nodes);
    if (!f->nodes) return ree_no_memory(err);
    for (size_t at = f->graph_begin; at < f->graph_end;) {
        if (!next_field(f->bytes, &at, f->graph_end, &field)) return malformed(err);
        if (field.number != GRAPH_NODE || !field.is_length) continue;
        struct ree_file_node *node = &f->nodes[f->n++];
        node->field = field.start;
        node->begin = field.begin;
        node->end = field.end;
        REE_TRY(read_node(f, node, err));
    }
    return REE_OK;
}

enum ree_status ree_file_nodes_find(const void *bytes, size_t nbytes, struct ree_file_nodes *out,
                                    struct ree_error *err) {
    *out = (struct ree_file_nodes){.bytes = bytes, .nbytes = nbytes};
    ree_arena_init(&out->arena);
    enum ree_status status = find(out, err);
    if (status != REE_OK) ree_file_nodes_finish(out);
    return status;
}

void ree_file_nodes_finish(struct ree_file_nodes *nodes) {
    ree_arena_finish(&nodes->arena);
    *nodes = (struct ree_file_nodes){.n = 0};
}

// Writing

static void put_varint(struct ree_strbuf *out, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    ree_strbuf_append(out, bytes, n);
}

static void put_field(struct ree_strbuf *out, uint32_t number, const char *bytes, size_t n) {
    put_varint(out, (uint64_t)number << 3 | LENGTH);
    put_varint(out, n);
    if (n) ree_strbuf_append(out, bytes, n);
}

static void put_text(struct ree_strbuf *out, uint32_t number, const char *text) {
    put_field(out, number, text, strlen(text));
}

static void put_message(struct ree_strbuf *out, uint32_t number, struct ree_strbuf *message) {
    put_field(out, number, message->data, message->size);
    out->failed = out->failed || message->failed;
    ree_strbuf_finish(message);
}

// Returns whether the message's first field 1 is `name`. Field 1 is the key of a metadata entry and
// the name of a device configuration.
static bool is_named(const unsigned char *bytes, const struct field *message, const char *name) {
    struct field field;
    size_t n = strlen(name);
    for (size_t at = message->begin; at < message->end;) {
        if (!next_field(bytes, &at, message->end, &field)) return false;
        if (field.number == 1 && field.is_length)
            return field.end - field.begin == n && memcmp(bytes + field.begin, name, n) == 0;
    }
    return false;
}

static bool is_replaced(const unsigned char *bytes, const struct field *field,
                        const struct ree_node_notes *notes) {
    for (size_t i = 0; i < notes->n_metadata; i++)
        if (is_named(bytes, field, notes->metadata[i].key)) return true;
    return false;
}

static void put_notes(struct ree_strbuf *out, const struct ree_node_notes *notes,
                      const char *configuration) {
    for (size_t i = 0; i < notes->n_metadata; i++) {
        // A key without a value is only removed, by make_node.
        if (!notes->metadata[i].value) continue;
        struct ree_strbuf entry;
        ree_strbuf_init(&entry);
        put_text(&entry, 1, notes->metadata[i].key);
        put_text(&entry, 2, notes->metadata[i].value);
        put_message(out, NODE_METADATA, &entry);
    }
    if (!notes->has_stage) return;
    struct ree_strbuf device;
    ree_strbuf_init(&device);
    put_text(&device, 1, configuration);
    put_varint(&device, 3 << 3 | VARINT);
    put_varint(&device, (uint64_t)notes->stage);
    put_message(out, NODE_DEVICES, &device);
}

// Appends the fields of the node, with its new notes, to `out`. Other device configurations come
// last, because ree and similar readers use the first configuration that has a stage. Returns false
// if memory runs out or the node is malformed.
static bool make_node(const struct ree_file_nodes *f, const struct ree_file_node *node,
                      const struct ree_node_notes *notes, const char *configuration,
                      struct ree_strbuf *out) {
    struct field field;
    struct ree_strbuf last;
    ree_strbuf_init(&last);
    bool ok = true;
    for (size_t at = node->begin; ok && at < node->end;) {
        ok = next_field(f->bytes, &at, node->end, &field);
        if (!ok) break;
        bool device = field.number == NODE_DEVICES && field.is_length;
        if (device && is_named(f->bytes, &field, configuration)) continue;
        if (field.number == NODE_METADATA && is_replaced(f->bytes, &field, notes)) continue;
        ree_strbuf_append(device ? &last : out, (const char *)f->bytes + field.start,
                          field.end - field.start);
    }
    put_notes(out, notes, configuration);
    if (last.size) ree_strbuf_append(out, last.data, last.size);
    ok = ok && !last.failed && !out->failed;
    ree_strbuf_finish(&last);
    return ok;
}

struct output {
    const struct ree_file_nodes *f;
    const struct ree_node_notes *notes;
    const char *configuration;
    struct ree_file_draft *draft; // NULL: only count the size, write nothing
    uint64_t size;
};

static enum ree_status put(struct output *o, const void *bytes, size_t n, struct ree_error *err) {
    o->size += n;
    return o->draft && n ? ree_file_append(o->draft, bytes, n, err) : REE_OK;
}

// Writes the contents of the graph. Each node is made twice (to count, to write), so that only one
// node at a time is in memory.
static enum ree_status put_graph(struct output *o, struct ree_error *err) {
    const struct ree_file_nodes *f = o->f;
    size_t at = f->graph_begin;
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < f->n && status == REE_OK; i++) {
        const struct ree_file_node *node = &f->nodes[i];
        status = put(o, f->bytes + at, node->field - at, err);
        at = node->end;
        struct ree_strbuf body, head;
        ree_strbuf_init(&body);
        ree_strbuf_init(&head);
        if (status == REE_OK && !make_node(f, node, &o->notes[i], o->configuration, &body))
            status = ree_no_memory(err);
        put_varint(&head, GRAPH_NODE << 3 | LENGTH);
        put_varint(&head, body.size);
        if (status == REE_OK && head.failed) status = ree_no_memory(err);
        if (status == REE_OK) status = put(o, head.data, head.size, err);
        if (status == REE_OK) status = put(o, body.data, body.size, err);
        ree_strbuf_finish(&body);
        ree_strbuf_finish(&head);
    }
    return status == REE_OK ? put(o, f->bytes + at, f->graph_end - at, err) : status;
}

// Writes the model's fields from `at` to `end`, which do not include the graph; skips the old
// configuration.
static enum ree_status put_rest(struct output *o, size_t at, size_t end, struct ree_error *err) {
    struct field field;
    while (at < end) {
        if (!next_field(o->f->bytes, &at, end, &field)) return malformed(err);
        if (field.number == MODEL_CONFIGURATION && field.is_length &&
            is_named(o->f->bytes, &field, o->configuration))
            continue;
        REE_TRY(put(o, o->f->bytes + field.start, field.end - field.start, err));
    }
    return REE_OK;
}

static enum ree_status put_model(struct output *o, uint64_t graph_size, uint32_t n_devices,
                                 struct ree_error *err) {
    struct ree_strbuf text, configuration;
    const struct ree_file_nodes *f = o->f;
    ree_strbuf_init(&text);
    put_varint(&text, MODEL_GRAPH << 3 | LENGTH);
    put_varint(&text, graph_size);
    size_t head = text.size;
    ree_strbuf_init(&configuration);
    put_text(&configuration, 1, o->configuration);
    put_varint(&configuration, 2 << 3 | VARINT);
    put_varint(&configuration, n_devices);
    put_message(&text, MODEL_CONFIGURATION, &configuration);
    enum ree_status status = text.failed ? ree_no_memory(err) : REE_OK;
    if (status == REE_OK) status = put_rest(o, 0, f->graph_field, err);
    if (status == REE_OK) status = put(o, text.data, head, err);
    if (status == REE_OK) status = put_graph(o, err);
    if (status == REE_OK) status = put_rest(o, f->graph_end, f->nbytes, err);
    if (status == REE_OK) status = put(o, text.data + head, text.size - head, err);
    ree_strbuf_finish(&text);
    return status;
}

enum ree_status ree_file_nodes_write(const char *path, const struct ree_file_nodes *nodes,
                                     const struct ree_node_notes *notes, const char *configuration,
                                     uint32_t n_devices, struct ree_error *err) {
    struct output counted = {.f = nodes, .notes = notes, .configuration = configuration};
    struct output o = counted;
    REE_TRY(put_graph(&counted, err));
    uint64_t rest = nodes->nbytes - (nodes->graph_end - nodes->graph_field);
    // The new configuration without its name, and the lengths, take less than 1024 bytes.
    if (counted.size + rest + strlen(configuration) > REE_WIRE_MAX_SIZE - 1024)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%s: with the notes, the file exceeds protobuf's limit of 2 GiB; store the "
                        "weights in external data files",
                        path);
    REE_TRY(ree_file_begin(path, 0666, &o.draft, err));
    enum ree_status status = put_model(&o, counted.size, n_devices, err);
    if (status == REE_OK) return ree_file_commit(o.draft, err);
    ree_file_abandon(o.draft);
    return status;
}
