// Records which combinations of operator, opset and type the passed ONNX test cases cover, for
// SUPPORT.md. One combination per line: domain, operator, opset, type:
//
//     ai.onnx Add 14 float32
//
// Only cases whose model has one node count. The type is that of the node's first input, or of its
// first output if it has no input; "none" if that value is not a tensor.
#ifndef REE_TESTS_MODELS_COVERAGE_H
#define REE_TESTS_MODELS_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>

struct coverage {
    size_t n, capacity;
    char **lines;
};

// Adds the line (domain, operator, opset, type) of the model in the file `path`. Adds nothing if
// the model does not load or has several nodes.
void coverage_add(struct coverage *c, const char *path);
void coverage_finish(struct coverage *c);
// Sorts the lines, removes duplicates, and writes the lines to `file` below a comment. On failure
// prints the reason and returns false.
bool coverage_write(struct coverage *c, const char *file);
// Checks that `file`, written by coverage_write, is up to date. Prints what is wrong; returns false
// if anything is.
// - passed: the lines of the cases that passed. `file` must have all of them.
// - run: the lines of all cases that ran, passed or not; NULL disables this check. A line of `file`
//   that is in `run` must also be in `passed`. A line of `file` that is not in `run` is allowed: it
//   comes from another release of ONNX's tests.
bool coverage_check(struct coverage *passed, struct coverage *run, const char *file);

#endif
