// Writes the fuzz target's seeds into a folder: models that between them use every message and
// every branch of the reader, right and wrong.
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

// Every element type, in the field that ONNX has for it and as raw bytes.
static void write_tensors(void) {
    for (int type = 1; type <= 24; type++) {
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

static void write_types(void) {
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

// What the passes work on: identities, casts, dropouts, equal nodes, dead ones.
static void write_passes(void) {
    static const char *const nodes[][3] = {
        {"Identity", "x", "a"},  {"Identity", "a", "b"},      {"Add", "a,b", "c"},
        {"Add", "b,a", "d"},     {"Dropout", "c,,no", "e,m"}, {"Identity", "d", "o1"},
        {"Identity", "e", "o2"}, {"Neg", "e", "dead"},
    };
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("no", 9, 0, NULL, "\0", 1));
    for (size_t i = sizeof nodes / sizeof *nodes; i-- > 0;) // last first
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

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    folder = argv[1];
    write_seed("sample", pb_sample_model());
    write_tensors();
    write_types();
    write_functions();
    write_passes();
    write_rest();
    return 0;
}
