// matmul: out(b, i, j) = expr(sum over l of a(b, i, l) * b(b, l, j)), NUMERICS.md section 3.
//
// Chooses how: tiles over packed panels (matmul_gemm.c), or, where one side has few rows, one pass
// over the other side as it lies in memory. Every way computes the same sums in the same order.
#include "device/cpu/matmul.h"

#include <omp.h>

// Folding

// Batches that merely continue the rows of A, against one B, are more rows of A.
static void fold_batch_into_rows(struct ree_matmul_plan *plan) {
    int64_t next = plan->a_stride_m * plan->m; // distance that continues the rows
    uint64_t rows = plan->m;
    for (uint32_t i = plan->batch_rank; i-- > 0;) {
        if (plan->batch_dims[i] != 1 && plan->b_batch_strides[i] != 0) return;
        if (plan->batch_dims[i] != 1 && plan->a_batch_strides[i] != next) return;
        next *= plan->batch_dims[i];
        rows *= plan->batch_dims[i];
    }
    plan->m = (uint32_t)rows;
    plan->n_batch = 1;
    plan->batch_rank = 0;
}

// A narrow product is turned over when the columns are fewer than the rows: a * b is b * a, bit for
// bit (a NaN has lost its payload by the end).
static void swap_sides(struct ree_matmul_plan *plan) {
    struct ree_matmul_plan old = *plan;
    plan->m = old.n;
    plan->n = old.m;
    plan->a_stride_m = old.b_stride_n;
    plan->a_stride_k = old.b_stride_k;
    plan->b_stride_n = old.a_stride_m;
    plan->b_stride_k = old.a_stride_k;
    memcpy(plan->a_batch_strides, old.b_batch_strides, sizeof plan->a_batch_strides);
    memcpy(plan->b_batch_strides, old.a_batch_strides, sizeof plan->b_batch_strides);
    plan->swapped = true;
}

// Few rows, and the other side adjacent in memory one way or the other.
static bool can_stream(const struct ree_matmul_plan *plan) {
    return plan->m <= REE_STREAM_MAX_ROWS && (plan->b_stride_n == 1 || plan->b_stride_k == 1);
}

static struct ree_matmul_plan make_plan(const struct ree_matmul_params *p) {
    struct ree_matmul_plan plan = {
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a_stride_m = p->a_stride_m,
        .a_stride_k = p->a_stride_k,
        .b_stride_k = p->b_stride_k,
        .b_stride_n = p->b_stride_n,
        .n_batch = p->n_batch,
        .batch_rank = p->batch_rank,
    };
    for (uint32_t i = 0; i < p->batch_rank; i++) {
        plan.batch_dims[i] = p->batch_dims[i];
        plan.a_batch_strides[i] = p->a_batch_strides[i];
        plan.b_batch_strides[i] = p->b_batch_strides[i];
    }
    if (plan.n_batch != 1 && plan.m != 0) fold_batch_into_rows(&plan);
    // A single column lies in memory like a single row. (Strides of a dimension of one element
    // mean nothing and may be 1 for either.)
    if (plan.n < plan.m && plan.n <= REE_STREAM_MAX_ROWS) {
        struct ree_matmul_plan turned = plan;
        swap_sides(&turned);
        if (can_stream(&turned)) return turned;
    }
    return plan;
}

// Streaming

#define STREAM_FLOATS 2048 // of running sums: 8 KiB of the first-level cache

struct stream {
    const struct ree_tiles *tiles;
    const struct ree_matmul_plan *plan;
    const struct ree_matmul_output *output;
    const float *a, *b;
    uint32_t width; // columns at a time
};

// Columns [j, j + n) of one product.
static void stream_block(const struct stream *s, uint32_t batch, uint32_t j, uint32_t n) {
    const struct ree_matmul_plan *plan = s->plan;
    float acc[STREAM_FLOATS], sums[STREAM_FLOATS];
    const float *a =
        s->a + ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->a_batch_strides, batch);
    const float *b =
        s->b + ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->b_batch_strides, batch) +
        (int64_t)j * plan->b_stride_n;
    if (plan->b_stride_n == 1)
        s->tiles->stream_by_rows(plan->m, n, plan->k, a, plan->a_stride_m, plan->a_stride_k, b,
                                 plan->b_stride_k, acc, sums, n);
    else
        s->tiles->stream_by_cols(plan->m, n, plan->k, a, plan->a_stride_m, plan->a_stride_k, b,
                                 plan->b_stride_n, sums, n);

    uint32_t first = batch * plan->m * plan->n;
    if (!plan->swapped) {
        for (uint32_t i = 0; i < plan->m; i++)
            ree_matmul_write(s->output, sums + i * n, first + i * plan->n + j, n);
        return;
    }
    // Turned over, the columns are rows of the output: adjacent ones, whole.
    float *turned = plan->m == 1 ? sums : acc;
    if (plan->m > 1)
        for (uint32_t i = 0; i < plan->m; i++)
            for (uint32_t c = 0; c < n; c++)
                turned[c * plan->m + i] = sums[i * n + c];
    ree_matmul_write(s->output, turned, first + j * plan->m, n * plan->m);
}

static void stream_run(const struct ree_cpu_context *ctx, struct stream *s) {
    const struct ree_matmul_plan *plan = s->plan;
    // b is read once: some 10 GB/s for each thread, and as fast as it can multiply when m is large.
    uint64_t elements = (uint64_t)plan->n_batch * plan->n * plan->k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, elements * (2 + plan->m) / 6);
    uint32_t lanes = 4 * s->tiles->lanes;
    s->width = STREAM_FLOATS / plan->m;
    uint32_t share = (plan->n + n_threads - 1) / n_threads;
    if (plan->n_batch < 2 * n_threads && share < s->width) s->width = share;
    s->width = (s->width + lanes - 1) / lanes * lanes;
    while (s->width * plan->m > STREAM_FLOATS)
        s->width -= lanes;
    uint32_t n_blocks = (plan->n + s->width - 1) / s->width;
    uint64_t n_units = (uint64_t)n_blocks * plan->n_batch;
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1) schedule(dynamic)
    for (uint64_t unit = 0; unit < n_units; unit++) {
        uint32_t j = (uint32_t)(unit % n_blocks) * s->width;
        uint32_t n = plan->n - j < s->width ? plan->n - j : s->width;
        stream_block(s, (uint32_t)(unit / n_blocks), j, n);
    }
}

// Tiles

struct batch {
    const struct ree_cpu_context *ctx;
    const struct ree_matmul_plan *plan;
    const struct ree_matmul_output *output;
    const float *a, *b;
};

static void make_gemm(const void *user, uint32_t i, struct ree_gemm *gemm) {
    const struct batch *batch = user;
    const struct ree_matmul_plan *plan = batch->plan;
    *gemm = (struct ree_gemm){
        .tiles = ree_tiles_for(batch->ctx->isa),
        .m = plan->m,
        .n = plan->n,
        .k = plan->k,
        .a = batch->a +
             ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->a_batch_strides, i),
        .b = batch->b +
             ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->b_batch_strides, i),
        .a_stride_m = plan->a_stride_m,
        .a_stride_k = plan->a_stride_k,
        .b_stride_k = plan->b_stride_k,
        .b_stride_n = plan->b_stride_n,
        .packed_b = batch->ctx->packed,
        .first = i * plan->m * plan->n,
        .output = batch->output,
    };
}

static enum ree_status tiles_run(const struct ree_cpu_context *ctx, const struct batch *batch,
                                 struct ree_error *err) {
    const struct ree_matmul_plan *plan = batch->plan;
    uint64_t nanoseconds = (uint64_t)plan->m * plan->n * plan->k / 32 + 1;
    uint32_t n_threads = ree_cpu_threads_for(ctx, nanoseconds * plan->n_batch);
    // Whole products to each thread, unless they are few and large.
    if (plan->n_batch > 1 && (plan->n_batch >= 4 * n_threads || nanoseconds < 100000))
        return ree_gemm_run_batch(ctx, plan->n_batch, make_gemm, batch, n_threads, err);
    for (uint32_t i = 0; i < plan->n_batch; i++) {
        struct ree_gemm gemm;
        make_gemm(batch, i, &gemm);
        REE_TRY(ree_gemm_run(ctx, &gemm, n_threads, err));
    }
    return REE_OK;
}

// An empty sum is +0.
static void write_zeros(const struct ree_matmul_output *output, uint32_t n_elements) {
    float zeros[1024] = {0};
    for (uint32_t i = 0; i < n_elements; i += 1024)
        ree_matmul_write(output, zeros, i, n_elements - i < 1024 ? n_elements - i : 1024);
}

enum ree_status ree_cpu_matmul(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                               void *const *operands, struct ree_error *err) {
    uint64_t n_elements = (uint64_t)p->n_batch * p->m * p->n;
    if (n_elements == 0) return REE_OK;
    uint32_t n_tensors = 0;
    for (uint32_t i = 0; p->has_epilogue && i < p->epilogue.n_operands; i++)
        n_tensors += p->epilogue.operands[i].kind == REE_EXPR_TENSOR;
    void *out = operands[2 + n_tensors];
    if (p->dtype != REE_F32) {
        if (p->has_epilogue)
            return ree_fail(err, REE_INTERNAL, "matmul: an epilogue needs float32, not %s",
                            ree_dtype_name(p->dtype));
        ree_matmul_integer(ctx, p, operands[0], operands[1], out);
        return REE_OK;
    }

    struct ree_cpu_expr_plan epilogue;
    if (p->has_epilogue) ree_cpu_expr_plan(&epilogue, &p->epilogue, operands + 2, true, ctx->isa);
    struct ree_matmul_output output = {
        .epilogue = p->has_epilogue ? &epilogue : NULL,
        .out = out,
        .elem_size = p->has_epilogue ? ree_dtype_size(p->epilogue.out_dtype) : sizeof(float),
    };
    if (p->k == 0) {
        write_zeros(&output, (uint32_t)n_elements);
        return REE_OK;
    }
    struct ree_matmul_plan plan = make_plan(p);
    const float *a = (const float *)operands[0] + p->a_offset;
    const float *b = (const float *)operands[1] + p->b_offset;
    if (plan.swapped) {
        const float *swap = a;
        a = b;
        b = swap;
    }
    if (can_stream(&plan)) {
        struct stream stream = {
            .tiles = ree_tiles_for(ctx->isa), .plan = &plan, .output = &output, .a = a, .b = b};
        stream_run(ctx, &stream);
        return REE_OK;
    }
    struct batch batch = {.ctx = ctx, .plan = &plan, .output = &output, .a = a, .b = b};
    return tiles_run(ctx, &batch, err);
}

// Packed weights

size_t ree_cpu_matmul_pack_size(const struct ree_cpu_context *ctx,
                                const struct ree_matmul_params *p, struct ree_cpu_pack_key *key) {
    if (p->dtype != REE_F32 || p->m == 0 || p->n == 0 || p->k == 0 || p->n_batch == 0) return 0;
    struct ree_matmul_plan plan = make_plan(p);
    if (plan.swapped || can_stream(&plan)) return 0;
    for (uint32_t i = 0; i < plan.batch_rank; i++)
        if (plan.batch_dims[i] != 1 && plan.b_batch_strides[i] != 0) return 0;
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    *key =
        (struct ree_cpu_pack_key){{REE_REPOP_MATMUL, plan.n, plan.k, (uint32_t)p->b_offset,
                                   (uint32_t)p->b_stride_k, (uint32_t)p->b_stride_n, tiles->cols}};
    return ree_gemm_packed_b_floats(tiles, plan.n, plan.k) * sizeof(float);
}

void ree_cpu_matmul_pack(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                         const void *b, void *out) {
    ree_gemm_pack_b(ree_tiles_for(ctx->isa), p->n, p->k, (const float *)b + p->b_offset,
                    p->b_stride_k, p->b_stride_n, out);
}
