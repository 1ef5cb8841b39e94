// Self-test of the CPU kernels: groups of small hard problems whose results have recorded SHA-256
// values. It detects a compiler that changes a bit or a processor that computes a different one,
// before anything relies on the kernels. It runs in ree's floating-point environment regardless of
// the caller's. A pass is kept in the cache folder (device/selftest/record.h), so the test runs
// once per binary and processor.
#ifndef REE_DEVICE_CPU_SELFTEST_H
#define REE_DEVICE_CPU_SELFTEST_H

#include "device/cpu/cpu_internal.h"

// ree_cpu_isa_test tests the kernels of an instruction set. out_what (REE_CPU_TEST_TEXT bytes)
// receives the names of the groups whose results differ from the recorded values; "" if all are
// right. cache_dir: as in struct ree_device_options. The first call takes some tens of
// milliseconds; later calls in the same process take no time. Fails with REE_NO_MEMORY; then it is
// unknown whether the kernels are right. Thread-safe.
#define REE_CPU_TEST_TEXT 512
#define REE_CPU_TEST_RESULTS "cpu.tests" // name of the file in the cache folder
enum ree_status ree_cpu_isa_test(enum ree_cpu_isa isa, const char *cache_dir, char *out_what,
                                 struct ree_error *err);

// Returns the result known in this process: NULL if the instruction set was not tested, "" if it is
// right, or else the names of the wrong groups. Valid for the life of the process.
const char *ree_cpu_isa_verdict(enum ree_cpu_isa isa);

// As ree_cpu_isa_select, but selects only an instruction set that passes its self-test; if name is
// NULL, the best one that passes. Fails like ree_cpu_isa_select. Fails with REE_UNSUPPORTED, naming
// the wrong groups, if the named one does not pass or none does. Fails with REE_NO_MEMORY like
// ree_cpu_isa_test.
enum ree_status ree_cpu_isa_select_right(const char *name, const char *cache_dir,
                                         enum ree_cpu_isa *out, struct ree_error *err);

// Selects the best instruction set that passes its self-test, for work without a CPU device
// (ree_cpu_execute). A pass is kept in the folder last passed to ree_cpu_use_cache; before such a
// call it is not kept.
enum ree_status ree_cpu_isa_select_any(enum ree_cpu_isa *out, struct ree_error *err);

struct ree_hasher;
struct ree_cpu_trial;
// A group of self-test problems (selftest_problems.h). The table ree_cpu_tests lists all groups.
struct ree_cpu_test {
    const char *name; // such as "matmul"
    enum ree_status (*run)(const struct ree_cpu_trial *trial);
    const char *recorded; // first 128 bits of the SHA-256 of the right results, in hexadecimal
};
extern const struct ree_cpu_test ree_cpu_tests[];
extern const size_t ree_cpu_n_tests;
// Runs one group and adds its kernels' results to the hasher. Fails only if memory is exhausted or
// a kernel fails.
enum ree_status ree_cpu_test_hash(const struct ree_cpu_test *test,
                                  const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                  struct ree_error *err);
// Runs one group with an instruction set. out: first 128 bits of the SHA-256 of its results, 32
// hexadecimal digits and a NUL.
enum ree_status ree_cpu_test_run(const struct ree_cpu_test *test, enum ree_cpu_isa isa,
                                 char out[33], struct ree_error *err);

#endif
