// State and functions for drawing a wrong node: numbers, texts, types, shapes, tensors
// (wrong_values.c); its inputs, outputs and attributes (wrong_draws.c). There is one node at a
// time, so the state is global.
#ifndef REE_TESTS_LOWER_WRONG_DRAWS_H
#define REE_TESTS_LOWER_WRONG_DRAWS_H

#include "wrong_graph.h"

struct wrong {
    struct splitmix rng;
    struct test_node node;
    int64_t list_length; // length of most lists of the node
    int64_t base_dims[REE_MAX_RANK];
    uint32_t base_rank;
    enum ree_dtype base_dtype;
    const struct wrong_template *template; // template of the node, or NULL
    bool careful;                          // most inputs and numbers fit each other
};
extern struct wrong wrong;

// wrong_values.c
uint32_t wrong_any(uint32_t n); // returns a number below n
bool wrong_one_in(uint32_t n);
void *wrong_memory(size_t size); // allocated in the node's arena
int64_t wrong_int(void);
float wrong_number(void);
const char *wrong_text(void);
enum ree_dtype wrong_dtype(void);
int64_t wrong_dim(void);
uint32_t wrong_dims(int64_t *dims); // returns the rank
size_t wrong_count(uint32_t rank, const int64_t *dims);
void *wrong_bytes(enum ree_dtype dtype, size_t n);
struct ree_view *wrong_value(bool any_kind); // always a tensor unless any_kind

// wrong_draws.c: starts wrong.node and draws its inputs and outputs. Attributes come from a
// template or are drawn while the rule runs.
void wrong_draw(const struct ree_op *op, uint64_t seed);

#endif
