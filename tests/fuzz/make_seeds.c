// Writes the seeds of fuzz_onnx and fuzz_value into two folders: models, and files with one value.
// Some are invalid.
#include "graph/model_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static void write_seed(const char *name, struct pb model) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(model.data, 1, model.size, file) != model.size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    pb_free(&model);
}

static struct pb small_graph(void) {
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){2}));
    pb_sub(&graph, GRAPH_NODE, pb_node("Relu", "r", "x", "y"));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 1, (int64_t[]){2}));
    return graph;
}

// Writes every element type, in the field that ONNX has for it and as raw bytes.
static void write_tensors(void) {
    for (int type = 1; type <= 26; type++) {
        static const unsigned char bytes[16] = {1, 0, 1};
        static const uint32_t fields[] = {
            0, TENSOR_FLOATS, 5, 5, 5, 5, 5, 7, TENSOR_STRINGS, 5, 5, 10, 11, 11, 4, 10};
        struct pb graph = small_graph();
        struct pb typed = pb_tensor("t", type, 2, (int64_t[]){1, 2}, NULL, 0);
        uint32_t field = type < 16 ? fields[type] : TENSOR_INT32S;
        pb_bytes(&typed, field, bytes, field == 4 ? 8 : field == 10 ? 16 : 2);
        pb_sub(&graph, GRAPH_INITIALIZER, typed);
        pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("u", type, 0, NULL, bytes, 4));
        pb_sub(&graph, GRAPH_NODE, pb_node("Where", "", "t,u,x", "z"));
        char name[32];
        snprintf(name, sizeof name, "tensor_%02d", type);
        write_seed(name, pb_model(graph));
    }
}

static void write_functions(void) {
    write_seed("function", model_text("function local.F (a, b; to=1, axis) -> (c, a) { t = Cast(b) "
                                      "{to=@to} c = Softmax(t) {axis=@axis} } "
                                      "(x:float32[2]) -> (y, z) { y, z = local.F(x, x) {to=7} }"));
    write_seed("functions",
               model_text("function local.G (a) -> (b) { b = local.F(a, _) } "
                          "function local.F (a, c) -> (b) { b = If(a) {then_branch=() -> (p) "
                          "{ p = Clip(a, c) }, else_branch=() -> (q) { q = Neg(a) }} } "
                          "(x:bool[2]) -> (y) { z = local.G(x) y = local.G(z) }"));
    write_seed("recursion", model_text("function local.F (a) -> (b) { b = local.F(a) } "
                                       "(x:float32[2]) -> (y) { y = local.F(x) }"));
}

// Bodies: captured values, carried values, and what the passes do inside bodies.
static void write_control_flow(void) {
    write_seed("if", model_text("(x:float32[n], c:bool[]) -> (y, z) { h = Neg(x) y, z = If(c) {"
                                "then_branch=() -> (h, a) { a = Shape(h) }, "
                                "else_branch=() -> (b, k) { b = If(c) {then_branch=() -> (p) "
                                "{ p = Identity(x) }, else_branch=() -> (q) { q = Add(x, h) }} "
                                "k = Identity(b) }} }"));
    write_seed("loop",
               model_text("(m:int64[], c:bool[], x:float32[]) -> (y, s) { w = Constant() "
                          "{value=<float32[2] 1 2>} y, s = Loop(m, c, x) {body="
                          "(i:int64[], go:bool[], v:float32[]) -> (go, u, t) {"
                          "f = Cast(i) {to=1} u = Add(v, f) r = Add(f, v) t = Mul(r, w) }} }"));
    write_seed("scan", model_text("(a:float32[2], x:float32[3,2]) -> (b, y) { b, y = Scan(a, x) "
                                  "{num_scan_inputs=1, scan_input_axes=[0], body=(s, e) -> (t, o) "
                                  "{ t = Add(s, e) o = Identity(t) dead = Neg(e) }} }"));
    write_seed("map", model_text("(s:seq(float32[n]), x:float32[1]) -> (t) { t = SequenceMap(s, x) "
                                 "{body=(e, f) -> (g) { g = Add(e, f) }} }"));
    write_seed("function_body",
               model_text("opset 18 function local.Pick (c, x; how, axes=[0]) -> (y) { y = If(c) {"
                          "then_branch=() -> (p) { p = local.Inner(x) {how=@how} }, else_branch="
                          "() -> (q) { q = Loop(_, c, x) {body=(i, go, v) -> (go, w) { w = Add(v, "
                          "x) }} }} } "
                          "function local.Inner (a; how=\"sum\") -> (b) { b = Foo(a) {kind=@how} } "
                          "(x:float32[2], c:bool[]) -> (y) { z = local.Pick(c, x) {how=\"mean\"} y "
                          "= local.Pick(c, z) }"));
}

static void write_strings(void) {
    write_seed("strings",
               model_text("(x:string[2]) -> (y, z) { w = Constant() {value=<string[2] \"a b\" "
                          "\"\">} y = StringConcat(x, w) z = Constant() {value_strings=[\"u\", "
                          "\"v\"]} }"));
    struct pb graph = small_graph();
    struct pb tensor = pb_tensor("t", 8, 1, (int64_t[]){3}, NULL, 0);
    pb_text(&tensor, TENSOR_STRINGS, "caf\xc3\xa9");
    pb_text(&tensor, TENSOR_STRINGS, "");
    pb_bytes(&tensor, TENSOR_STRINGS, "a\0b", 3);
    pb_sub(&graph, GRAPH_INITIALIZER, tensor);
    pb_sub(&graph, GRAPH_NODE, pb_node("Identity", "", "t", "z"));
    write_seed("string_initializer", pb_model(graph));
}

static void write_types(void) {
    write_seed("sequence", model_text("(s:seq(float32[2]), o:opt(seq(int64)), p:opt(float16[n]), "
                                      "i:int64[]) -> (y, h, t) { y = SequenceAt(s, i) h = "
                                      "OptionalHasElement(p) t = OptionalGetElement(o) }"));
    write_seed("sequence_of", model_text("(s:seq(seq(float32))) -> (y) { y = Identity(s) }"));
    write_seed("optional_of", model_text("(s:seq(opt(float32))) -> (y) { y = Identity(s) }"));
    // A type as an attribute; it gives the type of the absent value.
    struct pb empty = small_graph(), node = pb_node("Optional", "", "", "o"), attr = {0},
              held = {0}, sequence = {0};
    pb_sub(&sequence, 1, pb_tensor_type(1, 0, NULL));
    pb_sub(&held, 4, sequence);
    pb_text(&attr, ATTR_NAME, "type");
    pb_sub(&attr, 14, held);
    pb_int(&attr, ATTR_TYPE, 13);
    pb_sub(&node, NODE_ATTRIBUTE, attr);
    pb_sub(&empty, GRAPH_NODE, node);
    write_seed("type_attribute", pb_model(empty));
    static const uint32_t kinds[] = {4, 5, 7, 8, 9};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pb graph = small_graph(), inner = {0}, type = {0};
        pb_sub(&inner, kinds[i] == 5 ? 2 : 1, pb_tensor_type(1, 1, (int64_t[]){-1}));
        pb_sub(&type, kinds[i], inner);
        pb_sub(&graph, GRAPH_VALUE_INFO, pb_value_of("y", type));
        char name[32];
        snprintf(name, sizeof name, "type_%u", kinds[i]);
        write_seed(name, pb_model(graph));
    }
}

// Input of the passes: identities, casts, dropouts, equal nodes, dead nodes.
static void write_passes(void) {
    static const char *const nodes[][3] = {
        {"Identity", "x", "a"},  {"Identity", "a", "b"},      {"Add", "a,b", "c"},
        {"Add", "b,a", "d"},     {"Dropout", "c,,no", "e,m"}, {"Identity", "d", "o1"},
        {"Identity", "e", "o2"}, {"Neg", "e", "dead"},
    };
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("no", 9, 0, NULL, "\0", 1));
    for (size_t i = sizeof nodes / sizeof *nodes; i-- > 0;) // in reverse order
        pb_sub(&graph, GRAPH_NODE, pb_node(nodes[i][0], "", nodes[i][1], nodes[i][2]));
    for (int i = 0; i < 2; i++) {
        struct pb cast = pb_node("Cast", "", "x", i ? "f" : "g");
        pb_sub(&cast, NODE_ATTRIBUTE, pb_attr_int("to", 1));
        pb_sub(&graph, GRAPH_NODE, cast);
    }
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("o1", 1, 0, NULL));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("o2", 1, 0, NULL));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("f", 1, 0, NULL));
    write_seed("passes", pb_model(graph));
}

static void write_rest(void) {
    struct pb graph = small_graph(), sparse = {0};
    pb_sub(&sparse, 1, pb_tensor("s", 1, 0, NULL, "abcd", 4));
    pb_sub(&graph, GRAPH_SPARSE, sparse);
    write_seed("sparse", pb_model(graph));
    graph = small_graph();
    pb_sub(&graph, GRAPH_INITIALIZER,
           pb_external("w", 1, 1, (int64_t[]){2}, "w.bin", "0", "8", "00"));
    write_seed("external", pb_model(graph));
    graph = small_graph();
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("x", 1, 1, (int64_t[]){2}, "abcdefgh", 8));
    write_seed("default", pb_model(graph));
    graph = small_graph();
    pb_sub(&graph, GRAPH_NODE, pb_node("Add", "", "y,q", "p"));
    pb_sub(&graph, GRAPH_NODE, pb_node("Add", "", "y,p", "q"));
    write_seed("cycle", pb_model(graph));
}

// Messages TensorProto, SequenceProto (field 2 is the type, 3 the tensors) and OptionalProto (field
// 2 is the type, 3 a tensor, 5 a sequence).
static void write_values(void) {
    for (int type = 1; type <= 26; type++) {
        char name[32];
        snprintf(name, sizeof name, "tensor_%02d", type);
        write_seed(name, pb_tensor("t", type, 1, (int64_t[]){2}, "\1\0\0\0\0\0\0\0\0\0\0", 8));
    }
    struct pb strings = pb_tensor("t", 8, 1, (int64_t[]){2}, NULL, 0), sequence = {0}, mixed = {0};
    pb_text(&strings, TENSOR_STRINGS, "a");
    pb_text(&strings, TENSOR_STRINGS, "");
    write_seed("strings", strings);
    write_seed("external", pb_external("w", 1, 1, (int64_t[]){1}, "value", "0", "4", NULL));
    for (int i = 0; i < 2; i++) {
        pb_sub(&sequence, 3, pb_tensor("", 1, 1, (int64_t[]){1}, "abcd", 4));
        pb_sub(&mixed, 3, pb_tensor("", 1 + i, 0, NULL, "abcd", i ? 1 : 4));
    }
    pb_int(&sequence, 2, 1);
    pb_text(&sequence, 1, "s");
    struct pb optional = {0}, of_tensor = {0}, absent = {0};
    pb_sub(&of_tensor, 3, pb_tensor("", 7, 0, NULL, "abcdefgh", 8));
    pb_int(&of_tensor, 2, 1);
    struct pb copy = {0};
    pb_raw(&copy, sequence.data, sequence.size);
    pb_sub(&optional, 5, copy);
    pb_int(&optional, 2, 3);
    pb_int(&absent, 2, 0);
    write_seed("sequence", sequence);
    write_seed("mixed", mixed);
    write_seed("optional_tensor", of_tensor);
    write_seed("optional_sequence", optional);
    write_seed("absent", absent);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODELS VALUES\n", argv[0]);
        return 1;
    }
    folder = argv[1];
    write_seed("sample", pb_sample_model());
    write_tensors();
    write_types();
    write_functions();
    write_control_flow();
    write_strings();
    write_passes();
    write_rest();
    folder = argv[2];
    write_values();
    return 0;
}
