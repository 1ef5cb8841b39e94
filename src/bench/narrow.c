// `ree-run bench matmul` with weights of 16 bits or fewer: one row times constant weights compared
// with reading memory, and products of bytes and bfloat16 compared with products of floats.
#include "bench/bench_internal.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

// Bytes of all copies of the weights together, if at most MAX_COPIES are needed. Runs use the
// copies in turn, so that no cache holds the next one, as in a model.
#define ROTATION ((size_t)192 << 20)
#define MAX_COPIES 32
// Bytes of weights per thread that fit into a second-level cache, to measure arithmetic without
// memory.
#define CACHED ((size_t)640 << 10)

static const struct weights {
    const char *name;
    enum ree_dtype dtype;
    uint32_t bits, block; // 0: not blockwise
    bool zero_points;
} all_weights[] = {
    {"float16", REE_F16, 0, 0, false},
    {"bfloat16", REE_BF16, 0, 0, false},
    {"8-bit, blocks of 32", REE_U8, 8, 32, false},
    {"4-bit, blocks of 32", REE_U8, 4, 32, false},
    {"4-bit, blocks of 128, zero points", REE_U8, 4, 128, true},
};

// A product of one row: n outputs from k inputs. The weights are stored by columns, as in models.
struct row_product {
    const struct weights *weights;
    uint32_t n, k;
};

// Fills sizes and types of the operands, the output last; returns their number. *out_bytes: size of
// the weights.
static uint32_t operands_of(const struct row_product *product, uint64_t *sizes,
                            enum ree_dtype *dtypes, uint64_t *out_bytes) {
    const struct weights *w = product->weights;
    uint64_t n = product->n, k = product->k;
    uint32_t count = 0;
    dtypes[count] = REE_F32;
    sizes[count++] = k * sizeof(float);
    dtypes[count] = w->dtype;
    sizes[count++] = w->bits ? n * k * w->bits / 8 : n * k * ree_dtype_size(w->dtype);
    if (w->bits) {
        dtypes[count] = REE_F32;
        sizes[count++] = n * (k / w->block) * sizeof(float);
    }
    if (w->zero_points) {
        dtypes[count] = REE_U4;
        sizes[count++] = n * (k / w->block);
    }
    *out_bytes = 0;
    for (uint32_t i = 1; i < count; i++)
        *out_bytes += sizes[i];
    dtypes[count] = REE_F32;
    sizes[count++] = n * sizeof(float);
    return count;
}

static enum ree_status create(struct ree_benchmark *bench, const struct row_product *product,
                              struct ree_bench_program *program, struct ree_error *err) {
    const struct weights *w = product->weights;
    uint64_t sizes[REE_BENCH_MAX_OPERANDS], bytes;
    enum ree_dtype dtypes[REE_BENCH_MAX_OPERANDS];
    uint32_t count = operands_of(product, sizes, dtypes, &bytes);
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.matmul = (struct ree_matmul_params){
        .dtype = REE_F32,
        .a_dtype = REE_F32,
        .b_dtype = w->dtype,
        .m = 1,
        .n = product->n,
        .k = product->k,
        .a_stride_m = (int32_t)product->k,
        .a_stride_k = 1,
        .b_stride_k = w->bits ? 0 : 1,
        .b_stride_n = w->bits ? 0 : (int32_t)product->k,
        .n_batch = 1,
        .b_bits = w->bits,
        .b_block = w->block,
        .has_zero_points = w->zero_points,
    };
    uint32_t constants = ((1u << (count - 1)) - 1) & ~1u;
    return ree_bench_program_create(program, bench->device, REE_REPOP_MATMUL, &params, count, sizes,
                                    dtypes, constants, err);
}

static enum ree_status run_row(struct ree_benchmark *bench, const struct row_product *product,
                               struct ree_error *err) {
    static struct ree_bench_program copies[MAX_COPIES], cached;
    static struct ree_bench_memory memory;
    struct ree_bench_measured result = {.unit = "GB/s"};
    uint64_t sizes[REE_BENCH_MAX_OPERANDS], bytes, cached_bytes;
    enum ree_dtype dtypes[REE_BENCH_MAX_OPERANDS];
    operands_of(product, sizes, dtypes, &bytes);
    struct row_product small = *product;
    small.n = (uint32_t)(CACHED / (bytes / product->n) / 64 * 64);
    small.n = (small.n < 64 ? 64 : small.n) * bench->n_threads;
    operands_of(&small, sizes, dtypes, &cached_bytes);

    uint32_t n_copies = (uint32_t)(ROTATION / bytes);
    if (n_copies < 2) n_copies = 2;
    if (n_copies > MAX_COPIES) n_copies = MAX_COPIES;
    snprintf(result.name, sizeof result.name, "1 x %u x %u, %s", product->n, product->k,
             product->weights->name);
    enum ree_status status = ree_bench_memory_create(bench, bytes, n_copies, false, &memory, err);
    for (uint32_t i = 0; i < n_copies && status == REE_OK; i++)
        status = create(bench, product, &copies[i], err);
    if (status == REE_OK) status = create(bench, &small, &cached, err);
    uint64_t n_runs = bench->n_runs < n_copies ? n_copies : bench->n_runs;
    for (uint64_t i = 0; i < n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, result.name, i, n_runs, err);
        // The large product and the memory are each measured after a rest, so that other programs
        // interrupt both equally often, and after the small product, which wakes up the threads.
        if (bench->is_cpu) ree_bench_rest();
        for (int j = 0; j < 3 && status == REE_OK; j++)
            status = ree_bench_program_run_warm(&cached, err);
        if (status == REE_OK) status = ree_bench_program_run(&copies[i % n_copies], err);
        if (bench->is_cpu) ree_bench_rest();
        if (status == REE_OK) status = ree_bench_program_run_warm(&cached, err);
        if (status == REE_OK) status = ree_bench_memory_run(bench, &memory, i + n_copies / 2, err);
    }
    if (status == REE_OK) {
        for (uint32_t i = 0; i < n_copies; i++)
            for (uint32_t j = 0; j < copies[i].times.n; j++)
                ree_bench_times_add(&result.times, copies[i].times.seconds[j]);
        result.amount = (double)bytes;
        result.baseline = memory.name;
        result.baseline_rate = ree_bench_memory_rate(&memory);
        ree_bench_report(bench, &result);
        snprintf(result.name, sizeof result.name, "  arithmetic only: 1 x %u x %u in the cache",
                 small.n, small.k);
        result.amount = (double)cached_bytes;
        result.times = cached.times;
        ree_bench_report(bench, &result);
    }
    for (uint32_t i = 0; i < n_copies; i++)
        ree_bench_program_destroy(&copies[i]);
    ree_bench_program_destroy(&cached);
    ree_bench_memory_destroy(&memory);
    return status;
}

enum ree_status ree_bench_narrow_row(struct ree_benchmark *bench, uint32_t n, uint32_t k,
                                     struct ree_error *err) {
    for (size_t i = 0; i < sizeof all_weights / sizeof *all_weights; i++) {
        const struct weights *w = &all_weights[i];
        if (w->block && k % w->block) continue;
        struct row_product product = {w, n, k};
        REE_TRY(run_row(bench, &product, err));
    }
    return REE_OK;
}

// Products of many rows

struct product_types {
    const char *name;
    const char *unit;
    enum ree_dtype a, b, sum;
    bool by_columns; // the terms of a column of b are adjacent, as in a language model's weights
};
static const struct product_types floats = {"float32", "GFLOP/s", REE_F32, REE_F32, REE_F32, false};
static const struct product_types narrow_products[] = {
    {"uint8 by int8", "GOP/s", REE_U8, REE_I8, REE_I32, false},
    {"bfloat16 by bfloat16", "GFLOP/s", REE_BF16, REE_BF16, REE_F32, true},
};

static enum ree_status create_product(struct ree_benchmark *bench,
                                      const struct product_types *types, const uint32_t size[3],
                                      struct ree_bench_program *program, struct ree_error *err) {
    uint64_t m = size[0], n = size[1], k = size[2];
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.matmul = (struct ree_matmul_params){
        .dtype = types->sum,
        .a_dtype = types->a,
        .b_dtype = types->b,
        .m = size[0],
        .n = size[1],
        .k = size[2],
        .a_stride_m = (int32_t)k,
        .a_stride_k = 1,
        .b_stride_k = types->by_columns ? 1 : (int32_t)n,
        .b_stride_n = types->by_columns ? (int32_t)k : 1,
        .n_batch = 1,
    };
    uint64_t sizes[] = {m * k * ree_dtype_size(types->a), k * n * ree_dtype_size(types->b),
                        m * n * sizeof(float)};
    enum ree_dtype dtypes[] = {types->a, types->b, REE_F32};
    return ree_bench_program_create(program, bench->device, REE_REPOP_MATMUL, &params, 3, sizes,
                                    dtypes, 1 << 1, err);
}

static enum ree_status run_product(struct ree_benchmark *bench, const struct product_types *types,
                                   const uint32_t size[3], struct ree_error *err) {
    static struct ree_bench_program narrow, wide;
    struct ree_bench_measured result = {.unit = types->unit, .baseline = "float32, packed"};
    enum ree_status status = create_product(bench, types, size, &narrow, err);
    if (status == REE_OK) status = create_product(bench, &floats, size, &wide, err);
    snprintf(result.name, sizeof result.name, "%u x %u x %u, %s", size[0], size[1], size[2],
             types->name);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, result.name, i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run_warm(&narrow, err);
        if (status == REE_OK) status = ree_bench_program_run_warm(&wide, err);
    }
    if (status == REE_OK) {
        result.amount = 2.0 * size[0] * size[1] * size[2];
        result.times = narrow.times;
        result.baseline_rate = 1e-9 * result.amount / ree_bench_quantile(&wide.times, 0.5);
        ree_bench_report(bench, &result);
    }
    ree_bench_program_destroy(&narrow);
    ree_bench_program_destroy(&wide);
    return status;
}

enum ree_status ree_bench_narrow_product(struct ree_benchmark *bench, const uint32_t size[3],
                                         struct ree_error *err) {
    for (size_t i = 0; i < sizeof narrow_products / sizeof *narrow_products; i++)
        REE_TRY(run_product(bench, &narrow_products[i], size, err));
    return REE_OK;
}
