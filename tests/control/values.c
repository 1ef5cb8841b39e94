// Sequences, optional values and strings, as inputs, within a model and as outputs.
#include "run_text.h"

static void test_sequences(void) {
    CHECK_RUN("(a:float32[n], b:float32[m]) -> (s, n) { s = SequenceConstruct(a, b, a) "
              "n = SequenceLength(s) }",
              "float32[1] 1 | float32[2] 2 3",
              "{float32[1] 1; float32[2] 2 3; float32[1] 1} | int64[] 3");
    const char *insert = "(s:seq(float32), x:float32[n], p:int64[]) -> (t) { t = "
                         "SequenceInsert(s, x, p) }";
    CHECK_RUN(insert, "{float32[1] 1; float32[1] 2} | float32[1] 9 | int64[] 0",
              "{float32[1] 9; float32[1] 1; float32[1] 2}");
    CHECK_RUN(insert, "{float32[1] 1; float32[1] 2} | float32[1] 9 | int64[] -1",
              "{float32[1] 1; float32[1] 9; float32[1] 2}");
    CHECK_RUN(insert, "{} | float32[1] 9 | int64[] 0", "{float32[1] 9}");
    CHECK_RUN(insert, "{float32[1] 1} | float32[1] 9 | int64[] 2",
              "error: position 2 is outside a sequence of 1 items");
    CHECK_RUN("(s:seq(float32)) -> (t) { t = SequenceErase(s) }", "{float32[1] 1; float32[1] 2}",
              "{float32[1] 1}");
    CHECK_RUN("(s:seq(float32)) -> (t) { t = SequenceErase(s) }", "{}",
              "error: position -1 is outside a sequence of 0 items");
    const char *at = "(s:seq(float32), p:int64[]) -> (y) { x = SequenceAt(s, p) y = Neg(x) }";
    CHECK_RUN(at, "{float32[1] 1; float32[2] 2 3} | int64[] -1", "float32[2] -2 -3");
    CHECK_RUN(at, "{float32[1] 1; float32[2] 2 3} | int64[] 2",
              "error: position 2 is outside a sequence of 2 items");
    CHECK_RUN("(x:float32[5]) -> (s, y) { two = Constant() {value=<int64[] 2>} "
              "s = SplitToSequence(x, two) y = ConcatFromSequence(s) {axis=0} }",
              "float32[5] 1 2 3 4 5",
              "{float32[2] 1 2; float32[2] 3 4; float32[1] 5} | "
              "float32[5] 1 2 3 4 5");
    CHECK_RUN("(x:float32[2,2]) -> (y) { s = SplitToSequence(x) {axis=1, keepdims=0} "
              "y = ConcatFromSequence(s) {axis=0, new_axis=1} }",
              "float32[2,2] 1 2 3 4", "float32[2,2] 1 3 2 4");
    CHECK_RUN("(x:float32[5]) -> (s) { l = Constant() {value=<int64[2] 2 2>} "
              "s = SplitToSequence(x, l) }",
              "float32[5] 1 2 3 4 5", "error: the sizes in split do not add up to 5");
    CHECK_RUN("(n:int64[1]) -> (s) { x = Constant() {value=<float32[1] 1>} e = Expand(x, n) "
              "s = SplitToSequence(e) }",
              "int64[1] 2000000", "error: a sequence of 2000000 items; at most 131072 are");
    CHECK_RUN("(s:seq(float32), x:float32[1]) -> (t) { t = SequenceMap(s, x) {body=(e, f) -> (g) "
              "{ g = Add(e, f) }} }",
              "{float32[1] 1; float32[2] 2 3} | float32[1] 10",
              "{float32[1] 11; float32[2] 12 13}");
    CHECK_RUN("(s:seq(float32), t:seq(float32)) -> (u) { u = SequenceMap(s, t) {body=(e, f) -> (g) "
              "{ g = Add(e, f) }} }",
              "{float32[1] 1} | {}", "error: input 1 is a sequence of 0 items, but input 0 has 1");
    // Sequences carried by a loop, chosen by a branch, computed on the device.
    CHECK_RUN("(m:int64[], x:float32[1]) -> (t) { e = SequenceEmpty() t = Loop(m, _, e) {body="
              "(i, go, s) -> (go, u) { f = Cast(i) {to=1} y = Add(x, f) u = SequenceInsert(s, y) "
              "}} }",
              "int64[] 3 | float32[1] 1", "{float32[1] 1; float32[1] 2; float32[1] 3}");
    CHECK_RUN("(s:seq(float32), c:bool[]) -> (t) { t = If(c) {then_branch=() -> (a) "
              "{ a = Identity(s) }, else_branch=() -> (b) { b = SequenceErase(s) }} }",
              "{float32[1] 1; float32[1] 2} | bool[] 0", "{float32[1] 1}");
}

// A sequence cannot cross the boundary of two stages, but its items can.
static void test_stages(void) {
    CHECK_RUN("(s:seq(float32), x:float32[1], p:int64[]) -> (y) { t = SequenceMap(s, x) "
              "{body=(e, f) -> (g) { g = Add(e, f) }} a = SequenceAt(t, p) b = Neg(a) "
              "u = SequenceConstruct(b, a) d = SequenceAt(u, p) y = Mul(b, d) }",
              "{float32[1] 1; float32[1] 2} | float32[1] 10 | int64[] 1", "float32[1] -144");
}

static void test_refused(void) {
    CHECK_RUN("(s:seq(float32)) -> (y) { y = Neg(s) }", "{float32[1] 1}",
              "error: input 0 is a sequence of 1 float32, expected a tensor");
    CHECK_RUN("(x:float32[n]) -> (y) { y = SequenceLength(x) }", "float32[1] 1",
              "error: input 0 is float32[1], expected a sequence");
    CHECK_RUN(
        "(x:float32[n]) -> (y) { y = Neg(x) }", "{float32[1] 1}",
        "error: input 'x' is a sequence, expected a tensor; the model's inputs are 'x' float32[n]");
    CHECK_RUN("(s:seq(float32)) -> (t) { t = Identity(s) }", "float32[1] 1",
              "error: input 's' is a tensor, expected a sequence");
    CHECK_RUN("(s:seq(float32)) -> (t) { t = Identity(s) }", "{int64[1] 1}",
              "error: input 's' is int64[1], expected float32");
    CHECK_RUN("(s:seq(float32)) -> (t) { t = Identity(s) }", "none",
              "error: input 's' is absent, expected a sequence");
    CHECK_RUN("(a:float32[], b:int64[]) -> (s) { s = SequenceConstruct(a, b) }",
              "float32[] 1 | int64[] 1",
              "error: input 1 has type int64, but input 0 has type float32");
    CHECK_RUN("(s:seq(seq(float32))) -> (t) { t = Identity(s) }", "{}",
              "error: input 's': is a sequence of sequences");
    CHECK_RUN("(n:int64[], s:seq(float32)) -> (t) { t = Loop(n, _, s) {body=(i, go, v) -> (go, w) "
              "{ w = SequenceLength(v) }} }",
              "int64[] 2 | {}", "error: its type must not change");
}

static void test_optional(void) {
    const char *has = "(x:opt(float32)) -> (h, y) { h = OptionalHasElement(x) y = Identity(x) }";
    CHECK_RUN(has, "float32[1] 1", "bool[] 1 | float32[1] 1");
    CHECK_RUN(has, "none", "bool[] 0 | none");
    CHECK_RUN(has, "", "bool[] 0 | none"); // the input is absent
    CHECK_RUN("(x:opt(seq(float32))) -> (y) { y = OptionalGetElement(x) }", "{float32[1] 1}",
              "{float32[1] 1}");
    CHECK_RUN("(x:opt(float32)) -> (y) { y = OptionalGetElement(x) }", "none",
              "error: the optional value is absent");
    CHECK_RUN("(x:float32[n]) -> (h) { o = Optional(x) h = OptionalHasElement(o) }", "float32[1] 1",
              "bool[] 1");
    CHECK_RUN("(x:float32[n]) -> (o) { o = Optional() }", "float32[1] 1",
              "error: has neither an input nor the attribute 'type'");
}

static void test_strings(void) {
    // Operators that move data also move strings, even if the device computes the indices.
    CHECK_RUN("(x:string[n], i:int64[m]) -> (y, z) { y = Gather(x, i) r = Concat(y, x) {axis=0} "
              "k = Constant() {value=<string[1] \"k\">} z = Concat(k, r) {axis=0} }",
              "string[2] \"a\" \"\" | int64[2] 1 0",
              "string[2] \"\" \"a\" | string[5] \"k\" \"\" \"a\" \"a\" \"\"");
    CHECK_RUN("(x:string[n]) -> (y, i, k, c, z) { y, i, k, c = Unique(x) z = NonZero(x) }",
              "string[5] \"b\" \"\" \"a\" \"b\" \"c\"",
              "string[4] \"\" \"a\" \"b\" \"c\" | int64[4] 1 2 0 4 | int64[5] 2 0 1 2 3 | "
              "int64[4] 1 1 2 1 | int64[1,4] 0 2 3 4");
    CHECK_RUN("(x:string[n]) -> (y) { a = Constant() {value_string=\"s\"} "
              "b = Constant() {value_strings=[\"t\", \"\"]} c = Expand(a, d) "
              "d = Constant() {value_ints=[1]} y = Concat(x, c, b) {axis=0} }",
              "string[1] \"x\"", "string[4] \"x\" \"s\" \"t\" \"\"");
    CHECK_RUN("(x:string[n], f:float32[m]) -> (y) { s = ArgMax(f) {keepdims=1} y = Gather(x, s) }",
              "string[2] \"a\" \"b\" | float32[2] 1 3", "string[1] \"b\"");
    CHECK_RUN("opset 19 (x:string[n], y:string[m]) -> (e) { e = Equal(x, y) }",
              "string[2] \"a\" \"b\" | string[1] \"b\"", "bool[2] 0 1");
    CHECK_RUN("(x:string[n]) -> (y) { y = Add(x, x) }", "string[1] \"a\"",
              "error: Add of string is not supported");
    CHECK_RUN("(x:string[n]) -> (y) { y = ReduceMax(x) }", "string[1] \"a\"", "error: string");
    CHECK_RUN("(x:float32[n]) -> (y) { y = Cast(x) {to=8} }",
              "float32[6] 1 0.1 -1.5e-10 nan inf -inf",
              "string[6] \"1\" \"0.1\" \"-1.5e-10\" \"NaN\" \"INF\" \"-INF\"");
    CHECK_RUN("(x:string[n]) -> (y) { y = Cast(x) {to=1} }",
              "string[5] \"0.1\" \"1E3\" \"-INF\" \"+inf\" \"NaN\"",
              "float32[5] 0.100000001 1000 -inf inf nan");
    CHECK_RUN("(x:string[n]) -> (y) { y = Cast(x) {to=7} }",
              "string[2] \"-9223372036854775808\" \"7\"", "int64[2] -9223372036854775808 7");
    CHECK_RUN("(x:string[n]) -> (y) { y = Cast(x) {to=3} }", "string[1] \"128\"",
              "error: string 0, '128', is not a valid int8");
    CHECK_RUN("(x:string[n]) -> (y) { y = Cast(x) {to=1} }", "string[1] \"0x10\"",
              "error: string 0, '0x10', is not a valid float32");
    CHECK_RUN("opset 20 (x:string[n], y:string[]) -> (z) { z = StringConcat(x, y) }",
              "string[2] \"a\" \"\" | string[] \"b\"", "string[2] \"ab\" \"b\"");
    CHECK_RUN("opset 20 (x:string[n]) -> (y, z) { y, z = StringSplit(x) {delimiter=\",\"} }",
              "string[2] \"a,,b\" \"\"",
              "string[2,3] \"a\" \"\" \"b\" \"\" \"\" \"\" | int64[2] 3 1");
    CHECK_RUN("opset 20 (x:string[n]) -> (y, z) { y, z = StringSplit(x) {maxsplit=1} }",
              "string[2] \"  a b  c \" \" \"",
              "string[2,2] \"a\" \"b  c \" \"\" \"\" | int64[2] 2 0");
    CHECK_RUN("(x:string[n]) -> (y) { y = StringNormalizer(x) {case_change_action=\"UPPER\", "
              "stopwords=[\"\xc3\x89T\xc3\x89\"]} }",
              "string[3] \"\xc3\xa9t\xc3\xa9\" \"b\xc3\xb6se\" \"\xd0\xb4\xd0\xb0\"",
              "string[2] \"B\xc3\x96SE\" \"\xd0\x94\xd0\x90\"");
    CHECK_RUN("(x:string[n]) -> (y) { y = StringNormalizer(x) {case_change_action=\"TITLE\"} }",
              "string[1] \"a\"", "error: expected NONE, LOWER or UPPER");
}

int main(int argc, char **argv) {
    if (!run_text_start(argc, argv)) return TEST_SKIPPED;
    test_sequences();
    test_refused();
    test_optional();
    test_strings();
    test_stages();
    CHECK_MSG(run_text_n_divided() >= 2, "%zu runs in stages", run_text_n_divided());
    run_text_finish();
    return test_finish();
}
