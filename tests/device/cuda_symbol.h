// Functions of the CUDA driver that the backend does not use, and of the tests' emulator.
#ifndef REE_TESTS_DEVICE_CUDA_SYMBOL_H
#define REE_TESTS_DEVICE_CUDA_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "device/cuda/cuda.h"

// *function: a pointer to a function; NULL if the driver has none of this name. Returns whether it
// has one.
static inline bool cuda_symbol(const struct ree_cuda *cuda, const char *name, void *function) {
    void *symbol = dlsym(cuda->driver.library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
