// Random changes of a graph: attributes, operators, inputs, constants, inserted nodes.
#ifndef REE_TESTS_CAUSALITY_CHANGES_H
#define REE_TESTS_CAUSALITY_CHANGES_H

#include "graph/ir/ir.h"

// Starts the random sequence of `seed`. g: the graph to change; NULL if it is not loaded yet.
void changes_begin(struct ree_graph *g, uint64_t seed);
uint32_t draw(uint32_t below); // returns a number less than `below`; 0 if `below` is 0

bool change(struct ree_graph *g); // returns whether it changed anything

// Adds an int64 constant of rank 0 (n must be 1) or rank 1 and returns it.
struct ree_value *add_numbers(struct ree_graph *g, size_t n, const int64_t *numbers, uint32_t rank);
// Inserts a node with one output before node number `at` and returns it.
struct ree_node *add_node(struct ree_graph *g, const char *op, size_t n,
                          struct ree_value *const *inputs, uint32_t at);
void set_int(struct ree_node *node, const char *name, int64_t value);
void set_ints(struct ree_node *node, const char *name, size_t n, const int64_t *values);

#endif
