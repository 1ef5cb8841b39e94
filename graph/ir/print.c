// Prints a graph as text for people and tests: deterministic, one line per value or node.
#include "graph/ir/ir.h"

#include <string.h>

#define MAX_ELEMENTS 16 // longest array that is printed in full
#define MAX_BYTES 200   // longest part of a string that is printed

static void print_indent(struct ree_strbuf *out, unsigned depth) {
    for (unsigned i = 0; i < depth; i++)
        ree_strbuf_append(out, "    ", 4);
}

// Prints n bytes. Characters that could end the line or control a terminal are printed as \xNN.
static void print_escaped(struct ree_strbuf *out, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f)
            ree_strbuf_printf(out, "\\x%02x", c);
        else
            ree_strbuf_append(out, s + i, 1);
    }
}

static void print_text(struct ree_strbuf *out, const char *s) {
    print_escaped(out, s, strlen(s));
}

// Prints a string in quotes, truncated if it is long.
static void print_string(struct ree_strbuf *out, const char *s, size_t n) {
    size_t shown = n < MAX_BYTES ? n : MAX_BYTES;
    ree_strbuf_append(out, "\"", 1);
    for (size_t i = 0; i < shown; i++) {
        if (s[i] == '"' || s[i] == '\\') ree_strbuf_append(out, "\\", 1);
        print_escaped(out, s + i, 1);
    }
    ree_strbuf_append(out, "\"", 1);
    if (shown < n) ree_strbuf_printf(out, "... (%zu bytes)", n);
}

static void print_tensor_type(struct ree_strbuf *out, const struct ree_value *value) {
    ree_strbuf_printf(out, "%s", value->dtype ? ree_onnx_type_name(value->dtype) : "?");
    if (!value->has_shape) return;
    ree_strbuf_append(out, "[", 1);
    for (uint32_t i = 0; i < value->rank; i++) {
        if (i) ree_strbuf_append(out, ",", 1);
        if (value->dims[i] >= 0)
            ree_strbuf_printf(out, "%lld", (long long)value->dims[i]);
        else
            print_text(out, value->symbols[i] ? value->symbols[i] : "?");
    }
    ree_strbuf_append(out, "]", 1);
}

static void print_type(struct ree_strbuf *out, const struct ree_value *value) {
    if (value->nullable) ree_strbuf_printf(out, "optional(");
    if (value->kind == REE_SEQUENCE) ree_strbuf_printf(out, "sequence(");
    print_tensor_type(out, value);
    if (value->kind == REE_SEQUENCE) ree_strbuf_printf(out, ")");
    if (value->nullable) ree_strbuf_printf(out, ")");
}

static void print_name(struct ree_strbuf *out, const struct ree_value *value) {
    if (value)
        ree_strbuf_append(out, "%", 1), print_text(out, value->name);
    else
        ree_strbuf_append(out, "_", 1);
}

static void print_typed_name(struct ree_strbuf *out, const struct ree_value *value) {
    print_name(out, value);
    if (!value || (!value->dtype && !value->has_shape)) return;
    ree_strbuf_append(out, ":", 1);
    print_type(out, value);
}

// Prints the elements of a small constant, such as " {1,2,3}".
static void print_contents(struct ree_strbuf *out, const struct ree_value *value) {
    size_t size = ree_dtype_size(value->dtype);
    if (!value->data || !size || value->nbytes / size > MAX_ELEMENTS) return;
    const unsigned char *data = value->data;
    ree_strbuf_append(out, " {", 2);
    for (size_t i = 0; i < value->nbytes / size; i++) {
        if (i) ree_strbuf_append(out, ",", 1);
        int64_t i64;
        int32_t i32;
        float f32;
        switch (value->dtype) {
        case REE_I64:
            memcpy(&i64, data + i * size, size);
            ree_strbuf_printf(out, "%lld", (long long)i64);
            break;
        case REE_I32:
            memcpy(&i32, data + i * size, size);
            ree_strbuf_printf(out, "%d", i32);
            break;
        case REE_F32:
            memcpy(&f32, data + i * size, size);
            ree_strbuf_printf(out, "%.9g", (double)f32);
            break;
        case REE_STRING: {
            const char *s = ((const char *const *)value->data)[i];
            print_string(out, s, strlen(s));
            break;
        }
        default: // bytes in memory order
            ree_strbuf_append(out, "0x", 2);
            for (size_t j = 0; j < size; j++)
                ree_strbuf_printf(out, "%02x", data[i * size + j]);
        }
    }
    ree_strbuf_append(out, "}", 1);
}

static void print_attr(struct ree_strbuf *out, const struct ree_attr *attr) {
    print_text(out, attr->name);
    ree_strbuf_append(out, "=", 1);
    size_t shown = attr->n < MAX_ELEMENTS ? attr->n : MAX_ELEMENTS;
    switch (attr->kind) {
    case REE_ATTR_INT: ree_strbuf_printf(out, "%lld", (long long)attr->i); return;
    case REE_ATTR_FLOAT: ree_strbuf_printf(out, "%.9g", (double)attr->f); return;
    case REE_ATTR_STRING: print_string(out, attr->s, attr->s_size); return;
    case REE_ATTR_TENSOR:
        print_type(out, attr->tensor);
        print_contents(out, attr->tensor);
        return;
    case REE_ATTR_TYPE: print_type(out, attr->tensor); return;
    case REE_ATTR_GRAPH: ree_strbuf_printf(out, "graph"); return;
    case REE_ATTR_INTS:
    case REE_ATTR_FLOATS:
    case REE_ATTR_STRINGS: break;
    }
    ree_strbuf_append(out, "[", 1);
    for (size_t i = 0; i < shown; i++) {
        if (i) ree_strbuf_append(out, ",", 1);
        if (attr->ints)
            ree_strbuf_printf(out, "%lld", (long long)attr->ints[i]);
        else if (attr->floats)
            ree_strbuf_printf(out, "%.9g", (double)attr->floats[i]);
        else
            print_string(out, attr->strings[i], strlen(attr->strings[i]));
    }
    if (shown < attr->n) ree_strbuf_printf(out, ",... (%zu in all)", attr->n);
    ree_strbuf_append(out, "]", 1);
}

static void print_graph(struct ree_strbuf *out, const struct ree_graph *graph, unsigned depth);

static void print_node(struct ree_strbuf *out, const struct ree_node *node, unsigned depth) {
    print_indent(out, depth);
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (i) ree_strbuf_append(out, ", ", 2);
        print_typed_name(out, node->outputs[i]);
    }
    if (node->n_outputs) print_text(out, " = ");
    print_text(out, node->domain);
    if (node->domain[0]) print_text(out, ".");
    print_text(out, node->op_type);
    print_text(out, "(");
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (i) ree_strbuf_append(out, ", ", 2);
        print_name(out, node->inputs[i]);
    }
    ree_strbuf_append(out, ")", 1);
    for (size_t i = 0; i < node->n_attrs; i++) {
        ree_strbuf_append(out, i ? ", " : " {", 2);
        print_attr(out, &node->attrs[i]);
    }
    if (node->n_attrs) ree_strbuf_append(out, "}", 1);
    if (node->name[0]) print_text(out, " # ");
    print_text(out, node->name);
    ree_strbuf_append(out, "\n", 1);
    for (size_t i = 0; i < node->n_attrs; i++) {
        if (!node->attrs[i].graph) continue;
        print_indent(out, depth + 1);
        print_text(out, node->attrs[i].name);
        ree_strbuf_append(out, ":\n", 2);
        print_graph(out, node->attrs[i].graph, depth + 2);
    }
}

static void print_value_line(struct ree_strbuf *out, const char *what,
                             const struct ree_value *value, unsigned depth) {
    print_indent(out, depth);
    ree_strbuf_printf(out, "%s ", what);
    print_typed_name(out, value);
    if (value->data) {
        if (value->is_input) ree_strbuf_printf(out, " =");
        print_contents(out, value);
        ree_strbuf_printf(out, " (%zu bytes)", value->nbytes);
    }
    ree_strbuf_append(out, "\n", 1);
}

static void print_graph(struct ree_strbuf *out, const struct ree_graph *graph, unsigned depth) {
    for (size_t i = 0; i < graph->n_inputs; i++)
        print_value_line(out, "input", graph->inputs[i], depth);
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *value = graph->values[i];
        if (!value->producer && !value->is_input) print_value_line(out, "const", value, depth);
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        print_node(out, graph->nodes[i], depth);
    print_indent(out, depth);
    ree_strbuf_append(out, "return", 6);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        ree_strbuf_append(out, i ? ", " : " ", i ? 2 : 1);
        print_name(out, graph->outputs[i]);
    }
    ree_strbuf_append(out, "\n", 1);
}

void ree_graph_print(const struct ree_graph *graph, struct ree_strbuf *out) {
    ree_strbuf_append(out, "graph ", 6);
    print_string(out, graph->name, strlen(graph->name));
    ree_strbuf_printf(out, " (ir %lld", (long long)graph->ir_version);
    for (size_t i = 0; i < graph->n_opsets; i++) {
        print_text(out, ", ");
        print_text(out, graph->opsets[i].domain[0] ? graph->opsets[i].domain : "opset");
        ree_strbuf_printf(out, " %lld", (long long)graph->opsets[i].version);
    }
    ree_strbuf_append(out, ")\n", 2);
    print_graph(out, graph, 1);
}
