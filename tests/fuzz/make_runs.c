// Writes the seeds of fuzz_run: a model for each template of the operators' tests
// (tests/lower/wrong_templates.c) and each opset range of its operator, and models with several
// nodes.
#include "graph/ir/ir.h"
#include "graph/model_text.h"
#include "lower/wrong_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static void write_model(const char *name, struct pb model) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    pb_sub(&model, MODEL_METADATA, pb_entry("seed", name));
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(model.data, 1, model.size, file) != model.size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    pb_free(&model);
}

static enum ree_dtype type_of(char letter) {
    switch (letter) {
    case 'h': return REE_F16;
    case 'i': return REE_I32;
    case 'l': return REE_I64;
    case 'c': return REE_I8;
    case 'u': return REE_U8;
    case 's': return REE_I16;
    case 'b': return REE_BOOL;
    case 'd': return REE_F64;
    case 't': return REE_STRING;
    default: return REE_F32;
    }
}

// Adds an operand of a template: a constant if the template has values, otherwise an input.
static void add_operand(struct pb *graph, const char *name, const char *spec) {
    int64_t dims[REE_MAX_RANK];
    size_t rank = 0, n = 0;
    char *end, bytes[512];
    enum ree_dtype dtype = type_of(*spec++);
    while (*spec && *spec != ' ' && *spec != '=') {
        dims[rank++] = strtol(spec, &end, 10);
        spec = *end == ',' ? end + 1 : end;
    }
    if (*spec != '=') {
        pb_sub(graph, GRAPH_INPUT, pb_value(name, (int)dtype, rank, dims));
        return;
    }
    while (*spec && *spec != ' ' && n + 8 <= sizeof bytes) {
        double value = strtod(spec + 1, &end);
        float f = (float)value;
        int64_t whole = (int64_t)value;
        memcpy(bytes + n, dtype == REE_F32 ? (void *)&f : (void *)&whole,
               8 - 4 * (dtype == REE_F32));
        n += ree_dtype_size(dtype);
        spec = end;
    }
    pb_sub(graph, GRAPH_INITIALIZER, pb_tensor(name, (int)dtype, rank, dims, bytes, n));
}

static void add_attribute(struct pb *node, const char *name, const char *value) {
    struct pb attr = {0};
    size_t size = strlen(value);
    char *end;
    int64_t number = strtoll(value, &end, 10);
    pb_text(&attr, ATTR_NAME, name);
    if (size && value[size - 1] == ',') {
        for (const char *at = value; *at; at = end + 1) {
            pb_int(&attr, ATTR_INTS, strtoll(at, &end, 10));
            if (!*end) break;
        }
        pb_int(&attr, ATTR_TYPE, 7);
    } else if (size && !*end) {
        pb_int(&attr, ATTR_I, number);
        pb_int(&attr, ATTR_TYPE, 2);
    } else if (*end == '.' && end > value) {
        pb_float(&attr, ATTR_F, strtof(value, NULL));
        pb_int(&attr, ATTR_TYPE, 1);
    } else {
        pb_text(&attr, ATTR_S, value);
        pb_int(&attr, ATTR_TYPE, 3);
    }
    pb_sub(node, NODE_ATTRIBUTE, attr);
}

static const struct row {
    const char *domain, *type;
    int64_t until;
    uint32_t max_out;
} rows[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    {domain, type, until, max_out},
#include "graph/lower/ops/ops.def"
#undef OP
};

// Writes the template's model in the newest opset that the row supports.
static void write_template(const struct row *row, const struct wrong_template *t, size_t number) {
    struct pb graph = {0}, node = {0}, model = {0};
    char name[64], copy[256];
    size_t n = 0;
    for (const char *spec = t->inputs; *spec;) {
        name[0] = 0; // an omitted operand
        if (*spec != '-') snprintf(name, sizeof name, "i%zu", n++);
        pb_text(&node, NODE_INPUT, name);
        if (*spec != '-') add_operand(&graph, name, spec);
        spec += strcspn(spec, " ");
        spec += *spec == ' ';
    }
    // Optional outputs are made only for models with an odd number.
    uint32_t n_out = number % 2 && row->max_out < 4 ? row->max_out : 1;
    for (uint32_t i = 0; i < n_out; i++) {
        struct pb value = {0};
        snprintf(name, sizeof name, "o%u", i);
        pb_text(&node, NODE_OUTPUT, name);
        pb_text(&value, 1, name);
        pb_sub(&graph, GRAPH_OUTPUT, value);
    }
    pb_text(&node, NODE_OP, t->op);
    pb_text(&node, NODE_DOMAIN, row->domain);
    snprintf(copy, sizeof copy, "%s", t->attrs);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value++ = 0;
        add_attribute(&node, word, value);
    }
    pb_sub(&graph, GRAPH_NODE, node);
    pb_int(&model, MODEL_IR, 8);
    pb_sub(&model, MODEL_GRAPH, graph);
    pb_sub(&model, MODEL_OPSET, pb_opset(row->domain, row->until));
    if (*row->domain) pb_sub(&model, MODEL_OPSET, pb_opset("", 17));
    snprintf(name, sizeof name, "op_%03zu_%s", number, t->op);
    write_model(name, model);
}

static void write_templates(void) {
    size_t number = 0;
    for (size_t i = 0; i < n_wrong_templates; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (strcmp(rows[k].type, wrong_templates[i].op) == 0)
                write_template(&rows[k], &wrong_templates[i], number++);
}

static const char *const texts[] = {
    // Elementwise chains, which are fused, and operators that end a fused chain.
    "(x:float32[3,n], y:float32[n]) -> (z) { a = Add(x, y) b = Relu(a) c = Mul(b, b) d = Tanh(c) "
    "z = Sub(d, x) }",
    "(x:float32[4,n]) -> (y, z) { a = Exp(x) s = ReduceSum(a) {keepdims=1} y = Div(a, s) z = "
    "Log(s) }",
    "(x:float16[2,5], y:float16[5]) -> (z) { a = Mul(x, y) b = Sigmoid(a) z = Sqrt(b) }",
    "(x:int32[7], y:int32[1]) -> (z) { a = Div(x, y) b = Mod(a, y) z = Add(b, x) }",
    "(x:float64[5]) -> (z) { a = Sin(x) b = Abs(a) z = Pow(b, a) }",
    // Products and the operators after them.
    "(x:float32[n,17], y:float32[17,33], b:float32[33]) -> (z) { a = MatMul(x, y) c = Add(a, b) z "
    "= Relu(c) }",
    "(x:float32[1,3,6,6], w:float32[5,3,3,3], b:float32[5]) -> (z) { c = Conv(x, w, b) "
    "{pads=[1,1,1,1]} r = Relu(c) p = MaxPool(r) {kernel_shape=[2,2], strides=[2,2]} z = "
    "Flatten(p) }",
    "(x:float32[2,300], y:float32[300,3]) -> (z) { a = MatMul(x, y) z = Softmax(a) }",
    "(q:float32[1,2,5,8], k:float32[1,2,5,8], v:float32[1,2,5,8]) -> (z) { t = Transpose(k) "
    "{perm=[0,1,3,2]} s = MatMul(q, t) c = Constant() {value=<float32[] 0.5>} m = Mul(s, c) p = "
    "Softmax(m) z = MatMul(p, v) }",
    // Computed shapes.
    "(x:float32[n,m]) -> (z) { s = Shape(x) i = Constant() {value=<int64[1] 0>} d = Gather(s, i) "
    "m = Constant() {value=<int64[1] -1>} t = Concat(d, m) {axis=0} y = Reshape(x, t) z = "
    "Transpose(y) }",
    "(x:float32[9]) -> (z) { c = NonZero(x) z = Transpose(c) }",
    "(x:int64[3], y:float32[2]) -> (z) { a = Abs(x) e = ConstantOfShape(a) s = Shape(e) z = "
    "Cast(s) {to=1} }",
    "(x:float32[3,4], i:int64[2]) -> (z) { a = Gather(x, i) {axis=1} b = Concat(a, x) {axis=1} z "
    "= ReduceMax(b) }",
    // Control flow.
    "(c:bool[], x:float32[2]) -> (y) { y = If(c) {then_branch=() -> (a) { a = Neg(x) }, "
    "else_branch=() -> (b) { b = Exp(x) }} }",
    "(x:float32[2]) -> (y, s) { m = Constant() {value=<int64[] 5>} c = Constant() {value=<bool[] "
    "1>} y, s = Loop(m, c, x) {body=(i:int64[], go:bool[], v:float32[2]) -> (go, u, t) { f = "
    "Cast(i) {to=1} u = Add(v, f) t = Mul(u, u) }} }",
    "(a:float32[2], x:float32[3,2]) -> (b, y) { b, y = Scan(a, x) {num_scan_inputs=1, body=(s, e) "
    "-> (t, o) { t = Add(s, e) o = Mul(e, s) }} }",
    "(s:seq(float32[n]), x:float32[1]) -> (t) { t = SequenceMap(s, x) {body=(e, f) -> (g) { g = "
    "Add(e, f) }} }",
    "(x:float32[2,3], y:float32[2,3]) -> (z) { s = SequenceConstruct(x, y) i = Constant() "
    "{value=<int64[] 0>} t = SequenceInsert(s, y, i) z = ConcatFromSequence(t) {axis=1} }",
    "function local.Twice (x; by=2) -> (y) { f = Constant() {value_int=@by} g = CastLike(f, x) y = "
    "Mul(x, g) } (x:float32[3]) -> (y) { a = local.Twice(x) {by=3} y = local.Twice(a) }",
    // Quantisation, and a choice by element.
    "(x:float32[2,4]) -> (z) { q, s, p = DynamicQuantizeLinear(x) z = DequantizeLinear(q, s, p) }",
    "(x:float32[3], w:float32[3]) -> (y, b) { n = IsNaN(x) c = Not(n) y = Where(c, x, w) b = "
    "Identity(c) }",
    // Constants that are folded.
    "(x:float32[4]) -> (y) { a = Constant() {value=<float32[4] 1 2 3 4>} b = Constant() "
    "{value=<float32[4] 5 6 7 8>} c = Mul(a, b) d = Softmax(c) e = CumSum(d, k) k = Constant() "
    "{value=<int64[] 0>} y = Add(x, e) }",
};

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    folder = argv[1];
    write_templates();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char name[32];
        snprintf(name, sizeof name, "text_%02zu", i);
        write_model(name, model_text(texts[i]));
    }
    return 0;
}
