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
    size_t *given;              // by the model's inputs: 1 + place among the tensors; 0: none
};

// For a command line of so many arguments; false: out of memory (printed).
bool run_inputs_init(struct run_inputs *inputs, int argc);
// --input, --dim and --random-inputs.
struct cli;
bool run_inputs_option(struct cli *cli, struct run_inputs *inputs);
// The value of an --input; there is space for as many as arguments.
void run_inputs_add(struct run_inputs *inputs, const char *text);
// The value of a --dim; what is no NAME=SIZE is wrong usage.
void run_inputs_add_dim(struct run_inputs *inputs, struct cli *cli, const char *text);

#define RUN_INPUTS_HELP                                                                            \
    "  --input NAME=FILE, --random-inputs SEED, --dim NAME=SIZE\n"                                 \
    "                       see 'ree-run help run'\n"

// Fills tensors for `model`. A message lists what the model wants when a name is unknown or an
// input is missing. May print; returns an exit code.
int run_inputs_load(struct run_inputs *inputs, const struct ree_model *model);
void run_inputs_finish(struct run_inputs *inputs);

#endif
