// Records which (operator, opset, type) the passed cases cover, for SUPPORT.md. One per line:
//
//     ai.onnx Add 14 float32
//
// The case is a model of one node. The type is that of its first input, or of its first output if
// it has no input ("none" if that value is not a tensor).
#ifndef REE_TESTS_MODELS_COVERAGE_H
#define REE_TESTS_MODELS_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>

struct coverage {
    size_t n, capacity;
    char **lines;
};

// Adds what the model at `path` covers; a model of several nodes adds nothing.
void coverage_add(struct coverage *c, const char *path);
void coverage_finish(struct coverage *c);
// Sorts the lines and writes each once, below a comment. Returns false after printing the reason.
bool coverage_write(struct coverage *c, const char *file);
// Compares `passed` with `file`; prints what is wrong. `file` must have every line of `passed`.
// `run`: the lines of all cases, passed or not; NULL disables this check. A line of `file` that is
// in `run` must be in `passed`. A line that is not in `run` comes from another release of ONNX's
// tests.
bool coverage_check(struct coverage *passed, struct coverage *run, const char *file);

#endif
