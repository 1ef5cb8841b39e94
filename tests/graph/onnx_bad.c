// Malformed and unsupported models: each is refused with the right status and a message that names
// the error. Every case is one change to a small valid model.
#include "graph/ir/ir.h"
#include "graph/load.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static void check_bytes(const char *what, const void *bytes, size_t n, enum ree_status status,
                        const char *text) {
    struct ree_graph *graph = (void *)&graph;
    struct ree_error err = {.message = ""};
    enum ree_status actual = ree_onnx_load_memory(bytes, n, NULL, &graph, &err);
    CHECK_MSG(actual == status, "%s: status %s, expected %s: %s", what, ree_status_name(actual),
              ree_status_name(status), err.message);
    CHECK_MSG(!graph, "%s: a graph came out", what);
    CHECK_MSG(err.status == actual, "%s: the error carries another status", what);
    CHECK_MSG(strstr(err.message, text), "%s: the message is \"%s\", expected \"%s\" in it", what,
              err.message, text);
    CHECK_MSG(!strchr(err.message, '\n'), "%s: the message has more than one line", what);
    // With err = NULL the status is the same.
    CHECK_MSG(ree_onnx_load_memory(bytes, n, NULL, &graph, NULL) == status, "%s: without err",
              what);
}

static void check(const char *what, struct pb model, enum ree_status status, const char *text) {
    check_bytes(what, model.data, model.size, status, text);
    pb_free(&model);
}

// x:float32[2] -> Relu -> y; each case adds to this graph.
static struct pb small_graph(void) {
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){2}));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "relu", "x", "y"));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 1, (int64_t[]){2}));
    return graph;
}

static struct pb with(uint32_t field, struct pb message) {
    struct pb graph = small_graph();
    pb_sub(&graph, field, message);
    return pb_model(graph);
}

static struct pb with_attr(struct pb attribute) {
    struct pb node = pb_node("Foo", "foo", "x", "z");
    pb_sub(&node, NODE_ATTRIBUTE, attribute);
    return with(GRAPH_NODE, node);
}

static void test_wire(void) {
    check_bytes("empty", "", 0, REE_INVALID, "it is empty");
    check_bytes("text", "hello, world", 12, REE_INVALID, "malformed protobuf");
    check_bytes("field 0", "\0\0", 2, REE_INVALID, "a field has the number 0");
    check_bytes("a group", "\x3b\x3c", 2, REE_INVALID, "wire type 3, expected 2");
    check_bytes("an unknown group", "\x9b\x06", 2, REE_INVALID, "unknown wire type 3");
    check_bytes("wrong wire type", "\x0a\x01\x01", 3, REE_INVALID,
                "ir_version: has wire type 2, expected 0");
    check_bytes("long varint", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, REE_INVALID,
                "ir_version: a number is truncated or longer than 10 bytes");
    check_bytes("cut varint", "\x08\xff", 2, REE_INVALID, "a number is truncated");
    check_bytes("cut tag", "\xff", 1, REE_INVALID, "tag is truncated");
    check_bytes("cut length", "\x3a\xff", 2, REE_INVALID, "graph: a length is truncated");
    check_bytes("length past the end", "\x3a\x7f\x08", 3, REE_INVALID,
                "graph: is truncated: its length is 127 bytes, but only 1 bytes remain (byte 2)");
    check_bytes("huge length", "\x3a\xff\xff\xff\xff\x0f", 6, REE_INVALID,
                "its length is 4294967295 bytes");
    check_bytes("cut fixed32", "\x95\x3e\x01", 3, REE_INVALID, "is truncated: 1 of 4 bytes");

    struct pb model = pb_model(small_graph()), again = {0};
    pb_sub(&model, MODEL_GRAPH, again);
    check("graph twice", model, REE_INVALID, "graph: occurs twice");

    struct pb node = pb_node("Relu", "", "x", "z");
    pb_bytes(&node, NODE_NAME, "a\0b", 3);
    check("NUL in a name", with(GRAPH_NODE, node), REE_INVALID,
          "graph.node.name: a string contains a NUL byte");

    struct pb tensor = pb_tensor("w", 1, 1, (int64_t[]){2}, NULL, 0);
    pb_bytes(&tensor, TENSOR_FLOATS, "1234567", 7);
    check("packed floats of 7 bytes", with(GRAPH_INITIALIZER, tensor), REE_INVALID,
          "graph.initializer.float_data: 7 bytes is not a multiple of the element size 4");
    tensor = pb_tensor("w", 7, 1, (int64_t[]){2}, NULL, 0);
    pb_bytes(&tensor, TENSOR_INT64S, "\x01\xff", 2);
    check("packed ints cut off", with(GRAPH_INITIALIZER, tensor), REE_INVALID,
          "graph.initializer.int64_data: a number is truncated");
}

// Subgraphs nested a hundred thousand deep must not overflow the reader's stack.
static void test_nesting(void) {
    for (int depth = 10; depth <= 100000; depth *= 100) {
        // A length is known only after the nested message is written, so the bytes are written
        // backwards.
        enum { ROOM = 1 << 22 };
        unsigned char *bytes = malloc(ROOM);
        REQUIRE(bytes);
        size_t at = ROOM;
        for (int i = 0; i < depth; i++) {
            // graph { node { attribute { g { ... } } } }: field tags from the innermost to the
            // outermost
            static const unsigned char tags[3] = {ATTR_G << 3 | 2, NODE_ATTRIBUTE << 3 | 2,
                                                  GRAPH_NODE << 3 | 2};
            for (int j = 0; j < 3; j++) {
                size_t length = ROOM - at;
                struct pb prefix = {0};
                pb_raw(&prefix, &tags[j], 1);
                pb_number(&prefix, length);
                at -= prefix.size;
                memcpy(bytes + at, prefix.data, prefix.size);
                pb_free(&prefix);
            }
        }
        struct pb graph = {0};
        pb_raw(&graph, bytes + at, ROOM - at);
        free(bytes);
        check("nesting", pb_model(graph), depth == 10 ? REE_INVALID : REE_UNSUPPORTED,
              depth == 10 ? "node #0 (): has no operator type" : "nested more than 100 deep");
    }
    // Types can be nested too.
    struct pb type = pb_tensor_type(1, 0, NULL);
    for (int i = 0; i < 1000; i++) {
        struct pb sequence = {0}, outer = {0};
        pb_sub(&sequence, 1, type);
        pb_sub(&outer, 4, sequence);
        type = outer;
    }
    check("nested types", with(GRAPH_VALUE_INFO, pb_value_of("t", type)), REE_UNSUPPORTED,
          "nested more than 100 deep");
}

// Two bytes that become a large struct: the memory limit is proportional to the file size.
static void test_amplification(void) {
    struct pb graph = small_graph(), node = pb_node("Foo", "", "x", "z");
    enum { N = 400000 };
    for (int i = 0; i < N; i++)
        pb_raw(&node, "\x2a\x00", 2); // an empty attribute
    pb_sub(&graph, GRAPH_NODE, node);
    check("amplification", pb_model(graph), REE_INVALID, "requires more than");
}

static void test_model(void) {
    struct pb m = {0};
    pb_sub(&m, MODEL_GRAPH, small_graph());
    check("the IR version is missing", m, REE_INVALID, "the IR version is missing");
    static const struct {
        int64_t version;
        enum ree_status status;
        const char *text;
    } versions[] = {
        {0, REE_INVALID, "the IR version is 0"},
        {-5, REE_INVALID, "the IR version is -5"},
        {2, REE_UNSUPPORTED, "the IR version is 2; 3 to"},
        {15, REE_UNSUPPORTED, "the IR version is 15; 3 to 14"},
        {INT64_MAX, REE_UNSUPPORTED, "the IR version is 9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        m = (struct pb){0};
        pb_int(&m, MODEL_IR, versions[i].version);
        pb_sub(&m, MODEL_GRAPH, small_graph());
        pb_sub(&m, MODEL_OPSET, pb_opset("", 13));
        check("IR version", m, versions[i].status, versions[i].text);
    }
    m = (struct pb){0};
    pb_int(&m, MODEL_IR, 8);
    pb_sub(&m, MODEL_OPSET, pb_opset("", 13));
    check("no graph", m, REE_INVALID, "the model has no graph");
    m = (struct pb){0};
    pb_int(&m, MODEL_IR, 8);
    pb_sub(&m, MODEL_GRAPH, small_graph());
    check("no opset", m, REE_INVALID, "imports no operator set");
    m = pb_model(small_graph());
    pb_sub(&m, MODEL_OPSET, pb_opset("ai.onnx", 14));
    check("two opsets", m, REE_INVALID, "'ai.onnx' is imported in versions 13 and 14");
    m = pb_model(small_graph());
    pb_sub(&m, MODEL_OPSET, pb_opset("other", -1));
    check("negative opset", m, REE_INVALID, "operator set 'other' has the version -1");
    m = pb_model(small_graph());
    for (int i = 0; i < 100; i++)
        pb_sub(&m, MODEL_OPSET, pb_opset("other", 1));
    check("many opsets", m, REE_UNSUPPORTED, "101 operator sets are imported");
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    check("no outputs", pb_model(graph), REE_INVALID, "the graph has no outputs");
}

static void test_names(void) {
    struct pb none = {0};
    check("nameless input", with(GRAPH_INPUT, none), REE_INVALID, "input #1 has no name");
    none = (struct pb){0};
    check("nameless output", with(GRAPH_OUTPUT, none), REE_INVALID, "output #1 has no name");
    check("nameless initializer", with(GRAPH_INITIALIZER, pb_tensor("", 1, 0, NULL, "abcd", 4)),
          REE_INVALID, "initializer #0 has no name");
    check("input twice", with(GRAPH_INPUT, pb_value("x", 1, 0, NULL)), REE_INVALID,
          "'x' is defined twice: as an input of the graph and as an input of the graph");
    check("produced twice", with(GRAPH_NODE, pb_node("Abs", "abs", "x", "y")), REE_INVALID,
          "'y' is defined twice: as an output of node 'relu' (Relu) and as an output of node 'abs' "
          "(Abs)");
    check("twice by one node", with(GRAPH_NODE, pb_node("Split", "", "x", "a,a")), REE_INVALID,
          "'a' is defined twice");
    check("input produced", with(GRAPH_NODE, pb_node("Abs", "abs", "y", "x")), REE_INVALID,
          "'x' is defined twice: as an input of the graph and as an output of node 'abs' (Abs)");
    check("initializer produced", with(GRAPH_INITIALIZER, pb_tensor("y", 1, 0, NULL, "abcd", 4)),
          REE_INVALID, "'y' is defined twice: as an initializer and as an output");
    struct pb graph = small_graph();
    for (int i = 0; i < 2; i++)
        pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("w", 1, 0, NULL, "abcd", 4));
    check("initializer twice", pb_model(graph), REE_INVALID,
          "'w' is defined twice: as an initializer and as an initializer");
    check("output twice", with(GRAPH_OUTPUT, pb_value("y", 1, 0, NULL)), REE_INVALID,
          "output 'y': is listed twice");
    check("unknown output", with(GRAPH_OUTPUT, pb_value("nobody", 1, 0, NULL)), REE_INVALID,
          "output 'nobody': is neither the output of a node");
    check("missing tensor", with(GRAPH_NODE, pb_node("Add", "add", "x,nowhere", "z")), REE_INVALID,
          "node 'add' (Add): input 'nowhere' is neither the output of a node");
    check("missing tensor of a nameless node", with(GRAPH_NODE, pb_node("Add", "", "q", "z")),
          REE_INVALID, "node #1 (Add): input 'q' is neither");
    check("no operator", with(GRAPH_NODE, pb_node("", "what", "x", "z")), REE_INVALID,
          "node 'what' (): has no operator type");
    struct pb node = pb_node("Foo", "foo", "x", "z");
    pb_text(&node, NODE_DOMAIN, "com.example");
    check("domain", with(GRAPH_NODE, node), REE_INVALID,
          "node 'foo' (Foo): belongs to the operator set 'com.example', which the model does not "
          "import");
    check("a name with a line in it", with(GRAPH_NODE, pb_node("Add", "a\n\x1b[2J", "q", "z")),
          REE_INVALID, "node 'a??[2J' (Add): input 'q' is neither");
    // A name defined in a branch is not visible outside the branch.
    struct pb branch = {0}, v = {0};
    pb_sub(&branch, GRAPH_NODE, pb_node("Abs", "", "x", "inner"));
    pb_text(&v, 1, "inner");
    pb_sub(&branch, GRAPH_OUTPUT, v);
    node = pb_node("If", "if", "x", "z");
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("then_branch", branch));
    graph = small_graph();
    pb_sub(&graph, GRAPH_NODE, node);
    pb_sub(&graph, GRAPH_NODE, pb_node("Abs", "spy", "inner", "w"));
    check("inner name", pb_model(graph), REE_INVALID, "node 'spy' (Abs): input 'inner' is neither");
}

static void test_cycles(void) {
    check("self", with(GRAPH_NODE, pb_node("Add", "loop", "x,z", "z")), REE_INVALID,
          "node 'loop' (Add) reads its own output: the graph has a cycle");
    struct pb graph = small_graph();
    pb_sub(&graph, GRAPH_NODE, pb_node("Add", "one", "x,b", "a"));
    pb_sub(&graph, GRAPH_NODE, pb_node("Abs", "two", "a", "b"));
    check("two", pb_model(graph), REE_INVALID,
          "node 'two' (Abs) reads the output of node 'one' (Add), which depends on it: the graph "
          "has a cycle");
    // A cycle through a subgraph: the branch reads the output of the If.
    struct pb branch = {0}, v = {0};
    pb_sub(&branch, GRAPH_NODE, pb_node("Abs", "", "z", "inner"));
    pb_text(&v, 1, "inner");
    pb_sub(&branch, GRAPH_OUTPUT, v);
    struct pb node = pb_node("If", "if", "x", "z");
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("then_branch", branch));
    check("through a branch", with(GRAPH_NODE, node), REE_INVALID,
          "node 'if' (If) reads its own output");
}

static void test_types(void) {
    struct pb type = {0}, inner = {0};
    static const struct {
        uint32_t field;
        const char *text;
    } kinds[] = {{5, "input 'q': is a map; only tensors are supported"},
                 {7, "is an opaque value"},
                 {8, "is a sparse tensor"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        type = (struct pb){0}, inner = (struct pb){0};
        pb_sub(&type, kinds[i].field, inner);
        check("kind", with(GRAPH_INPUT, pb_value_of("q", type)), REE_UNSUPPORTED, kinds[i].text);
    }
    // Sequences and optional values without an element type, and nested in an unsupported order.
    for (uint32_t outer = 4; outer <= 9; outer += 5) {
        type = (struct pb){0}, inner = (struct pb){0};
        pb_sub(&type, outer, inner);
        check("of nothing", with(GRAPH_INPUT, pb_value_of("q", type)), REE_INVALID,
              "input 'q': does not state its element type");
        struct pb optional = {0}, element = {0};
        type = (struct pb){0}, inner = (struct pb){0};
        pb_sub(&element, 1, pb_tensor_type(1, 0, NULL));
        pb_sub(&optional, 9, element);
        pb_sub(&inner, 1, optional);
        pb_sub(&type, outer, inner);
        check("optional within", with(GRAPH_INPUT, pb_value_of("q", type)), REE_UNSUPPORTED,
              "input 'q': contains optional values");
    }
    type = pb_tensor_type(1, 0, NULL), inner = (struct pb){0};
    pb_sub(&type, 4, inner);
    check("two kinds", with(GRAPH_INPUT, pb_value_of("q", type)), REE_INVALID,
          "is both a tensor and a sequence");
    type = (struct pb){0};
    check("no kind", with(GRAPH_INPUT, pb_value_of("q", type)), REE_INVALID,
          "input 'q' has no type");
    check("negative dim", with(GRAPH_INPUT, pb_value("q", 1, 2, (int64_t[]){1, -7})), REE_INVALID,
          "input 'q': dimension 1 is -7");
    check("huge dim", with(GRAPH_INPUT, pb_value("q", 1, 1, (int64_t[]){INT64_C(1) << 40})),
          REE_UNSUPPORTED, "dimension 0 is 1099511627776");
    check("huge input", with(GRAPH_INPUT, pb_value("q", 1, 2, (int64_t[]){1 << 16, 1 << 16})),
          REE_UNSUPPORTED, "float32[65536,65536] has more than 2147483647 elements");
    check("rank", with(GRAPH_INPUT, pb_value("q", 1, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1})),
          REE_UNSUPPORTED, "has rank 9; at most 8 is supported");
    check("element type", with(GRAPH_INPUT, pb_value("q", -3, 0, NULL)), REE_INVALID,
          "has the unknown element type -3");
    struct pb dim = {0}, shape = {0}, tensor = {0};
    pb_int(&dim, 1, 4);
    pb_text(&dim, 2, "n");
    pb_sub(&shape, 1, dim);
    pb_int(&tensor, 1, 1);
    pb_sub(&tensor, 2, shape);
    type = (struct pb){0};
    pb_sub(&type, 1, tensor);
    check("size and symbol", with(GRAPH_INPUT, pb_value_of("q", type)), REE_INVALID,
          "dimension 0 has both a size and a symbol ('n')");
    struct pb graph = small_graph();
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("x", 1, 1, (int64_t[]){1}, "abcd", 4));
    check("default of another shape", pb_model(graph), REE_INVALID,
          "initializer 'x': is the default of an input of type float32[2], but has type "
          "float32[1]");
    graph = small_graph();
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("x", 6, 1, (int64_t[]){2}, "abcdefgh", 8));
    check("default of another type", pb_model(graph), REE_INVALID, "but has type int32[2]");
}

static struct pb typed(int type, int64_t dim, uint32_t field, int64_t value) {
    struct pb tensor = pb_tensor("w", type, 1, &dim, NULL, 0);
    pb_packed(&tensor, field, 1, &value);
    return tensor;
}

static void test_tensors(void) {
    static const struct {
        const char *what;
        int type;
        size_t rank;
        int64_t dims[9];
        size_t n; // bytes of raw data
        enum ree_status status;
        const char *text;
    } raw[] = {
        {"too short",
         1,
         2,
         {2, 2},
         12,
         REE_INVALID,
         "initializer 'w': raw_data has 12 bytes, but float32[2,2] requires 16 bytes"},
        {"too long", 1, 2, {2, 2}, 20, REE_INVALID, "requires 16 bytes"},
        {"data for none", 1, 1, {0}, 4, REE_INVALID, "raw_data has 4 bytes, but float32[0]"},
        {"none for data", 1, 1, {1}, 0, REE_INVALID, "float_data has 0 values"},
        {"negative", 1, 2, {2, -2}, 16, REE_INVALID, "dimension 1 is -2"},
        {"two negative", 1, 2, {-2, -2}, 16, REE_INVALID, "dimension 0 is -2"},
        {"most negative", 1, 1, {INT64_MIN}, 0, REE_INVALID, "dimension 0 is -9223372036854775808"},
        {"overflow",
         1,
         2,
         {INT64_C(1) << 32, INT64_C(1) << 32},
         0,
         REE_UNSUPPORTED,
         "more than 2147483647 elements"},
        {"overflow to 4",
         1,
         2,
         {INT64_MAX / 2 + 3, 2},
         16,
         REE_UNSUPPORTED,
         "more than 2147483647 elements"},
        {"2^40",
         1,
         1,
         {INT64_C(1) << 40},
         4,
         REE_UNSUPPORTED,
         "float32[1099511627776] has more than 2147483647 elements"},
        {"2^31", 2, 1, {INT64_C(1) << 31}, 4, REE_UNSUPPORTED, "more than 2147483647 elements"},
        {"2^31 - 1", 2, 1, {INT32_MAX}, 4, REE_INVALID, "requires 2147483647 bytes"},
        {"huge but empty", 1, 2, {0, INT64_C(1) << 40}, 0, REE_UNSUPPORTED, "more than"},
        {"rank 9", 1, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, REE_UNSUPPORTED, "has rank 9"},
        {"no type", 0, 0, {0}, 4, REE_INVALID, "has no data type"},
        {"negative type", -4, 0, {0}, 4, REE_INVALID, "has no data type"},
        {"raw strings", 8, 1, {1}, 4, REE_INVALID, "strings cannot be in raw_data"},
        {"bool of 7", 9, 1, {4}, 4, REE_INVALID, "element 0 of a bool tensor is 7"},
    };
    static const char bytes[32] = {7, 1};
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++)
        check(raw[i].what,
              with(GRAPH_INITIALIZER,
                   pb_tensor("w", raw[i].type, raw[i].rank, raw[i].dims, bytes, raw[i].n)),
              raw[i].status, raw[i].text);

    static const struct {
        int type;
        int64_t dim;
        uint32_t field;
        int64_t value;
        const char *text;
    } typed_cases[] = {
        {REE_I8, 1, TENSOR_INT32S, 128, "element 0 is 128, outside int8"},
        {REE_I8, 1, TENSOR_INT32S, -129, "outside int8"},
        {REE_U8, 1, TENSOR_INT32S, -1, "element 0 is -1, outside uint8"},
        {REE_U8, 1, TENSOR_INT32S, 256, "outside uint8"},
        {REE_I16, 1, TENSOR_INT32S, 32768, "outside int16"},
        {REE_U16, 1, TENSOR_INT32S, 65536, "outside uint16"},
        {REE_F16, 1, TENSOR_INT32S, 65536, "outside float16"},
        {REE_BF16, 1, TENSOR_INT32S, -1, "outside bfloat16"},
        {REE_BOOL, 1, TENSOR_INT32S, 2, "outside bool"},
        {REE_F8E5M2, 1, TENSOR_INT32S, 256, "outside float8e5m2"},
        {REE_I4, 2, TENSOR_INT32S, 256, "number 0 in int32_data is 256, expected a byte of packed"},
        {REE_I4, 2, TENSOR_INT32S, -129, "expected a byte of packed"},
        {REE_I4, 3, TENSOR_INT32S, 1, "int32_data has 1 values, but int4[3] requires 2"},
        {REE_U2, 5, TENSOR_INT32S, 1, "int32_data has 1 values, but uint2[5] requires 2"},
        {REE_U32, 1, TENSOR_UINT64S, INT64_C(1) << 32, "element 0 is 4294967296, outside uint32"},
        {REE_U32, 1, TENSOR_UINT64S, -1, "element 0 is 18446744073709551615, outside uint32"},
        {REE_I32, 2, TENSOR_INT32S, 1, "int32_data has 1 values, but int32[2] requires 2"},
        {REE_I64, 0, TENSOR_INT64S, 1, "int64_data has 1 values, but int64[0] requires 0"},
        {REE_I32, 1, TENSOR_INT64S, 1,
         "its values are in int64_data, but values of int32[1] must be in int32_data"},
        {REE_F64, 1, TENSOR_INT32S, 1, "must be in double_data"},
        {REE_STRING, 1, TENSOR_INT32S, 1, "must be in string_data"},
    };
    for (size_t i = 0; i < sizeof typed_cases / sizeof *typed_cases; i++)
        check("typed data",
              with(GRAPH_INITIALIZER, typed(typed_cases[i].type, typed_cases[i].dim,
                                            typed_cases[i].field, typed_cases[i].value)),
              REE_INVALID, typed_cases[i].text);

    struct pb tensor = typed(REE_I32, 1, TENSOR_INT32S, 5);
    pb_bytes(&tensor, TENSOR_RAW, "abcd", 4);
    check("two fields", with(GRAPH_INITIALIZER, tensor), REE_INVALID,
          "has both raw_data and int32_data");
    tensor = pb_tensor("w", 1, 0, NULL, "abcd", 4);
    struct pb segment = {0};
    pb_int(&segment, 1, 0);
    pb_sub(&tensor, TENSOR_SEGMENT, segment);
    check("segment", with(GRAPH_INITIALIZER, tensor), REE_UNSUPPORTED, "segments");
    tensor = pb_tensor("w", 1, 0, NULL, "abcd", 4);
    pb_int(&tensor, TENSOR_LOCATION, 5);
    check("location", with(GRAPH_INITIALIZER, tensor), REE_INVALID, "unknown data location 5");
    check(
        "external in memory",
        with(GRAPH_INITIALIZER, pb_external("w", 1, 1, (int64_t[]){1}, "w.bin", NULL, NULL, NULL)),
        REE_UNSUPPORTED, "external data 'w.bin': a model in memory has no folder");
    struct pb sparse = {0};
    pb_sub(&sparse, 1, pb_tensor("s", 1, 0, NULL, "abcd", 4));
    check("sparse", with(GRAPH_SPARSE, sparse), REE_UNSUPPORTED,
          "sparse initializer 's': sparse tensors are not supported");
}

static struct pb attr(const char *name, int type) {
    struct pb a = {0};
    if (*name) pb_text(&a, ATTR_NAME, name);
    if (type) pb_int(&a, ATTR_TYPE, type);
    return a;
}

static void test_attributes(void) {
    check("nameless", with_attr(attr("", 2)), REE_INVALID,
          "node 'foo' (Foo): an attribute has no name");
    check("empty", with_attr(attr("a", 0)), REE_INVALID, "attribute 'a': has no value");
    check("unknown kind", with_attr(attr("a", 99)), REE_UNSUPPORTED, "has the unknown kind 99");
    check("negative kind", with_attr(attr("a", -1)), REE_UNSUPPORTED, "has the unknown kind -1");
    check("no tensor", with_attr(attr("a", 4)), REE_INVALID,
          "declared as a tensor, but contains none");
    check("no graph", with_attr(attr("a", 5)), REE_INVALID,
          "declared as a graph, but contains none");
    check("tensors", with_attr(attr("a", 9)), REE_UNSUPPORTED, "contains tensors, which is not");
    check("sparse", with_attr(attr("a", 11)), REE_UNSUPPORTED, "contains a sparse tensor");
    check("no type", with_attr(attr("a", 13)), REE_INVALID,
          "declared as a type, but contains none");
    check("types", with_attr(attr("a", 14)), REE_UNSUPPORTED, "contains types");
    struct pb a = attr("a", 2);
    pb_float(&a, ATTR_F, 1.5f);
    check("another kind", with_attr(a), REE_INVALID, "is declared as an int, but contains a float");
    a = attr("a", 2);
    pb_text(&a, ATTR_REF, "outer");
    check("reference", with_attr(a), REE_INVALID, "refers to the attribute 'outer' of a function");
    check("tensor", with_attr(pb_attr_tensor("value", pb_tensor("", 1, 0, NULL, "abc", 3))),
          REE_INVALID, "node 'foo' (Foo): attribute 'value': raw_data has 3 bytes");
    struct pb node = pb_node("Foo", "foo", "x", "z");
    for (int i = 0; i < 2; i++)
        pb_sub(&node, NODE_ATTRIBUTE, pb_attr_int("axis", i));
    check("twice", with(GRAPH_NODE, node), REE_INVALID, "attribute 'axis' occurs twice");
    node = pb_node("Foo", "foo", "x", "z");
    for (int i = 0; i < 300; i++)
        pb_sub(&node, NODE_ATTRIBUTE, pb_attr_int("a", i));
    check("many", with(GRAPH_NODE, node), REE_UNSUPPORTED, "has 300 attributes");
    // The message contains the path to an error in a subgraph.
    struct pb branch = {0};
    pb_sub(&branch, GRAPH_NODE, pb_node("Abs", "deep", "nowhere", "q"));
    check("in a subgraph", with_attr(pb_attr_graph("body", branch)), REE_INVALID,
          "node 'foo' (Foo): attribute 'body': node 'deep' (Abs): input 'nowhere' is neither");
}

// The message begins with the file's path.
static void test_paths(void) {
    struct ree_graph *graph;
    struct ree_error err;
    CHECK(ree_graph_load("/nonexistent/model.onnx", NULL, &graph, &err) == REE_NOT_FOUND);
    CHECK_MSG(strstr(err.message, "/nonexistent/model.onnx: No such file"), "%s", err.message);
    char folder[] = "/tmp/ree-test-XXXXXX", expected[128];
    REQUIRE(mkdtemp(folder));
    snprintf(expected, sizeof expected,
             "%s: it is a folder without config.json, and so not a checkpoint", folder);
    CHECK(ree_graph_load(folder, NULL, &graph, &err) == REE_NOT_FOUND);
    CHECK_MSG(strcmp(err.message, expected) == 0, "%s", err.message);
    REQUIRE(rmdir(folder) == 0);
    CHECK(ree_graph_load("/dev/null", NULL, &graph, &err) == REE_INVALID);
    CHECK_MSG(strcmp(err.message, "/dev/null: it is not a regular file") == 0, "%s", err.message);
    CHECK(ree_graph_load("/dev/null", NULL, &graph, NULL) == REE_INVALID);
    CHECK(!graph);
}

int main(void) {
    struct ree_graph *graph;
    struct pb model = pb_model(small_graph());
    CHECK(ree_onnx_load_memory(model.data, model.size, NULL, &graph, NULL) == REE_OK);
    ree_graph_destroy(graph);
    pb_free(&model);
    test_wire();
    test_nesting();
    test_amplification();
    test_model();
    test_names();
    test_cycles();
    test_types();
    test_tensors();
    test_attributes();
    test_paths();
    return test_finish();
}
