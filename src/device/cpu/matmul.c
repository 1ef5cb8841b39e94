// matmul: out(b, i, j) = expr(sum over l of a(b, i, l) * b(b, l, j)) for each product b of a batch,
// NUMERICS.md section 3.
//
// Chooses the method: tiles over packed panels (matmul_gemm.c) or, if one side has few rows, one
// pass over the other side in its memory layout or in packed panels (matmul_panels.c). These
// methods compute the same sums in the same order. Some types have methods of their own: blockwise
// activations (matmul_int8.c), wide integers (matmul_integer.c) and float64 (float64.c).
#include "device/cpu/matmul.h"

#include <omp.h>

// Folding

// Folds the batch into the rows if the rows of A continue from product to product and all products
// share one B.
static void fold_batch_into_rows(struct ree_matmul_plan *plan) {
    int64_t next = plan->a_stride_m * plan->m; // batch stride of A that continues its rows
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

// Transposes the product: out' = B' A'. Its bits stay the same, because a * b equals b * a except
// for the payload of a NaN, which is lost in the end.
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
    plan->a_dtype = old.b_dtype;
    plan->b_dtype = old.a_dtype;
    plan->swapped = true;
}

// Returns whether A has few rows and B can be read in place: its rows or columns are contiguous, or
// it is blockwise.
static bool can_stream(const struct ree_matmul_plan *plan) {
    if (plan->integer || plan->m > REE_STREAM_MAX_ROWS) return false;
    return plan->b_stride_n == 1 || plan->b_stride_k == 1 || plan->blocks;
}

static struct ree_matmul_plan make_plan(const struct ree_matmul_params *p) {
    struct ree_matmul_plan plan = {
        .a_dtype = (enum ree_dtype)p->a_dtype,
        .b_dtype = (enum ree_dtype)p->b_dtype,
        .integer = p->dtype == REE_I32,
        .blocks = p->b_block != 0,
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
    // A product with few columns is transposed to one with few rows, if A can then be read in
    // place.
    if (plan.n < plan.m && plan.n <= REE_STREAM_MAX_ROWS && !plan.blocks) {
        struct ree_matmul_plan turned = plan;
        swap_sides(&turned);
        if (can_stream(&turned)) return turned;
    }
    return plan;
}

// Rows

enum scratch_slot { SLOT_ROWS };

enum ree_status ree_matmul_rows(const struct ree_cpu_context *ctx, const struct ree_tiles *tiles,
                                const struct ree_matmul_plan *plan, const struct ree_cpu_operand *a,
                                bool adjacent, struct ree_matmul_rows *out, struct ree_error *err) {
    *out = (struct ree_matmul_rows){(const float *)(const void *)a->data, plan->a_stride_m,
                                    plan->a_stride_k, false};
    if (plan->a_dtype == REE_F32 && (!adjacent || plan->a_stride_k == 1)) return REE_OK;
    size_t floats = (size_t)plan->m * plan->k;
    float *copy = ree_cpu_scratch_get(ctx, 0, SLOT_ROWS, plan->n_batch * floats * sizeof(float));
    if (!copy) return ree_cpu_no_memory(err, plan->n_batch * floats * sizeof(float));
    for (uint32_t i = 0; i < plan->n_batch; i++) {
        struct ree_cpu_operand at = ree_cpu_operand_at(
            a, ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->a_batch_strides, i));
        ree_cpu_operand_widen(tiles, &at, plan->k, plan->m, copy + i * floats);
    }
    *out = (struct ree_matmul_rows){copy, plan->k, 1, true};
    return REE_OK;
}

const float *ree_matmul_rows_at(const struct ree_matmul_plan *plan,
                                const struct ree_matmul_rows *rows, uint32_t batch) {
    if (rows->copied) return rows->floats + (size_t)batch * plan->m * plan->k;
    return rows->floats +
           ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->a_batch_strides, batch);
}

// Streaming

#define STREAM_FLOATS 2048 // running sums: 8 KiB of the first-level cache

struct stream {
    const struct ree_tiles *tiles;
    const struct ree_matmul_plan *plan;
    const struct ree_matmul_output *output;
    struct ree_matmul_rows a;
    struct ree_cpu_operand b;
    uint32_t width; // columns processed together
};

// Computes columns [j, j + n) of one product.
static void stream_block(const struct stream *s, uint32_t batch, uint32_t j, uint32_t n) {
    const struct ree_matmul_plan *plan = s->plan;
    float acc[STREAM_FLOATS], sums[STREAM_FLOATS];
    const float *a = ree_matmul_rows_at(plan, &s->a, batch);
    int64_t stride_m = s->a.stride_m, stride_k = s->a.stride_k;
    struct ree_cpu_operand b = ree_cpu_operand_at(
        &s->b, ree_batch_offset(plan->batch_rank, plan->batch_dims, plan->b_batch_strides, batch) +
                   (int64_t)j * plan->b_stride_n);
    enum ree_tile_type type = ree_tile_type_of(plan->b_dtype);
    if (plan->blocks)
        s->tiles->stream_blocks(plan->m, n, plan->k, a, stride_m, stride_k, b.blocks, j, sums, n);
    else if (plan->b_stride_n == 1)
        s->tiles->stream_by_rows[type](plan->m, n, plan->k, a, stride_m, stride_k, b.data,
                                       plan->b_stride_k, acc, sums, n);
    else
        s->tiles->stream_by_cols[type](plan->m, n, plan->k, a, stride_m, stride_k, b.data,
                                       plan->b_stride_n, sums, n);

    uint32_t first = batch * plan->m * plan->n;
    if (!plan->swapped) {
        for (uint32_t i = 0; i < plan->m; i++)
            ree_matmul_write(s->output, sums + i * n, first + i * plan->n + j, n);
        return;
    }
    // In a transposed product these columns are whole, adjacent rows of the output.
    float *turned = plan->m == 1 ? sums : acc;
    if (plan->m > 1)
        for (uint32_t i = 0; i < plan->m; i++)
            for (uint32_t c = 0; c < n; c++)
                turned[c * plan->m + i] = sums[i * n + c];
    ree_matmul_write(s->output, turned, first + j * plan->m, n * plan->m);
}

// Returns the number of blocks of columns of a product.
static uint32_t blocks_across(const struct stream *s) {
    return (s->plan->n + s->width - 1) / s->width;
}

static void stream_blocks(const void *user, const struct ree_cpu_range *range) {
    const struct stream *s = user;
    uint32_t n = s->plan->n, n_blocks = blocks_across(s);
    for (uint64_t unit = range->begin; unit < range->end; unit++) {
        uint32_t j = (uint32_t)(unit % n_blocks) * s->width;
        stream_block(s, (uint32_t)(unit / n_blocks), j, n - j < s->width ? n - j : s->width);
    }
}

static void stream_run(const struct ree_cpu_context *ctx, struct stream *s) {
    const struct ree_matmul_plan *plan = s->plan;
    // Estimates nanoseconds: b is read once, and each thread reads about 10 GB/s, or is limited by
    // its multiplications if m is large.
    uint64_t elements = (uint64_t)plan->n_batch * plan->n * plan->k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, elements * (2 + plan->m) / 6);
    uint32_t lanes = 4 * s->tiles->lanes;
    s->width = STREAM_FLOATS / plan->m;
    if (plan->n_batch < 2 * n_threads) {
        // Give each thread the same number of blocks: a thread that is left over with one block
        // reads memory more slowly than all threads together.
        uint32_t turns = (plan->n + n_threads * s->width - 1) / (n_threads * s->width);
        s->width = (plan->n + turns * n_threads - 1) / (turns * n_threads);
    }
    s->width = (s->width + lanes - 1) / lanes * lanes;
    while (s->width * plan->m > STREAM_FLOATS)
        s->width -= lanes;
    const struct ree_cpu_loop loop = {
        .n = (uint64_t)blocks_across(s) * plan->n_batch,
        .n_threads = n_threads,
        .body = stream_blocks,
        .job = s,
    };
    ree_cpu_run_loop(ctx, &loop);
}

// Tiles

struct batch {
    const struct ree_cpu_context *ctx;
    const struct ree_matmul_plan *plan;
    const struct ree_matmul_output *output;
    struct ree_cpu_operand a, b;
    const struct ree_integer_tiles *integer; // NULL: floats
    const struct ree_pair_tiles *pairs;      // NULL: not pairs of bfloat16
    bool as_floats;                          // see struct ree_gemm
};

static void make_gemm(const void *user, uint32_t i, struct ree_gemm *gemm) {
    const struct batch *batch = user;
    const struct ree_matmul_plan *plan = batch->plan;
    const struct ree_tiles *tiles = batch->integer ? &batch->integer->tiles
                                    : batch->pairs ? &batch->pairs->tiles
                                                   : ree_tiles_for(batch->ctx->isa);
    *gemm = (struct ree_gemm){
        .tiles = tiles,
        .m = plan->m,
        .n = plan->n,
        .k = plan->k / tiles->terms + (plan->k % tiles->terms != 0),
        .n_terms = plan->k,
        .a = ree_cpu_operand_at(&batch->a, ree_batch_offset(plan->batch_rank, plan->batch_dims,
                                                            plan->a_batch_strides, i)),
        .b = ree_cpu_operand_at(&batch->b, ree_batch_offset(plan->batch_rank, plan->batch_dims,
                                                            plan->b_batch_strides, i)),
        .a_shift = batch->a.flip ? ree_integer_shift(plan->a_dtype == REE_I8) : 0,
        .pairs = batch->pairs,
        .as_floats = batch->as_floats,
        .packed_b = plan->blocks ? NULL : batch->ctx->packed[1],
        .first = i * plan->m * plan->n,
        .output = batch->output,
    };
}

// Chooses tiles for an integer product such that b is packed unchanged; the top bits of a are
// flipped if the tiles require it.
static void choose_integer(const struct ree_cpu_context *ctx, struct batch *batch) {
    bool a_signed = batch->plan->a_dtype == REE_I8, b_signed = batch->plan->b_dtype == REE_I8;
    const struct ree_integer_tiles *tiles = ree_integer_tiles_for(ctx, a_signed, b_signed, true);
    batch->integer = batch->a.integer = batch->b.integer = tiles;
    batch->a.flip = !tiles->any_sign && tiles->a_signed != a_signed;
}

// Chooses the tiles for pairs if both operands are bfloat16 and the processor can multiply pairs.
static void choose_pairs(struct batch *batch) {
    const struct ree_matmul_plan *plan = batch->plan;
    if (plan->blocks || plan->a_dtype != REE_BF16 || plan->b_dtype != REE_BF16) return;
    batch->pairs = ree_pair_tiles_for(batch->ctx, &batch->as_floats);
}

static enum ree_status tiles_run(const struct ree_cpu_context *ctx, const struct batch *batch,
                                 struct ree_error *err) {
    const struct ree_matmul_plan *plan = batch->plan;
    uint32_t terms_per_nanosecond = batch->integer                      ? 96
                                    : batch->pairs && !batch->as_floats ? 64
                                                                        : 32;
    uint64_t nanoseconds = (uint64_t)plan->m * plan->n * plan->k / terms_per_nanosecond + 1;
    uint32_t n_threads = ree_cpu_threads_for(ctx, nanoseconds * plan->n_batch);
    // Each product is computed by one thread, unless there are few products and they are large.
    if (plan->n_batch > 1 && (plan->n_batch >= 4 * n_threads || nanoseconds < 100000))
        return ree_gemm_run_batch(ctx, plan->n_batch, make_gemm, batch, n_threads, err);
    for (uint32_t i = 0; i < plan->n_batch; i++) {
        struct ree_gemm gemm;
        make_gemm(batch, i, &gemm);
        REE_TRY(ree_gemm_run(ctx, &gemm, n_threads, err));
    }
    return REE_OK;
}

// Writes the output if k is 0: an empty sum is +0, or the integer 0.
static void write_zeros(const struct ree_matmul_output *output, uint32_t n_elements) {
    float zeros[1024] = {0};
    for (uint32_t i = 0; i < n_elements; i += 1024)
        ree_matmul_write(output, zeros, i, n_elements - i < 1024 ? n_elements - i : 1024);
}

// Operands

static bool is_byte(uint32_t dtype) {
    return dtype == REE_I8 || dtype == REE_U8;
}

static struct ree_cpu_operand factor_a(const struct ree_matmul_params *p, const void *data) {
    struct ree_cpu_operand f = {.data = data,
                                .dtype = (enum ree_dtype)p->a_dtype,
                                .stride_vector = p->a_stride_m,
                                .stride_k = p->a_stride_k};
    return ree_cpu_operand_at(&f, p->a_offset);
}

static struct ree_cpu_operand factor_b(const struct ree_matmul_params *p, const void *data,
                                       const struct ree_tile_blocks *blocks) {
    struct ree_cpu_operand f = {.data = data,
                                .dtype = (enum ree_dtype)p->b_dtype,
                                .stride_vector = p->b_stride_n,
                                .stride_k = p->b_stride_k,
                                .blocks = blocks};
    return ree_cpu_operand_at(&f, p->b_offset);
}

// Returns whether B, with its scales and zero points if any, was packed in advance. ree_panels_keep
// says whether the packed form is panels.
static bool is_b_packed(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p) {
    for (uint32_t i = 1; i < ree_matmul_n_operands(p); i++)
        if (!ctx->packed[i]) return false;
    return true;
}

enum ree_status ree_cpu_matmul(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                               void *const *operands, struct ree_error *err) {
    uint64_t n_elements = (uint64_t)p->n_batch * p->m * p->n;
    if (n_elements == 0) return REE_OK;
    uint32_t n_factors = ree_matmul_n_operands(p), n_tensors = 0;
    for (uint32_t i = 0; p->has_epilogue && i < p->epilogue.n_operands; i++)
        n_tensors += p->epilogue.operands[i].kind == REE_EXPR_TENSOR;
    struct ree_cpu_expr_plan epilogue;
    if (p->has_epilogue)
        REE_TRY(
            ree_cpu_expr_prepare(ctx, &p->epilogue, operands + n_factors, true, &epilogue, err));
    struct ree_matmul_output output = {
        .epilogue = p->has_epilogue ? &epilogue : NULL,
        .out = operands[n_factors + n_tensors],
        .elem_size = ree_dtype_size(p->has_epilogue ? p->epilogue.out_dtype : p->dtype),
    };
    if (p->dtype == REE_F64) {
        ree_cpu_matmul_f64(ctx, p, operands[0], operands[1], output.out);
        return REE_OK;
    }
    if (p->dtype != REE_F32 && !is_byte(p->a_dtype)) {
        ree_matmul_integer(ctx, p, operands[0], operands[1], &output);
        return REE_OK;
    }
    if (p->k == 0) {
        write_zeros(&output, (uint32_t)n_elements);
        return REE_OK;
    }
    if (p->a_block) return ree_matmul_int8(ctx, p, operands, &output, err);
    struct ree_tile_blocks blocks = {
        .numbers = operands[1], .bits = p->b_bits, .block = p->b_block};
    if (p->b_block) {
        blocks.scales = operands[2];
        blocks.zeros = p->has_zero_points ? operands[3] : NULL;
        blocks.n_blocks = p->k / p->b_block + (p->k % p->b_block != 0);
    }
    struct ree_matmul_plan plan = make_plan(p);
    struct ree_cpu_operand a = factor_a(p, operands[0]);
    struct ree_cpu_operand b = factor_b(p, operands[1], p->b_block ? &blocks : NULL);
    if (plan.swapped) {
        struct ree_cpu_operand swap = a;
        a = b;
        b = swap;
    }
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    bool has_panels = is_b_packed(ctx, p) && ree_panels_keep(tiles, &plan);
    if (has_panels && ree_panels_suit(tiles, &plan)) {
        struct ree_panels panels = {
            .tiles = tiles,
            .plan = &plan,
            .output = &output,
            .b = ctx->packed[1],
            .scales = ctx->packed[2],
            .zeros = ctx->packed[3],
            .bits = p->b_bits,
            .block = p->b_block,
        };
        REE_TRY(ree_matmul_rows(ctx, tiles, &plan, &a, true, &panels.a, err));
        return ree_panels_run(ctx, &panels, err);
    }
    if (can_stream(&plan)) {
        struct stream stream = {.tiles = tiles, .plan = &plan, .output = &output, .b = b};
        REE_TRY(ree_matmul_rows(ctx, tiles, &plan, &a, false, &stream.a, err));
        stream_run(ctx, &stream);
        return REE_OK;
    }
    const struct ree_packed_blocks packed = {
        .weights = ctx->packed[1],
        .scales = ctx->packed[2],
        .zeros = ctx->packed[3],
        .bits = p->b_bits,
        .block = p->b_block,
        .k = p->k,
    };
    if (has_panels && plan.blocks) b.packed = &packed;
    struct batch batch = {.ctx = ctx, .plan = &plan, .output = &output, .a = a, .b = b};
    if (plan.integer) choose_integer(ctx, &batch);
    choose_pairs(&batch);
    return tiles_run(ctx, &batch, err);
}

// Packed weights. For few rows: panels of narrow weights. Blockwise weights: the same panels for
// any number of rows, so a model that only runs with many rows keeps a second copy too, where there
// is memory for it. Otherwise: panels of floats, of pairs of bfloat16, or of bytes for integer
// products. Packed weights of other types would become larger, so these are widened when they are
// read.

#define PACK_MOST_ROWS 64
#define PACK_MOST_WEIGHTS (1u << 20)

static bool packable(const struct batch *batch, const struct ree_matmul_params *p) {
    const struct ree_matmul_plan *plan = batch->plan;
    bool grows = plan->integer ? !is_byte(p->b_dtype) : plan->b_dtype != REE_F32 || plan->blocks;
    if (batch->pairs) grows = false;
    if (grows || plan->swapped || can_stream(plan)) return false;
    // With many rows or large weights, packing in every run pays off, and avoids a second copy of a
    // language model's weights.
    if (plan->m >= PACK_MOST_ROWS || (uint64_t)plan->n * plan->k > PACK_MOST_WEIGHTS) return false;
    for (uint32_t i = 0; i < plan->batch_rank; i++)
        if (plan->batch_dims[i] != 1 && plan->b_batch_strides[i] != 0) return false;
    return true;
}

static bool packs(const struct ree_matmul_params *p) {
    if (p->dtype != REE_F32 && p->dtype != REE_I32) return false;
    return p->m != 0 && p->n != 0 && p->k != 0 && p->n_batch != 0;
}

size_t ree_cpu_matmul_pack_size(const struct ree_cpu_context *ctx,
                                const struct ree_matmul_params *p, uint32_t operand,
                                struct ree_cpu_pack_key *key) {
    if (!packs(p) || operand == 0 || operand >= ree_matmul_n_operands(p) - (p->a_block != 0))
        return 0;
    struct ree_matmul_plan plan = make_plan(p);
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    *key =
        (struct ree_cpu_pack_key){{REE_REPOP_MATMUL, plan.n, plan.k, (uint32_t)p->b_offset,
                                   (uint32_t)p->b_stride_k, (uint32_t)p->b_stride_n, p->b_dtype}};
    if (p->a_block || ree_panels_keep(tiles, &plan)) {
        const uint32_t panels[] = {p->a_block ? 3 : 1, tiles->lanes, operand, p->b_block,
                                   p->b_bits};
        memcpy(key->words + 7, panels, sizeof panels);
        return ree_panels_size(tiles, p, operand);
    }
    struct batch batch = {.ctx = ctx, .plan = &plan};
    if (plan.integer) choose_integer(ctx, &batch);
    choose_pairs(&batch);
    if (!packable(&batch, p)) return 0;
    struct ree_gemm gemm;
    make_gemm(&batch, 0, &gemm);
    const uint32_t gemms[] = {2, gemm.tiles->cols, gemm.tiles->terms, (uint32_t)gemm.a_shift};
    memcpy(key->words + 7, gemms, sizeof gemms);
    return ree_gemm_packed_b_floats(&gemm) * sizeof(float);
}

void ree_cpu_matmul_pack(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                         uint32_t operand, const void *src, void *out) {
    struct ree_matmul_plan plan = make_plan(p);
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    if (p->a_block || ree_panels_keep(tiles, &plan)) {
        ree_panels_pack(ctx, tiles, p, operand, src, out);
        return;
    }
    struct batch batch = {.ctx = ctx, .plan = &plan, .b = factor_b(p, src, NULL)};
    if (plan.integer) choose_integer(ctx, &batch);
    choose_pairs(&batch);
    struct ree_gemm gemm;
    make_gemm(&batch, 0, &gemm);
    ree_gemm_pack_b(&gemm, out);
}
