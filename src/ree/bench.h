// Benchmarks: the speed of single RepOps on a device, and of whole runs of a model. ree.h does not
// include this header.
#ifndef REE_BENCH_H
#define REE_BENCH_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// A benchmark alternates runs of what it measures with runs of what it compares that with. Use one
// benchmark at a time in a process: several would distort each other's times.
struct ree_benchmark;

// The same device, opened with another operation set, for comparison. Does not change between
// versions.
struct ree_bench_peer {
    const char *name; // "cuBLAS, TF32"
    struct ree_device *device;
};
#define REE_BENCH_MAX_PEERS 2
#define REE_BENCH_MAX_RUNS 1000

struct ree_benchmark_options {
    size_t size;        // sizeof this struct
    uint32_t n_runs;    // of each measurement; 0: 21; at most REE_BENCH_MAX_RUNS
    uint32_t n_threads; // CPU threads of OpenBLAS and of memory baselines; 0: one per core
    size_t n_peers;     // at most REE_BENCH_MAX_PEERS
    const struct ree_bench_peer *peers;
    // On the CPU: compare matrix products with OpenBLAS if it is installed. ree_benchmark_create
    // loads it; before that, it may set the environment variables OPENBLAS_CORETYPE and
    // OPENBLAS_THREAD_TIMEOUT if the process does not have them.
    bool use_openblas;
    // ree_benchmark_repop: sizes such as "1024x1024x1024", as `ree-run help bench` lists them; must
    // stay valid as long as the benchmark. NULL: a selection.
    const char *shape;
    // "conv": 0 means 64 filters, a kernel of 3 x 3, stride 1 and 1 group.
    uint32_t filters, kernel, stride, groups;
    struct ree_progress progress; // done: runs of one measurement
};

// The device, the peers' devices and the strings of the peers must outlive the benchmark. `options`
// may be NULL.
REE_API enum ree_status ree_benchmark_create(struct ree_device *device,
                                             const struct ree_benchmark_options *options,
                                             struct ree_benchmark **out_benchmark,
                                             struct ree_error *err);
REE_API void ree_benchmark_destroy(struct ree_benchmark *benchmark);

// One measured quantity. Does not change between versions.
struct ree_bench_result {
    const char *name; // "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    // In `unit`: at the median time; at the slower quartile; at the faster quartile.
    double rate, rate_lower_quartile, rate_upper_quartile;
    double seconds;       // of one run, median
    const char *baseline; // what the rate is compared with; NULL: nothing
    double baseline_rate; // in `unit`
};

// Made by the library.
struct ree_bench_report {
    size_t n_results;
    const struct ree_bench_result *results;
    bool has_openblas; // OpenBLAS was found
};

// Whether there is a benchmark of this name: "matmul", "conv", "map", "rows", "attention" or
// "ceilings".
REE_API bool ree_benchmark_has(const char *name);
// Runs the benchmark of this name. Fails with REE_INVALID if there is none, or if the shape is
// wrong. *out_report belongs to the benchmark and is valid until its next run.
REE_API enum ree_status ree_benchmark_repop(struct ree_benchmark *benchmark, const char *name,
                                            const struct ree_bench_report **out_report,
                                            struct ree_error *err);

// A model on the device (the first entry) or on a peer. Times in seconds. Does not change between
// versions.
struct ree_bench_set {
    const char *name; // of the operation set, or of the peer
    // Duration of the first run, which uploads the weights and compiles kernels; the part of it
    // that was spent binding.
    double first_seconds, bind_seconds;
    // Whole runs, including the transfer of inputs and outputs: median and quartiles.
    double seconds, seconds_lower_quartile, seconds_upper_quartile;
};

// The cost of one dispatch of a run, or of all dispatches of one RepOp. Dispatches are measured one
// by one. Does not change between versions.
struct ree_bench_cost {
    const char *repop; // "matmul"
    const char *node;  // "node 'conv1' (Conv)"; NULL: all dispatches of this RepOp
    uint32_t n;        // dispatches
    double seconds;    // over the runs: the minimum for one dispatch, the median for a RepOp's sum
    double flops;      // of products; 0 for other RepOps
    double bytes;      // size of all operands
};

// Made by the library.
struct ree_bench_model_report {
    size_t n_sets;
    const struct ree_bench_set *sets;
    struct ree_session_stats stats; // of the first entry
    // Name of the memory bandwidth that limits a model that reads all weights in each run; NULL:
    // the weights are too small to measure it.
    const char *memory;
    double memory_rate;     // that bandwidth, in GB/s
    double flops;           // of the products of one run; 0 without a profile
    bool has_profile;       // false: the device cannot measure single dispatches
    double profile_seconds; // device time of one run: the sum of `repops`
    size_t n_repops;        // the slowest first
    const struct ree_bench_cost *repops;
    size_t n_dispatches; // the slowest first
    const struct ree_bench_cost *dispatches;
};

// Measures whole runs of a model with these inputs, which are as for ree_session_run. The model
// must outlive the benchmark. *out_report belongs to the benchmark and is valid until the next
// ree_benchmark_model.
REE_API enum ree_status ree_benchmark_model(struct ree_benchmark *benchmark,
                                            struct ree_model *model,
                                            const struct ree_tensor *inputs, size_t n_inputs,
                                            const struct ree_bench_model_report **out_report,
                                            struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
