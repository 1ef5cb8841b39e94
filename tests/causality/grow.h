// Models that get random nodes: shapes, lists of numbers, positions and masks put together in ways
// that no decoder does. What the proof says of each new value must be what a run computes.
#ifndef REE_TESTS_CAUSALITY_GROW_H
#define REE_TESTS_CAUSALITY_GROW_H

#include "ree.h"

struct grown {
    long n_tried;   // new nodes
    long n_claimed; // of which the proof says something
    long n_ran;     // of these, in runs without an error
    struct grown_operator {
        const char *op_type;
        long n_claimed, n_ran;
    } operators[64];
};

// Adds nodes to the model in the file `path`. False: something was wrong, and stderr says what.
bool grow(const char *path, struct ree_device *device, uint64_t seed, struct grown *grown);
void grown_print(const struct grown *grown);

#endif
