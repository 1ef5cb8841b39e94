// Benchmarks: the speed of single RepOps on a device, and of whole runs of a model. ree.h does not
// include this header.
#ifndef REE_BENCH_H
#define REE_BENCH_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// A benchmark of one device. It alternates measured runs with runs of the baseline or of the peers,
// so that all see the same conditions. Use only one benchmark at a time in a process: several would
// distort each other's times.
struct ree_benchmark;

// The same device, opened with another operation set, for comparison. The struct does not change
// between versions.
struct ree_bench_peer {
    const char *name; // name of the peer in reports, for example "cuBLAS, TF32"
    struct ree_device *device;
};
#define REE_BENCH_MAX_PEERS 2
#define REE_BENCH_MAX_RUNS 1000

struct ree_benchmark_options {
    size_t size;        // sizeof this struct
    uint32_t n_runs;    // runs of each measurement; 0 means 21; at most REE_BENCH_MAX_RUNS
    uint32_t n_threads; // CPU threads of OpenBLAS and of memory baselines; 0: one per core
    size_t n_peers;     // number of `peers`; at most REE_BENCH_MAX_PEERS
    const struct ree_bench_peer *peers;
    // On the CPU: compare matrix products with OpenBLAS if it is installed. ree_benchmark_create
    // loads it; before that, it may set the environment variables OPENBLAS_CORETYPE and
    // OPENBLAS_THREAD_TIMEOUT if the process does not have them.
    bool use_openblas;
    // Sizes for ree_benchmark_repop, such as "1024x1024x1024"; `ree-run help bench` explains them.
    // The string must stay valid as long as the benchmark. NULL: a selection of sizes.
    const char *shape;
    // For the benchmark "conv". 0 means 64 filters, a kernel of 3 x 3, a stride of 1 and 1 group.
    uint32_t filters, kernel, stride, groups;
    struct ree_progress progress; // progress of loading, and of each measurement in runs
};

// Creates a benchmark of a device. The device, the peers' devices and the names of the peers must
// outlive it. `options` may be NULL.
REE_API enum ree_status ree_benchmark_create(struct ree_device *device,
                                             const struct ree_benchmark_options *options,
                                             struct ree_benchmark **out_benchmark,
                                             struct ree_error *err);
REE_API void ree_benchmark_destroy(struct ree_benchmark *benchmark);

// One measured quantity. The struct does not change between versions.
struct ree_bench_result {
    const char *name; // what was measured, for example "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    // Rates in `unit`: at the median time, at the slower quartile, at the faster quartile.
    double rate, rate_lower_quartile, rate_upper_quartile;
    double seconds;       // median time of one run
    const char *baseline; // name of what the rate is compared with; NULL: nothing
    double baseline_rate; // rate of the baseline, in `unit`
};

// The results of ree_benchmark_repop. Only the library makes this struct.
struct ree_bench_report {
    size_t n_results;
    const struct ree_bench_result *results;
    bool has_openblas; // OpenBLAS was found
};

// Returns whether `name` is the name of a RepOp benchmark: "matmul", "conv", "map", "rows",
// "attention" or "ceilings".
REE_API bool ree_benchmark_has(const char *name);
// Runs the RepOp benchmark `name`. Fails with REE_INVALID if there is none of this name, or if
// options.shape is not valid for it. *out_report belongs to the benchmark and is valid until the
// next ree_benchmark_repop.
REE_API enum ree_status ree_benchmark_repop(struct ree_benchmark *benchmark, const char *name,
                                            const struct ree_bench_report **out_report,
                                            struct ree_error *err);

// Times of whole runs of a model, in seconds, on the benchmark's device or on a peer. The struct
// does not change between versions.
struct ree_bench_set {
    const char *name; // name of the device's operation set, or of the peer
    // Time of the first run, which uploads the weights and compiles kernels; the part of it that
    // was spent binding.
    double first_seconds, bind_seconds;
    // Time of a later run, including the transfer of inputs and outputs: median and quartiles.
    double seconds, seconds_lower_quartile, seconds_upper_quartile;
};

// The cost of one dispatch in a run, or of all dispatches of one RepOp together. Each dispatch is
// measured by itself. The struct does not change between versions.
struct ree_bench_cost {
    const char *repop; // name of the RepOp, for example "matmul"
    const char *node;  // the node, as "node 'conv1' (Conv)"; NULL: all dispatches of this RepOp
    uint32_t n;        // number of dispatches
    // One dispatch: its shortest time in several runs. All dispatches of a RepOp: their times are
    // added in each run; this is the median of these sums over the runs.
    double seconds;
    double flops; // floating-point operations of products; 0 for other RepOps
    double bytes; // size of all operands
};

// The results of ree_benchmark_model. Only the library makes this struct.
struct ree_bench_model_report {
    size_t n_sets;
    const struct ree_bench_set *sets; // (n_sets): first the benchmark's device, then the peers
    struct ree_session_stats stats;   // statistics of the session on the benchmark's device
    // Name of the measured memory bandwidth, which limits a model that reads all its weights in
    // each run; NULL: not measured, because the weights are smaller than 16 MiB.
    const char *memory;
    double memory_rate;     // the measured memory bandwidth, in GB/s
    double flops;           // floating-point operations of all products of one run; 0: no profile
    bool has_profile;       // false: the device cannot measure single dispatches
    double profile_seconds; // device time of one run: the sum of the times in `repops`
    size_t n_repops;
    const struct ree_bench_cost *repops; // (n_repops): the slowest first
    size_t n_dispatches;
    const struct ree_bench_cost *dispatches; // (n_dispatches): the slowest first
};

// Measures whole runs of a model with the inputs of ree_session_run. The model must outlive the
// benchmark. *out_report belongs to the benchmark and is valid until the next ree_benchmark_model.
REE_API enum ree_status ree_benchmark_model(struct ree_benchmark *benchmark,
                                            struct ree_model *model,
                                            const struct ree_tensor *inputs, size_t n_inputs,
                                            const struct ree_bench_model_report **out_report,
                                            struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
