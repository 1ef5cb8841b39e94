// Declarations shared by the files of `ree-run bench`.
#ifndef REE_TOOLS_RUN_BENCH_H
#define REE_TOOLS_RUN_BENCH_H

#include "cli.h"
#include "device/device.h"
#include "inputs.h"

#define BENCH_MAX_RUNS 1000

// Times of repeated runs, in seconds, sorted in ascending order.
struct bench_times {
    double seconds[BENCH_MAX_RUNS];
    uint32_t n;
};
// Inserts a time; ignores it if there are already BENCH_MAX_RUNS.
void bench_times_add(struct bench_times *times, double seconds);
// q from 0 to 1; 0.5: the median. 0 without times
double bench_quantile(const struct bench_times *times, double q);
// Monotonic seconds.
double bench_now(void);
// Sleeps between two measurements, so that idle threads of the first do not slow down the second.
void bench_rest(void);

#define BENCH_MAX_OPERANDS 5

// One dispatch on a device, with its buffers.
struct bench_program {
    struct ree_device *device;
    struct ree_device_program *program;
    struct ree_device_buffer *slots[BENCH_MAX_OPERANDS];
    uint32_t n_slots;
    struct bench_times times;
};
// Creates the operands and the program, and runs it once without recording the time.
// - sizes: bytes of each operand, the output last.
// - dtypes: types of the operands. Inputs are filled with numbers of these types (u4: bytes below
//   16). NULL: floats in [-1, 1).
// - constants: bit mask of the operands to declare constant, so that the device may prepare them.
enum ree_status bench_program_create(struct bench_program *bench, struct ree_device *device,
                                     enum ree_repop op, const union ree_params *params,
                                     uint32_t n_operands, const uint64_t *sizes,
                                     const enum ree_dtype *dtypes, uint32_t constants,
                                     struct ree_error *err);
void bench_program_destroy(struct bench_program *bench);
// Runs once and records the time: the device's own measurement if it has one, otherwise wall time.
enum ree_status bench_program_run(struct bench_program *bench, struct ree_error *err);
// Runs twice and records only the second time.
enum ree_status bench_program_run_warm(struct bench_program *bench, struct ree_error *err);

// The host processor's baseline for matrix products.
struct bench_openblas {
    void *library; // NULL: not installed
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
};
// Loads OpenBLAS. If it is not installed, blas->library is NULL.
void bench_openblas_open(struct bench_openblas *blas, uint32_t n_threads);
void bench_openblas_close(struct bench_openblas *blas);
// Reads or copies memory with n_threads threads; returns the seconds that this took.
double bench_read(const void *memory, size_t size, uint32_t n_threads);
double bench_copy(void *to, const void *from, size_t size, uint32_t n_threads);
// Random floats in [-1, 1), 64-byte aligned; release with free. NULL: out of memory
float *bench_floats(size_t n);

// One measured quantity, to be reported as text or JSON.
struct bench_result {
    char name[96];    // "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    double amount;    // flops or bytes of one run
    struct bench_times times;
    const char *baseline; // name of what the rate is compared with; NULL: nothing
    double baseline_rate; // rate of the baseline, in `unit`
};

#define BENCH_MAX_PEERS 2

struct bench {
    struct cli_device options;
    const char *size; // value of --size; NULL: not given, run a selection of sizes
    uint64_t n_runs, filters, kernel, stride, groups;
    struct ree_device *device;
    bool is_cpu;
    bool is_gpu; // a GPU, not a driver that runs on the processor
    uint32_t n_threads;
    double load_seconds;        // time to load the model
    struct bench_openblas blas; // on the CPU only
    // The same device opened with other operation sets, which use the vendor's library (cuBLAS).
    struct {
        const char *name;
        struct ree_device *device;
    } peers[BENCH_MAX_PEERS];
    uint32_t n_peers;
    struct bench_result results[32];
    uint32_t n_results;
};
// Appends a copy of the result to bench->results; ignores it if these are full.
void bench_report(struct bench *bench, const struct bench_result *result);

// The memory bandwidth that limits every streaming operation. On the CPU: reading memory, or
// copying it for operations that write as much as they read. On other devices: copying on the
// device. A copy counts both the bytes read and the bytes written.
struct bench_memory {
    const char *name; // "reading memory"
    bool copies;
    uint8_t *memory; // host memory; NULL for other devices
    uint64_t bytes;  // size of one region
    uint64_t n_regions;
    struct bench_program copy;
    struct bench_times times;
};
// Release with bench_memory_destroy, also after a failure. Only the CPU uses bytes, n_regions and
// copies.
enum ree_status bench_memory_create(struct bench *bench, uint64_t bytes, uint64_t n_regions,
                                    bool copies, struct bench_memory *out, struct ree_error *err);
// Reads or copies region i modulo n_regions and records the time.
enum ree_status bench_memory_run(struct bench *bench, struct bench_memory *memory, uint64_t i,
                                 struct ree_error *err);
double bench_memory_rate(const struct bench_memory *memory); // GB/s at the median time
// Accepts a zeroed struct.
void bench_memory_destroy(struct bench_memory *memory);

// Parses "2x3x4" into n numbers, each at most 2^30. `form` is the expected form of --size, for
// messages.
enum ree_status bench_parse_size(const char *text, uint32_t n, uint32_t *out, const char *form,
                                 struct ree_error *err);
// Fails if one of the three tensor sizes exceeds 2^30 elements.
enum ree_status bench_check_elements(uint64_t a, uint64_t b, uint64_t c, struct ree_error *err);
// Creates the product of two n x n float matrices.
enum ree_status bench_matmul_create(struct bench *bench, uint32_t n, struct bench_program *program,
                                    struct ree_error *err);

enum ree_status bench_matmul(struct bench *bench, struct ree_error *err);
// One row times n columns of k weights of 16 bits or fewer; then bytes times bytes.
enum ree_status bench_narrow_row(struct bench *bench, uint32_t n, uint32_t k,
                                 struct ree_error *err);
enum ree_status bench_bytes_product(struct bench *bench, const uint32_t size[3],
                                    struct ree_error *err);
enum ree_status bench_conv(struct bench *bench, struct ree_error *err);
enum ree_status bench_map(struct bench *bench, struct ree_error *err);
enum ree_status bench_rows(struct bench *bench, struct ree_error *err); // softmax and norm
enum ree_status bench_attention(struct bench *bench, struct ree_error *err);

// Loads the model and its inputs. Inputs without a file are generated from the seed. Returns an
// exit code and may print. The caller destroys *out.
int bench_model_load(struct bench *bench, const char *path, struct run_inputs *inputs,
                     struct ree_model **out);
// Measures whole runs of a model on bench->device and its peers; appends the report to *out.
enum ree_status bench_model(struct bench *bench, const char *path, struct ree_model *model,
                            const struct run_inputs *inputs, bool json, struct ree_strbuf *out,
                            struct ree_error *err);

#endif
