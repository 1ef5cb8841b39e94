// The graphs that well-formed models become.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "test.h"

#include <math.h>
#include <string.h>

static struct ree_graph *load(struct pb model) {
    struct ree_graph *graph;
    struct ree_error err = {0};
    enum ree_status status = ree_onnx_load_memory(model.data, model.size, NULL, &graph, &err);
    pb_free(&model);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(graph);
    return graph;
}

static void check_text(const struct ree_graph *graph, const char *expected) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_graph_print(graph, &text);
    CHECK_MSG(strcmp(text.data, expected) == 0, "expected:\n%s\nprinted:\n%s", expected, text.data);
    ree_strbuf_finish(&text);
}

static const struct ree_value *value_named(const struct ree_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n_values; i++)
        if (strcmp(graph->values[i]->name, name) == 0) return graph->values[i];
    return NULL;
}

static void test_sample(void) {
    struct ree_graph *graph = load(pb_sample_model());
    check_text(graph,
               "graph \"sample\" (ir 8, opset 13, test.domain 2)\n"
               "    input %x:float32[n,3]\n"
               "    input %flag:bool[]\n"
               "    const %w:float32[3] {1,-2,0.5} (12 bytes)\n"
               "    const %c:int64[2] {-1,3} (16 bytes)\n"
               "    %h:float32[?,3], _ = test.domain.Everything(%x, _, %c) {alpha=0.5, "
               "axes=[1,-2], mode=\"a\\\"\\x0a\", scales=[1.5,-0.25], "
               "value=int8[2] {0x80,0x7f}, words=[\"one\",\"two\"]} # all\n"
               "    %y:float32[?,3] = If(%flag) {else_branch=graph, then_branch=graph} # choice\n"
               "        else_branch:\n"
               "            %product = Mul(%h, %w)\n"
               "            return %product\n"
               "        then_branch:\n"
               "            %sum = Add(%h, %w)\n"
               "            return %sum\n"
               "    return %y\n");
    CHECK(graph->ir_version == 8);
    CHECK(ree_graph_opset(graph, "") == 13 && ree_graph_opset(graph, "ai.onnx") == 13);
    CHECK(ree_graph_opset(graph, "test.domain") == 2 && ree_graph_opset(graph, "other") == 0);
    CHECK(graph->n_metadata == 1 && strcmp(graph->metadata[0].value, "nobody") == 0);
    const struct ree_node *node = graph->nodes[0];
    CHECK(node->opset == 2 && graph->nodes[1]->opset == 13);
    CHECK(ree_node_float(node, "alpha", 0) == 0.5f && ree_node_float(node, "axes", 7) == 7);
    CHECK(ree_node_int(node, "none", -5) == -5 && ree_node_int(node, "alpha", 3) == 3);
    CHECK(strcmp(ree_node_string(node, "mode", ""), "a\"\n") == 0);
    CHECK(ree_node_attr(node, "mode")->s_size == 3);
    size_t n;
    const int64_t *axes = ree_node_ints(node, "axes", &n);
    CHECK(n == 2 && axes[0] == 1 && axes[1] == -2);
    const float *scales = ree_node_floats(node, "scales", &n);
    CHECK(n == 2 && scales[1] == -0.25f);
    CHECK(!ree_node_ints(node, "none", &n) && n == 0);
    char label[64];
    CHECK(strcmp(ree_node_label(node, label, sizeof label), "node 'all' (Everything)") == 0);
    const struct ree_node *sum = graph->nodes[1]->attrs[1].graph->nodes[0];
    CHECK(strcmp(ree_node_label(sum, label, sizeof label), "node #0 (Add)") == 0);
    CHECK(sum->inputs[0] == node->outputs[0] && sum->inputs[0]->graph == graph);
    // h and w: one use in each branch. y: used as the output. sum: used as its branch's output.
    CHECK(value_named(graph, "h")->n_uses == 2 && value_named(graph, "w")->n_uses == 2);
    CHECK(value_named(graph, "y")->n_uses == 1 && sum->outputs[0]->n_uses == 1);
    CHECK(value_named(graph, "y")->is_output && !value_named(graph, "h")->is_output);
    CHECK(value_named(graph, "x")->is_input && !value_named(graph, "x")->data);
    for (size_t i = 0; i < graph->n_values; i++)
        CHECK(graph->values[i]->id == i);
    CHECK(ree_graph_check_supported(graph, NULL) == REE_OK);
    ree_graph_destroy(graph);
    ree_graph_destroy(NULL);
}

// A graph whose only node reads `tensor` (named "w").
static struct pb model_with_tensor(struct pb tensor) {
    struct pb graph = {0}, y = {0};
    pb_sub(&graph, GRAPH_INITIALIZER, tensor);
    pb_sub(&graph, GRAPH_NODE, pb_node("Identity", "", "w", "y"));
    pb_text(&y, 1, "y");
    pb_sub(&graph, GRAPH_OUTPUT, y);
    return pb_model(graph);
}

// Values in ONNX's field for each type become that type's bytes.
static void test_typed_data(void) {
    static const struct {
        int type;
        uint32_t field;
        int64_t values[2];
        size_t size;
        unsigned char bytes[16];
    } cases[] = {
        {REE_BOOL, TENSOR_INT32S, {1, 0}, 1, {1, 0}},
        {REE_U8, TENSOR_INT32S, {255, 7}, 1, {255, 7}},
        {REE_I8, TENSOR_INT32S, {-128, 127}, 1, {0x80, 0x7f}},
        {REE_U16, TENSOR_INT32S, {65535, 1}, 2, {0xff, 0xff, 1, 0}},
        {REE_I16, TENSOR_INT32S, {-2, 1}, 2, {0xfe, 0xff, 1, 0}},
        {REE_F16, TENSOR_INT32S, {0x3c00, 0xfc00}, 2, {0, 0x3c, 0, 0xfc}},
        {REE_BF16, TENSOR_INT32S, {0x3f80, 0xff80}, 2, {0x80, 0x3f, 0x80, 0xff}},
        {REE_F8E4M3FN, TENSOR_INT32S, {0x38, 0xff}, 1, {0x38, 0xff}},
        {REE_F8E8M0, TENSOR_INT32S, {0x7f, 0}, 1, {0x7f, 0}},
        {REE_I32, TENSOR_INT32S, {-1, 2}, 4, {255, 255, 255, 255, 2}},
        {REE_U32, TENSOR_UINT64S, {UINT32_MAX, 2}, 4, {255, 255, 255, 255, 2}},
        {REE_U64, TENSOR_UINT64S, {-1, 2}, 8, {255, 255, 255, 255, 255, 255, 255, 255, 2}},
        {REE_I64, TENSOR_INT64S, {-1, 2}, 8, {255, 255, 255, 255, 255, 255, 255, 255, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // Packed, and as one field per element: both are valid.
        for (int packed = 0; packed < 2; packed++) {
            struct pb tensor = pb_tensor("w", cases[i].type, 1, (int64_t[]){2}, NULL, 0);
            if (packed) pb_packed(&tensor, cases[i].field, 2, cases[i].values);
            for (int j = 0; !packed && j < 2; j++)
                pb_int(&tensor, cases[i].field, cases[i].values[j]);
            struct ree_graph *graph = load(model_with_tensor(tensor));
            const struct ree_value *w = value_named(graph, "w");
            CHECK_MSG(w->dtype == (enum ree_dtype)cases[i].type && w->nbytes == 2 * cases[i].size &&
                          memcmp(w->data, cases[i].bytes, w->nbytes) == 0,
                      "%s", ree_dtype_name((enum ree_dtype)cases[i].type));
            ree_graph_destroy(graph);
        }
    }
    struct pb tensor = pb_tensor("w", REE_F32, 0, NULL, NULL, 0);
    pb_float(&tensor, TENSOR_FLOATS, 2.5f);
    struct ree_graph *graph = load(model_with_tensor(tensor));
    const struct ree_value *w = value_named(graph, "w");
    CHECK(w->rank == 0 && w->nbytes == 4 && memcmp(w->data, &(float){2.5f}, 4) == 0);
    ree_graph_destroy(graph);
    tensor = pb_tensor("w", REE_F64, 1, (int64_t[]){1}, NULL, 0);
    double d = 0.1;
    pb_bytes(&tensor, TENSOR_DOUBLES, &d, 8);
    graph = load(model_with_tensor(tensor));
    CHECK(memcmp(value_named(graph, "w")->data, &d, 8) == 0);
    ree_graph_destroy(graph);
}

// Elements smaller than a byte are packed in files, the first in the lowest bits. In memory each
// has a byte of its own.
static void test_packed_data(void) {
    static const struct {
        int type;
        int64_t n;
        size_t size;
        unsigned char packed[4], bytes[8];
    } cases[] = {
        {REE_U4, 3, 2, {0x91, 0x5f}, {1, 9, 15}},
        {REE_I4, 4, 2, {0x87, 0x0f}, {7, 0xf8, 0xff, 0}},
        {REE_F4E2M1, 1, 1, {0xf9}, {9}},
        {REE_U2, 5, 2, {0xe4, 0xfe}, {0, 1, 2, 3, 2}},
        {REE_I2, 7, 2, {0xe4, 0x1b}, {0, 1, 0xfe, 0xff, 0xff, 0xfe, 1}},
        {REE_I4, 0, 0, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // In raw_data, and as one byte per number of int32_data, positive or negative.
        for (int form = 0; form < 3; form++) {
            struct pb tensor = form ? pb_tensor("w", cases[i].type, 1, &cases[i].n, NULL, 0)
                                    : pb_tensor("w", cases[i].type, 1, &cases[i].n, cases[i].packed,
                                                cases[i].size);
            for (size_t j = 0; form && j < cases[i].size; j++)
                pb_int(&tensor, TENSOR_INT32S,
                       form == 1 ? cases[i].packed[j] : (signed char)cases[i].packed[j]);
            struct ree_graph *graph = load(model_with_tensor(tensor));
            const struct ree_value *w = value_named(graph, "w");
            CHECK_MSG(w->dtype == (enum ree_dtype)cases[i].type &&
                          w->nbytes == (size_t)cases[i].n &&
                          memcmp(w->data, cases[i].bytes, w->nbytes) == 0,
                      "%s, form %d", ree_dtype_name((enum ree_dtype)cases[i].type), form);
            ree_graph_destroy(graph);
        }
    }
}

// Constants without elements have non-NULL data, because they are constants.
static void test_empty_tensor(void) {
    struct ree_graph *graph =
        load(model_with_tensor(pb_tensor("w", REE_I64, 2, (int64_t[]){0, 5}, NULL, 0)));
    const struct ree_value *w = value_named(graph, "w");
    CHECK(w->data && w->nbytes == 0 && w->rank == 2 && w->dims[1] == 5);
    ree_graph_destroy(graph);
}

// The decoder passes large data on: aligned, and readable past the end.
static void test_large_tensor(void) {
    enum { N = 100001 };
    static unsigned char bytes[N];
    for (size_t i = 0; i < N; i++)
        bytes[i] = (unsigned char)(i * 7);
    struct ree_graph *graph =
        load(model_with_tensor(pb_tensor("w", REE_U8, 1, (int64_t[]){N}, bytes, N)));
    const struct ree_value *w = value_named(graph, "w");
    CHECK(w->nbytes == N && memcmp(w->data, bytes, N) == 0);
    CHECK((uintptr_t)w->data % 64 == 0);
    const unsigned char *data = w->data;
    CHECK(data[N] == 0 && data[N + 2] == 0);
    ree_graph_destroy(graph);
}

// Nodes in any order are sorted topologically; values read by subgraphs count.
static void test_order(void) {
    struct pb graph = {0}, inner = {0}, v = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){2}));
    pb_sub(&graph, GRAPH_NODE, pb_node("Add", "last", "b,c", "y"));
    pb_sub(&inner, GRAPH_NODE, pb_node("Neg", "", "a", "n"));
    pb_text(&v, 1, "n");
    pb_sub(&inner, GRAPH_OUTPUT, v);
    struct pb node = pb_node("If", "if", "x", "c");
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("then_branch", inner));
    pb_sub(&graph, GRAPH_NODE, node);
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "second", "a", "b"));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "first", "x", "a"));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 1, (int64_t[]){2}));
    struct ree_graph *g = load(pb_model(graph));
    const char *names[] = {"first", "second", "if", "last"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_MSG(strcmp(g->nodes[i]->name, names[i]) == 0, "node %zu is %s", i, g->nodes[i]->name);
        CHECK(g->nodes[i]->id == i);
    }
    ree_graph_destroy(g);

    // A chain of many nodes in reverse order: sorting must not recurse.
    enum { LENGTH = 20000 };
    graph = (struct pb){0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("v0", 1, 0, NULL));
    for (int i = LENGTH; i > 0; i--) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i - 1);
        snprintf(to, sizeof to, "v%d", i);
        pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "", from, to));
    }
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("v20000", 1, 0, NULL));
    g = load(pb_model(graph));
    CHECK(g->n_nodes == LENGTH && strcmp(g->nodes[0]->outputs[0]->name, "v1") == 0);
    ree_graph_destroy(g);
}

// An initializer that is also an input is that input's default value.
static void test_default_input(void) {
    struct pb graph = {0};
    float one = 1;
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){-1}));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("x", 1, 1, (int64_t[]){1}, &one, 4));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "", "x", "y"));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 1, (int64_t[]){-1}));
    struct ree_graph *g = load(pb_model(graph));
    const struct ree_value *x = g->inputs[0];
    CHECK(g->n_inputs == 1 && g->n_values == 2);
    CHECK(x->is_input && x->data && x->nbytes == 4 && x->dims[0] == -1);
    ree_graph_destroy(g);
}

// A model that contains something ree lacks can still be read; only its use is refused.
static void test_foreign_types(void) {
    struct ree_error err;
    struct pb graph = {0}, type = {0}, sequence = {0};
    pb_sub(&sequence, 1, pb_tensor_type(1, 0, NULL));
    pb_sub(&type, 4, sequence);
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("unused", 17, 1, (int64_t[]){3}, "abc", 3));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "", "x", "h"));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "", "h", "y"));
    pb_sub(&graph, GRAPH_VALUE_INFO, pb_value("h", 22, 1, (int64_t[]){3}));
    pb_sub(&graph, GRAPH_VALUE_INFO, pb_value_of("nothing", type));
    pb_sub(&graph, GRAPH_VALUE_INFO, pb_value("h", 1, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 0, NULL));
    struct ree_graph *g = load(pb_model(graph));
    CHECK(ree_graph_check_supported(g, &err) == REE_OK);
    ree_graph_destroy(g);

    g = load(model_with_tensor(pb_tensor("w", 14, 1, (int64_t[]){1}, "abcdefgh", 8)));
    CHECK(ree_graph_check_supported(g, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "node #0 (Identity): 'w' has type complex64"), "%s", err.message);
    ree_graph_destroy(g);

    struct pb strings = pb_tensor("w", REE_STRING, 1, (int64_t[]){2}, NULL, 0);
    pb_text(&strings, TENSOR_STRINGS, "a");
    pb_text(&strings, TENSOR_STRINGS, "b");
    g = load(model_with_tensor(strings));
    CHECK(value_named(g, "w")->dtype == REE_STRING && value_named(g, "w")->nbytes == 16);
    CHECK(strcmp(((const char *const *)value_named(g, "w")->data)[1], "b") == 0);
    CHECK(ree_graph_check_supported(g, &err) == REE_OK);
    ree_graph_destroy(g);
}

// Names may contain any byte except NUL; printed, they do not break the line.
static void test_strange_names(void) {
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x\n", 1, 0, NULL));
    pb_sub(&graph, GRAPH_NODE, pb_node("Re\tlu", "\x1b[2J", "x\n", "\xc3\xa9"));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("\xc3\xa9", 1, 0, NULL));
    struct ree_graph *g = load(pb_model(graph));
    check_text(g, "graph \"\" (ir 8, opset 13)\n"
                  "    input %x\\x0a:float32[]\n"
                  "    %\xc3\xa9:float32[] = Re\\x09lu(%x\\x0a) # \\x1b[2J\n"
                  "    return %\xc3\xa9\n");
    ree_graph_destroy(g);
}

// Fields that the schema does not declare are skipped, whatever their wire type.
static void test_unknown_fields(void) {
    struct pb model = pb_sample_model();
    pb_int(&model, 999, -1);
    pb_float(&model, 1000, 1);
    pb_text(&model, 1001, "text");
    pb_number(&model, 1002 << 3 | 1);
    pb_raw(&model, "12345678", 8);
    struct ree_graph *graph = load(model);
    CHECK(graph->n_nodes == 2);
    ree_graph_destroy(graph);
}

// "ai.onnx" is another name of the default domain, in imports and in nodes.
static void test_default_domain(void) {
    struct pb graph = {0}, model = {0};
    struct pb node = pb_node("Relu", "", "x", "y");
    pb_text(&node, NODE_DOMAIN, "ai.onnx");
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_NODE, node);
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 0, NULL));
    pb_int(&model, MODEL_IR, 4);
    pb_sub(&model, MODEL_OPSET, pb_opset("ai.onnx", 9));
    pb_sub(&model, MODEL_OPSET, pb_opset("", 9));
    pb_sub(&model, MODEL_GRAPH, graph);
    struct ree_graph *g = load(model);
    CHECK(g->n_opsets == 1 && g->nodes[0]->opset == 9 && g->nodes[0]->domain[0] == 0);
    ree_graph_destroy(g);
}

// The names of types match those of the API.
static void test_type_names(void) {
    for (int i = 1; i <= REE_I2; i++) {
        const char *name = ree_dtype_name((enum ree_dtype)i);
        if (strcmp(name, "?") != 0)
            CHECK_MSG(strcmp(name, ree_onnx_type_name(i)) == 0, "%s, %s", name,
                      ree_onnx_type_name(i));
    }
    CHECK(strcmp(ree_onnx_type_name(1000), "unknown type") == 0);
    CHECK(strcmp(ree_onnx_type_name(-1), "unknown type") == 0);
}

int main(void) {
    test_sample();
    test_typed_data();
    test_packed_data();
    test_empty_tensor();
    test_large_tensor();
    test_order();
    test_default_input();
    test_foreign_types();
    test_strange_names();
    test_unknown_fields();
    test_default_domain();
    test_type_names();
    return test_finish();
}
