// Runs matmul or conv on every instruction set of this machine with 1, 2 and 3 threads, with and
// without packed weights. Compares the bytes of each output with the expected ones and checks the
// bytes around it.
#ifndef REE_TESTS_DEVICE_RUN_PRODUCTS_H
#define REE_TESTS_DEVICE_RUN_PRODUCTS_H

#include "device/cpu/cpu_internal.h"

// operands: all n_operands operands of the RepOp except the output, in order. expected: the bytes
// that the output must have, nbytes of them. Returns a description of the first difference (static
// storage), or NULL if there is none. Adds the number of runs to *n_runs.
const char *run_products(enum ree_repop op, const union ree_params *params, void *const *operands,
                         uint32_t n_operands, const void *expected, size_t nbytes, long *n_runs);

// Sets ctx->packed[i] to a packed copy of each operand i that can be packed. A copy is allocated
// with exactly its size, so that a sanitizer detects reads outside it. Returns false if no operand
// can be packed. Release the copies with run_products_unpack.
bool run_products_pack(struct ree_cpu_context *ctx, enum ree_repop op,
                       const union ree_params *params, void *const *operands);
void run_products_unpack(struct ree_cpu_context *ctx);

#endif
