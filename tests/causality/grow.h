// Adds random nodes to models, which compute with shapes, lists of numbers, positions and masks in
// ways that no decoder uses. What the proof of causality states about each new value must agree
// with what a run computes.
#ifndef REE_TESTS_CAUSALITY_GROW_H
#define REE_TESTS_CAUSALITY_GROW_H

#include "ree.h"

// Counts of new nodes, in total and per operator.
struct grown {
    long n_tried;   // attempts to add a node
    long n_claimed; // new nodes about whose outputs the proof states a fact
    long n_ran;     // new nodes counted in n_claimed that also ran and agreed with the facts
    struct grown_operator {
        const char *op_type;
        long n_claimed, n_ran;
    } operators[64];
};

// Adds random nodes one by one to the model in the file `path`, runs the model after each, and adds
// to the counts in *grown. Returns false if a run contradicts a fact, after printing it to stderr,
// or if the model does not load or is not proved causal.
bool grow(const char *path, struct ree_device *device, uint64_t seed, struct grown *grown);
void grown_print(const struct grown *grown);

#endif
