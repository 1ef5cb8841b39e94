// Makes the inputs of a run: loads those for which the command line names files, and fills the
// others with pseudo-random numbers if --random-inputs is given.
#ifndef REE_TOOLS_RUN_INPUTS_H
#define REE_TOOLS_RUN_INPUTS_H

#include "ree.h"

struct run_inputs {
    size_t n_args; // number of --input options
    const char **args;
    size_t n_dims; // number of --dim options
    const char **dims;
    bool random; // --random-inputs was given
    uint64_t seed;

    size_t n_tensors;
    struct ree_tensor *tensors; // inputs read or generated; each has the name of its model input
    size_t *tensor_numbers;     // per model input: 1 + index in `tensors`; 0: not made
};

// Allocates the lists for a command line of argc arguments. If memory is exhausted, prints an error
// and returns false. Release with run_inputs_finish.
bool run_inputs_init(struct run_inputs *inputs, int argc);
// Short help of the options of cli_inputs_group and cli_random_group.
#define RUN_INPUTS_HELP                                                                            \
    "  --input NAME=FILE, --random-inputs SEED, --dim NAME=SIZE\n"                                 \
    "                       see 'ree-run help run'\n"

// Loads or generates the tensors for `model`. Returns 0, or prints an error and returns an exit
// code. If a name is unknown or an input is missing, the message lists the model's inputs.
int run_inputs_load(struct run_inputs *inputs, const struct ree_model *model);
void run_inputs_finish(struct run_inputs *inputs);

#endif
