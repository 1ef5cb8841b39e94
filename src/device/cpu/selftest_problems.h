// The groups of problems of selftest.h, a function each. Most problems are dispatches that
// ree_twin_shrink makes small; where the size itself selects the code, the dispatch runs as it is.
//
// Kernels have a function of their own for each height of a tile, for each number of few rows and
// for each type of element. Which of them a problem reaches depends on the instruction set, what
// they compute does not. Lengths are chosen for tiles of 4, 6, 8 and 12 rows and for vectors of 1,
// 4, 8 and 16 floats, so that all functions run that models need.
#ifndef REE_DEVICE_CPU_SELFTEST_PROBLEMS_H
#define REE_DEVICE_CPU_SELFTEST_PROBLEMS_H

#include "device/cpu/selftest_trial.h"

#define SOME 100     // a dimension that the twin makes its own

#define ROWS 19      // of a product: more than one tile, of unequal heights
#define TALL_ROWS 24 // a multiple of every instruction set's highest tile
#define COLUMNS 37   // whole tiles and a part of one
#define TALL_COLUMNS 44
#define MAX_HEIGHT 12 // of a tile

// selftest_products.c
enum ree_status ree_cpu_test_matmul(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_blocks(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_matmul_bytes(const struct ree_cpu_trial *t);
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
enum ree_status ree_cpu_test_stored(const struct ree_cpu_trial *t);
enum ree_status ree_cpu_test_movement(const struct ree_cpu_trial *t);

#endif
