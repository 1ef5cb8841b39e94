// Benchmarks: the speed of single RepOps on a device, and of whole runs of a model. ree.h does not
// include this header.
#ifndef REE_BENCH_H
#define REE_BENCH_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs of what is measured and of what it is compared with alternate. Use one benchmark at a time
// in a process: others would distort it.
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
    uint32_t n_threads; // CPU threads of what is compared with; 0: one per core
    size_t n_peers;     // at most REE_BENCH_MAX_PEERS
    const struct ree_bench_peer *peers;
    // On the CPU: load OpenBLAS, if it is installed, to compare matrix products with. It is loaded
    // by ree_benchmark_create, which also sets environment variables that it reads.
    bool use_openblas;
    // Of single RepOps: sizes such as "1024x1024x1024", as `ree-run help bench` lists them; NULL: a
    // selection. Of convolutions: 0: 64, 3, 1 and 1.
    const char *shape;
    uint32_t filters, kernel, stride, groups;
    struct ree_progress progress; // done: runs of one measurement
};

// The device and its peers must outlive the benchmark. `options` may be NULL.
REE_API enum ree_status ree_benchmark_create(struct ree_device *device,
                                             const struct ree_benchmark_options *options,
                                             struct ree_benchmark **out_benchmark,
                                             struct ree_error *err);
REE_API void ree_benchmark_destroy(struct ree_benchmark *benchmark);

// One measured quantity. Does not change between versions.
struct ree_bench_result {
    const char *name; // "1024 x 1024 x 1024"
    const char *unit; // "GFLOP/s", "GOP/s" or "GB/s"
    // In `unit`: at the median time, at the slower and at the faster quartile.
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

// Whether there is a benchmark of this name: "matmul", "conv", "map", "rows" or "attention".
REE_API bool ree_benchmark_has(const char *name);
// Runs it. Fails with REE_INVALID if there is none of this name or the shape is wrong. *out_report
// belongs to the benchmark and is valid until its next run.
REE_API enum ree_status ree_benchmark_repop(struct ree_benchmark *benchmark, const char *name,
                                            const struct ree_bench_report **out_report,
                                            struct ree_error *err);

// A model on the device (the first entry) or on a peer. Times in seconds. Does not change between
// versions.
struct ree_bench_set {
    const char *name; // of the operation set, or of the peer
    // The first run, which uploads the weights and compiles what it needs; part of it: binding.
    double first_seconds, bind_seconds;
    // Whole runs, including the transfer of inputs and outputs: median and quartiles.
    double seconds, seconds_lower_quartile, seconds_upper_quartile;
};

// Dispatches of a run, measured one by one: of one kind, or a single one. Does not change between
// versions.
struct ree_bench_cost {
    const char *repop; // "matmul"
    const char *node;  // "node 'conv1' (Conv)"; NULL: all of this kind
    uint32_t n;        // dispatches
    double seconds;    // median of all of this kind; minimum of a single one
    double flops;      // of products; 0 for other RepOps
    double bytes;      // spanned by the operands
};

// Made by the library.
struct ree_bench_model_report {
    size_t n_sets;
    const struct ree_bench_set *sets;
    struct ree_session_stats stats; // of the first entry
    // Bandwidth that limits a model that reads all weights in each run, in GB/s; NULL: the weights
    // are too small to measure it.
    const char *memory;
    double memory_rate;
    double flops;     // of the products of one run
    bool has_profile; // false: the device cannot measure single RepOps
    double profile_seconds;
    size_t n_repops; // the slowest first
    const struct ree_bench_cost *repops;
    size_t n_dispatches; // the slowest first
    const struct ree_bench_cost *dispatches;
};

// Measures whole runs of a model with these inputs. Otherwise as ree_benchmark_repop.
REE_API enum ree_status ree_benchmark_model(struct ree_benchmark *benchmark,
                                            struct ree_model *model,
                                            const struct ree_tensor *inputs, size_t n_inputs,
                                            const struct ree_bench_model_report **out_report,
                                            struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
