// Draws random nodes, most of them wrong, for the test wrong_nodes. wrong_values.c draws numbers,
// texts, types, shapes and tensors; wrong_draws.c draws a node's inputs, outputs and attributes.
// There is one node at a time, so the state is global.
#ifndef REE_TESTS_LOWER_WRONG_DRAWS_H
#define REE_TESTS_LOWER_WRONG_DRAWS_H

#include "wrong_graph.h"

struct wrong {
    struct splitmix rng;
    struct test_node node;
    int64_t list_length; // number of elements of most of the node's list attributes
    int64_t base_dims[REE_MAX_RANK];
    uint32_t base_rank;
    enum ree_dtype base_dtype;
    const struct wrong_template *template; // valid node that is being changed; NULL: none
    bool careful; // draw shapes, types and numbers so that most of them fit each other
};
extern struct wrong wrong;

// wrong_values.c
uint32_t wrong_any(uint32_t n);  // returns a random number below n; 0 if n is 0
bool wrong_one_in(uint32_t n);   // true with a probability of 1 / n
void *wrong_memory(size_t size); // allocates `size` bytes in the node's arena; exits on failure
int64_t wrong_int(void);
float wrong_number(void);
const char *wrong_text(void);
enum ree_dtype wrong_dtype(void);
int64_t wrong_dim(void);
uint32_t wrong_dims(int64_t *dims); // fills `dims` and returns the rank
size_t wrong_count(uint32_t rank, const int64_t *dims);
void *wrong_bytes(enum ree_dtype dtype, size_t n);
// Returns a random tensor; with any_kind, in half of the calls a sequence or an absent value.
// Without any_kind these are rare.
struct ree_view *wrong_value(bool any_kind);

// wrong_draws.c: starts wrong.node as a node of the operator `op` and draws its inputs and outputs.
// Attributes come from the template or are drawn when the lowering rule reads them. The same seed
// gives the same node.
void wrong_draw(const struct ree_op *op, uint64_t seed);

#endif
