// Functions that a model defines.
#include "run_text.h"

#define CALL(function, call) function " (x:float32[n]) -> (y) { y = " call " }"

static void test_calls(void) {
    CHECK_RUN(CALL("function local.Twice (a) -> (b) { b = Add(a, a) }", "local.Twice(x)"),
              "float32[2] 1 2", "float32[2] 2 4");
    // Called twice in one graph, with equal names of inner values; nested; in a branch; in any
    // order of definition.
    CHECK_RUN("function local.Four (a) -> (b) { t = local.Twice(a) b = local.Twice(t) }"
              "function local.Twice (a) -> (b) { t = Identity(a) b = Add(t, a) }"
              "(x:float32[n], c:bool[]) -> (y) { t = local.Four(x) u = local.Twice(t) y = If(c) {"
              "then_branch=() -> (p) { p = local.Four(u) }, else_branch=() -> (q) "
              "{ q = Neg(u) }} }",
              "float32[1] 1 | bool[] 1", "float32[1] 32");
    // A subgraph in a function reads the function's values.
    CHECK_RUN("function local.Choose (a, c) -> (b) { t = Neg(a) b = If(c) {"
              "then_branch=() -> (p) { p = Mul(t, a) }, else_branch=() -> (q) { q = Add(t, a) }} }"
              "(x:float32[n], c:bool[]) -> (y) { y = local.Choose(x, c) }",
              "float32[2] 2 3 | bool[] 1", "float32[2] -4 -9");
    // Several outputs, some unused; an input returned as an output; one output under two names.
    CHECK_RUN("function local.Parts (a) -> (b, c) { b = Neg(a) c = Abs(a) }"
              "(x:float32[n]) -> (y) { _, y = local.Parts(x) }",
              "float32[2] -1 2", "float32[2] 1 2");
    CHECK_RUN("function local.Same (a) -> (a, b, b) { b = Neg(a) }"
              "(x:float32[n]) -> (y, z, w) { y, z, w = local.Same(x) }",
              "float32[1] 2", "float32[1] 2 | float32[1] -2 | float32[1] -2");
    // Omitted inputs stay omitted, also in subgraphs.
    const char *clip = "function local.Bound (a, low, high) -> (b) { b = Clip(a, low, high) }";
    char model[400];
    snprintf(model, sizeof model,
             "%s (x:float32[n], h:float32[]) -> (y) { y = local.Bound(x, _, h) }", clip);
    CHECK_RUN(model, "float32[3] -5 1 9 | float32[] 3", "float32[3] -5 1 3");
    snprintf(model, sizeof model, "%s (x:float32[n], h:float32[]) -> (y) { y = local.Bound(x, h) }",
             clip);
    CHECK_RUN(model, "float32[3] -5 1 9 | float32[] 3", "float32[3] 3 3 9");
    // A function that is never called may have any content.
    CHECK_RUN(CALL("function local.Odd (a) -> (b) { c = Nothing(d) }", "Neg(x)"), "float32[1] 1",
              "float32[1] -1");
}

static void test_stages(void) {
    CHECK_RUN("function local.Square (a) -> (b) { b = MatMul(a, a) } "
              "(x:float32[2,2]) -> (y) { t = local.Square(x) u = Neg(t) y = local.Square(u) }",
              "float32[2,2] 1 2 3 4", "float32[2,2] 199 290 435 634");
}

static void test_attributes(void) {
    const char *sum = "function local.Sum (a; keep=1, start) -> (b) { "
                      "b = ReduceSum(a) {keepdims=@keep, noop_with_empty_axes=@start} }";
    char model[400];
    snprintf(model, sizeof model, "%s (x:float32[n]) -> (y) { y = local.Sum(x) }", sum);
    CHECK_RUN(model, "float32[2] 1 2", "float32[1] 3");
    snprintf(model, sizeof model, "%s (x:float32[n]) -> (y) { y = local.Sum(x) {keep=0} }", sum);
    CHECK_RUN(model, "float32[2] 1 2", "float32[] 3");
    snprintf(model, sizeof model, "%s (x:float32[n]) -> (y) { y = local.Sum(x) {start=1} }", sum);
    CHECK_RUN(model, "float32[2] 1 2", "float32[2] 1 2");
    // Attributes passed through two calls, and into a subgraph.
    CHECK_RUN("function local.In (a; to) -> (b) { yes = Constant() {value=<bool[] 1>} "
              "b = If(yes) {then_branch=() -> (p) { p = Cast(a) {to=@to} }, "
              "else_branch=() -> (q) { q = Identity(a) }} }"
              "function local.Out (a; type) -> (b) { b = local.In(a) {to=@type} }"
              "(x:float32[n]) -> (y) { y = local.Out(x) {type=7} }",
              "float32[2] 1.5 -2.5", "int64[2] 1 -2");
    // A large constant is read once for each call.
    struct {
        char text[16384];
        int n;
    } big = {.n = 0};
    big.n += snprintf(big.text, sizeof big.text,
                      "function local.Add (a) -> (b) { c = Constant() {value=<float32[2000]");
    for (int i = 0; i < 2000; i++)
        big.n += snprintf(big.text + big.n, sizeof big.text - (size_t)big.n, " 1");
    snprintf(big.text + big.n, sizeof big.text - (size_t)big.n,
             ">} d = Add(a, c) b = ReduceMax(d) {keepdims=0} } "
             "(x:float32[]) -> (y) { t = local.Add(x) y = local.Add(t) }");
    CHECK_RUN(big.text, "float32[] 1", "float32[] 3");
}

static void test_refused(void) {
    const char *in = "float32[1] 1";
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = local.F(a) }", "local.F(x)"), in,
              "error: node #0 (F): node #0 (F): the function 'F' calls itself");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = local.G(a) }"
                   "function local.G (a) -> (b) { b = local.F(a) }",
                   "local.F(x)"),
              in, "error: the function 'F' calls itself");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = Neg(a) }"
                   "function local.F (a) -> (b) { b = Abs(a) }",
                   "local.F(x)"),
              in, "error: function 'F' is defined twice");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = Neg(a) }", "local.F(x, x)"), in,
              "error: has 2 inputs, but the function 'F' has 1");
    CHECK_RUN("function local.F (a) -> (b) { b = Neg(a) } (x:float32[n]) -> (y, z) "
              "{ y, z = local.F(x) }",
              in, "error: has 2 outputs, but the function 'F' has 1");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = Neg(a) }", "local.F(x) {axis=1}"), in,
              "error: attribute 'axis' is not an attribute of the function 'F'");
    CHECK_RUN(
        CALL("function local.F (a) -> (b) { b = Cast(a) {to=@type} }", "local.F(x)"), in,
        "error: attribute 'to': refers to 'type', which is not an attribute of the function 'F'");
    CHECK_RUN(CALL("function local.F (a; type) -> (b) { b = Cast(a) {to=@type:2} }",
                   "local.F(x) {type=1.5}"),
              in, "error: refers to 'type', which has another type than this attribute");
    CHECK_RUN(CALL("", "Cast(x) {to=@type}"), in,
              "error: refers to the attribute 'type' of a function, but is not in a function");
    CHECK_RUN(CALL("function local.F (a) -> (b) { c = Neg(a) }", "local.F(x)"), in,
              "error: output 'b' of the function 'F' is not computed by any of its nodes");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = Neg(x) }", "local.F(x)"), in,
              "error: input 'x' is neither the output of a node");
    CHECK_RUN(CALL("function local.F (a) -> (b) { a = Neg(a) b = Neg(a) }", "local.F(x)"), in,
              "error: 'a' is defined twice");
    CHECK_RUN(CALL("function local.F (a, b) -> (b) { c = Neg(a) }", "local.F(x)"), in,
              "error: output 'b' of the function 'F' is an input that the call omits");
    CHECK_RUN(CALL("function local.F (a) -> (b) { b = other.Neg(a) }", "local.F(x)"), in,
              "error: belongs to the operator set 'other', which the function does not import");
    CHECK_RUN(CALL("function local.F (a) -> (b) { c = Neg(b) b = Neg(c) }", "local.F(x)"), in,
              "error: the graph has a cycle");
    // Each function calls the previous one twice: 2^40 nodes.
    char text[8192];
    int n = snprintf(text, sizeof text, "function local.F0 (a) -> (b) { b = Neg(a) }");
    for (int i = 1; i <= 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "function local.F%d (a) -> (b) { t = local.F%d(a) b = local.F%d(t) }", i,
                      i - 1, i - 1);
    snprintf(text + n, sizeof text - (size_t)n, "(x:float32[n]) -> (y) { y = local.F40(x) }");
    CHECK_RUN(text, in, "error: expanding function calls exceeds the supported 262144 nodes");
    n = snprintf(text, sizeof text, "function local.F0 (a) -> (b) { b = Neg(a) }");
    for (int i = 1; i <= 70; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "function local.F%d (a) -> (b) { b = local.F%d(a) }", i, i - 1);
    snprintf(text + n, sizeof text - (size_t)n, "(x:float32[n]) -> (y) { y = local.F70(x) }");
    CHECK_RUN(text, in, "error: functions call each other more than 64 deep");
}

int main(int argc, char **argv) {
    if (!run_text_start(argc, argv)) return TEST_SKIPPED;
    test_calls();
    test_attributes();
    test_refused();
    test_stages();
    CHECK_MSG(run_text_n_divided() >= 1, "%zu runs in stages", run_text_n_divided());
    run_text_finish();
    return test_finish();
}
