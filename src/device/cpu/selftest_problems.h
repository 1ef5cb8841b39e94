// The problem groups of selftest.h, one function per group. Most problems are dispatches whose
// lengths ree_twin_shrink replaces by small ones. If a length itself selects the code, the dispatch
// runs unchanged.
//
// Kernels have separate functions for each tile height, for each small number of rows and for each
// element type. Which functions a problem reaches depends on the instruction set; the results do
// not. Lengths are chosen for tiles of 4, 6, 8 and 12 rows and for vectors of 1, 4, 8 and 16
// floats, so that all functions that models require are run.
#ifndef REE_DEVICE_CPU_SELFTEST_PROBLEMS_H
#define REE_DEVICE_CPU_SELFTEST_PROBLEMS_H

#include "device/cpu/selftest_trial.h"

#define SOME 100 // placeholder for a length that ree_twin_shrink replaces

#define ROWS 19      // rows of a product: more than one tile, with unequal heights
#define TALL_ROWS 24 // rows: a multiple of every instruction set's largest tile height
#define COLUMNS 37   // columns of a product: some whole tiles and a partial one
#define TALL_COLUMNS 44
#define MAX_HEIGHT 12 // rows of the largest tile of any instruction set

// selftest_products.c
enum ree_status ree_cpu_test_matmul(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_blocks(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_bytes(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_int8(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_pairs(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_wide(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_conv(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_conv_bytes(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_attention(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_epilogue(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_shared(const struct ree_cpu_trial *t);

// selftest_reductions.c
enum ree_status ree_cpu_test_softmax(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_norm(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_reduce(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_scan(const struct ree_cpu_trial *t);

// selftest_elements.c
enum ree_status ree_cpu_test_windows(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_indices(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_map(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_map_powers(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_looked_up(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_map_mpfr(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_stored(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_movement(const struct ree_cpu_trial *t);

#endif
