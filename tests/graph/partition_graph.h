// Small graphs for the tests of partitions: a description, which can be made into a graph in any
// topological order of its nodes and any order of its values.
#ifndef REE_TESTS_PARTITION_GRAPH_H
#define REE_TESTS_PARTITION_GRAPH_H

#include "graph/partition/partition.h"

#define TEST_MOST_VALUES 160
#define TEST_MOST_NODES 64
#define TEST_MOST_STATES 4
#define TEST_MOST_OUTPUTS 12

struct test_value {
    bool is_input;
    uint64_t n_rows, n_columns; // of a constant of float32, n_rows = 0: none
    uint32_t rank;              // of others; their dims, -1: unknown
    int64_t dims[4];
};

struct test_node {
    const char *op, *domain;
    int inputs[4], n_inputs; // values; -1: omitted
    int outputs[2], n_outputs;
    int captured; // a value that its subgraph reads; -1: no subgraph
    int inner;    // rows of a constant of 64 columns in that subgraph
    int axis;     // attribute; 0: none
};

struct test_graph {
    struct test_value values[TEST_MOST_VALUES];
    int n_values;
    struct test_node nodes[TEST_MOST_NODES];
    int n_nodes;
    int outputs[TEST_MOST_OUTPUTS], n_outputs;
    struct {
        int input;
        size_t output; // index into outputs
    } states[TEST_MOST_STATES];
    int n_states;
};

uint32_t test_random(uint64_t *state); // xorshift
uint32_t test_below(uint64_t *state, uint32_t n);

int test_add_input(struct test_graph *g, uint32_t rank, const int64_t *dims);
int test_add_constant(struct test_graph *g, uint64_t n_rows, uint64_t n_columns);
// Adds a node with one output [-1, -1, width]; returns the output's value.
int test_add_node(struct test_graph *g, const char *op, int a, int b, int64_t width);
void test_add_output(struct test_graph *g, int value);
// The graph; value i is named "v<i>". `shuffle`: NULL, or nodes and values in an order of chance.
// States go to `states`.
struct ree_graph *test_make_graph(const struct test_graph *g, uint64_t *shuffle,
                                  struct ree_partition_state *states);
// A graph of chance with about twenty nodes at most.
void test_random_graph(struct test_graph *g, uint64_t *random);

#endif
