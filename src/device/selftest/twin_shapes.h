// Makes the parameters of a dispatch small, for its self-test (twin.h).
#ifndef REE_DEVICE_SELFTEST_TWIN_SHAPES_H
#define REE_DEVICE_SELFTEST_TWIN_SHAPES_H

#include "device/selftest/twin_shrink.h"

// Replaces the parameters in *dispatch with the twin's, fills operands[], and returns the number of
// operands, or 0 if the dispatch has no elements.
uint32_t ree_twin_shrink(struct ree_dispatch *dispatch, const struct ree_twin_size *size,
                         struct ree_twin_operand operands[REE_MAX_OPERANDS]);

#endif
