// The roles of nodes in small models of each form: they are found whatever the values are called.
#include "graph/model_text.h"
#include "graph/partition/annotate.h"
#include "session/model.h"
#include "test.h"

#include <string.h>

// Appends text; "$" is replaced by a table that is too large for control nodes.
static void append_text(struct ree_strbuf *out, const char *text) {
    for (; *text; text++) {
        if (*text != '$') {
            ree_strbuf_append(out, text, 1);
            continue;
        }
        ree_strbuf_printf(out, "<float32[3000,2]");
        for (int i = 0; i < 6000; i++)
            ree_strbuf_printf(out, " %d", i);
        ree_strbuf_printf(out, ">");
    }
}

static struct ree_model *load(const char *text) {
    struct ree_strbuf whole;
    ree_strbuf_init(&whole);
    append_text(&whole, text);
    struct pb bytes = model_text(whole.data);
    ree_strbuf_finish(&whole);
    struct ree_model *model;
    struct ree_error err = {.message = ""};
    CHECK_MSG(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err) == REE_OK, "%s",
              err.message);
    REQUIRE(model);
    pb_free(&bytes);
    ree_model_infer(model->graph, NULL);
    return model;
}

// Writes "Gather embedding, MatMul attention 0, ...", in canonical order, without control nodes.
static void describe(const struct ree_graph *graph, const struct ree_partition *plan,
                     const struct ree_annotations *notes, struct ree_strbuf *out) {
    for (size_t i = 0; i < plan->n_order; i++) {
        const struct ree_annotation *note = &notes->nodes[plan->order[i]];
        ree_strbuf_printf(out, "%s%s %s", i ? ", " : "", graph->nodes[plan->order[i]]->op_type,
                          ree_node_role_name(note->role));
        if (note->layer != REE_NO_LAYER) ree_strbuf_printf(out, " %d", (int)note->layer);
    }
}

// The last n_kv_caches inputs are kv caches, the last outputs are their successors.
static void check_roles(const char *text, size_t n_kv_caches, const char *expected, int line) {
    struct ree_model *model = load(text);
    const struct ree_graph *graph = model->graph;
    struct ree_partition_kv_cache kv_caches[8];
    for (size_t i = 0; i < n_kv_caches; i++)
        kv_caches[i] = (struct ree_partition_kv_cache){graph->n_inputs - n_kv_caches + i,
                                                       graph->n_outputs - n_kv_caches + i};
    struct ree_partition_options options = {
        .n_stages = 1, .n_kv_caches = n_kv_caches, .kv_caches = kv_caches};
    struct ree_partition plan;
    struct ree_annotations notes;
    struct ree_error err = {.message = ""};
    CHECK_MSG(ree_partition_plan(graph, &options, &plan, &err) == REE_OK, "%s", err.message);
    CHECK_MSG(ree_annotate(graph, &options, &plan, &notes, &err) == REE_OK, "%s", err.message);
    struct ree_strbuf got;
    ree_strbuf_init(&got);
    describe(graph, &plan, &notes, &got);
    CHECK_MSG(strcmp(got.data, expected) == 0, "line %d: expected\n%s\ngot\n%s", line, expected,
              got.data);
    ree_strbuf_finish(&got);
    uint32_t phases = n_kv_caches ? REE_PHASE_PREFILL | REE_PHASE_DECODE : REE_PHASE_PREFILL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        CHECK(notes.nodes[i].phases == phases);
    ree_annotations_finish(&notes);
    ree_partition_finish(&plan);
    ree_model_destroy(model);
}

#define CHECK_ROLES(text, n_kv_caches, expected) check_roles(text, n_kv_caches, expected, __LINE__)

#define WEIGHTS                                                                                    \
    "t = Constant() {value=$} h = Constant() {value=<float32[2,3] 1 2 3 4 5 6>} "                  \
    "g = Constant() {value=<float32[2] 1 2>} m = Constant() {value=<float32[2,2] 1 2 3 4>} "       \
    "mk = Constant() {value=<float32[2,2] 5 6 7 8>} mu = Constant() {value=<float32[2,2] 7 7 2 "   \
    "2>} mv = Constant() {value=<float32[2,2] 9 0 1 "                                              \
    "2>} "
// The layers share weights, because only the structure matters.
#define NORM(x, y) y " = LayerNormalization(" x ", g) {axis=-1} "
#define CORE(q, k, v, p, n)                                                                        \
    n "K = Concat(" p "_k, " k ") {axis=1} " n "V = Concat(" p "_v, " v ") {axis=1} " n            \
      "T = Transpose(" n "K) {perm=[0,2,1]} " n "s = MatMul(" q ", " n "T) " n "p = Softmax(" n    \
      "s) " n "c = MatMul(" n "p, " n "V) "
#define PRODUCTS(x, n)                                                                             \
    n "q = MatMul(" x ", m) " n "k = MatMul(" x ", mk) " n "v = MatMul(" x ", mv) "
#define PORTS                                                                                      \
    "(i:int64[b,s], a_k:float32[b,p,2], a_v:float32[b,p,2], b_k:float32[b,p,2], "                  \
    "b_v:float32[b,p,2]) "                                                                         \
    "-> (logits:float32, Ak:float32, Av:float32, Bk:float32, Bv:float32) "

#define ATTENTION_ROLES(n)                                                                         \
    "MatMul attention " n ", MatMul attention " n ", Concat attention " n                          \
    ", Transpose attention " n ", MatMul attention " n ", Softmax attention " n                    \
    ", MatMul attention " n ", Concat attention " n ", MatMul attention " n                        \
    ", MatMul attention " n

// The usual layer: norm, attention, sum; norm, feed-forward, sum.
static void test_usual(void) {
#define LAYER(x, n, y)                                                                             \
    NORM(x, n "n")                                                                                 \
    PRODUCTS(n "n", n)                                                                             \
    CORE(n "q", n "k", n "v", n, n)                                                                \
    n "o = MatMul(" n "c, m) " n "r = Add(" x ", " n "o) " NORM(n "r", n "l") n                    \
        "u = MatMul(" n "l, m) " n "a = Relu(" n "u) " n "d = MatMul(" n "a, m) " y " = Add(" n    \
        "r, " n "d) "
#define OUTPUTS "Ak = Identity(aK) Av = Identity(aV) Bk = Identity(bK) Bv = Identity(bV) "
#define LAYER_ROLES(n)                                                                             \
    "LayerNormalization norm " n                                                                   \
    ", " ATTENTION_ROLES(n) ", Add attention " n ", LayerNormalization norm " n                    \
                            ", MatMul feed_forward " n ", Relu feed_forward " n                    \
                            ", MatMul feed_forward " n ", Add feed_forward " n
    CHECK_ROLES(PORTS "{" WEIGHTS "x = Gather(t, i) " LAYER("x", "a", "y") LAYER("y", "b", "z")
                    NORM("z", "f") "logits = MatMul(f, h) " OUTPUTS "}",
                4,
                "Gather embedding, " LAYER_ROLES("0") ", " LAYER_ROLES(
                    "1") ", LayerNormalization norm, MatMul head");
}

// Attention and feed-forward in parallel, after one norm.
static void test_parallel(void) {
#define BESIDE(x, n, y)                                                                            \
    NORM(x, n "n")                                                                                 \
    PRODUCTS(n "n", n)                                                                             \
    CORE(n "q", n "k", n "v", n, n)                                                                \
    n "o = MatMul(" n "c, m) " n "u = MatMul(" n "n, mu) " n "a = Relu(" n "u) " n "d = MatMul(" n \
      "a, m) " n "r = Add(" n "o, " n "d) " y " = Add(" x ", " n "r) "
#define BESIDE_ROLES(n)                                                                            \
    "LayerNormalization norm " n                                                                   \
    ", " ATTENTION_ROLES(n) ", MatMul feed_forward " n ", Relu feed_forward " n                    \
                            ", MatMul feed_forward " n ", Add attention " n ", Add attention " n
    CHECK_ROLES(PORTS "{" WEIGHTS "x = Gather(t, i) " BESIDE("x", "a", "y") BESIDE("y", "b", "z")
                    NORM("z", "f") "logits = MatMul(f, h) " OUTPUTS "}",
                4,
                "Gather embedding, " BESIDE_ROLES("0") ", " BESIDE_ROLES(
                    "1") ", LayerNormalization norm, MatMul head");
}

// A gate on the output of attention belongs to the attention; an RMS norm built of single steps is
// a norm.
static void test_gate_and_steps(void) {
#define GATED(x, n, y)                                                                             \
    n "e = Mul(" x ", " x ") " n "f = ReduceMean(" n "e) {axes=[-1]} " n "g = Sqrt(" n "f) " n     \
      "h = Div(" x ", " n "g) " n "n = Mul(" n "h, g) " PRODUCTS(n "n", n)                         \
          CORE(n "q", n "k", n "v", n, n) n "o = MatMul(" n "n, mu) " n "w = Sigmoid(" n "o) " n   \
                                            "r = Mul(" n "c, " n "w) " y " = Add(" x ", " n "r) "
#define GATED_ROLES(n)                                                                             \
    "Mul norm " n ", ReduceMean norm " n ", Sqrt norm " n ", Div norm " n ", Mul norm " n          \
    ", MatMul attention " n ", MatMul attention " n ", Concat attention " n                        \
    ", Transpose attention " n ", MatMul attention " n ", Softmax attention " n                    \
    ", MatMul attention " n ", Concat attention " n ", MatMul attention " n                        \
    ", MatMul attention " n ", Sigmoid attention " n ", Mul attention " n ", Add attention " n
    CHECK_ROLES(PORTS "{" WEIGHTS "x = Gather(t, i) " GATED("x", "a", "y")
                    GATED("y", "b", "z") "logits = MatMul(z, h) " OUTPUTS "}",
                4, "Gather embedding, " GATED_ROLES("0") ", " GATED_ROLES("1") ", MatMul head");
}

// Without caches: a Softmax mixes rows. The norms follow the sums, as in encoders.
static void test_encoder(void) {
#define POST(x, n, y)                                                                              \
    PRODUCTS(x, n)                                                                                 \
    n "T = Transpose(" n "k) {perm=[0,2,1]} " n "s = MatMul(" n "q, " n "T) " n "p = Softmax(" n   \
      "s) " n "c = MatMul(" n "p, " n "v) " n "r = Add(" x ", " n "c) " NORM(n "r", n "l") n       \
        "u = MatMul(" n "l, m) " n "d = Add(" n "l, " n "u) " NORM(n "d", y)
#define POST_ROLES(n)                                                                              \
    "MatMul attention " n ", MatMul attention " n ", Transpose attention " n                       \
    ", MatMul attention " n ", Softmax attention " n ", MatMul attention " n                       \
    ", MatMul attention " n ", Add attention " n ", LayerNormalization norm " n                    \
    ", MatMul feed_forward " n ", Add feed_forward " n ", LayerNormalization norm " n
    CHECK_ROLES("(i:int64[b,s]) -> (y:float32) {" WEIGHTS "x = Gather(t, i) " POST("x", "a", "w")
                    POST("w", "b", "y") "}",
                0, "Gather embedding, " POST_ROLES("0") ", " POST_ROLES("1"));
    CHECK_ROLES("(i:int64[b,s]) -> (y:float32) {" WEIGHTS "x = Gather(t, i) " POST("x", "a", "w")
                    POST("w", "b", "z") "y = MatMul(z, h) }",
                0, "Gather embedding, " POST_ROLES("0") ", " POST_ROLES("1") ", MatMul head");
}

// Other kinds of networks have no layers.
static void test_others(void) {
    CHECK_ROLES("(x:float32[n,2]) -> (y:float32) {" WEIGHTS
                "a = MatMul(x, m) b = Relu(a) y = MatMul(b, h) }",
                0, "MatMul other, Relu other, MatMul other");
    CHECK_ROLES("(i:int64[n]) -> (y:float32) {" WEIGHTS "a = Gather(t, i) y = MatMul(a, m) }", 0,
                "Gather embedding, MatMul other");
}

// A size that is read late is computed after the last other reader of its operand, so it does not
// extend the operand's lifetime.
static void test_sizes(void) {
    CHECK_ROLES(PORTS "{" WEIGHTS "x = Gather(t, i) z0 = Shape(x) " LAYER("x", "a", "y")
                    LAYER("y", "b", "z")
                        NORM("z", "f") "w = Reshape(f, z0) logits = MatMul(w, h) " OUTPUTS "}",
                4,
                "Gather embedding, LayerNormalization norm 0, " ATTENTION_ROLES(
                    "0") ", Add attention 0, Shape feed_forward 0, LayerNormalization norm 0, "
                         "MatMul feed_forward 0, Relu feed_forward 0, MatMul feed_forward 0, Add "
                         "feed_forward 0, " LAYER_ROLES(
                             "1") ", LayerNormalization norm, Reshape head, MatMul head");
}

static void test_branches(void) {
    struct ree_model *model = load(
        "(x:float32[2], go:bool[]) -> (y:float32, z:float32) {"
        "y = If(go) {then_branch=() -> (a) { a = Neg(x) }, else_branch=() -> (b) { b = Abs(x) }}"
        "w = Not(go) "
        "z = If(w) {then_branch=() -> (c) { c = Neg(x) }, else_branch=() -> (d) { d = Abs(x) }}"
        "}");
    size_t n = 0;
    for (size_t i = 0; i < model->graph->n_nodes; i++) {
        const struct ree_node *node = model->graph->nodes[i];
        bool direct = node->n_inputs == 1 && node->inputs[0]->is_input;
        for (size_t k = 0; k < node->n_attrs; k++) {
            bool is_then = strcmp(node->attrs[k].name, "then_branch") == 0;
            uint32_t one = is_then ? REE_PHASE_DECODE : REE_PHASE_PREFILL;
            uint32_t both = REE_PHASE_PREFILL | REE_PHASE_DECODE;
            CHECK(ree_branch_phases(model->graph, node, &node->attrs[k]) == (direct ? one : both));
            n++;
        }
    }
    CHECK(n == 4);
    ree_model_destroy(model);
}

static void test_contents(void) {
    struct ree_model *model = load(PORTS "{" WEIGHTS "x = Gather(t, i) " LAYER("x", "a", "y") LAYER(
        "y", "b", "z") NORM("z", "f") "logits = MatMul(f, h) " OUTPUTS "}");
    static const struct ree_partition_kv_cache kv_caches[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
    static const char *const ends[] = {"ar", "y", "z"};
    static const char *const expected[] = {"embedding, attention of layer 0",
                                           "feed-forward of layer 0", "layer 1", "norm, head"};
    struct ree_partition_options options = {
        .n_stages = 4, .n_kv_caches = 4, .kv_caches = kv_caches};
    struct ree_partition plan;
    struct ree_annotations notes;
    struct ree_error err = {.message = ""};
    CHECK_MSG(ree_partition_from_cuts(model->graph, &options, ends, &plan, &err) == REE_OK, "%s",
              err.message);
    REQUIRE(plan.n_stages == 4);
    CHECK(ree_annotate(model->graph, &options, &plan, &notes, &err) == REE_OK);
    for (size_t i = 0; i < 4; i++) {
        struct ree_strbuf text;
        ree_strbuf_init(&text);
        ree_stage_contents(model->graph, &notes, &plan, i, &text);
        CHECK_MSG(strcmp(text.data, expected[i]) == 0, "expected '%s', got '%s'", expected[i],
                  text.data);
        ree_strbuf_finish(&text);
    }
    ree_annotations_finish(&notes);
    ree_partition_finish(&plan);
    ree_model_destroy(model);
}

int main(void) {
    test_usual();
    test_parallel();
    test_gate_and_steps();
    test_encoder();
    test_others();
    test_sizes();
    test_branches();
    test_contents();
    return test_finish();
}
