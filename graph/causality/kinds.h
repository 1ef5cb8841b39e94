// Values of `arg` in struct ree_causality_row (facts.h). They tell a rule that serves several
// operators which operator it derives.
#ifndef REE_GRAPH_CAUSALITY_KINDS_H
#define REE_GRAPH_CAUSALITY_KINDS_H

enum { REE_KEEPS_NAN, REE_LOSES_NAN, REE_IS_NAN };                                  // unary
enum { REE_ADD, REE_SUB, REE_MUL, REE_DIV, REE_MIN, REE_MAX };                      // arithmetic
enum { REE_LESS, REE_LESS_OR_EQUAL, REE_GREATER, REE_GREATER_OR_EQUAL, REE_EQUAL }; // compare
enum { REE_AND, REE_OR, REE_XOR };                                                  // logic
enum { REE_REDUCE_OTHER, REE_REDUCE_TO_SUM };                                       // reduce

#endif
