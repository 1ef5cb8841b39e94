// Runs matmul or conv on every instruction set of this machine with 1, 2 and 3 threads, with and
// without packed weights. Compares the bytes of each output with the expected ones and checks the
// bytes around it.
#ifndef REE_TESTS_DEVICE_RUN_PRODUCTS_H
#define REE_TESTS_DEVICE_RUN_PRODUCTS_H

#include "device/cpu/cpu_internal.h"

// operands: all operands of the RepOp except the output, in order. nbytes: size of the output.
// Returns a description of the first difference (static storage), or NULL. Adds the number of runs
// to *n_runs.
const char *run_products(enum ree_repop op, const union ree_params *params, void *const *operands,
                         uint32_t n_operands, const void *expected, size_t nbytes, long *n_runs);

// Gives the context a packed copy, of exact size, of each operand that can be packed. The exact
// size lets a sanitizer see reads outside it. Returns false if no operand can be packed.
bool run_products_pack(struct ree_cpu_context *ctx, enum ree_repop op,
                       const union ree_params *params, void *const *operands);
void run_products_unpack(struct ree_cpu_context *ctx);

#endif
