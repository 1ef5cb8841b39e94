// If, Loop and Scan.
#include "run_text.h"

#include <string.h>

#define IF(condition)                                                                              \
    "(x:float32[n], c:" condition ") -> (y) { y = If(c) {"                                         \
    "then_branch=() -> (a) { a = Neg(x) }, else_branch=() -> (b) { b = Abs(x) }} }"

static void test_if(void) {
    CHECK_RUN(IF("bool[]"), "float32[2] 1 -2 | bool[] 1", "float32[2] -1 2");
    CHECK_RUN(IF("bool[]"), "float32[2] 1 -2 | bool[] 0", "float32[2] 1 2");
    CHECK_RUN(IF("bool[1]"), "float32[2] 1 -2 | bool[1] 1", "float32[2] -1 2");
    // A condition computed on the device ends a segment of dispatches.
    CHECK_RUN("(x:float32[n]) -> (y, s:float32[]) { s = ReduceSum(x) {keepdims=0} "
              "zero = Constant() {value=<float32[] 0>} c = Greater(s, zero) "
              "y = If(c) {then_branch=() -> (a) { a = Neg(x) }, else_branch=() -> (b) "
              "{ b = Sub(x, s) }} }",
              "float32[2] 1 -2", "float32[2] 2 -1 | float32[] -1");
    // Branches with several outputs of different shapes; one output is a value from outside.
    const char *shapes = "(x:float32[n], c:bool[]) -> (y, z) { h = Neg(x) y, z = If(c) {"
                         "then_branch=() -> (h, a) { a = Shape(h) }, "
                         "else_branch=() -> (b, h) { b = Concat(h, h) {axis=0} }} }";
    CHECK_RUN(shapes, "float32[2] 1 2 | bool[] 1", "float32[2] -1 -2 | int64[1] 2");
    CHECK_RUN(shapes, "float32[2] 1 2 | bool[] 0", "float32[4] -1 -2 -1 -2 | float32[2] -1 -2");
    // Nested branches that read from two enclosing graphs.
    CHECK_RUN("(x:float32[n], c:bool[], d:bool[]) -> (y) { y = If(c) {then_branch=() -> (a) {"
              "t = Neg(x) a = If(d) {then_branch=() -> (p) { p = Add(t, x) }, "
              "else_branch=() -> (q) { q = Sub(t, x) }} }, else_branch=() -> (b) { b = Abs(x) }} }",
              "float32[2] 1 -2 | bool[] 1 | bool[] 0", "float32[2] -2 4");
}

static void test_if_refused(void) {
    CHECK_RUN(IF("float32[]"), "float32[1] 1 | float32[] 1",
              "error: (If): the condition is float32[], expected one bool");
    CHECK_RUN(IF("bool[2]"), "float32[1] 1 | bool[2] 1 1",
              "error: the condition is bool[2], expected one bool");
    CHECK_RUN(
        "(x:float32[n], c:bool[]) -> (y) { y = If(c) {then_branch=() -> (a) { a = Neg(x) }} }",
        "float32[1] 1 | bool[] 1", "error: attribute 'else_branch' is missing");
    CHECK_RUN("(x:float32[n], c:bool[]) -> (y) { y = If(c) {then_branch=3, else_branch=3} }",
              "float32[1] 1 | bool[] 1", "error: attribute 'else_branch' is not a graph");
    CHECK_RUN("(x:float32[n], c:bool[]) -> (y) { y = If(c) {then_branch=(p) -> (a) { a = Neg(p) },"
              "else_branch=() -> (b) { b = Neg(x) }} }",
              "float32[1] 1 | bool[] 1",
              "error: attribute 'then_branch': the graph has 1 inputs, expected 0");
    CHECK_RUN("(x:float32[n], c:bool[]) -> (y, z) { y, z = If(c) {"
              "then_branch=() -> (a) { a = Neg(x) }, else_branch=() -> (b) { b = Neg(x) }} }",
              "float32[1] 1 | bool[] 1",
              "error: attribute 'else_branch': the graph has 1 outputs, expected at least 2");
    CHECK_RUN(
        "(x:float32[n], c:bool[]) -> (y) { y = If(c) {then_branch=() -> (a) { a = MatMul(x) },"
        "else_branch=() -> (b) { b = Neg(x) }} }",
        "float32[1] 1 | bool[] 1",
        "error: (If): then_branch: node #0 (MatMul): has 1 inputs, expected 2 to 2");
    CHECK_RUN("(x:float32[n], c:bool[]) -> (y) { y = If(c) {"
              "then_branch=() -> (a) { a = Unheard(x) }, else_branch=() -> (b) { b = Neg(x) }} }",
              "float32[1] 1 | bool[] 0", "error: node #0 (Unheard): not implemented");
}

// The running sum x + 0 + 1 + ..., as carried value and as scan output.
#define LOOP                                                                                       \
    "(m:int64[], c:bool[], x:float32[]) -> (y, s) { y, s = Loop(m, c, x) {body="                   \
    "(i:int64[], go:bool[], v:float32[]) -> (go, v2, v2b) {"                                       \
    "f = Cast(i) {to=1} v2 = Add(v, f) v2b = Identity(v2) }} }"

// Loops while the carried value is below the limit; the device computes the condition.
#define WHILE                                                                                      \
    "(m:int64[], x:float32[1], limit:float32[]) -> (y:float32[1], s) { yes = Constant() "          \
    "{value=<bool[] 1>} y, s = Loop(m, yes, x) {body=(i:int64[], go:bool[], v:float32[1]) -> "     \
    "(more, w, wb) { w = Add(v, v) wb = Identity(w) more = Less(w, limit) }} }"

static void test_loop(void) {
    CHECK_RUN(LOOP, "int64[] 4 | bool[] 1 | float32[] 0.5",
              "float32[] 6.5 | float32[4] 0.5 1.5 3.5 6.5");
    CHECK_RUN(LOOP, "int64[] 4 | bool[] 0 | float32[] 0.5", "float32[] 0.5 | float32[0]");
    CHECK_RUN(LOOP, "int64[] 0 | bool[] 1 | float32[] 0.5", "float32[] 0.5 | float32[0]");
    CHECK_RUN(LOOP, "int64[] -3 | bool[] 1 | float32[] 0.5", "float32[] 0.5 | float32[0]");
    CHECK_RUN(WHILE, "int64[] 100 | float32[1] 1 | float32[] 20",
              "float32[1] 32 | float32[5,1] 2 4 8 16 32");
    CHECK_RUN(WHILE, "int64[] 2 | float32[1] 1 | float32[] 20", "float32[1] 4 | float32[2,1] 2 4");
    // No trip count: do-while.
    CHECK_RUN("(x:float32[1]) -> (y) { yes = Constant() {value=<bool[] 1>} "
              "hundred = Constant() {value=<float32[] 100>} "
              "y = Loop(_, yes, x) {body=(i, go, v) -> (more, w) { w = Add(v, v) "
              "more = Less(w, hundred) }} }",
              "float32[1] 3", "float32[1] 192");
    // No condition input: the condition that the body computes is ignored.
    CHECK_RUN("(x:float32[1]) -> (y) { no = Constant() {value=<bool[] 0>} "
              "three = Constant() {value=<int64[] 3>} "
              "y = Loop(three, _, x) {body=(i, go, v) -> (no2, w) { w = Add(v, v) "
              "no2 = Identity(no) }} }",
              "float32[1] 3", "float32[1] 24");
    // The shape of a carried value may change.
    CHECK_RUN("(x:float32[n]) -> (y) { three = Constant() {value=<int64[] 3>} "
              "y = Loop(three, _, x) {body=(i, go, v) -> (go, w) { w = Concat(v, x) {axis=0} }} }",
              "float32[1] 7", "float32[4] 7 7 7 7");
    // Values swap: the old ones are read while the new ones are written.
    CHECK_RUN("(a:float32[], b:float32[]) -> (p, q) { three = Constant() {value=<int64[] 3>} "
              "p, q = Loop(three, _, a, b) {body=(i, go, v, w) -> (go, w, v) { }} }",
              "float32[] 1 | float32[] 2", "float32[] 2 | float32[] 1");
    // Nested: a sum over i of a sum over j < i.
    CHECK_RUN("(n:int64[]) -> (y) { zero = Constant() {value=<int64[] 0>} y = Loop(n, _, zero) "
              "{body=(i, go, v) -> (go, w) { w = Loop(i, _, v) {body=(j, on, p) -> (on, r) "
              "{ r = Add(p, j) }} }} }",
              "int64[] 5", "int64[] 10");
}

// Zero iterations: items of a scan output have the declared shape, or the shape that a trial run
// finds.
static void test_empty(void) {
    const char *declared = "(n:int64[], x:float32[3]) -> (s) { s = Loop(n, _) {body="
                           "(i, go) -> (go, v:float32[3]) { v = Identity(x) }} }";
    CHECK_RUN(declared, "int64[] 0 | float32[3] 1 2 3", "float32[0,3]");
    const char *tried = "(n:int64[], x:float32[3]) -> (s) { s = Loop(n, _) {body="
                        "(i, go) -> (go, v) { v = Concat(x, x) {axis=0} }} }";
    CHECK_RUN(tried, "int64[] 0 | float32[3] 1 2 3", "float32[0,6]");
    CHECK_RUN(tried, "int64[] 1 | float32[3] 1 2 3", "float32[1,6] 1 2 3 1 2 3");
    // A trial may read what was computed before it, but not compute anything.
    CHECK_RUN("(n:int64[], x:float32[3]) -> (s) { y = Relu(x) s = Loop(n, _) {body="
              "(i, go) -> (go, v) { v = NonZero(y) }} }",
              "int64[] 0 | float32[3] 1 -2 3", "int64[0,1,2]");
    CHECK_RUN("(n:int64[], x:float32[3]) -> (s) { s = Loop(n, _) {body="
              "(i, go) -> (go, v) { y = Relu(x) v = NonZero(y) }} }",
              "int64[] 0 | float32[3] 1 2 3", "error: the shape of the scan output 'v' is unknown");
}

static void test_loop_refused(void) {
    CHECK_RUN("(x:float32[]) -> (y) { y = Loop(_, _, x) {body=(i, go) -> (go, v) "
              "{ v = Identity(x) }} }",
              "float32[] 1", "error: attribute 'body': the graph has 2 inputs, expected 3");
    CHECK_RUN("(x:float32[]) -> (y) { y = Loop(_, _, x) }", "float32[] 1",
              "error: attribute 'body' is missing");
    CHECK_RUN("(x:float32[]) -> (y) { y = Loop(_, _, x) {body=(i, go, v) -> (go) { }} }",
              "float32[] 1", "error: the graph has 1 outputs, expected at least 2");
    CHECK_RUN("(x:float32[]) -> (y, s, t) { y, s, t = Loop(_, _, x) {body=(i, go, v) -> "
              "(go, v, w) { w = Neg(v) }} }",
              "float32[] 1",
              "error: has 3 outputs, but its body computes 2 (1 carried, 1 scanned)");
    CHECK_RUN("(n:int64[], x:float32[]) -> (y) { y = Loop(n, _, x) {body=(i, go, v) -> (go, w) "
              "{ w = Cast(v) {to=7} }} }",
              "int64[] 2 | float32[] 1",
              "error: iteration 0: carried value 'w' was float32 and becomes int64");
    CHECK_RUN("(n:int64[], x:float32[]) -> (y) { y = Loop(n, _, x) "
              "{body=(i, go, v:int64[]) -> (go, v) { }} }",
              "int64[] 2 | float32[] 1",
              "error: iteration 0: the graph's input 'v' is float32[], but is declared as int64");
    CHECK_RUN("(n:int64[], x:float32[1]) -> (y, s) { y, s = Loop(n, _, x) {body=(i, go, v) -> "
              "(go, w, w2) { w = Concat(v, v) {axis=0} w2 = Identity(w) }} }",
              "int64[] 2 | float32[1] 1",
              "error: iteration 1: scan output 'w2' is float32[4], but was float32[2] before");
    CHECK_RUN("(n:float32[]) -> (y) { y = Loop(n, _, n) {body=(i, go, v) -> (go, v) { }} }",
              "float32[] 2", "error: the trip count is float32[], expected int64 or int32");
    CHECK_RUN("(n:int64[2]) -> (y) { y = Loop(n, _, n) {body=(i, go, v) -> (go, v) { }} }",
              "int64[2] 2 2", "error: the trip count has 2 elements, expected 1");
    CHECK_RUN("(n:int64[]) -> (y) { y = Loop(n, _, _) {body=(i, go, v) -> (go, v) { }} }",
              "int64[] 2", "error: input 2 is omitted");
    // An endless loop, by itself and inside another loop.
    CHECK_RUN("(x:float32[]) -> (y) { y = Loop(_, _, x) {body=(i, go, v) -> (go, w) "
              "{ w = Neg(v) }} }",
              "float32[] 1", "error: runs more than 131072 iterations");
    CHECK_RUN("(n:int64[], m:int64[]) -> (y) { y = Loop(m, _, n) {body=(i, go, v) -> (go, w) "
              "{ w = Loop(n, _, v) {body=(j, on, p) -> (on, p) { }} }} }",
              "int64[] 1000000000 | int64[] 2", "error: runs more than 131072 iterations");
    // An endless loop whose condition is known on the host.
    CHECK_RUN("(n:int64[], x:float32[]) -> (y) { yes = Constant() {value=<bool[] 1>} "
              "y = Loop(_, yes, x) {body=(i, go, v) -> (go, v) { }} }",
              "int64[] 1 | float32[] 1", "error: runs more than 131072 iterations");
    // A condition on the device that is always true.
    CHECK_RUN("(x:float32[1]) -> (y) { yes = Constant() {value=<bool[] 1>} "
              "y = Loop(_, yes, x) {body=(i, go, v) -> (more, w) { w = Neg(v) "
              "more = Equal(w, w) }} }",
              "float32[1] 1",
              "error: sizes or conditions depend on computed data more than 1024 times");
}

// The limit of iterations is that of one node: neither other loops nor the nodes of a body count,
// which folding and stages would change.
static void test_limit(void) {
    CHECK_RUN("(n:int64[], x:int64[]) -> (y) { a = Loop(n, _, x) {body=(i, go, v) -> (go, i) { }} "
              "b = Loop(n, _, a) {body=(i, go, v) -> (go, w) { w = Identity(i) }} y = Add(a, b) }",
              "int64[] 50000 | int64[] 0", "int64[] 99998");
    CHECK_RUN("(x:float32[n,0]) -> (y) { y = Scan(x) {num_scan_inputs=1, body=(e) -> (s) "
              "{ s = Neg(e) }} }",
              "float32[131073,0]", "error: runs more than 131072 iterations");
}

// An index or a length out of range has the same effect whether the host knows it or not: the
// sum of the constants is a constant only with folding.
static void test_out_of_range(void) {
#define NINE "c = Constant() {value=<float32[1] 4.5>} d = Add(c, c) k = Cast(d) {to=7} "
    CHECK_RUN("(x:float32[4]) -> (y) { " NINE "y = Gather(x, k) }", "float32[4] 1 2 3 4",
              "error: index 9 is out of range [-4, 3]");
    CHECK_RUN("(x:float32[4,n]) -> (y) { " NINE "y = Gather(x, k) }", "float32[4,0]",
              "float32[1,0]");
    CHECK_RUN("(n:int64[], x:float32[4]) -> (s) { " NINE "s = Loop(n, _) {body=(i, go) -> (go, g) "
              "{ g = Gather(x, k) }} }",
              "int64[] 0 | float32[4] 1 2 3 4", "float32[0,1]");
    // Nothing reads the elements of g. (A body, because an observer reads all values outside.)
    CHECK_RUN("(n:int64[], x:float32[4]) -> (s) { " NINE "s = Loop(n, _) {body=(i, go) -> (go, v) "
              "{ g = Gather(x, k) v = Shape(g) }} }",
              "int64[] 2 | float32[4] 1 2 3 4", "int64[2,1] 1 1");
    CHECK_RUN("(n:int64[], x:float32[4], u:float32[1]) -> (s, t) { " NINE
              "s, t = Loop(n, _) {body=(i, go) -> (go, v, w) { "
              "g = ScatterElements(x, k, u) v = Shape(g) h = Gather(k, k) w = Shape(h) }} }",
              "int64[] 1 | float32[4] 1 2 3 4 | float32[1] 5", "int64[1,1] 4 | int64[1,1] 1");
    CHECK_RUN("(x:float32[2,2,1]) -> (y, h) { " NINE "w = Constant() {value=<float32[1,1,1] 1>} "
              "minus = Neg(k) l = Concat(k, minus) {axis=0} lens = Cast(l) {to=6} "
              "y, h = RNN(x, w, w, _, lens) {hidden_size=1, activations=[\"Relu\"]} }",
              "float32[2,2,1] 1 2 3 4", "float32[2,1,2,1] 1 0 4 0 | float32[1,2,1] 4 0");
}

static void test_scan(void) {
    const char *sums = "(h:float32[2], x:float32[n,2]) -> (y, s) { y, s = Scan(h, x) "
                       "{num_scan_inputs=1, body=(v, e) -> (w, w2) { w = Add(v, e) "
                       "w2 = Identity(w) }} }";
    CHECK_RUN(sums, "float32[2] 0 1 | float32[3,2] 1 2 3 4 5 6",
              "float32[2] 9 13 | float32[3,2] 1 3 4 7 9 13");
    CHECK_RUN(sums, "float32[2] 0 1 | float32[0,2]", "float32[2] 0 1 | float32[0,2]");
    // Scans the last axis in reverse; results go to the last axis, in reverse as well.
    CHECK_RUN("(h:float32[2], x:float32[2,n]) -> (y, s) { y, s = Scan(h, x) {num_scan_inputs=1, "
              "scan_input_axes=[-1], scan_input_directions=[1], scan_output_axes=[1], "
              "scan_output_directions=[1], body=(v, e) -> (w, w2) { w = Add(v, e) "
              "w2 = Identity(w) }} }",
              "float32[2] 0 0 | float32[2,3] 1 2 3 10 20 30",
              "float32[2] 6 60 | float32[2,3] 6 5 3 60 50 30");
    // Two inputs and no carried state.
    CHECK_RUN("(a:float32[n], b:float32[n]) -> (s) { s = Scan(a, b) {num_scan_inputs=2, "
              "body=(p, q) -> (r) { r = Sub(p, q) }} }",
              "float32[3] 1 2 3 | float32[3] 1 1 5", "float32[3] 0 1 -2");
    // Opset 8: a batch with sequence lengths.
    CHECK_RUN("opset 8 (l:int64[2], h:float32[2,1], x:float32[2,3,1]) -> (y, s) { y, s = "
              "Scan(l, h, x) {num_scan_inputs=1, body=(v, e) -> (w, w2) { w = Add(v, e) "
              "w2 = Identity(w) }} }",
              "int64[2] 3 2 | float32[2,1] 0 100 | float32[2,3,1] 1 2 3 4 5 6",
              "float32[2,1] 6 109 | float32[2,3,1] 1 3 6 104 109 0");
    CHECK_RUN("opset 8 (h:float32[2,1], x:float32[2,3,1]) -> (y) { y = "
              "Scan(_, h, x) {num_scan_inputs=1, directions=[1], body=(v, e) -> (w) "
              "{ t = Add(v, v) w = Add(t, e) }} }",
              "float32[2,1] 0 0 | float32[2,3,1] 1 2 3 4 5 6", "float32[2,1] 17 38");
}

static void test_scan_refused(void) {
#define SCAN(attributes)                                                                           \
    "(h:float32[2], x:float32[n,2]) -> (y) { y = Scan(h, x) {" attributes                          \
    ", body=(v, e) -> (w) { w = Add(v, e) }} }"
    const char *in = "float32[2] 0 0 | float32[2,2] 1 2 3 4";
    CHECK_RUN(SCAN("num_scan_inputs=1"), in, "float32[2] 4 6");
    CHECK_RUN(SCAN("num_scan_inputs=3"), in,
              "error: attribute 'num_scan_inputs' is 3, expected 1 to 2");
    CHECK_RUN(SCAN("num_scan_inputs=1, scan_input_axes=[0,0]"), in,
              "error: attribute 'scan_input_axes' has 2 entries, expected 1");
    CHECK_RUN(SCAN("num_scan_inputs=1, scan_input_axes=[2]"), in, "error: axis 2");
    CHECK_RUN(SCAN("num_scan_inputs=1, scan_input_directions=[2]"), in,
              "error: attribute 'scan_input_directions' has the entry 2, expected 0 or 1");
    CHECK_RUN("(a:float32[n], b:float32[m]) -> (s) { s = Scan(a, b) {num_scan_inputs=2, "
              "body=(p, q) -> (r) { r = Sub(p, q) }} }",
              "float32[3] 1 2 3 | float32[2] 1 1",
              "error: scanned input 1 has the length 2, but input 0 has 3");
    CHECK_RUN("(h:float32[1], x:float32[n,1]) -> (y) { y = Scan(h, x) {num_scan_inputs=1, "
              "body=(v, e) -> (w) { w = Concat(v, e) {axis=0} }} }",
              "float32[1] 0 | float32[2,1] 1 2",
              "error: iteration 0: state 'w' was float32[1] and becomes float32[2]");
    CHECK_RUN("opset 8 (l:int64[2], h:float32[2,1], x:float32[2,3,1]) -> (y) { y = "
              "Scan(l, h, x) {num_scan_inputs=1, body=(v, e) -> (w) { w = Add(v, e) }} }",
              "int64[2] 3 4 | float32[2,1] 0 100 | float32[2,3,1] 1 2 3 4 5 6",
              "error: sequence_lens has the entry 4, expected 0 to 3");
}

// The graph passes do not change results of bodies with values that only a body reads, duplicate
// and unused values, and constants to fold.
static void test_passes(void) {
    CHECK_RUN("(m:int64[], x:float32[2]) -> (y) { c = Constant() {value=<float32[2] 1 2>} "
              "d = Neg(c) unused = Exp(d) y = Loop(m, _, x) {body=(i, go, v) -> (go, w) { "
              "k = Constant() {value=<float32[2] 3 4>} e = Add(d, k) e2 = Add(d, k) "
              "idle = Identity(v) nobody = Log(idle) p = Add(idle, e) w = Sub(p, e2) }} }",
              "int64[] 3 | float32[2] 5 6", "float32[2] 5 6");
    // Names belong to a graph: a body must not shadow a name, but two bodies may use the same name.
    CHECK_RUN("(c:bool[], x:float32[2]) -> (y) { a = If(c) {then_branch=() -> (t) { t = Neg(x) }, "
              "else_branch=() -> (e) { e = Abs(x) }} y = If(c) {then_branch=() -> (t) "
              "{ t = Neg(a) }, else_branch=() -> (e) { e = Abs(a) }} }",
              "bool[] 1 | float32[2] 5 -6", "float32[2] 5 -6");
}

// Several stages. Each cut has values that a later body reads.
static void test_stages(void) {
    CHECK_RUN("(c:bool[], m:int64[], x:float32[2]) -> (y) { a = If(c) {then_branch=() -> (t) "
              "{ t = Neg(x) }, else_branch=() -> (e) { e = Abs(x) }} b = Add(a, a) "
              "d = Loop(m, _, b) {body=(i, go, v) -> (go, w) { w = Add(v, a) }} y = Neg(d) }",
              "bool[] 1 | int64[] 2 | float32[2] 5 -6", "float32[2] 20 -24");
    CHECK_RUN("(h:float32[], x:float32[n]) -> (y) { a, s = Scan(h, x) {num_scan_inputs=1, "
              "body=(v, e) -> (w, o) { w = Add(v, e) o = Identity(w) }} t = Mul(s, a) "
              "_, y = Scan(h, t) {num_scan_inputs=1, "
              "body=(v, e) -> (w, o) { w = Add(v, e) o = Add(w, a) }} }",
              "float32[] 1 | float32[3] 1 2 3", "float32[3] 22 50 99");
}

int main(int argc, char **argv) {
    if (!run_text_start(argc, argv)) return TEST_SKIPPED;
    test_if();
    test_if_refused();
    test_loop();
    test_empty();
    test_loop_refused();
    test_limit();
    test_out_of_range();
    test_scan();
    test_scan_refused();
    test_passes();
    test_stages();
    CHECK_MSG(run_text_n_divided() >= 4, "%zu runs in stages", run_text_n_divided());
    run_text_finish();
    return test_finish();
}
