// Lowers one node and returns its outputs as text, so that a case consists of three strings:
//
//     CHECK_RULE("Slice/13", "int64[4] 1 2 3 4 | int64[1] -2 | int64[1] 9", "int64[2] 3 4");
//     CHECK_RULE("Concat/13 axis=2", "bool[1] 1 | bool[1] 0", "error: axis 2 is out of range");
//
// The node: operator, opset, attributes: name=3, name=1.5, name=word, name=[1,2], name=[1.0,2.0],
// name={float32[1] 2} (a tensor). Inputs and outputs are separated by "|"; "-" is an omitted input.
// Numbers are decimal, or nan, inf; floats are printed with nine digits. An expected result that
// begins with "error: " means that the case must fail with a message that contains the rest.
//
// Every case runs in four ways, which must agree: everything folded on the host; as a program with
// inputs in memory, fused and unfused; and with a small folding limit, so that host and program
// mix.
#ifndef REE_TESTS_LOWER_DATA_RULE_H
#define REE_TESTS_LOWER_DATA_RULE_H

#include "test.h"

#include <stdbool.h>
#include <stddef.h>

// Returns the result of all four ways (or "error: MESSAGE"), valid until the next call. Returns
// NULL and prints a message to stderr if they differ.
const char *rule_result(const char *node, const char *inputs);
// Returns whether the result is the expected one; for errors, whether the message contains the
// expected text.
bool rule_matches(const char *result, const char *wanted);

#define CHECK_RULE(node, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *rule_got_ = rule_result(node, inputs);                                         \
        CHECK_MSG(rule_got_ &&rule_matches(rule_got_, wanted), "%s over %s:\n    %s\n    %s",      \
                  node, inputs, rule_got_ ? rule_got_ : "the ways of running it differ", wanted);  \
    } while (0)

#endif
