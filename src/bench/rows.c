// `ree-run bench rows`: softmax and layer normalisation, which at best read and write each row
// once.
#include "bench/bench_internal.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

static enum ree_status run_rows(struct ree_benchmark *bench, enum ree_repop op, uint32_t rows,
                                uint32_t columns, struct ree_error *err) {
    static struct ree_bench_program program;
    static struct ree_bench_memory memory;
    struct ree_bench_measured result = {.unit = "GB/s"};
    union ree_params params;
    const uint64_t bytes = (uint64_t)rows * columns * sizeof(float);
    const uint64_t line = columns * sizeof(float);
    const uint64_t softmax_sizes[] = {bytes, bytes}, norm_sizes[] = {bytes, line, line, bytes};
    const bool is_softmax = op == REE_REPOP_SOFTMAX;
    memset(&params, 0, sizeof params);
    if (is_softmax)
        params.softmax = (struct ree_softmax_params){.outer = rows, .k = columns, .inner = 1};
    else
        params.norm = (struct ree_norm_params){
            .rows = rows,
            .cols = columns,
            .epsilon = 1e-5f,
            .has_scale = 1,
            .has_bias = 1,
            .scale_row_div = 1,
            .scale_row_mod = 1,
            .scale_col_stride = 1,
        };
    snprintf(result.name, sizeof result.name, "%s, %u x %u", is_softmax ? "softmax" : "layer norm",
             rows, columns);
    enum ree_status status = ree_bench_memory_create(bench, bytes, 1, true, &memory, err);
    if (status == REE_OK)
        status = ree_bench_program_create(&program, bench->device, op, &params, is_softmax ? 2 : 4,
                                          is_softmax ? softmax_sizes : norm_sizes, NULL, 0, err);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, result.name, i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run(&program, err);
        if (status == REE_OK) status = ree_bench_memory_run(bench, &memory, 0, err);
    }
    if (status == REE_OK) {
        result.amount = 2.0 * (double)bytes;
        result.times = program.times;
        result.baseline = memory.name;
        result.baseline_rate = ree_bench_memory_rate(&memory);
        ree_bench_report(bench, &result);
    }
    ree_bench_program_destroy(&program);
    ree_bench_memory_destroy(&memory);
    return status;
}

enum ree_status ree_bench_rows(struct ree_benchmark *bench, struct ree_error *err) {
    uint32_t size[2] = {4096, 4096};
    if (bench->size) REE_TRY(ree_bench_parse_size(bench->size, 2, size, "ROWSxCOLUMNS", err));
    REE_TRY(ree_bench_check_elements((uint64_t)size[0] * size[1], 1, 1, err));
    REE_TRY(run_rows(bench, REE_REPOP_SOFTMAX, size[0], size[1], err));
    return run_rows(bench, REE_REPOP_NORM, size[0], size[1], err);
}
