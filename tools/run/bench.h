// What the files of `ree-run bench` share.
#ifndef REE_TOOLS_RUN_BENCH_H
#define REE_TOOLS_RUN_BENCH_H

#include "cli.h"
#include "device/device.h"
#include "inputs.h"

#define BENCH_MAX_RUNS 1000

// Times of repeated runs, in seconds.
struct bench_times {
    double seconds[BENCH_MAX_RUNS];
    uint32_t n;
};
void bench_times_add(struct bench_times *times, double seconds);
double bench_quantile(const struct bench_times *times, double q); // 0.5: the median
double bench_now(void);
void bench_rest(void); // between contenders, so that neither disturbs the next

#define BENCH_MAX_OPERANDS 5

// One dispatch on a device, with its buffers.
struct bench_program {
    struct ree_device *device;
    struct ree_device_program *program;
    struct ree_device_buffer *slots[BENCH_MAX_OPERANDS];
    uint32_t n_slots;
    struct bench_times times;
};
// sizes: bytes of the operands, the output last. Inputs are filled with floats in [-1, 1), or
// with numbers of the types in `dtypes` (NULL: floats; u4: bytes below 16). The operands in the bit
// mask `constants` are declared constant, so that the device may prepare them.
enum ree_status bench_program_create(struct bench_program *bench, struct ree_device *device,
                                     enum ree_repop op, const union ree_params *params,
                                     uint32_t n_operands, const uint64_t *sizes,
                                     const enum ree_dtype *dtypes, uint32_t constants,
                                     struct ree_error *err);
void bench_program_destroy(struct bench_program *bench);
// Runs once and records the time: the device's own where it is not the host's processor.
enum ree_status bench_program_run(struct bench_program *bench, struct ree_error *err);
// Runs twice and records the second time.
enum ree_status bench_program_run_warm(struct bench_program *bench, struct ree_error *err);

// What results are measured against, on the host's processor.
struct bench_openblas {
    void *library; // NULL: not on this machine
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
};
void bench_openblas_open(struct bench_openblas *blas, uint32_t n_threads);
void bench_openblas_close(struct bench_openblas *blas);
// Reads, or copies, memory with n_threads threads; returns the seconds it took.
double bench_read(const void *memory, size_t size, uint32_t n_threads);
double bench_copy(void *to, const void *from, size_t size, uint32_t n_threads);
float *bench_floats(size_t n); // random in [-1, 1), 64-byte aligned; NULL: no memory

// One measured quantity, on the way to text or JSON.
struct bench_result {
    char name[96];    // "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    double amount;    // flops or bytes of one run
    struct bench_times times;
    const char *baseline; // what the ratio is against; NULL: nothing
    double baseline_rate; // in the same unit
};

#define BENCH_MAX_PEERS 2

struct bench {
    struct cli_device options;
    const char *size; // NULL: a selection
    uint64_t n_runs, filters, kernel, stride, groups;
    struct ree_device *device;
    bool is_cpu;
    bool is_gpu; // not a driver that runs on the processor
    uint32_t n_threads;
    double load_seconds;        // of the model
    struct bench_openblas blas; // of the CPU
    // The same device with other operation sets, which take the vendor's library.
    struct {
        const char *name;
        struct ree_device *device;
    } peers[BENCH_MAX_PEERS];
    uint32_t n_peers;
    struct bench_result results[32];
    uint32_t n_results;
};
void bench_report(struct bench *bench, const struct bench_result *result);

// What bounds whatever streams through memory: on the CPU reading it or, for what writes as much,
// copying; on another device copying it there. Of a copy the bytes read and written count.
struct bench_memory {
    const char *name; // "reading memory"
    bool copies;
    uint8_t *memory; // of the host; NULL for another device
    uint64_t bytes;  // of one region
    uint64_t n_regions;
    struct bench_program copy;
    struct bench_times times;
};
enum ree_status bench_memory_create(struct bench *bench, uint64_t bytes, uint64_t n_regions,
                                    bool copies, struct bench_memory *out, struct ree_error *err);
// Reads region i modulo n_regions, or copies, and records the time.
enum ree_status bench_memory_run(struct bench *bench, struct bench_memory *memory, uint64_t i,
                                 struct ree_error *err);
double bench_memory_rate(const struct bench_memory *memory); // GB/s
void bench_memory_destroy(struct bench_memory *memory);

// "2x3x4" to n numbers, each of at most 2^30; `form` is what --size should be.
enum ree_status bench_parse_size(const char *text, uint32_t n, uint32_t *out, const char *form,
                                 struct ree_error *err);
enum ree_status bench_check_elements(uint64_t a, uint64_t b, uint64_t c, struct ree_error *err);
// The product of two n x n matrices of floats.
enum ree_status bench_matmul_create(struct bench *bench, uint32_t n, struct bench_program *program,
                                    struct ree_error *err);

enum ree_status bench_matmul(struct bench *bench, struct ree_error *err);
// One row times n columns of k narrow weights; bytes times bytes.
enum ree_status bench_narrow_row(struct bench *bench, uint32_t n, uint32_t k,
                                 struct ree_error *err);
enum ree_status bench_bytes_product(struct bench *bench, const uint32_t size[3],
                                    struct ree_error *err);
enum ree_status bench_conv(struct bench *bench, struct ree_error *err);
enum ree_status bench_map(struct bench *bench, struct ree_error *err);
enum ree_status bench_rows(struct bench *bench, struct ree_error *err); // softmax and norm
enum ree_status bench_attention(struct bench *bench, struct ree_error *err);

// Reads the model and its inputs, which are made from the seed where no file is named; returns an
// exit code and may print. The caller destroys *out.
int bench_model_load(struct bench *bench, const char *path, struct run_inputs *inputs,
                     struct ree_model **out);
// Whole runs of a model on bench->device and its peers; the report goes to *out.
enum ree_status bench_model(struct bench *bench, const char *path, struct ree_model *model,
                            const struct run_inputs *inputs, bool json, struct ree_strbuf *out,
                            struct ree_error *err);

#endif
