// The benchmarks matmul, conv and map. The other benchmarks have files of their own.
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS ((uint64_t)1 << 30)

enum ree_status ree_bench_parse_size(const char *text, uint32_t n, uint32_t *out, const char *form,
                                     struct ree_error *err) {
    const char *at = text;
    for (uint32_t i = 0; i < n; i++) {
        char *end;
        unsigned long value = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (value == 0 || value > MAX_ELEMENTS || *end != (i + 1 < n ? 'x' : 0))
            return ree_fail(err, REE_INVALID, "--size requires %s, not '%s'", form, text);
        out[i] = (uint32_t)value;
        at = end + 1;
    }
    return REE_OK;
}

enum ree_status ree_bench_check_elements(uint64_t a, uint64_t b, uint64_t c,
                                         struct ree_error *err) {
    if (a <= MAX_ELEMENTS && b <= MAX_ELEMENTS && c <= MAX_ELEMENTS) return REE_OK;
    return ree_fail(err, REE_INVALID, "--size is too large: a tensor has more than 2^30 elements");
}

// matmul

struct product {
    uint32_t m, n, k;
    bool b_by_columns; // as the weights of most models: (n, k), rows contiguous
    bool bytes;        // uint8 times int8, summed in int32
};

static union ree_params matmul_params(const struct product *size) {
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.matmul = (struct ree_matmul_params){
        .dtype = size->bytes ? REE_I32 : REE_F32,
        .a_dtype = size->bytes ? REE_U8 : REE_F32,
        .b_dtype = size->bytes ? REE_I8 : REE_F32,
        .m = size->m,
        .n = size->n,
        .k = size->k,
        .a_stride_m = (int32_t)size->k,
        .a_stride_k = 1,
        .b_stride_k = size->b_by_columns ? 1 : (int32_t)size->n,
        .b_stride_n = size->b_by_columns ? (int32_t)size->k : 1,
        .n_batch = 1,
    };
    return params;
}

static enum ree_status matmul_create(struct ree_device *device, const struct product *size,
                                     uint32_t constants, struct ree_bench_program *program,
                                     struct ree_error *err) {
    uint64_t m = size->m, n = size->n, k = size->k, factor = size->bytes ? 1 : sizeof(float);
    uint64_t sizes[] = {m * k * factor, k * n * factor, m * n * sizeof(float)};
    union ree_params params = matmul_params(size);
    REE_TRY(ree_bench_check_elements(m * k, k * n, m * n, err));
    return ree_bench_program_create(program, device, REE_REPOP_MATMUL, &params, 3, sizes, NULL,
                                    constants, err);
}

enum ree_status ree_bench_matmul_create(struct ree_benchmark *bench, uint32_t n,
                                        struct ree_bench_program *program, struct ree_error *err) {
    const struct product product = {n, n, n, false, false};
    return matmul_create(bench->device, &product, 0, program, err);
}

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; // CBLAS

static void run_openblas(const struct ree_benchmark *bench, const struct product *size,
                         const float *a, const float *b, float *c) {
    int n = (int)size->n, k = (int)size->k;
    bench->blas.sgemm(ROW_MAJOR, NO_TRANSPOSE, size->b_by_columns ? TRANSPOSE : NO_TRANSPOSE,
                      (int)size->m, n, k, 1.0f, a, k, b, size->b_by_columns ? k : n, 0.0f, c, n);
}

// The measurements of one product and its baselines.
struct contenders {
    struct ree_bench_program plain, packed; // packed: b is declared constant
    struct ree_bench_program peers[REE_BENCH_MAX_PEERS];
    struct ree_bench_times blas;
    struct ree_bench_memory memory; // for products with few rows, which are bound by reading b
    float *a, *b, *c;               // operands for OpenBLAS; NULL without it
};

static void contenders_finish(struct contenders *x) {
    ree_bench_program_destroy(&x->plain);
    ree_bench_program_destroy(&x->packed);
    for (uint32_t i = 0; i < REE_BENCH_MAX_PEERS; i++)
        ree_bench_program_destroy(&x->peers[i]);
    ree_bench_memory_destroy(&x->memory);
    ree_free_aligned(x->a);
    ree_free_aligned(x->b);
    ree_free_aligned(x->c);
}

static bool streams(const struct product *size) {
    return size->m < 8;
}

static enum ree_status contenders_init(struct ree_benchmark *bench, const struct product *size,
                                       struct contenders *x, struct ree_error *err) {
    uint64_t m = size->m, n = size->n, k = size->k;
    REE_TRY(matmul_create(bench->device, size, 0, &x->plain, err));
    REE_TRY(matmul_create(bench->device, size, 1 << 1, &x->packed, err));
    for (uint32_t i = 0; i < bench->n_peers; i++)
        REE_TRY(matmul_create(bench->peers[i].device, size, 0, &x->peers[i], err));
    if (streams(size))
        REE_TRY(ree_bench_memory_create(bench, k * n * sizeof(float), 1, false, &x->memory, err));
    if (!bench->blas.library) return REE_OK;
    x->a = ree_bench_floats(m * k);
    x->b = ree_bench_floats(k * n);
    x->c = ree_bench_floats(m * n);
    return x->a && x->b && x->c ? REE_OK : ree_no_memory(err);
}

static enum ree_status contenders_run(struct ree_benchmark *bench, const struct product *size,
                                      struct contenders *x, struct ree_error *err) {
    if (bench->is_cpu) ree_bench_rest();
    REE_TRY(ree_bench_program_run_warm(&x->plain, err));
    // Memory is measured directly after the product that it is compared with, because memory is
    // slower for some milliseconds after a rest.
    if (streams(size)) REE_TRY(ree_bench_memory_run(bench, &x->memory, 0, err));
    if (bench->blas.library) {
        ree_bench_rest();
        run_openblas(bench, size, x->a, x->b, x->c);
        double before = ree_clock();
        run_openblas(bench, size, x->a, x->b, x->c);
        ree_bench_times_add(&x->blas, ree_clock() - before);
        ree_bench_rest();
    }
    REE_TRY(ree_bench_program_run_warm(&x->packed, err));
    for (uint32_t i = 0; i < bench->n_peers; i++)
        REE_TRY(ree_bench_program_run_warm(&x->peers[i], err));
    return REE_OK;
}

static void contenders_report(struct ree_benchmark *bench, const struct product *size,
                              const struct contenders *x, const char *name) {
    double flops = 2.0 * size->m * size->n * size->k;
    struct ree_bench_measured result = {
        .unit = "GFLOP/s", .amount = flops, .times = x->plain.times};
    snprintf(result.name, sizeof result.name, "%s", name);
    if (x->blas.n) {
        result.baseline = "OpenBLAS";
        result.baseline_rate = 1e-9 * flops / ree_bench_quantile(&x->blas, 0.5);
    }
    if (x->blas.n || bench->n_peers == 0) ree_bench_report(bench, &result);
    // Report the times of `plain` once for each of the device's other operation sets, as its
    // baseline.
    for (uint32_t i = 0; i < bench->n_peers; i++) {
        result.baseline = bench->peers[i].name;
        result.baseline_rate = 1e-9 * flops / ree_bench_quantile(&x->peers[i].times, 0.5);
        ree_bench_report(bench, &result);
    }
    result.baseline = x->blas.n ? "OpenBLAS" : NULL;
    result.baseline_rate = x->blas.n ? 1e-9 * flops / ree_bench_quantile(&x->blas, 0.5) : 0;
    if (streams(size)) {
        snprintf(result.name, sizeof result.name, "%s, bytes", name);
        result.unit = "GB/s";
        result.amount = (double)size->k * size->n * sizeof(float);
        result.baseline = x->memory.name;
        result.baseline_rate = ree_bench_memory_rate(&x->memory);
    } else {
        snprintf(result.name, sizeof result.name, "%s, packed", name);
        result.times = x->packed.times;
    }
    ree_bench_report(bench, &result);
}

static enum ree_status run_product(struct ree_benchmark *bench, const struct product *size,
                                   struct ree_error *err) {
    static struct contenders x;
    char name[64];
    memset(&x, 0, sizeof x);
    snprintf(name, sizeof name, "%u x %u x %u%s", size->m, size->n, size->k,
             size->b_by_columns ? ", second matrix by columns" : "");
    enum ree_status status = contenders_init(bench, size, &x, err);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, name, i, bench->n_runs, err);
        if (status == REE_OK) status = contenders_run(bench, size, &x, err);
    }
    if (status == REE_OK) contenders_report(bench, size, &x, name);
    contenders_finish(&x);
    return status;
}

enum ree_status ree_bench_matmul(struct ree_benchmark *bench, struct ree_error *err) {
    static const struct product selection[] = {
        {1024, 1024, 1024, false, false},
        {2048, 2048, 2048, false, false},
        {1, 4096, 4096, false, false},
        {1, 4096, 4096, true, false},
    };
    static const struct product large[] = {
        {4096, 4096, 4096, false, false}, {8192, 4096, 4096, false, false},
        {4096, 4096, 4096, true, false},  {1, 14336, 4096, false, false},
        {1, 14336, 4096, true, false},
    };
    if (!bench->size && bench->is_gpu) {
        for (size_t i = 0; i < sizeof large / sizeof *large; i++)
            REE_TRY(run_product(bench, &large[i], err));
        REE_TRY(ree_bench_narrow_product(bench, (uint32_t[]){4096, 4096, 4096}, err));
        return ree_bench_narrow_row(bench, 14336, 4096, err);
    }
    if (!bench->size) {
        for (size_t i = 0; i < sizeof selection / sizeof *selection; i++)
            REE_TRY(run_product(bench, &selection[i], err));
        if (!bench->is_cpu) return REE_OK;
        REE_TRY(ree_bench_narrow_product(bench, (uint32_t[]){1024, 1024, 1024}, err));
        REE_TRY(ree_bench_narrow_row(bench, 4096, 4096, err));
        return ree_bench_narrow_row(bench, 14336, 4096, err);
    }
    uint32_t size[3];
    REE_TRY(ree_bench_parse_size(bench->size, 3, size, "MxNxK, such as 64x4096x4096", err));
    for (int by_columns = 0; by_columns < 2; by_columns++) {
        struct product product = {size[0], size[1], size[2], by_columns, false};
        REE_TRY(run_product(bench, &product, err));
    }
    if (!bench->is_cpu && !bench->is_gpu) return REE_OK;
    return size[0] == 1 ? ree_bench_narrow_row(bench, size[1], size[2], err)
                        : ree_bench_narrow_product(bench, size, err);
}

// conv

static enum ree_status conv_create(struct ree_benchmark *bench, const struct ree_conv_params *p,
                                   bool bytes, struct ree_bench_program *program,
                                   struct ree_error *err) {
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.conv = *p;
    if (bytes) {
        params.conv.x_dtype = REE_U8;
        params.conv.w_dtype = REE_I8;
    }
    uint64_t x = (uint64_t)p->n * p->groups * p->c * p->in[1] * p->in[2];
    uint64_t w = (uint64_t)p->groups * p->m * p->c * p->kernel[1] * p->kernel[2];
    uint64_t out = (uint64_t)p->n * p->groups * p->m * p->out[1] * p->out[2];
    uint64_t factor = bytes ? 1 : sizeof(float);
    uint64_t sizes[] = {x * factor, w * factor, out * sizeof(float)};
    REE_TRY(ree_bench_check_elements(x, w, out, err));
    return ree_bench_program_create(program, bench->device, REE_REPOP_CONV, &params, 3, sizes, NULL,
                                    1 << 1, err);
}

// Measures a convolution of floats and, if not transposed, of bytes, alternating with matrix
// products.
static enum ree_status run_conv(struct ree_benchmark *bench, const struct ree_conv_params *p,
                                struct ree_error *err) {
    static struct ree_bench_program conv[2], matmul[2];
    const int n_types = p->transposed ? 1 : 2;
    struct ree_bench_measured result = {0};
    enum ree_status status = REE_OK;
    char name[72];
    for (int t = 0; t < n_types && status == REE_OK; t++) {
        const struct product reference = {1024, 1024, 1024, false, t == 1};
        status = conv_create(bench, p, t == 1, &conv[t], err);
        if (status == REE_OK) status = matmul_create(bench->device, &reference, 0, &matmul[t], err);
    }
    snprintf(name, sizeof name, "%s%ux%u, %u -> %u, %ux%u, stride %u, groups %u",
             p->transposed ? "transposed " : "", p->kernel[1], p->kernel[2], p->c * p->groups,
             p->m * p->groups, p->in[1], p->in[2], p->stride[1], p->groups);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, name, i, bench->n_runs, err);
        for (int t = 0; t < n_types && status == REE_OK; t++) {
            // A convolution may be much faster than the product: run it several times per product.
            for (int j = 0; j < 5 && status == REE_OK; j++)
                status = ree_bench_program_run(&conv[t], err);
            if (status == REE_OK) status = ree_bench_program_run(&matmul[t], err);
        }
    }
    // Two operations for each output position and each weight; in a transposed convolution, for
    // each input position and each weight. Padding counts too.
    const uint32_t *side = p->transposed ? p->in : p->out;
    double flops = 2.0 * p->n * p->groups * p->c * p->m * side[1] * side[2];
    flops *= (double)p->kernel[1] * p->kernel[2];
    for (int t = 0; t < n_types && status == REE_OK; t++) {
        snprintf(result.name, sizeof result.name, "%s%s", name, t == 1 ? ", int8" : "");
        result.unit = t == 1 ? "GOP/s" : "GFLOP/s";
        result.amount = flops;
        result.times = conv[t].times;
        result.baseline = t == 1 ? "int8 matmul" : "matmul";
        result.baseline_rate =
            2e-9 * 1024 * 1024 * 1024 / ree_bench_quantile(&matmul[t].times, 0.5);
        ree_bench_report(bench, &result);
        if (t == 0) continue;
        result.baseline = "float32";
        result.baseline_rate = 1e-9 * flops / ree_bench_quantile(&conv[0].times, 0.5);
        ree_bench_report(bench, &result);
    }
    for (int t = 0; t < 2; t++) {
        ree_bench_program_destroy(&conv[t]);
        ree_bench_program_destroy(&matmul[t]);
    }
    return status;
}

static struct ree_conv_params conv_params(uint32_t n, uint32_t c, uint32_t h, uint32_t w,
                                          uint32_t m, uint32_t kernel, uint32_t stride,
                                          uint32_t groups) {
    uint32_t pad = kernel / 2;
    return (struct ree_conv_params){
        .n = n,
        .groups = groups,
        .c = c / groups,
        .m = m / groups,
        .in = {1, h, w},
        .kernel = {1, kernel, kernel},
        .out = {1, (h + 2 * pad - kernel) / stride + 1, (w + 2 * pad - kernel) / stride + 1},
        .stride = {1, stride, stride},
        .dilation = {1, 1, 1},
        .pad = {0, (int32_t)pad, (int32_t)pad},
        .x_dtype = REE_F32,
        .w_dtype = REE_F32,
    };
}

// Upsampling by two, as in the second half of a U-Net.
static struct ree_conv_params transposed_params(uint32_t c, uint32_t h, uint32_t w, uint32_t m) {
    return (struct ree_conv_params){
        .n = 1,
        .groups = 1,
        .c = c,
        .m = m,
        .in = {1, h, w},
        .kernel = {1, 4, 4},
        .out = {1, 2 * h, 2 * w},
        .stride = {1, 2, 2},
        .dilation = {1, 1, 1},
        .pad = {0, 1, 1},
        .transposed = 1,
        .x_dtype = REE_F32,
        .w_dtype = REE_F32,
    };
}

enum ree_status ree_bench_conv(struct ree_benchmark *bench, struct ree_error *err) {
    // Layers of image networks: inner layers and the first layer of a residual network, then
    // depthwise layers of mobile networks. A transposed layer follows.
    static const uint32_t selection[][8] = {
        {1, 64, 56, 56, 64, 3, 1, 1},    {1, 256, 14, 14, 256, 3, 1, 1},
        {1, 256, 56, 56, 64, 1, 1, 1},   {1, 3, 224, 224, 64, 7, 2, 1},
        {1, 96, 56, 56, 96, 3, 1, 96},   {1, 576, 14, 14, 576, 3, 1, 576},
        {1, 96, 112, 112, 96, 3, 2, 96}, {1, 120, 28, 28, 120, 5, 1, 120},
    };
    if (!bench->size) {
        for (size_t i = 0; i < sizeof selection / sizeof *selection; i++) {
            const uint32_t *s = selection[i];
            struct ree_conv_params p = conv_params(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
            REE_TRY(run_conv(bench, &p, err));
        }
        struct ree_conv_params p = transposed_params(128, 28, 28, 64);
        return run_conv(bench, &p, err);
    }
    uint32_t s[4];
    REE_TRY(ree_bench_parse_size(bench->size, 4, s, "NxCxHxW, such as 1x64x56x56", err));
    if (s[1] % bench->groups || bench->filters % bench->groups)
        return ree_fail(err, REE_INVALID,
                        "--groups %llu must divide both the channels (%u) and --filters (%llu)",
                        (unsigned long long)bench->groups, s[1],
                        (unsigned long long)bench->filters);
    if (s[2] + 2 * (bench->kernel / 2) < bench->kernel ||
        s[3] + 2 * (bench->kernel / 2) < bench->kernel)
        return ree_fail(err, REE_INVALID, "--kernel %llu is larger than the padded image",
                        (unsigned long long)bench->kernel);
    REE_TRY(ree_bench_check_elements((uint64_t)s[0] * s[1], (uint64_t)s[2] * s[3],
                                     (uint64_t)s[1] * bench->filters, err));
    struct ree_conv_params p =
        conv_params(s[0], s[1], s[2], s[3], (uint32_t)bench->filters, (uint32_t)bench->kernel,
                    (uint32_t)bench->stride, (uint32_t)bench->groups);
    return run_conv(bench, &p, err);
}

// map

struct expression {
    const char *name;
    uint32_t n_operands, n_instrs;
    struct ree_expr_instr instrs[3];
};

static enum ree_status run_map(struct ree_benchmark *bench, const struct expression *expression,
                               uint32_t n, struct ree_error *err) {
    static struct ree_bench_program program;
    static struct ree_bench_memory memory;
    struct ree_bench_measured result = {.unit = "GB/s"};
    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_expr *expr = &params.map.expr;
    expr->rank = 1;
    expr->dims[0] = expr->n_elements = n;
    expr->out_dtype = REE_F32;
    expr->n_operands = expression->n_operands;
    expr->n_instrs = expression->n_instrs;
    memcpy(expr->instrs, expression->instrs, sizeof expression->instrs);
    uint64_t bytes = (uint64_t)n * sizeof(float), sizes[4];
    for (uint32_t i = 0; i < expr->n_operands; i++)
        expr->operands[i] = (struct ree_expr_operand){REE_EXPR_TENSOR, REE_F32, 0, {1}};
    for (uint32_t i = 0; i <= expr->n_operands; i++)
        sizes[i] = bytes;
    enum ree_status status = ree_bench_memory_create(bench, bytes, 1, true, &memory, err);
    if (status == REE_OK)
        status = ree_bench_program_create(&program, bench->device, REE_REPOP_MAP, &params,
                                          expr->n_operands + 1, sizes, NULL, 0, err);
    snprintf(result.name, sizeof result.name, "%s, %u elements", expression->name, n);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, result.name, i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run(&program, err);
        if (status == REE_OK) status = ree_bench_memory_run(bench, &memory, 0, err);
    }
    if (status == REE_OK) {
        result.amount = (double)bytes * (expr->n_operands + 1);
        result.times = program.times;
        result.baseline = memory.name;
        result.baseline_rate = ree_bench_memory_rate(&memory);
        ree_bench_report(bench, &result);
    }
    ree_bench_program_destroy(&program);
    ree_bench_memory_destroy(&memory);
    return status;
}

enum ree_status ree_bench_map(struct ree_benchmark *bench, struct ree_error *err) {
    static const struct expression selection[] = {
        {"a + b", 2, 1, {{REE_MAP_add_f32, {0, 1, 0}, {0, 0}}}},
        {"max(a * b + c, 0)",
         3,
         3,
         {{REE_MAP_fma_f32, {0, 1, 2}, {0, 0}},
          {REE_MAP_CONST32, {0, 0, 0}, {0, 0}},
          {REE_MAP_max_f32, {3, 4, 0}, {0, 0}}}},
        {"exp(a)", 1, 1, {{REE_MAP_exp_f32, {0, 0, 0}, {0, 0}}}},
        {"tanh(a)", 1, 1, {{REE_MAP_tanh_f32, {0, 0, 0}, {0, 0}}}},
    };
    uint32_t n = 8 << 20;
    if (bench->size) REE_TRY(ree_bench_parse_size(bench->size, 1, &n, "a number of elements", err));
    for (size_t i = 0; i < sizeof selection / sizeof *selection; i++)
        REE_TRY(run_map(bench, &selection[i], n, err));
    return REE_OK;
}
