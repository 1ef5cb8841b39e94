// Random changes of a graph: other attributes, operators, inputs, constants, nodes put between.
#ifndef REE_TESTS_CAUSALITY_CHANGES_H
#define REE_TESTS_CAUSALITY_CHANGES_H

#include "graph/ir.h"

// Begins the random sequence of `seed`, and changes of this graph; NULL: of none yet.
void changes_begin(struct ree_graph *g, uint64_t seed);
uint32_t draw(uint32_t below); // 0 if `below` is 0

bool change(struct ree_graph *g); // false: nothing was changed

// int64 constants of rank 0 (n is 1) or 1.
struct ree_value *add_numbers(struct ree_graph *g, size_t n, const int64_t *numbers, uint32_t rank);
// A node with one output before node number `at`.
struct ree_node *add_node(struct ree_graph *g, const char *op, size_t n,
                          struct ree_value *const *inputs, uint32_t at);
void set_int(struct ree_node *node, const char *name, int64_t value);
void set_ints(struct ree_node *node, const char *name, size_t n, const int64_t *values);

#endif
