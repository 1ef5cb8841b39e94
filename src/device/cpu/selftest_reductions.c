// Self-test problems of softmax, norm, reduce and scan.
#include "device/cpu/selftest_problems.h"

enum ree_status ree_cpu_test_softmax(const struct ree_cpu_trial *t) {
    for (uint32_t i = 0; i < 4; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX};
        d.params.softmax = (struct ree_softmax_params){
            .log = i & 1, .outer = SOME, .k = SOME, .inner = i & 2 ? SOME : 1};
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    return REE_OK;
}

enum ree_status ree_cpu_test_norm(const struct ree_cpu_trial *t) {
    for (uint32_t i = 0; i < 4; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_NORM};
        d.params.norm = (struct ree_norm_params){.rms = i & 1,
                                                 .rows = SOME,
                                                 .cols = SOME,
                                                 .epsilon = 1e-5f,
                                                 .has_scale = i >> 1,
                                                 .has_bias = i >> 1,
                                                 .scale_row_div = 1,
                                                 .scale_row_mod = 1,
                                                 .scale_col_stride = 1};
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    return REE_OK;
}

static enum ree_status run_reduce(const struct ree_cpu_trial *t, uint32_t kind, uint32_t dtype,
                                  bool columns) {
    struct ree_dispatch d = {.op = REE_REPOP_REDUCE};
    d.params.reduce = (struct ree_reduce_params){
        .kind = kind,
        .dtype = dtype,
        .n_outer = SOME,
        .n_reduce = SOME,
        .outer_rank = 1,
        .reduce_rank = 1,
        .outer_dims = {SOME},
        .outer_strides = {columns ? 1 : SOME}, // columns: the terms of an output are one row apart
        .reduce_dims = {SOME},
        .reduce_strides = {columns ? SOME : 1},
    };
    return ree_cpu_trial_run(t, &d);
}

// Reduces more columns than a twin has, so that adjacent columns are reduced together.
static enum ree_status run_wide_reduce(const struct ree_cpu_trial *t, uint32_t kind,
                                       uint32_t dtype) {
    const uint32_t n_columns = 75, n_rows = 300;
    const bool index = kind == REE_REDUCE_ARGMAX || kind == REE_REDUCE_ARGMIN;
    struct ree_dispatch d = {.op = REE_REPOP_REDUCE};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d.params.reduce = (struct ree_reduce_params){
        .kind = kind,
        .dtype = dtype,
        .n_outer = n_columns,
        .n_reduce = n_rows,
        .outer_rank = 1,
        .reduce_rank = 1,
        .outer_dims = {n_columns},
        .outer_strides = {1},
        .reduce_dims = {n_rows},
        .reduce_strides = {(int32_t)n_columns},
    };
    ree_cpu_trial_add_operand(&d, operands, dtype, (uint64_t)n_columns * n_rows, false);
    if (kind == REE_REDUCE_PROD) operands[0].values.role = REE_HARD_NEAR_ONE;
    ree_cpu_trial_add_operand(&d, operands, index ? REE_I64 : dtype, n_columns, true);
    return ree_cpu_trial_run_whole(t, &d, operands);
}

enum ree_status ree_cpu_test_reduce(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F64, REE_I32, REE_I64, REE_U8, REE_I8};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const struct ree_cpu_trial *trial = i < 3 ? t : &first;
        for (int columns = 0; columns < 2; columns++)
            for (uint32_t kind = REE_REDUCE_SUM; kind <= REE_REDUCE_ARGMIN; kind++)
                REE_TRY(run_reduce(trial, kind, dtypes[i], columns));
        for (uint32_t kind = REE_REDUCE_SUM; kind <= REE_REDUCE_ARGMIN && i < 3; kind++)
            REE_TRY(run_wide_reduce(&first, kind, dtypes[i]));
    }
    return REE_OK;
}

enum ree_status ree_cpu_test_scan(const struct ree_cpu_trial *t) {
    for (uint32_t i = 0; i < 8; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SCAN};
        d.params.scan = (struct ree_scan_params){.product = i & 1,
                                                 .dtype = i & 4 ? REE_F64 : REE_F32,
                                                 .outer = SOME,
                                                 .k = SOME,
                                                 .inner = i & 2 ? SOME : 1,
                                                 .reverse = i & 2};
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    return REE_OK;
}
