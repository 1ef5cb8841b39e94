// Helpers of twin_shapes.c, twin_products.c and twin_index.c. A function there makes the parameters
// of one RepOp those of its twin and adds the twin's operands; it returns false if the dispatch has
// no elements.
//
// Every dimension gets its own length. A dimension of size 1 stays if an encoder would drop or
// merge it, or if ree_twin_size requires it.
#ifndef REE_DEVICE_SELFTEST_TWIN_SHRINK_H
#define REE_DEVICE_SELFTEST_TWIN_SHRINK_H

#include "device/selftest/hard_values.h"
#include "device/selftest/twin_size.h"
#include "repops/repop.h"

struct ree_twin_operand {
    struct ree_hard_values values; // contents before a run: values.n elements
    bool is_written;
};

struct ree_twin_shrinking {
    struct ree_dispatch *dispatch;
    const struct ree_twin_size *size;
    struct ree_twin_operand *operands;
    uint32_t n_operands;
};

// Adds an operand of n elements to read. run: see struct ree_hard_values.
void ree_twin_add(struct ree_twin_shrinking *s, enum ree_hard_role role, uint32_t dtype, uint64_t n,
                  uint64_t run);
// Adds an operand of n integers from low to high to read.
void ree_twin_add_bounded(struct ree_twin_shrinking *s, uint32_t dtype, uint64_t n, int64_t low,
                          int64_t high);
// Adds an operand of n elements that the twin writes.
void ree_twin_add_output(struct ree_twin_shrinking *s, uint32_t dtype, uint64_t n);
// Changes an expression to the dimensions `to` and adds its operands after the existing ones.
void ree_twin_shrink_expr(struct ree_twin_shrinking *s, struct ree_expr *expr, const uint32_t *to);

// Returns the product of dims[rank].
uint64_t ree_twin_product(uint32_t rank, const uint32_t *dims);
uint32_t ree_twin_at_most(uint32_t value, uint32_t limit);
// Returns whether sizes of 1 that select no code become larger.
bool ree_twin_grows_ones(const struct ree_twin_size *size);
// Returns the length of a row in place of n.
uint32_t ree_twin_shrink_row(const struct ree_twin_shrinking *s, uint32_t n);

#endif
