// Shared by the files of the benchmarks: measurements, baselines and the benchmarks of RepOps.
#ifndef REE_BENCH_BENCH_INTERNAL_H
#define REE_BENCH_BENCH_INTERNAL_H

#include "base/progress.h"
#include "device/device.h"
#include "ree/bench.h"

// Times of repeated runs, in seconds, sorted in ascending order.
struct ree_bench_times {
    double seconds[REE_BENCH_MAX_RUNS];
    uint32_t n;
};
// Inserts a time in seconds. Ignores it if there are already REE_BENCH_MAX_RUNS.
void ree_bench_times_add(struct ree_bench_times *times, double seconds);
// Returns the q-quantile of the times in seconds, q from 0 to 1; 0.5 is the median. Returns 0 if
// there are no times.
double ree_bench_quantile(const struct ree_bench_times *times, double q);
// Sleeps for 30 ms between two measurements, so that idle threads of the first, which still spin,
// do not slow down the second.
void ree_bench_rest(void);

#define REE_BENCH_MAX_OPERANDS 5

// One dispatch on a device, with its buffers.
struct ree_bench_program {
    struct ree_device *device;
    struct ree_device_program *program;
    struct ree_device_buffer *slots[REE_BENCH_MAX_OPERANDS];
    uint32_t n_slots;
    double last; // duration of the latest run, in seconds
    struct ree_bench_times times;
};
// Creates the operands and a program of one dispatch, and runs it once without recording the time.
// Release *bench with ree_bench_program_destroy.
// - sizes: bytes of each operand, the output last.
// - dtypes: types of the operands. Inputs are filled with numbers of these types (u4: bytes below
//   16). NULL: floats in [-1, 1).
// - constants: bit mask of the operands to declare constant, so that the device may prepare them.
enum ree_status ree_bench_program_create(struct ree_bench_program *bench, struct ree_device *device,
                                         enum ree_repop op, const union ree_params *params,
                                         uint32_t n_operands, const uint64_t *sizes,
                                         const enum ree_dtype *dtypes, uint32_t constants,
                                         struct ree_error *err);
void ree_bench_program_destroy(struct ree_bench_program *bench);
// Runs the program once and records the time: the device's own measurement if it has one, otherwise
// wall time.
enum ree_status ree_bench_program_run(struct ree_bench_program *bench, struct ree_error *err);
// Runs the program twice and records only the second time.
enum ree_status ree_bench_program_run_warm(struct ree_bench_program *bench, struct ree_error *err);

// OpenBLAS, loaded at run time: the baseline for matrix products on the CPU.
struct ree_bench_openblas {
    // handle of dlopen; NULL: OpenBLAS is not installed
    void *library;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
};
// Loads OpenBLAS. If it is not installed, blas->library is NULL.
void ree_bench_openblas_open(struct ree_bench_openblas *blas, uint32_t n_threads);
void ree_bench_openblas_close(struct ree_bench_openblas *blas);
// ree_bench_read reads `size` bytes of memory with n_threads threads; ree_bench_copy copies them.
// Both return the seconds that this took.
double ree_bench_read(const void *memory, size_t size, uint32_t n_threads);
double ree_bench_copy(void *to, const void *from, size_t size, uint32_t n_threads);
// Returns n random floats in [-1, 1), 64-byte aligned, or NULL if memory is exhausted. Release them
// with ree_free_aligned.
float *ree_bench_floats(size_t n);

// One measured quantity.
struct ree_bench_measured {
    char name[96];    // such as "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    double amount;    // floating-point or integer operations, or bytes, of one run
    struct ree_bench_times times;
    const char *baseline; // what the rate is compared with; NULL: nothing
    double baseline_rate; // rate of the baseline, in `unit`
};

#define REE_BENCH_MAX_RESULTS 32

struct ree_benchmark {
    const char *size; // sizes as text, such as "1024x1024x1024"; NULL: built-in sizes
    uint64_t n_runs, filters, kernel, stride, groups;
    struct ree_device *device;
    bool is_cpu;
    bool is_gpu; // false for the CPU and for drivers that compute on it
    uint32_t n_threads;
    struct ree_bench_openblas blas; // only loaded if the device is the CPU
    struct ree_bench_peer peers[REE_BENCH_MAX_PEERS];
    uint32_t n_peers;
    struct ree_progress progress;
    struct ree_bench_measured results[REE_BENCH_MAX_RESULTS];
    uint32_t n_results;
    // The report of the last benchmark of RepOps, and its entries.
    struct ree_bench_report report;
    struct ree_bench_result reported[REE_BENCH_MAX_RESULTS];
    struct ree_bench_model *model; // last benchmark of a model; NULL: none
};
// Appends a copy of the result to bench->results. Ignores it if there are already
// REE_BENCH_MAX_RESULTS.
void ree_bench_report(struct ree_benchmark *bench, const struct ree_bench_measured *result);

// Measures the memory bandwidth, which limits every streaming operation. On the CPU, memory is
// read, or copied as a baseline for operations that write as much as they read. On other devices,
// memory of the device is copied. A copy counts both the bytes read and the bytes written.
struct ree_bench_memory {
    const char *name; // "reading memory" or "copying memory"
    bool copies;      // false: only reads
    uint8_t *memory;  // on the CPU: the regions, then the destination of copies; else NULL
    uint64_t bytes;   // size of one region in bytes
    uint64_t n_regions;
    struct ree_bench_program copy;
    struct ree_bench_times times;
};
// Prepares n_regions regions of `bytes` bytes. Only the CPU uses bytes, n_regions and copies.
// Release *out with ree_bench_memory_destroy, also after a failure.
enum ree_status ree_bench_memory_create(struct ree_benchmark *bench, uint64_t bytes,
                                        uint64_t n_regions, bool copies,
                                        struct ree_bench_memory *out, struct ree_error *err);
// Reads or copies region i modulo n_regions and records the time. On devices other than the CPU,
// runs the device's copy.
enum ree_status ree_bench_memory_run(struct ree_benchmark *bench, struct ree_bench_memory *memory,
                                     uint64_t i, struct ree_error *err);
double ree_bench_memory_rate(const struct ree_bench_memory *memory); // GB/s at the median time
// Accepts a zeroed struct.
void ree_bench_memory_destroy(struct ree_bench_memory *memory);

// Parses `text`, such as "2x3x4", into n numbers out[], each 1 to 2^30. `form` describes the
// expected form of --size, for messages. Fails with REE_INVALID.
enum ree_status ree_bench_parse_size(const char *text, uint32_t n, uint32_t *out, const char *form,
                                     struct ree_error *err);
// Fails with REE_INVALID if a, b or c, the elements of three tensors, exceeds 2^30.
enum ree_status ree_bench_check_elements(uint64_t a, uint64_t b, uint64_t c, struct ree_error *err);
// Creates a program that multiplies two n x n float32 matrices.
enum ree_status ree_bench_matmul_create(struct ree_benchmark *bench, uint32_t n,
                                        struct ree_bench_program *program, struct ree_error *err);

enum ree_status ree_bench_matmul(struct ree_benchmark *bench, struct ree_error *err);
// Measures one row of k floats times a (k, n) matrix of weights, for each type of weights of 16
// bits or fewer.
enum ree_status ree_bench_narrow_row(struct ree_benchmark *bench, uint32_t n, uint32_t k,
                                     struct ree_error *err);
// Measures products of bytes and of bfloat16. size: m, n and k.
enum ree_status ree_bench_narrow_product(struct ree_benchmark *bench, const uint32_t size[3],
                                         struct ree_error *err);
enum ree_status ree_bench_conv(struct ree_benchmark *bench, struct ree_error *err);
enum ree_status ree_bench_map(struct ree_benchmark *bench, struct ree_error *err);
// Measures softmax and norm.
enum ree_status ree_bench_rows(struct ree_benchmark *bench, struct ree_error *err);
enum ree_status ree_bench_attention(struct ree_benchmark *bench, struct ree_error *err);
enum ree_status ree_bench_ceilings(struct ree_benchmark *bench, struct ree_error *err);

struct ree_bench_model;
void ree_bench_model_destroy(struct ree_bench_model *run); // accepts NULL

#endif
