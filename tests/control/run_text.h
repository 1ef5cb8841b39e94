// Runs a model written as text (graph/model_text.h) on inputs written as text, in several
// configurations, and compares the outputs with a text.
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
// - with fusion and folding, without fusion, and without folding; each twice in one session, so
//   that the second run may use the cached bind
// - with an observer, which must receive the same values as a session of the model in which all
//   values are outputs
// - in stages (pipeline/pipeline.h), for every number of stages that the model allows, up to 11.
//   Most models here are one node, or only nodes that every stage copies, and cannot be cut; so
//   each program has larger ones too, and checks run_text_n_divided
// - all of these on the CPU and, if the program's argument names another device, there too
#ifndef REE_TESTS_CONTROL_RUN_TEXT_H
#define REE_TESTS_CONTROL_RUN_TEXT_H

#include "test.h"

#include <stdbool.h>

// Opens the CPU and the device that argv[1] names, if any. If a device is not available, prints why
// the test is skipped and returns false.
bool run_text_start(int argc, char **argv);
void run_text_finish(void);

// Runs the model in all configurations. Returns the outputs as text, or "error: MESSAGE"; the text
// is valid until the next call. If the configurations disagree, prints a message to stderr and
// returns NULL.
const char *run_text(const char *model, const char *inputs);
// Returns how often a model ran in several stages.
size_t run_text_n_divided(void);
// Returns whether a result of run_text is as expected: `wanted` is the same text, or "error: " and
// a part of the message.
bool run_text_matches(const char *result, const char *wanted);

#define CHECK_RUN(model, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *run_got_ = run_text(model, inputs);                                            \
        CHECK_MSG(run_got_ &&run_text_matches(run_got_, wanted), "%s\nover %s:\n    %s\n    %s",   \
                  model, inputs, run_got_ ? run_got_ : "the ways of running it differ", wanted);   \
    } while (0)

#endif
