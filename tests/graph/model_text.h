// Reads ONNX models that tests contain as text:
//
//     opset 17
//     function local.Twice (x; times) -> (y) { y = Mul(x, x) }
//     (x:float32[n,2], go:bool[]) -> (y:float32) {
//         w = Constant() {value=<float32[2] 1 2>}
//         y = If(go) {then_branch=() -> (a) { a = Add(x, w) }, else_branch=() -> (b) { b = Neg(x)
//         }}
//     }
//
// A model is an optional opset (default 17), functions, and a graph. A function has inputs, after a
// semicolon its attributes (with defaults: axis=1), outputs, and nodes.
// - Types: DTYPE (no shape), DTYPE[DIMS], seq(TYPE), opt(TYPE); a dimension is a number or a name.
// - A node: OUTPUTS = OP(INPUTS) {ATTRIBUTES}. OP may be domain.Op; "_" is an omitted input or
//   output.
// - Attributes: 3, 1.5, "text", [1,2], [1.0], ["a"], <DTYPE[DIMS] ELEMENTS>, a graph, or @NAME, an
//   attribute of the enclosing function.
// - "#" starts a comment.
#ifndef REE_TESTS_GRAPH_MODEL_TEXT_H
#define REE_TESTS_GRAPH_MODEL_TEXT_H

#include "graph/model_writer.h"

// Returns the ModelProto in ONNX's wire format. The caller must release it with pb_free. An error
// in the text ends the program.
struct pb model_text(const char *text);
// Returns the ONNX data type with this name (n bytes, "float32"); 0: unknown.
int model_text_dtype(const char *name, size_t n);

#endif
