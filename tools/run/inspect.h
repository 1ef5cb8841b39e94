// inspect --passes: a model after each compiler pass, down to the device program.
#ifndef REE_TOOLS_RUN_INSPECT_H
#define REE_TOOLS_RUN_INSPECT_H

#include "inputs.h"

// Prints the graph after each pass, then the dispatches and the memory plan for `inputs`. On a
// failure it still prints what came before. Returns the exit code.
int inspect_passes(const char *path, struct run_inputs *inputs);

#endif
