// A wrong node being drawn, and what it is drawn from: numbers, texts, types, shapes, tensors
// (wrong_values.c); its inputs, outputs and attributes (wrong_draws.c). All of one node, hence the
// globals.
#ifndef REE_TESTS_LOWER_WRONG_DRAWS_H
#define REE_TESTS_LOWER_WRONG_DRAWS_H

#include "wrong_graph.h"

struct wrong {
    struct wrong_random rng;
    struct test_node node;
    int64_t list_length; // of most lists of one node
    int64_t base_dims[REE_MAX_RANK];
    uint32_t base_rank;
    enum ree_dtype base_dtype;
    const struct wrong_template *template; // the node was made from, or NULL
    bool careful;                          // inputs and numbers that fit each other, but for a few
};
extern struct wrong wrong;

// wrong_values.c
uint32_t wrong_any(uint32_t n); // a number below n
bool wrong_one_in(uint32_t n);
void *wrong_memory(size_t size); // of the node's arena
int64_t wrong_int(void);
float wrong_number(void);
const char *wrong_text(void);
enum ree_dtype wrong_dtype(void);
int64_t wrong_dim(void);
uint32_t wrong_dims(int64_t *dims); // gives the rank
size_t wrong_count(uint32_t rank, const int64_t *dims);
void *wrong_bytes(enum ree_dtype dtype, size_t n);
struct ree_tval *wrong_value(bool any_kind); // a tensor, unless any kind is allowed

// wrong_draws.c: everything of wrong.node, which is started. Attributes come while the rule runs.
void wrong_draw(const struct ree_op *op, uint64_t seed);

#endif
