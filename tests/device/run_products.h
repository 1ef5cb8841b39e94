// Runs matmul or conv on every instruction set of this machine with 1, 2 and 3 threads, with and
// without packed weights, and compares the bytes of each output, and those around it, with what is
// expected.
#ifndef REE_TESTS_DEVICE_RUN_PRODUCTS_H
#define REE_TESTS_DEVICE_RUN_PRODUCTS_H

#include "repops/repop.h"

// operands: all of the RepOp's in order but the output. Returns a description of the first
// difference (static storage), or NULL; adds the number of runs to *n_runs.
const char *run_products(enum ree_repop op, const union ree_params *params, void *const *operands,
                         uint32_t n_operands, const void *expected, size_t nbytes, long *n_runs);

#endif
