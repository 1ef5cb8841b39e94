// Runs matmul or conv on every instruction set of this machine with 1, 2 and 3 threads, with and
// without packed weights, and compares the bytes of each output, and those around it, with what is
// expected.
#ifndef REE_TESTS_DEVICE_RUN_PRODUCTS_H
#define REE_TESTS_DEVICE_RUN_PRODUCTS_H

#include "device/cpu/cpu_internal.h"

// operands: all of the RepOp's in order but the output. Returns a description of the first
// difference (static storage), or NULL; adds the number of runs to *n_runs.
const char *run_products(enum ree_repop op, const union ree_params *params, void *const *operands,
                         uint32_t n_operands, const void *expected, size_t nbytes, long *n_runs);

// Gives the context a packed copy of each operand that packs, of its exact size, so that a
// sanitizer sees reads outside. false: none does.
bool run_products_pack(struct ree_cpu_context *ctx, enum ree_repop op,
                       const union ree_params *params, void *const *operands);
void run_products_unpack(struct ree_cpu_context *ctx);

#endif
