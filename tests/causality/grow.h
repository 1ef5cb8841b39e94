// Adds random nodes to models: shapes, lists of numbers, positions and masks, combined in ways that
// no decoder uses. The proof's fact about each new value must agree with what a run computes.
#ifndef REE_TESTS_CAUSALITY_GROW_H
#define REE_TESTS_CAUSALITY_GROW_H

#include "ree.h"

struct grown {
    long n_tried;   // new nodes
    long n_claimed; // new nodes about whose outputs the proof states a fact
    long n_ran;     // claimed nodes in runs without an error
    struct grown_operator {
        const char *op_type;
        long n_claimed, n_ran;
    } operators[64];
};

// Adds nodes to the model in the file `path`. Returns false on a contradiction, and prints it to
// stderr.
bool grow(const char *path, struct ree_device *device, uint64_t seed, struct grown *grown);
void grown_print(const struct grown *grown);

#endif
