// Which (operator, opset, type) the passed cases cover, for SUPPORT.md. One on a line:
//
//     ai.onnx Add 14 float32
//
// The case is a model of one node; the type is that of its first input, or of its first output
// where it has no input ("none" where that is no tensor).
#ifndef REE_TESTS_MODELS_COVERAGE_H
#define REE_TESTS_MODELS_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>

struct coverage {
    size_t n, capacity;
    char **lines;
};

// Adds what the model at `path` is an example of; a model of several nodes adds nothing.
void coverage_add(struct coverage *c, const char *path);
void coverage_finish(struct coverage *c);
// Sorts and writes the lines, each once, below a comment. False after printing why not.
bool coverage_write(struct coverage *c, const char *file);
// Compares what passed with `file`; prints what is wrong. `file` must have every line of `passed`.
// A line of `file` that is in `run` (lines of all cases, passed or not; NULL: not checked) must be
// in `passed`. A line that is not in `run` was shown by another release of ONNX's tests.
bool coverage_check(struct coverage *passed, struct coverage *run, const char *file);

#endif
