// The run inputs: files named on the command line, and pseudo-random tensors for the rest.
#ifndef REE_TOOLS_RUN_INPUTS_H
#define REE_TOOLS_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n_args; // number of --input options
    const char **args;
    size_t n_dims; // number of --dim options
    const char **dims;
    bool random; // --random-inputs
    uint64_t seed;

    size_t n_tensors;
    struct ree_tensor *tensors; // each has the name of its model input
    size_t *tensor_numbers;     // per model input: 1 + index in `tensors`; 0: none
};

// Allocates the lists for a command line of argc arguments. false: out of memory (printed).
bool run_inputs_init(struct run_inputs *inputs, int argc);
// The options are cli_inputs_group and cli_random_group.
#define RUN_INPUTS_HELP                                                                            \
    "  --input NAME=FILE, --random-inputs SEED, --dim NAME=SIZE\n"                                 \
    "                       see 'ree-run help run'\n"

// Loads or generates the tensors for `model`. If a name is unknown or an input is missing, the
// message lists the inputs that the model requires. May print; returns an exit code.
int run_inputs_load(struct run_inputs *inputs, const struct ree_model *model);
void run_inputs_finish(struct run_inputs *inputs);

#endif
