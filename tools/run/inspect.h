// inspect --passes: the way of a model through the compiler, down to what a device is given.
#ifndef REE_TOOLS_RUN_INSPECT_H
#define REE_TOOLS_RUN_INSPECT_H

#include "inputs.h"

// Prints the graph after each pass, and the dispatches and the memory plan for `inputs`, also what
// came before a failure. Returns the exit code.
int inspect_passes(const char *path, struct run_inputs *inputs);

#endif
