// Small graphs for the tests of the planner, which divides models into stages. A struct test_graph
// describes a graph; graphs with different orders of nodes and values can be built from it.
#ifndef REE_TESTS_PARTITION_GRAPH_H
#define REE_TESTS_PARTITION_GRAPH_H

#include "graph/partition/partition.h"

#define TEST_MOST_VALUES 160
#define TEST_MOST_NODES 64
#define TEST_MAX_KV_CACHES 4
#define TEST_MOST_OUTPUTS 12

struct test_value {
    bool is_input;
    uint64_t n_rows, n_columns; // shape of a float32 constant; n_rows = 0: not a constant
    uint32_t rank;              // rank, if the value is not a constant
    int64_t dims[4];            // dimensions, if it is not a constant; -1: unknown
};

struct test_node {
    const char *op, *domain;
    int inputs[4], n_inputs; // inputs: value indices; -1: omitted
    int outputs[2], n_outputs;
    int captured; // index of a value that the node's subgraph reads; -1: the node has no subgraph
    int inner;    // rows of the constant (64 columns) by which the subgraph multiplies `captured`
    int axis;     // attribute "axis"; 0: none
};

struct test_graph {
    struct test_value values[TEST_MOST_VALUES];
    int n_values;
    struct test_node nodes[TEST_MOST_NODES];
    int n_nodes;
    int outputs[TEST_MOST_OUTPUTS], n_outputs;
    struct {
        int input;
        size_t output; // index into `outputs` of the graph
    } kv_caches[TEST_MAX_KV_CACHES];
    int n_kv_caches;
};

uint32_t test_random(uint64_t *state);
uint32_t test_below(uint64_t *state, uint32_t n);

int test_add_input(struct test_graph *g, uint32_t rank, const int64_t *dims);
int test_add_constant(struct test_graph *g, uint64_t n_rows, uint64_t n_columns);
// Adds a node that reads values a and b, or only a if b is -1, and has one output of the shape
// [-1, -1, width]. Returns the index of the output's value.
int test_add_node(struct test_graph *g, const char *op, int a, int b, int64_t width);
void test_add_output(struct test_graph *g, int value);
// Builds the graph; value i is named "v<i>". shuffle: state of the random generator that draws an
// order of the values and a topological order of the nodes; NULL: the order of the description.
// Writes the graph's n_kv_caches kv caches to kv_caches. The caller owns the graph.
struct ree_graph *test_make_graph(const struct test_graph *g, uint64_t *shuffle,
                                  struct ree_partition_kv_cache *kv_caches);
// Describes a random graph of at most about twenty nodes. random: state of the random generator.
void test_random_graph(struct test_graph *g, uint64_t *random);

#endif
