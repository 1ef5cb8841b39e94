// Implements `ree-run inspect --passes`, which shows how ree compiles a model.
#ifndef REE_TOOLS_RUN_INSPECT_H
#define REE_TOOLS_RUN_INSPECT_H

#include "inputs.h"

// Prints the graph of the model file `path` after each pass, then the dispatches and the memory
// plan for the shapes of `inputs`. After a failure it still prints the results of the earlier
// steps. Returns 0, or an exit code after an error message.
int inspect_passes(const char *path, struct run_inputs *inputs);

#endif
