// Lowers one node with constant inputs, for tests of lowering rules. Its dispatches run on the CPU
// immediately.
//
//     struct test_node n;
//     test_node_start(&n, "Clip", 6);
//     test_node_f32(&n, 1, (int64_t[]){3}, (float[]){-2, 0, 2});
//     test_node_float(&n, "max", 1);
//     REQUIRE(test_node_run(&n, 1) == REE_OK);
//     ... n.out[0]->dims, test_node_output(&n, 0) ...
//     test_node_finish(&n);
//
// Inputs and lists are copied. Names and strings are borrowed and must live as long as the node.
#ifndef REE_TESTS_LOWER_NODE_H
#define REE_TESTS_LOWER_NODE_H

#include "graph/lower/core/lower.h"

#define TEST_NODE_MAX 64

struct test_node {
    bool fuse; // whether run fuses the node's dispatches; test_node_start sets it to true
    struct ree_arena arena;
    struct ree_lower lower;
    struct ree_error err;
    struct ree_graph *graph;
    struct ree_node node;
    struct ree_attr attrs[16];
    struct ree_value values[TEST_NODE_MAX]; // the inputs that are not omitted, then the outputs
    struct ree_value *inputs[TEST_NODE_MAX], *outputs[TEST_NODE_MAX];
    struct ree_view *views[TEST_NODE_MAX]; // tensor views of the values, indexed by value id
    struct ree_view **out;                 // tensor views of the outputs, valid after run
    uint32_t n_values;
};

void test_node_start(struct test_node *n, const char *op_type, int64_t opset);
void test_node_input(struct test_node *n, enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                     const void *data);
void test_node_f32(struct test_node *n, uint32_t rank, const int64_t *dims, const float *data);
void test_node_omit(struct test_node *n); // adds an omitted optional input
void test_node_int(struct test_node *n, const char *name, int64_t value);
void test_node_ints(struct test_node *n, const char *name, size_t count, const int64_t *values);
void test_node_float(struct test_node *n, const char *name, float value);
void test_node_string(struct test_node *n, const char *name, const char *value);
void test_node_strings(struct test_node *n, const char *name, size_t count,
                       const char *const *values);
// Adds inputs and attributes from text. Inputs are separated by blanks: a letter for the type (f
// float32, h float16, i int32, l int64, c int8, u uint8, s int16, e float8e4m3fn), then the sizes,
// separated by commas; all elements are 0. '-' is an omitted input. Attributes are "name=integer",
// separated by blanks.
void test_node_text(struct test_node *n, const char *inputs, const char *attrs);
enum ree_status test_node_run(struct test_node *n, uint32_t n_outputs);
// Returns the elements of output i, dense and row-major, in memory that the node owns. If they
// cannot be computed, fails a check and returns NULL.
const void *test_node_output(struct test_node *n, uint32_t i);
void test_node_finish(struct test_node *n);

// Pseudo-random floats in [-2, 2]. The same initial *state gives the same sequence.
float test_random(uint64_t *state);
void test_random_fill(uint64_t *state, size_t count, float *out);

#endif
