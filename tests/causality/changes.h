// Makes random changes to a graph: to attributes, operators, inputs and constants, and inserts
// nodes. The functions use one random sequence.
#ifndef REE_TESTS_CAUSALITY_CHANGES_H
#define REE_TESTS_CAUSALITY_CHANGES_H

#include "graph/ir/ir.h"

// Starts the random sequence again from `seed`. `g` is the graph to change; NULL if it is not
// loaded yet: then only `draw` may be called.
void changes_begin(struct ree_graph *g, uint64_t seed);
// Returns a random number less than `below`; 0 if `below` is 0.
uint32_t draw(uint32_t below);

// Tries one random change of the graph. Returns false if the drawn change is impossible.
bool change(struct ree_graph *g);

// Adds a constant of n int64 numbers to the graph and returns it. `rank` is 1, or 0; then n must
// be 1.
struct ree_value *add_numbers(struct ree_graph *g, size_t n, const int64_t *numbers, uint32_t rank);
// Inserts a node with n inputs and one output before node number `at` and returns it. `op` is an
// operator of ONNX's default domain.
struct ree_node *add_node(struct ree_graph *g, const char *op, size_t n,
                          struct ree_value *const *inputs, uint32_t at);
void set_int(struct ree_node *node, const char *name, int64_t value);
void set_ints(struct ree_node *node, const char *name, size_t n, const int64_t *values);

#endif
