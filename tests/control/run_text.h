// Runs a model written as text (graph/model_text.h) with inputs written as text.
//
//     CHECK_RUN("(x:float32[n]) -> (y) { y = Relu(x) }", "float32[2] -1 2", "float32[2] 0 2");
//     CHECK_RUN(model, "float32[2] 1 2", "error: the condition is float32[2]");
//
// Inputs and outputs are separated by "|", in the model's order: a tensor, a sequence as "{tensor;
// tensor}", or "none". Strings are quoted. Floats are printed with nine digits. An expected result
// that begins with "error: " means that loading or running must fail with a message that contains
// the rest.
//
// Every model runs in these configurations, and all must agree:
// - fused, unfused and unfolded; each twice in one session, so that the second run may use the
//   cached bind
// - with an observer, which must receive for every node the values that the model gives when all
//   its values are outputs
// - in stages (pipeline/pipeline.h), for every number of stages that the model allows, up to 11
// - all of these on the CPU and, if the program's argument names another device, there too
#ifndef REE_TESTS_CONTROL_RUN_TEXT_H
#define REE_TESTS_CONTROL_RUN_TEXT_H

#include "test.h"

#include <stdbool.h>

// Opens the devices: the CPU, and argv[1] if present. Returns false after printing why the test is
// skipped.
bool run_text_start(int argc, char **argv);
void run_text_finish(void);

// Returns the result or "error: MESSAGE", valid until the next call. Returns NULL and prints a
// message to stderr if the configurations disagree.
const char *run_text(const char *model, const char *inputs);
bool run_text_matches(const char *result, const char *wanted);

#define CHECK_RUN(model, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *run_got_ = run_text(model, inputs);                                            \
        CHECK_MSG(run_got_ &&run_text_matches(run_got_, wanted), "%s\nover %s:\n    %s\n    %s",   \
                  model, inputs, run_got_ ? run_got_ : "the ways of running it differ", wanted);   \
    } while (0)

#endif
