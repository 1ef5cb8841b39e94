// Lowers one node and returns its outputs as text, so that a case consists of three strings:
//
//     CHECK_RULE("Slice/13", "int64[4] 1 2 3 4 | int64[1] -2 | int64[1] 9", "int64[2] 3 4");
//     CHECK_RULE("Concat/13 axis=2", "bool[1] 1 | bool[1] 0", "error: axis 2 is out of range");
//
// The strings are the node, its inputs and the expected outputs.
// - Node: OPERATOR/OPSET, then attributes: name=3, name=1.5, name=word, name=[1,2],
//   name=[1.0,2.0], name={float32[1] 2} (a tensor). outputs=N sets the number of outputs
//   (default 1).
// - Inputs and outputs are separated by "|"; "-" is an omitted input. Integers are decimal or
//   hexadecimal (0x1F), floats decimal, nan or inf. float32 is printed with nine digits, float64
//   with 17; float16 and bfloat16 are given and printed as the integers of their bits.
// - An expected result that begins with "error: " means that the case must fail with a message that
//   contains the rest. If the message is another one at run time, the result is
//   "error: MESSAGE | MESSAGE2", and the expected result must contain the " | " too.
//
// Every case runs in four ways, which must give the same result. Errors must have the same message,
// except that it may be another one at run time. The ways are:
// - with constant inputs, everything computed (folded) at bind time;
// - with inputs known only at run time, as a program with and without fusion;
// - with constant inputs and a small folding limit, so that only a part is computed at bind time.
#ifndef REE_TESTS_LOWER_DATA_RULE_H
#define REE_TESTS_LOWER_DATA_RULE_H

#include "test.h"

#include <stdbool.h>
#include <stddef.h>

// Runs a case in all four ways and returns the outputs as text, or "error: MESSAGE" if lowering or
// running fails, or "error: MESSAGE | MESSAGE2" if the message is another one with inputs known
// only at run time (apart from the label of the node, which MESSAGE2 does not have). The text is
// valid until the next call. Returns NULL and prints the results to stderr if the ways differ.
const char *rule_result(const char *node, const char *inputs);
// Returns whether `result` (of rule_result) is `wanted`. If `wanted` is "error: TEXT", returns
// whether `result` is an error that contains TEXT, and has " | " only if TEXT has it.
bool rule_matches(const char *result, const char *wanted);

#define CHECK_RULE(node, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *rule_got_ = rule_result(node, inputs);                                         \
        CHECK_MSG(rule_got_ &&rule_matches(rule_got_, wanted), "%s over %s:\n    %s\n    %s",      \
                  node, inputs, rule_got_ ? rule_got_ : "the ways of running it differ", wanted);  \
    } while (0)

#endif
