// Runs a model written as text (graph/model_text.h) over inputs written as text.
//
//     CHECK_RUN("(x:float32[n]) -> (y) { y = Relu(x) }", "float32[2] -1 2", "float32[2] 0 2");
//     CHECK_RUN(model, "float32[2] 1 2", "error: the condition is float32[2]");
//
// Inputs and outputs are separated by "|", in the model's order: a tensor, a sequence as "{tensor;
// tensor}", or "none". Strings are quoted. Floats print with nine digits. A
// result that begins with "error: " asks for a failure, in loading or running, whose message has
// the rest in it.
//
// Every model runs fused, unfused and unfolded, and again in the first session, where the bind may
// be found; all must agree. So must a run with an observer, and what that is told of every node
// with what the model gives when all its values are outputs. It runs on the CPU and, where the
// program's argument names another device, there too. So must the model in parts
// (session/pipeline.h), in every number of them up to a dozen.
#ifndef REE_TESTS_CONTROL_RUN_TEXT_H
#define REE_TESTS_CONTROL_RUN_TEXT_H

#include "test.h"

#include <stdbool.h>

// Opens the devices: the CPU, and argv[1] if it is there. Returns false after printing why the test
// is skipped.
bool run_text_start(int argc, char **argv);
void run_text_finish(void);

// The result or "error: MESSAGE", valid until the next call; NULL and a message on stderr when the
// ways of running differ.
const char *run_text(const char *model, const char *inputs);
bool run_text_matches(const char *result, const char *wanted);

#define CHECK_RUN(model, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *run_got_ = run_text(model, inputs);                                            \
        CHECK_MSG(run_got_ &&run_text_matches(run_got_, wanted), "%s\nover %s:\n    %s\n    %s",   \
                  model, inputs, run_got_ ? run_got_ : "the ways of running it differ", wanted);   \
    } while (0)

#endif
