// The inputs of a run: files named on the command line, and pseudo-random tensors for the rest.
#ifndef REE_TOOLS_RUN_INPUTS_H
#define REE_TOOLS_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n_args; // of --input, as given
    const char **args;
    size_t n_dims; // of --dim: "batch=4"
    const char **dims;
    bool random; // --random-inputs
    uint64_t seed;

    size_t n_tensors;
    struct ree_tensor *tensors; // named
};

// Takes the value of a --dim, for which there must be room; what is no NAME=SIZE is wrong usage.
struct cli;
void run_inputs_add_dim(struct run_inputs *inputs, struct cli *cli, const char *text);

// Fills tensors for `model`. A message lists what the model wants when a name is unknown or an
// input is missing. May print; returns an exit code.
int run_inputs_load(struct run_inputs *inputs, const struct ree_model *model);
void run_inputs_finish(struct run_inputs *inputs);

#endif
