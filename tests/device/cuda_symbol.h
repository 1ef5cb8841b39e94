// Looks up functions in the CUDA driver library by name, for tests that call driver functions that
// the CUDA backend does not use, or functions that only the tests' driver emulator has.
#ifndef REE_TESTS_DEVICE_CUDA_SYMBOL_H
#define REE_TESTS_DEVICE_CUDA_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "device/cuda/cuda.h"

// Looks up the function `name` in the driver library that `cuda` has loaded. `function` must point
// to a function pointer, which is set to the function, or to NULL if the library has none of this
// name. Returns whether the library has one.
static inline bool cuda_symbol(const struct ree_cuda *cuda, const char *name, void *function) {
    void *symbol = dlsym(cuda->driver.library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
