// Tests each pass on small graphs, before and after as text.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "test.h"

#include <string.h>

static struct ree_graph *load(struct pb graph) {
    struct pb model = pb_model(graph);
    struct ree_graph *out;
    struct ree_error err = {.message = ""};
    CHECK_MSG(ree_onnx_load_memory(model.data, model.size, NULL, &out, &err) == REE_OK, "%s",
              err.message);
    REQUIRE(out);
    pb_free(&model);
    return out;
}

// Compares the printed graph, without its first line, and destroys the graph.
static void check_text(struct ree_graph *graph, const char *expected) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_graph_print(graph, &text);
    const char *body = strchr(text.data, '\n') + 1;
    CHECK_MSG(strcmp(body, expected) == 0, "expected:\n%s\nprinted:\n%s", expected, body);
    ree_strbuf_finish(&text);
    for (size_t i = 0; i < graph->n_values; i++)
        CHECK(graph->values[i]->id == i);
    for (size_t i = 0; i < graph->n_nodes; i++)
        CHECK(graph->nodes[i]->id == i);
    ree_graph_destroy(graph);
}

static void add_node(struct pb *graph, const char *op, const char *inputs, const char *outputs) {
    pb_sub(graph, GRAPH_NODE, pb_node(op, "", inputs, outputs));
}

static void add_output(struct pb *graph, const char *name) {
    struct pb v = {0};
    pb_text(&v, 1, name);
    pb_sub(graph, GRAPH_OUTPUT, v);
}

static struct pb graph_with_input(void) {
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    return graph;
}

// Adds a node with a branch that reads `reads`, an outer value.
static void add_if(struct pb *graph, const char *condition, const char *reads, const char *output) {
    struct pb branch = {0}, node = pb_node("If", "", condition, output);
    add_node(&branch, "Abs", reads, "inner");
    add_output(&branch, "inner");
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("then_branch", branch));
    pb_sub(graph, GRAPH_NODE, node);
}

static void test_dead_code(void) {
    struct pb graph = graph_with_input();
    pb_sub(&graph, GRAPH_INPUT, pb_value("unused_input", 1, 0, NULL));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("w", 7, 0, NULL, "\1\0\0\0\0\0\0\0", 8));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("v", 7, 0, NULL, "\2\0\0\0\0\0\0\0", 8));
    add_node(&graph, "Neg", "x", "a"); // dead, because b is dead
    add_node(&graph, "Add", "a,v", "b");
    add_node(&graph, "Exp", "x", "c"); // alive, because the branch reads it
    add_if(&graph, "x", "c", "d");
    add_node(&graph, "Split", "d,w", "e,f"); // f is unused, but its node is needed
    add_output(&graph, "e");
    struct ree_graph *g = load(graph);
    CHECK(ree_pass_dead_code(g));
    CHECK(!ree_pass_dead_code(g));
    check_text(g, "    input %x:float32[]\n"
                  "    input %unused_input:float32[]\n"
                  "    const %w:int64[] {1} (8 bytes)\n"
                  "    %c = Exp(%x)\n"
                  "    %d = If(%x) {then_branch=graph}\n"
                  "        then_branch:\n"
                  "            %inner = Abs(%c)\n"
                  "            return %inner\n"
                  "    %e, %f = Split(%d, %w)\n"
                  "    return %e\n");
}

static void test_identity(void) {
    // A chain in the middle, one Identity read by a branch, one that gives an output, and two that
    // must stay: an output that is a copy of an input, and a second name for one result.
    struct pb graph = graph_with_input();
    add_node(&graph, "Identity", "x", "a");
    add_node(&graph, "Identity", "a", "b");
    add_node(&graph, "Neg", "b", "c");
    add_node(&graph, "Identity", "c", "d");
    add_if(&graph, "b", "d", "e");
    add_node(&graph, "Identity", "c", "out1");
    add_node(&graph, "Identity", "c", "out2");
    add_node(&graph, "Identity", "x", "out3");
    add_node(&graph, "Add", "e,c", "out4");
    for (int i = 1; i <= 4; i++)
        add_output(&graph, (char[]){'o', 'u', 't', (char)('0' + i), 0});
    struct ree_graph *g = load(graph);
    CHECK(ree_pass_identity(g));
    CHECK(!ree_pass_identity(g));
    ree_pass_dead_code(g);
    check_text(g, "    input %x:float32[]\n"
                  "    %out1 = Neg(%x)\n"
                  "    %e = If(%x) {then_branch=graph}\n"
                  "        then_branch:\n"
                  "            %inner = Abs(%out1)\n"
                  "            return %inner\n"
                  "    %out2 = Identity(%out1)\n"
                  "    %out3 = Identity(%x)\n"
                  "    %out4 = Add(%e, %out1)\n"
                  "    return %out1, %out2, %out3, %out4\n");
}

static void add_cast(struct pb *graph, const char *from, const char *to, int type) {
    struct pb node = pb_node("Cast", "", from, to);
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_int("to", type));
    pb_sub(graph, GRAPH_NODE, node);
}

static void test_cast(void) {
    struct pb graph = graph_with_input();
    add_cast(&graph, "x", "a", REE_F32); // x is float32: no effect
    add_cast(&graph, "a", "b", REE_I32); // has an effect
    add_cast(&graph, "b", "c", REE_I32); // repeated: no effect
    add_node(&graph, "Neg", "c", "d");
    // The file declares d as int32, which is not a proof.
    pb_sub(&graph, GRAPH_VALUE_INFO, pb_value("d", REE_I32, 0, NULL));
    add_cast(&graph, "d", "e", REE_I32);
    add_node(&graph, "Abs", "e", "y");
    add_output(&graph, "y");
    struct ree_graph *g = load(graph);
    CHECK(ree_pass_identity(g));
    ree_pass_dead_code(g);
    check_text(g, "    input %x:float32[]\n"
                  "    %b = Cast(%x) {to=6}\n"
                  "    %d:int32[] = Neg(%b)\n"
                  "    %e = Cast(%d) {to=6}\n"
                  "    %y = Abs(%e)\n"
                  "    return %y\n");
}

static void test_dropout(void) {
    struct pb graph = graph_with_input();
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("no", REE_BOOL, 0, NULL, "\0", 1));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("yes", REE_BOOL, 0, NULL, "\1", 1));
    add_node(&graph, "Dropout", "x", "a,unused");
    add_node(&graph, "Dropout", "a,,no", "b");
    add_node(&graph, "Dropout", "b,,yes", "c"); // training
    add_node(&graph, "Dropout", "c", "d,mask"); // its mask is used
    add_node(&graph, "Where", "mask,d", "y");
    add_output(&graph, "y");
    struct ree_graph *g = load(graph);
    CHECK(ree_pass_identity(g));
    ree_pass_dead_code(g);
    check_text(g, "    input %x:float32[]\n"
                  "    const %yes:bool[] {0x01} (1 bytes)\n"
                  "    %c = Dropout(%x, _, %yes)\n"
                  "    %d, %mask = Dropout(%c)\n"
                  "    %y = Where(%mask, %d)\n"
                  "    return %y\n");
}

static void add_softmax(struct pb *graph, const char *from, const char *to, int64_t axis) {
    struct pb node = pb_node("Softmax", "", from, to);
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_int("axis", axis));
    pb_sub(graph, GRAPH_NODE, node);
}

static void add_constant(struct pb *graph, const char *to, const void *value) {
    struct pb node = pb_node("Constant", "", "", to);
    pb_sub(&node, NODE_ATTRIBUTE,
           pb_attr_tensor("value", pb_tensor("", REE_F32, 0, NULL, value, 4)));
    pb_sub(graph, GRAPH_NODE, node);
}

static void test_common_subexpressions(void) {
    struct pb graph = graph_with_input();
    float zero = 0, minus_zero = -0.0f;
    add_constant(&graph, "k1", &zero);
    add_constant(&graph, "k2", &zero);       // merges
    add_constant(&graph, "k3", &minus_zero); // another value
    add_node(&graph, "Add", "x,k1", "a1");
    add_node(&graph, "Add", "x,k2", "a2"); // merges, because its inputs merged
    add_node(&graph, "Add", "k1,x", "a3"); // different operand order
    add_node(&graph, "Add", "x,k3", "a4");
    add_softmax(&graph, "a1", "s1", 0);
    add_softmax(&graph, "a2", "s2", 0); // merges
    add_softmax(&graph, "a2", "s3", 1); // different attribute
    add_node(&graph, "RandomNormalLike", "x", "r1");
    add_node(&graph, "RandomNormalLike", "x", "r2"); // different random numbers
    add_if(&graph, "x", "s2", "i1");
    add_if(&graph, "x", "s2", "i2");      // has a subgraph
    add_node(&graph, "Add", "x,k1", "y"); // an output keeps its name
    add_node(&graph, "Sum", "a2,a3,a4,s2,s3,r1,r2,i1,i2", "z");
    add_output(&graph, "y");
    add_output(&graph, "z");
    struct ree_graph *g = load(graph);
    CHECK(ree_pass_common_subexpressions(g));
    CHECK(!ree_pass_common_subexpressions(g));
    ree_pass_dead_code(g);
    check_text(g, "    input %x:float32[]\n"
                  "    %k1 = Constant() {value=float32[] {0}}\n"
                  "    %k3 = Constant() {value=float32[] {-0}}\n"
                  "    %a1 = Add(%x, %k1)\n"
                  "    %a3 = Add(%k1, %x)\n"
                  "    %a4 = Add(%x, %k3)\n"
                  "    %s1 = Softmax(%a1) {axis=0}\n"
                  "    %s3 = Softmax(%a1) {axis=1}\n"
                  "    %r1 = RandomNormalLike(%x)\n"
                  "    %r2 = RandomNormalLike(%x)\n"
                  "    %i1 = If(%x) {then_branch=graph}\n"
                  "        then_branch:\n"
                  "            %inner = Abs(%s1)\n"
                  "            return %inner\n"
                  "    %i2 = If(%x) {then_branch=graph}\n"
                  "        then_branch:\n"
                  "            %inner = Abs(%s1)\n"
                  "            return %inner\n"
                  "    %y = Add(%x, %k1)\n"
                  "    %z = Sum(%a1, %a3, %a4, %s1, %s3, %r1, %r2, %i1, %i2)\n"
                  "    return %y, %z\n");
}

// Builds the end of a language model: x [batch, sequence, 4], then `tail`, strings "Op inputs
// outputs" of which the last computes n, then a product with a constant matrix. Returns the value
// from which the rows are selected.
static const char *selected_from(const char *const *tail, size_t n_tail) {
    static const float zeros[16];
    static char name[16];
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 3, (int64_t[]){-1, -1, 4}));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("W", 1, 2, (int64_t[]){4, 4}, zeros, 64));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("row", 1, 1, (int64_t[]){4}, zeros, 16));
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("rows", 1, 2, (int64_t[]){3, 4}, zeros, 48));
    pb_sub(&graph, GRAPH_INITIALIZER,
           pb_tensor("last", 7, 1, (int64_t[]){1}, (int64_t[]){-1}, sizeof(int64_t)));
    pb_sub(&graph, GRAPH_INITIALIZER,
           pb_tensor("middle", 7, 1, (int64_t[]){1}, (int64_t[]){1}, sizeof(int64_t)));
    for (size_t i = 0; i < n_tail; i++) {
        char op[32], inputs[32], outputs[32];
        REQUIRE(sscanf(tail[i], "%31s %31s %31s", op, inputs, outputs) == 3);
        add_node(&graph, op, inputs, outputs);
    }
    add_node(&graph, "MatMul", "n,W", "m");
    add_node(&graph, "Add", "m,row", "logits");
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("logits", 1, 3, (int64_t[]){-1, -1, 4}));
    struct ree_graph *g = load(graph);
    REQUIRE(ree_pass_select_rows(g, g->outputs[0], "wanted"));
    CHECK(!ree_pass_select_rows(g, g->outputs[0], "wanted"));
    CHECK(g->n_inputs == 2 && strcmp(g->inputs[1]->name, "wanted") == 0);
    size_t n_gathers = 0;
    *name = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct ree_node *node = g->nodes[i];
        CHECK(node->id == i);
        for (size_t j = 0; j < node->n_inputs; j++)
            CHECK_MSG(!node->inputs[j]->producer || node->inputs[j]->producer->id < i,
                      "%s is read before it is made", node->inputs[j]->name);
        if (strcmp(node->op_type, "GatherND") != 0) continue;
        n_gathers++;
        snprintf(name, sizeof name, "%s", node->inputs[0]->name);
        CHECK(strcmp(node->inputs[1]->name, "wanted") == 0 && node->outputs[0]->n_uses > 0);
    }
    CHECK(n_gathers == 1);
    ree_graph_destroy(g);
    return name;
}

#define CHECK_SELECTED(expected, ...)                                                              \
    do {                                                                                           \
        const char *const tail_[] = {__VA_ARGS__};                                                 \
        const char *from_ = selected_from(tail_, sizeof tail_ / sizeof *tail_);                    \
        CHECK_MSG(strcmp(from_, expected) == 0, "chosen from %s, not %s", from_, expected);        \
    } while (0)

static void test_select_rows(void) {
    // A gated MLP with its residual and the last norm: all of it depends only on h.
    CHECK_SELECTED("h", "Softmax x a", "Add x,a h", "RMSNormalization h,row u", "MatMul u,W g",
                   "Sigmoid g s", "Mul g,s t", "MatMul u,W v", "Mul t,v d", "MatMul d,W e",
                   "Add h,e f", "RMSNormalization f,row n");
    // The same norm built of single steps.
    CHECK_SELECTED("h", "Softmax x h", "Mul h,h q", "ReduceMean q,last r", "Add r,row e",
                   "Sqrt e f", "Div h,f n");
    // Neither of two values depends on the other: one may be broadcast over the other's rows, so
    // rows are selected from their sum.
    CHECK_SELECTED("h", "Softmax x a", "Exp x b", "Add a,b h", "Tanh h n");
    // x is not computed by a node.
    CHECK_SELECTED("x", "Relu x n");
    // Nodes that mix rows, or that differ from row to row.
    CHECK_SELECTED("h", "ReduceMean x,middle h", "Sub h,row n");
    CHECK_SELECTED("h", "Softmax x h", "Neg h n");
    CHECK_SELECTED("h", "Add x,rows h", "Neg h n");
    CHECK_SELECTED("h", "LayerNormalization x,rows h", "Neg h n");
    CHECK_SELECTED("h", "MatMul W,x h", "Neg h n");
    // If a value is also read with all its rows, rows are selected after it, never before.
    CHECK_SELECTED("h", "Softmax x a", "Neg a h", "Sigmoid h s", "Mul h,s n", "Softmax h unused");
    CHECK_SELECTED("n", "Relu x h", "Softmax h s", "Add h,s n");
}

// A pass without effect changes nothing.
static void test_unchanged(void) {
    struct pb graph = graph_with_input();
    add_node(&graph, "Neg", "x", "y");
    add_output(&graph, "y");
    struct ree_graph *g = load(graph);
    CHECK(!ree_pass_identity(g) && !ree_pass_common_subexpressions(g) && !ree_pass_dead_code(g));
    check_text(g, "    input %x:float32[]\n    %y = Neg(%x)\n    return %y\n");
}

int main(void) {
    test_dead_code();
    test_identity();
    test_cast();
    test_dropout();
    test_common_subexpressions();
    test_select_rows();
    test_unchanged();
    return test_finish();
}
