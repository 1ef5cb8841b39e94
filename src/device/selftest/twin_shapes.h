// Computes the parameters of a twin from those of its dispatch. Each RepOp has a function of its
// own.
#ifndef REE_DEVICE_SELFTEST_TWIN_SHAPES_H
#define REE_DEVICE_SELFTEST_TWIN_SHAPES_H

#include "device/selftest/hard_values.h"
#include "device/selftest/twin.h"

struct ree_twin_operand {
    struct ree_hard_values values; // values.n elements
    bool is_written;
};

// Fills dispatch->params, whose values are the original's, and operands[], from size; returns how
// many operands there are; 0: the dispatch has no elements.
uint32_t ree_twin_shrink(struct ree_dispatch *dispatch, const struct ree_twin_size *size,
                         struct ree_twin_operand operands[REE_MAX_OPERANDS]);

#endif
