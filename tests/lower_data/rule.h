// Lowers one node and gives its outputs as text, so that a case is three strings:
//
//     CHECK_RULE("Slice/13", "int64[4] 1 2 3 4 | int64[1] -2 | int64[1] 9", "int64[2] 3 4");
//     CHECK_RULE("Concat/13 axis=2", "bool[1] 1 | bool[1] 0", "error: axis 2 is out of range");
//
// The node: operator, opset, attributes: name=3, name=1.5, name=word, name=[1,2], name=[1.0,2.0],
// name={float32[1] 2} (a tensor). Inputs and outputs are separated by "|"; "-" is an omitted input.
// Numbers are decimal, or nan, inf; a float prints with nine digits. A result that begins with
// "error: " asks for a failure whose message has the rest in it.
//
// Every case runs four times, which must agree: everything folded on the host; as a program over
// inputs in memory, fused and not fused; and with a small limit for folding, so that host and
// program mix.
#ifndef REE_TESTS_LOWER_DATA_RULE_H
#define REE_TESTS_LOWER_DATA_RULE_H

#include "test.h"

#include <stdbool.h>
#include <stddef.h>

// The result in any of the four ways (or "error: MESSAGE"); NULL and a message on stderr when they
// differ. Valid until the next call.
const char *rule_result(const char *node, const char *inputs);
// Whether a result is the one wanted (a message's part for errors).
bool rule_matches(const char *result, const char *wanted);

#define CHECK_RULE(node, inputs, wanted)                                                           \
    do {                                                                                           \
        const char *rule_got_ = rule_result(node, inputs);                                         \
        CHECK_MSG(rule_got_ &&rule_matches(rule_got_, wanted), "%s over %s:\n    %s\n    %s",      \
                  node, inputs, rule_got_ ? rule_got_ : "the ways of running it differ", wanted);  \
    } while (0)

#endif
