// The CPU tests its own kernels: groups of small hard problems, whose results have recorded SHA-256
// values. A compiler that moved a bit, or a processor that computes another, is found out before
// anything counts on it. Once per binary and processor, in ree's floating-point environment
// whatever the calling program's is; the result is kept in the cache folder
// (device/selftest/record.h).
#ifndef REE_DEVICE_CPU_SELFTEST_H
#define REE_DEVICE_CPU_SELFTEST_H

#include "device/cpu/cpu_internal.h"

// Tests the kernels of an instruction set. out_what (of REE_CPU_TEST_TEXT bytes): the groups that
// do not give the recorded values, "" if all do. cache_dir: as in struct ree_device_options. Takes
// some tens of milliseconds the first time, and no time afterwards in the same process. Fails with
// REE_NO_MEMORY, and then says nothing of the kernels. Thread-safe.
#define REE_CPU_TEST_TEXT 512
#define REE_CPU_TEST_RESULTS "cpu.tests" // the file in the cache folder
enum ree_status ree_cpu_isa_test(enum ree_cpu_isa isa, const char *cache_dir, char *out_what,
                                 struct ree_error *err);

// What was found out in this process: NULL nothing yet, "" right, or the problems that are wrong.
// Valid for the life of the process.
const char *ree_cpu_isa_verdict(enum ree_cpu_isa isa);

// As ree_cpu_isa_select, but what is selected is right: with name NULL the best one that is. Fails
// with REE_UNSUPPORTED, naming what is wrong, if none is, or if the one named is not; with
// REE_NO_MEMORY as ree_cpu_isa_test.
enum ree_status ree_cpu_isa_select_right(const char *name, const char *cache_dir,
                                         enum ree_cpu_isa *out, struct ree_error *err);

// For work without a CPU device (ree_cpu_execute): selects the best instruction set that is right.
// Its test's result is kept in the folder last passed to ree_cpu_use_cache; before that, nowhere.
enum ree_status ree_cpu_isa_select_any(enum ree_cpu_isa *out, struct ree_error *err);

// Groups of problems (selftest_problems.h).
struct ree_hasher;
struct ree_cpu_trial;
struct ree_cpu_test {
    const char *name; // "matmul", ...
    enum ree_status (*run)(const struct ree_cpu_trial *trial);
    const char *recorded; // the first 128 bits of the SHA-256, in hexadecimal
};
extern const struct ree_cpu_test ree_cpu_tests[];
extern const size_t ree_cpu_n_tests;
// Adds the results of a group's kernels to the hasher. Fails only if memory is short or a kernel
// refuses.
enum ree_status ree_cpu_test_hash(const struct ree_cpu_test *test,
                                  const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                  struct ree_error *err);
// Runs one; out: its digest, 32 digits and a NUL.
enum ree_status ree_cpu_test_run(const struct ree_cpu_test *test, enum ree_cpu_isa isa,
                                 char out[33], struct ree_error *err);

#endif
