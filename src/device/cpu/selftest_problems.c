// The problems of selftest.h. Most are dispatches that ree_twin_shrink makes small; where the size
// itself selects the code, the dispatch runs as it is. Operands get hard values, others in each
// round. What a kernel writes goes into the group's digest. Products run twice, with their weights
// as they are and packed.
//
// Kernels have a function of their own for each height of a tile, for each number of few rows and
// for each type of element. Which of them a problem reaches depends on the instruction set, what
// they compute does not. Lengths are chosen for tiles of 4, 6, 8 and 12 rows and for vectors of 1,
// 4, 8 and 16 floats, so that all functions run that models need.
#include "base/sha256.h"
#include "device/cpu/execute.h"
#include "device/cpu/selftest.h"
#include "device/selftest/twin_shapes.h"

#include <omp.h>
#include <stdlib.h>

#define SOME 100 // a dimension that the twin makes its own

#define ROWS 19      // of a product: more than one tile, of unequal heights
#define TALL_ROWS 24 // a multiple of every instruction set's highest tile
#define COLUMNS 37   // whole tiles and a part of one
#define TALL_COLUMNS 44
#define MAX_HEIGHT 12 // of a tile

// What an operand was filled with, to be copied if the next problem has the same one: filling is
// most of a self-test's time.
struct kept {
    struct ree_hard_values values;
    void *bytes; // NULL: nothing is kept
};

// One run of a group.
struct ree_cpu_trial {
    const struct ree_cpu_context *ctx;
    struct ree_hasher *hasher;
    struct ree_error *err;
    struct kept (*kept)[REE_HARD_FEW_ROUNDS]; // of each operand, of each round
    struct ree_twin_size size;
    uint32_t rounds; // of values
};

// The same trial with the first round alone: for code that differs in its shape, not in its
// arithmetic, from what runs in all rounds.
static struct ree_cpu_trial once(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial first = *t;
    first.rounds = 1;
    return first;
}

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
}

static void free_packed(struct ree_cpu_context *ctx) {
    for (uint32_t i = 0; i < REE_CPU_MAX_PACKED; i++) {
        free((void *)(uintptr_t)ctx->packed[i]);
        ctx->packed[i] = NULL;
    }
}

// Packs the weights of a product, all that may be packed. *out_any: whether there are some.
static enum ree_status pack(struct ree_cpu_context *ctx, const struct ree_dispatch *d,
                            void *const *operands, bool *out_any, struct ree_error *err) {
    *out_any = false;
    for (uint32_t i = 1; i < REE_CPU_MAX_PACKED; i++) {
        struct ree_cpu_pack_key key;
        size_t nbytes = 0;
        void *packed = NULL;
        if (d->op == REE_REPOP_MATMUL)
            nbytes = ree_cpu_matmul_pack_size(ctx, &d->params.matmul, i, &key);
        else if (d->op == REE_REPOP_CONV && i == 1)
            nbytes = ree_cpu_conv_pack_size(ctx, &d->params.conv, &key);
        if (nbytes == 0) continue;
        if (posix_memalign(&packed, 64, nbytes) != 0) {
            free_packed(ctx);
            return no_memory(err);
        }
        if (d->op == REE_REPOP_MATMUL)
            ree_cpu_matmul_pack(ctx, &d->params.matmul, i, operands[i], packed);
        else
            ree_cpu_conv_pack(ctx, &d->params.conv, operands[i], packed);
        ctx->packed[i] = packed;
        *out_any = true;
    }
    return REE_OK;
}

static enum ree_status run_packed(const struct ree_cpu_trial *t, struct ree_cpu_context *ctx,
                                  const struct ree_dispatch *d, void *const *memory) {
    const uint32_t last = d->n_operands - 1;
    const size_t nbytes = d->operands[last].size;
    void *before = malloc(nbytes + 1);
    if (!before) return no_memory(t->err);
    memcpy(before, memory[last], nbytes);
    enum ree_status status = ree_cpu_run_dispatch(ctx, d, memory, t->err);
    if (status == REE_OK && memcmp(before, memory[last], nbytes) != 0)
        ree_hasher_update(t->hasher, "packed", 6); // a digest that is not the recorded one
    free(before);
    return status;
}

static bool same_values(const struct ree_hard_values *a, const struct ree_hard_values *b) {
    return a->role == b->role && a->dtype == b->dtype && a->n == b->n && a->run == b->run &&
           a->low == b->low && a->high == b->high;
}

static void fill(const struct ree_cpu_trial *t, const struct ree_hard_values *values,
                 uint32_t round, uint32_t operand, void *memory, size_t nbytes) {
    struct kept *kept = &t->kept[operand][round];
    if (kept->bytes && same_values(&kept->values, values)) {
        memcpy(memory, kept->bytes, nbytes);
        return;
    }
    ree_hard_values_fill(values, round, operand, memory);
    free(kept->bytes);
    kept->bytes = malloc(nbytes + 1); // without memory nothing is kept
    if (kept->bytes) memcpy(kept->bytes, memory, nbytes);
    kept->values = *values;
}

static enum ree_status run_round(const struct ree_cpu_trial *t, const struct ree_dispatch *d,
                                 const struct ree_twin_operand *operands, void *const *memory,
                                 uint32_t round) {
    for (uint32_t i = 0; i < d->n_operands; i++)
        fill(t, &operands[i].values, round, i, memory[i], d->operands[i].size);
    REE_TRY(ree_cpu_run_dispatch(t->ctx, d, memory, t->err));
    for (uint32_t i = 0; i < d->n_operands; i++)
        if (operands[i].is_written) ree_hasher_update(t->hasher, memory[i], d->operands[i].size);
    // Once more with packed weights, where there is such a form: that must change nothing.
    struct ree_cpu_context packed = *t->ctx;
    bool any;
    REE_TRY(pack(&packed, d, memory, &any, t->err));
    enum ree_status status = any ? run_packed(t, &packed, d, memory) : REE_OK;
    free_packed(&packed);
    return status;
}

// Runs a dispatch as it is, with d->n_operands operands.
static enum ree_status run_whole(const struct ree_cpu_trial *t, struct ree_dispatch *d,
                                 const struct ree_twin_operand *operands) {
    void *memory[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = REE_OK;
    d->n_outputs = d->op == REE_REPOP_SCATTER ? 0 : 1;
    for (uint32_t i = 0; i < d->n_operands; i++) {
        const struct ree_hard_values *v = &operands[i].values;
        d->operands[i].size = v->n * ree_dtype_size((enum ree_dtype)v->dtype);
        memory[i] = aligned_alloc(64, (d->operands[i].size / 64 + 1) * 64);
        if (!memory[i]) status = no_memory(t->err);
    }
    for (uint32_t round = 0; round < t->rounds && status == REE_OK; round++)
        status = run_round(t, d, operands, memory, round);
    for (uint32_t i = 0; i < d->n_operands; i++)
        free(memory[i]);
    return status;
}

static enum ree_status run(const struct ree_cpu_trial *t, struct ree_dispatch *d) {
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d->n_operands = ree_twin_shrink(d, &t->size, operands);
    return run_whole(t, d, operands);
}

// An operand of run_whole. Its values come in runs of 100.
static void add_operand(struct ree_dispatch *d, struct ree_twin_operand *operands, uint32_t dtype,
                        uint64_t n, bool is_written) {
    operands[d->n_operands++] = (struct ree_twin_operand){
        .values = {.role = REE_HARD_ANY, .dtype = dtype, .n = n, .run = 100},
        .is_written = is_written};
}

// Products

enum layout { BY_ROWS, BY_COLUMNS, APART }; // of B: what lies side by side in memory

struct product {
    uint32_t m, n, a_dtype, b_dtype;
    enum layout layout;
    uint32_t bits; // of blockwise weights; 0: plain B
    bool zero_points;
    uint32_t n_batch;                // 0: 1
    const struct ree_expr *epilogue; // NULL: none
};

static uint32_t sum_dtype(uint32_t a_dtype) {
    switch (a_dtype) {
    case REE_I8:
    case REE_U8: return REE_I32;
    case REE_F16:
    case REE_BF16: return REE_F32;
    default: return a_dtype;
    }
}

static enum ree_status run_matmul(const struct ree_cpu_trial *t, struct product x) {
    const bool plain = x.bits == 0;
    struct ree_dispatch d = {.op = REE_REPOP_MATMUL};
    d.params.matmul = (struct ree_matmul_params){
        .dtype = sum_dtype(x.a_dtype),
        .a_dtype = x.a_dtype,
        .b_dtype = x.b_dtype,
        .m = x.m,
        .n = x.n,
        .k = 1000,
        .a_stride_m = 1000,
        .a_stride_k = 1,
        .n_batch = 1,
        .b_block = plain ? 0 : 32,
        .b_bits = x.bits,
        .has_zero_points = x.zero_points,
    };
    struct ree_matmul_params *p = &d.params.matmul;
    if (plain) {
        p->b_stride_k = x.layout == BY_ROWS ? (int32_t)x.n : x.layout == BY_COLUMNS ? 1 : 1000;
        p->b_stride_n = x.layout == BY_ROWS ? 1 : x.layout == BY_COLUMNS ? 1000 : 2;
    }
    if (x.n_batch > 1) {
        p->batch_rank = 1;
        p->n_batch = p->batch_dims[0] = x.n_batch;
        p->a_batch_strides[0] = (int32_t)x.m * 1000;
        p->b_batch_strides[0] = (int32_t)x.n * 1000;
    }
    if (x.epilogue) {
        p->has_epilogue = true;
        p->epilogue = *x.epilogue;
    }
    return run(t, &d);
}

// Every height of a tile, with whole vectors and parts of one.
static enum ree_status run_heights(const struct ree_cpu_trial *t, uint32_t a_dtype,
                                   uint32_t b_dtype) {
    struct ree_cpu_trial shorter = once(t);
    shorter.size.length = 40;
    for (uint32_t n = COLUMNS; n <= 57; n += 57 - COLUMNS)
        for (uint32_t m = 1; m <= MAX_HEIGHT; m++)
            REE_TRY(
                run_matmul(&shorter, (struct product){m, n, a_dtype, b_dtype, .layout = APART}));
    return REE_OK;
}

// Up to 8 rows are multiplied by B as it lies in memory, or by panels of it.
static enum ree_status run_few_rows(const struct ree_cpu_trial *t, uint32_t b_dtype) {
    for (uint32_t m = 2; m <= 8; m++)
        REE_TRY(run_matmul(t, (struct product){m, 21, REE_F32, b_dtype, .layout = BY_COLUMNS}));
    static const uint32_t rows[] = {2, 3, 4, 7};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        REE_TRY(
            run_matmul(t, (struct product){rows[i], COLUMNS, REE_F32, b_dtype, .layout = BY_ROWS}));
    return REE_OK;
}

static enum ree_status matmul(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    const struct ree_cpu_trial first = once(t);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const bool is_float = dtypes[i] != REE_I8 && dtypes[i] != REE_U8;
        const struct ree_cpu_trial *trial = is_float ? t : &first;
        for (uint32_t m = 1; m <= ROWS; m += ROWS - 1)
            for (enum layout layout = BY_ROWS; layout <= BY_COLUMNS; layout++)
                REE_TRY(run_matmul(
                    trial, (struct product){m, COLUMNS, REE_F32, dtypes[i], .layout = layout}));
        if (is_float) REE_TRY(run_few_rows(&first, dtypes[i]));
        if (i > 0 && is_float)
            REE_TRY(run_matmul(
                &first, (struct product){3, COLUMNS, dtypes[i], dtypes[i], .layout = BY_ROWS}));
    }
    REE_TRY(run_matmul(
        t, (struct product){TALL_ROWS, TALL_COLUMNS, REE_F32, REE_F32, .layout = BY_ROWS}));
    REE_TRY(run_matmul(&first, (struct product){ROWS, COLUMNS, REE_F32, REE_F32, .n_batch = 2}));
    return run_heights(t, REE_F32, REE_F32);
}

static enum ree_status matmul_blocks(const struct ree_cpu_trial *t) {
    static const uint32_t rows[] = {1, 2, 3, 4, 7, ROWS};
    const struct ree_cpu_trial first = once(t);
    for (uint32_t bits = 4; bits <= 8; bits += 4)
        for (int zero_points = 0; zero_points < 2; zero_points++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                REE_TRY(run_matmul(rows[i] == 1 ? t : &first,
                                   (struct product){rows[i], COLUMNS, REE_F32, REE_U8, .bits = bits,
                                                    .zero_points = zero_points}));
    return REE_OK;
}

// There are tiles for each combination of signs.
static enum ree_status matmul_bytes(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_U8, REE_I8};
    struct ree_cpu_trial twice = *t;
    twice.rounds = 2;
    for (int i = 0; i < 4; i++) {
        const uint32_t a = dtypes[i & 1], b = dtypes[i >> 1];
        const enum layout layout = a == b ? BY_COLUMNS : BY_ROWS;
        REE_TRY(run_matmul(&twice, (struct product){1, COLUMNS, a, b, .layout = layout}));
        REE_TRY(run_matmul(&twice, (struct product){ROWS, COLUMNS, a, b, .layout = layout}));
        REE_TRY(
            run_matmul(&twice, (struct product){TALL_ROWS, TALL_COLUMNS, a, b, .layout = BY_ROWS}));
        REE_TRY(run_heights(t, a, b));
    }
    return REE_OK;
}

// Types that have no tiles.
static enum ree_status matmul_wide(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F64, REE_I32, REE_I64};
    const struct ree_cpu_trial first = once(t);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (enum layout layout = BY_ROWS; layout <= BY_COLUMNS; layout++)
            REE_TRY(run_matmul(i == 0 ? t : &first, (struct product){5, COLUMNS, dtypes[i],
                                                                     dtypes[i], .layout = layout}));
    return REE_OK;
}

struct filter {
    uint32_t groups, c, m; // c, m: of a group
    uint32_t kernel, stride;
    uint32_t x_dtype, w_dtype;
    bool transposed;
    uint32_t n;                      // images; 0: 2
    const struct ree_expr *epilogue; // NULL: none
};

static struct ree_conv_params conv_params(struct filter f, uint32_t width) {
    const uint32_t pad = f.kernel / 2;
    return (struct ree_conv_params){
        .n = f.n ? f.n : 2,
        .groups = f.groups,
        .c = f.c,
        .m = f.m,
        .in = {1, width * f.stride, width * f.stride},
        .kernel = {1, f.kernel, f.kernel},
        .out = {1, width, width},
        .stride = {1, f.stride, f.stride},
        .dilation = {1, 1, 1},
        .pad = {0, (int32_t)pad, (int32_t)pad},
        .transposed = f.transposed,
        .x_dtype = f.x_dtype,
        .w_dtype = f.w_dtype,
        .has_pad_value = f.x_dtype == REE_U8,
    };
}

static enum ree_status run_conv(const struct ree_cpu_trial *t, struct filter f) {
    struct ree_dispatch d = {.op = REE_REPOP_CONV};
    d.params.conv = conv_params(f, 20);
    if (f.epilogue) {
        d.params.conv.has_epilogue = true;
        d.params.conv.epilogue = *f.epilogue;
    }
    return run(t, &d);
}

// Convolutions of few channels, whose kernels vectorize along the rows of the output. Rows have the
// lengths that models have.
static enum ree_status run_planes(const struct ree_cpu_trial *t, struct filter f, uint32_t width) {
    struct ree_dispatch d = {.op = REE_REPOP_CONV};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    f.n = 1;
    d.params.conv = conv_params(f, width);
    const struct ree_conv_params *p = &d.params.conv;
    const uint32_t kernel = p->kernel[1] * p->kernel[2], channels = f.groups * f.c;
    add_operand(&d, operands, f.x_dtype, (uint64_t)channels * p->in[1] * p->in[2], false);
    add_operand(&d, operands, f.w_dtype, (uint64_t)f.groups * f.m * f.c * kernel, false);
    operands[1].values.role = REE_HARD_FINITE;
    if (p->has_pad_value) add_operand(&d, operands, f.x_dtype, 1, false);
    add_operand(&d, operands, ree_conv_sum_dtype(p),
                (uint64_t)f.groups * f.m * p->out[1] * p->out[2], true);
    return run_whole(t, &d, operands);
}

static enum ree_status conv(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = once(t);
    static const struct filter filters[] = {
        {1, SOME, ROWS, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {1, SOME, ROWS, 3, 2, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {1, SOME, ROWS, 1, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {2, 1, 1, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32}, // depthwise
        {1, SOME, 3, 3, 2, .x_dtype = REE_F32, .w_dtype = REE_F32, .transposed = true},
        {1, SOME, TALL_ROWS, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        REE_TRY(run_conv(t, filters[i]));
    static const struct filter planes[] = {
        {1, 5, 3, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {2, 1, 1, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {2, 1, 1, 3, 2, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {2, 1, 2, 5, 1, .x_dtype = REE_F32, .w_dtype = REE_F32},
        {2, 1, 1, 5, 2, .x_dtype = REE_F32, .w_dtype = REE_F32},
    };
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        REE_TRY(run_planes(&first, planes[i], 41));
    // Rows that fill eight vectors.
    return run_planes(&first,
                      (struct filter){1, 2, 1, 1, 1, .x_dtype = REE_F32, .w_dtype = REE_F32}, 12);
}

static enum ree_status conv_bytes(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_U8, REE_I8};
    const struct ree_cpu_trial first = once(t);
    for (int i = 0; i < 4; i++) {
        const uint32_t x = dtypes[i & 1], w = dtypes[i >> 1];
        REE_TRY(run_conv(&first, (struct filter){1, SOME, ROWS, 3, 1, .x_dtype = x, .w_dtype = w}));
        REE_TRY(run_conv(&first,
                         (struct filter){1, SOME, TALL_ROWS, 3, 1, .x_dtype = x, .w_dtype = w}));
        REE_TRY(run_planes(&first, (struct filter){1, 5, 3, 3, 1, .x_dtype = x, .w_dtype = w}, 41));
        REE_TRY(run_planes(&first, (struct filter){1, 5, 2, 1, 1, .x_dtype = x, .w_dtype = w}, 12));
        REE_TRY(run_planes(&first, (struct filter){2, 1, 1, 3, 1, .x_dtype = x, .w_dtype = w},
                           41)); // depthwise
    }
    return REE_OK;
}

struct queries {
    uint32_t n, n_heads, n_kv_heads;
    uint32_t dtype; // of keys and values
    bool all_keys;  // else none behind the query
};

static enum ree_status run_attention(const struct ree_cpu_trial *t, struct queries x) {
    const int32_t dim = 64, len = SOME;
    struct ree_dispatch d = {.op = REE_REPOP_ATTENTION};
    int32_t q = (int32_t)x.n, heads = (int32_t)x.n_heads, kv_heads = (int32_t)x.n_kv_heads;
    d.params.attention = (struct ree_attention_params){
        .batch = 1,
        .n_heads = x.n_heads,
        .n_kv_heads = x.n_kv_heads,
        .q_len = x.n,
        .kv_len = SOME,
        .head_dim = 64,
        .v_head_dim = 64,
        .k_dtype = x.dtype,
        .v_dtype = x.dtype,
        .q_strides = {heads * q * dim, q * dim, dim, 1},
        .k_strides = {kv_heads * len * dim, len * dim, dim, 1},
        .v_strides = {kv_heads * len * dim, len * dim, dim, 1},
        .out_strides = {heads * q * dim, q * dim, dim},
        .scale = 0.125f,
        .left = REE_ATTENTION_UNBOUNDED,
        .right = x.all_keys ? REE_ATTENTION_UNBOUNDED : 0,
        .start = x.all_keys ? 0 : len - q,
    };
    return run(t, &d);
}

// Keys of two chunks: maxima and sums are joined. One query, and a tile of 24 rows.
static enum ree_status run_long_attention(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial longer = once(t);
    longer.size.long_from = 1;
    longer.size.long_length = 2 * (REE_CHUNK + 34);
    longer.size.few_queries = 12;
    REE_TRY(run_attention(&longer, (struct queries){1, 4, 1, .dtype = REE_F32}));
    return run_attention(&longer, (struct queries){12, 2, 1, .dtype = REE_F32});
}

static enum ree_status attention(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16};
    const struct ree_cpu_trial first = once(t);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        REE_TRY(run_attention(t, (struct queries){1, 4, 2, .dtype = dtypes[i]}));
        REE_TRY(run_attention(i == 0 ? t : &first, (struct queries){20, 2, 2, .dtype = dtypes[i]}));
    }
    REE_TRY(run_attention(t, (struct queries){20, 4, 2, .dtype = REE_F32, .all_keys = true}));
    return run_long_attention(t);
}

// Epilogues

// acc * operand 1 (along the columns) + operand 2 (bfloat16), as out_dtype. Of integers acc becomes
// a float first. dims: the last two are the output's rows and columns.
static struct ree_expr epilogue_of(uint32_t rank, const uint32_t *dims, bool integer,
                                   uint32_t out_dtype) {
    struct ree_expr e = {.rank = rank, .n_elements = 1, .out_dtype = out_dtype, .n_operands = 2};
    int32_t stride = 1;
    e.operands[0] = (struct ree_expr_operand){.kind = REE_EXPR_TENSOR, .dtype = REE_F32};
    e.operands[1] = (struct ree_expr_operand){.kind = REE_EXPR_TENSOR, .dtype = REE_BF16};
    e.operands[0].strides[rank - 1] = 1;
    for (uint32_t i = rank; i-- > 0; stride *= (int32_t)dims[i]) {
        e.dims[i] = dims[i];
        e.n_elements *= dims[i];
        e.operands[1].strides[i] = stride;
    }
    // Values: 0 acc, 1 and 2 the operands, then the instructions' results.
    uint32_t acc = 0, next = 3;
    if (integer) {
        e.instrs[e.n_instrs++] = (struct ree_expr_instr){REE_MAP_i32_to_f32, {0}, {0}};
        acc = next++;
    }
    e.instrs[e.n_instrs++] = (struct ree_expr_instr){REE_MAP_bf16_to_f32, {2}, {0}};
    e.instrs[e.n_instrs++] = (struct ree_expr_instr){REE_MAP_fma_f32, {acc, 1, next}, {0}};
    next += 2;
    if (out_dtype == REE_F16)
        e.instrs[e.n_instrs++] = (struct ree_expr_instr){REE_MAP_f32_to_f16, {next - 1}, {0}};
    else if (out_dtype == REE_I8)
        e.instrs[e.n_instrs++] = (struct ree_expr_instr){REE_MAP_f32_to_i32, {next - 1}, {0}};
    return e;
}

static enum ree_status epilogue(const struct ree_cpu_trial *t) {
    static const struct {
        uint32_t m, a_dtype, b_dtype, out_dtype;
    } products[] = {
        {ROWS, REE_F32, REE_F32, REE_F32}, {ROWS, REE_F32, REE_F32, REE_F16},
        {3, REE_F32, REE_BF16, REE_F32},   {ROWS, REE_U8, REE_I8, REE_F32},
        {ROWS, REE_U8, REE_I8, REE_I8},
    };
    static const uint32_t image[5] = {2, ROWS, 1, 20, 20};
    const struct ree_cpu_trial first = once(t);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const uint32_t dims[] = {products[i].m, COLUMNS};
        const struct ree_expr e =
            epilogue_of(2, dims, products[i].a_dtype == REE_U8, products[i].out_dtype);
        REE_TRY(run_matmul(&first, (struct product){products[i].m, COLUMNS, products[i].a_dtype,
                                                    products[i].b_dtype, .epilogue = &e}));
    }
    for (int integer = 0; integer < 2; integer++) {
        const struct ree_expr e = epilogue_of(5, image, integer, integer ? REE_I8 : REE_F32);
        const uint32_t dtype = integer ? REE_U8 : REE_F32;
        REE_TRY(run_conv(&first, (struct filter){1, SOME, ROWS, 3, 1, .x_dtype = dtype,
                                                 .w_dtype = dtype, .epilogue = &e}));
    }
    return REE_OK;
}

static enum ree_status softmax(const struct ree_cpu_trial *t) {
    for (uint32_t i = 0; i < 4; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX};
        d.params.softmax = (struct ree_softmax_params){
            .log = i & 1, .outer = SOME, .k = SOME, .inner = i & 2 ? SOME : 1};
        REE_TRY(run(t, &d));
    }
    return REE_OK;
}

static enum ree_status norm(const struct ree_cpu_trial *t) {
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
        REE_TRY(run(t, &d));
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
        .outer_strides = {columns ? 1 : SOME}, // reduced terms lie a row apart
        .reduce_dims = {SOME},
        .reduce_strides = {columns ? SOME : 1},
    };
    return run(t, &d);
}

// More columns than a twin has: they are reduced side by side.
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
    add_operand(&d, operands, dtype, (uint64_t)n_columns * n_rows, false);
    if (kind == REE_REDUCE_PROD) operands[0].values.role = REE_HARD_NEAR_ONE;
    add_operand(&d, operands, index ? REE_I64 : dtype, n_columns, true);
    return run_whole(t, &d, operands);
}

static enum ree_status reduce(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F64, REE_I32, REE_I64, REE_U8, REE_I8};
    const struct ree_cpu_trial first = once(t);
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

static enum ree_status scan(const struct ree_cpu_trial *t) {
    for (uint32_t i = 0; i < 8; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SCAN};
        d.params.scan = (struct ree_scan_params){.product = i & 1,
                                                 .dtype = i & 4 ? REE_F64 : REE_F32,
                                                 .outer = SOME,
                                                 .k = SOME,
                                                 .inner = i & 2 ? SOME : 1,
                                                 .reverse = i & 2};
        REE_TRY(run(t, &d));
    }
    return REE_OK;
}

static enum ree_status windows(const struct ree_cpu_trial *t) {
    for (uint32_t kind = REE_POOL_MAX; kind <= REE_POOL_SUM_SQ; kind++) {
        struct ree_dispatch d = {.op = REE_REPOP_POOL};
        d.params.pool = (struct ree_pool_params){
            .kind = kind,
            .dtype = REE_F32,
            .planes = SOME,
            .in = {1, SOME, SOME},
            .kernel = {1, 3, 3},
            .out = {1, SOME, SOME},
            .stride = {1, 1, 1},
            .dilation = {1, 1, 1},
        };
        REE_TRY(run(t, &d));
    }
    struct ree_dispatch d = {.op = REE_REPOP_RESIZE};
    d.params.resize = (struct ree_resize_params){
        .outer = SOME, .k_in = SOME, .k_out = SOME, .inner = SOME, .taps = 4};
    return run(t, &d);
}

static enum ree_status indices(const struct ree_cpu_trial *t) {
    for (uint32_t kind = REE_SCATTER_ADD; kind <= REE_SCATTER_MAX; kind++) {
        struct ree_dispatch d = {.op = REE_REPOP_SCATTER};
        d.params.scatter = (struct ree_scatter_params){
            .kind = kind,
            .dtype = REE_F32,
            .index_dtype = REE_I64,
            .rank = 2,
            .n_step_dims = 1,
            .n_lines = SOME,
            .n_steps = SOME,
            .dims = {SOME, SOME},
            .data_strides = {SOME, 0},
            .index_strides = {SOME, 1},
            .update_strides = {SOME, 1},
            .n_components = 1,
            .component_stride = 1,
            .component_sizes = {SOME},
            .component_strides = {1},
        };
        REE_TRY(run(t, &d));
    }
    struct ree_dispatch d = {.op = REE_REPOP_TOPK};
    d.params.topk =
        (struct ree_topk_params){.dtype = REE_F32, .outer = SOME, .n = SOME, .inner = 1, .k = SOME};
    return run(t, &d);
}

// Every scalar operation, over operands of the types that its arguments may be read as.
static enum ree_status run_operation(const struct ree_cpu_trial *t, uint32_t op) {
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    struct ree_dispatch d = {.op = REE_REPOP_MAP};
    struct ree_expr *expr = &d.params.map.expr;
    *expr = (struct ree_expr){
        .rank = 1,
        .dims = {SOME},
        .n_elements = SOME,
        .out_dtype = info->result == REE_CLASS_D ? REE_U64 : REE_U32,
        .n_operands = info->n_args,
        .n_instrs = 1,
    };
    expr->instrs[0].op = op;
    for (uint32_t a = 0; a < info->n_args; a++) {
        expr->instrs[0].args[a] = a;
        expr->operands[a] = (struct ree_expr_operand){
            .kind = REE_EXPR_TENSOR,
            .dtype = info->args[a] == REE_CLASS_D ? REE_F64 : REE_F32,
            .strides = {1},
        };
    }
    return run(t, &d);
}

static enum ree_status map(const struct ree_cpu_trial *t) {
    for (uint32_t op = REE_MAP_CONST64 + 1; op < REE_N_MAP_OPS; op++)
        if (!ree_map_op_is_host_only(op)) REE_TRY(run_operation(t, op));
    return REE_OK;
}

// out = op(x, x) of elements of one type, as they are loaded and stored; REE_N_MAP_OPS: out = x.
// stride: of x.
static enum ree_status run_stored(const struct ree_cpu_trial *t, uint32_t op, uint32_t dtype,
                                  int32_t stride) {
    struct ree_dispatch d = {.op = REE_REPOP_MAP};
    struct ree_expr *expr = &d.params.map.expr;
    *expr = (struct ree_expr){
        .rank = 1,
        .dims = {SOME},
        .n_elements = SOME,
        .out_dtype = dtype,
        .n_operands = 1,
        .n_instrs = op != REE_N_MAP_OPS,
    };
    expr->instrs[0].op = op;
    expr->operands[0] =
        (struct ree_expr_operand){.kind = REE_EXPR_TENSOR, .dtype = dtype, .strides = {stride}};
    return run(t, &d);
}

static enum ree_status stored(const struct ree_cpu_trial *t) {
    static const struct {
        uint32_t op, dtype;
    } cases[] = {
        {REE_MAP_add_i32, REE_I8},  {REE_MAP_add_i32, REE_U8},  {REE_MAP_add_i32, REE_I16},
        {REE_MAP_add_i32, REE_U16}, {REE_MAP_add_i32, REE_I32}, {REE_MAP_add_i64, REE_I64},
        {REE_MAP_add_f32, REE_F32}, {REE_MAP_add_f64, REE_F64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t stride = 0; stride < 3; stride++) {
            REE_TRY(run_stored(t, cases[i].op, cases[i].dtype, stride));
            REE_TRY(run_stored(t, REE_N_MAP_OPS, cases[i].dtype, stride));
        }
    return REE_OK;
}

// Movement: bytes of every size, as they lie in memory, turned over, reversed and repeated.

static const uint32_t types_of_sizes[] = {REE_U8, REE_U16, REE_U32, REE_U64};

static enum ree_status run_copy(const struct ree_cpu_trial *t, uint32_t dtype, int32_t offset,
                                int32_t stride_0, int32_t stride_1) {
    struct ree_dispatch d = {.op = REE_REPOP_COPY};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d.params.copy = (struct ree_copy_params){
        .elem_size = (uint32_t)ree_dtype_size((enum ree_dtype)dtype),
        .rank = 2,
        .n_elements = 21 * COLUMNS,
        .src_offset = offset,
        .dims = {21, COLUMNS},
        .src_strides = {stride_0, stride_1},
        .dst_strides = {COLUMNS, 1},
    };
    add_operand(&d, operands, dtype, 2 * 21 * COLUMNS, false);
    add_operand(&d, operands, dtype, 21 * COLUMNS, true);
    return run_whole(t, &d, operands);
}

static enum ree_status run_gather(const struct ree_cpu_trial *t, uint32_t dtype,
                                  uint32_t index_dtype, bool whole_rows) {
    struct ree_dispatch d = {.op = REE_REPOP_GATHER};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d.params.gather = (struct ree_gather_params){
        .elem_size = (uint32_t)ree_dtype_size((enum ree_dtype)dtype),
        .index_dtype = index_dtype,
        .rank = 2,
        .n_elements = 21 * COLUMNS,
        .dims = {21, COLUMNS},
        .data_strides = {0, 1},
        .index_strides = {whole_rows ? 1 : COLUMNS, whole_rows ? 0 : 1},
        .n_components = 1,
        .component_stride = 1,
        .component_sizes = {11},
        .component_strides = {COLUMNS},
    };
    add_operand(&d, operands, dtype, 11 * COLUMNS, false);
    add_operand(&d, operands, index_dtype, whole_rows ? 21 : 21 * COLUMNS, false);
    operands[1].values.role = REE_HARD_BOUNDED;
    operands[1].values.low = -11;
    operands[1].values.high = 10;
    add_operand(&d, operands, dtype, 21 * COLUMNS, true);
    return run_whole(t, &d, operands);
}

static enum ree_status movement(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = once(t);
    for (size_t i = 0; i < sizeof types_of_sizes / sizeof *types_of_sizes; i++) {
        const uint32_t dtype = types_of_sizes[i];
        REE_TRY(run_copy(&first, dtype, 0, COLUMNS, 1));
        REE_TRY(run_copy(&first, dtype, 0, 1, 21)); // transposed
        REE_TRY(run_copy(&first, dtype, 21 * COLUMNS - 1, -COLUMNS, -1));
        REE_TRY(run_copy(&first, dtype, 3, 1, 0));
        REE_TRY(run_copy(&first, dtype, 0, 2 * COLUMNS, 2));
        for (int wide = 0; wide < 2; wide++)
            for (int whole_rows = 0; whole_rows < 2; whole_rows++)
                REE_TRY(run_gather(&first, dtype, wide ? REE_I64 : REE_I32, whole_rows));
    }
    return REE_OK;
}

// Work that threads share: parts of one output are computed apart and then joined. The problems are
// cut up as for two threads.

static enum ree_status run_shared_reduce(const struct ree_cpu_trial *t, uint32_t kind,
                                         uint32_t dtype, int32_t stride) {
    struct ree_dispatch d = {.op = REE_REPOP_REDUCE};
    d.params.reduce = (struct ree_reduce_params){
        .kind = kind,
        .dtype = dtype,
        .n_outer = 1,
        .n_reduce = SOME,
        .reduce_rank = 1,
        .reduce_dims = {SOME},
        .reduce_strides = {stride},
    };
    struct ree_cpu_trial longer = *t;
    longer.size.length = 33 * REE_CHUNK + 50; // several vectors of chunks for each thread
    return run(&longer, &d);
}

static enum ree_status run_shared(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial longer = *t;
    longer.size.length = 2 * REE_CHUNK + 50; // three chunks, to be added in order
    // Threads share the chunks of a panel if there are few panels: with n = 25 that happens for
    // panels of 4 to 32 columns, with n = 37 for panels of 64.
    for (uint32_t n = 25; n <= COLUMNS; n += COLUMNS - 25) {
        REE_TRY(run_matmul(&longer, (struct product){2, n, REE_F32, REE_BF16, .layout = BY_ROWS}));
        REE_TRY(run_matmul(&longer, (struct product){1, n, REE_F32, REE_U8, .bits = 4}));
    }
    REE_TRY(run_matmul(t, (struct product){1, COLUMNS, REE_F32, REE_F32, .layout = BY_ROWS}));
    REE_TRY(run_matmul(t, (struct product){1, COLUMNS, REE_F32, REE_F32, .layout = BY_COLUMNS}));
    REE_TRY(run_matmul(
        t, (struct product){TALL_ROWS, TALL_COLUMNS, REE_F32, REE_F32, .layout = BY_ROWS}));
    REE_TRY(run_matmul(
        t, (struct product){TALL_ROWS, TALL_COLUMNS, REE_U8, REE_I8, .layout = BY_ROWS}));
    // With few groups, tiles compute what has kernels of its own otherwise.
    REE_TRY(run_conv(
        t, (struct filter){2, 1, 1, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32, .n = 1}));
    REE_TRY(run_conv(
        t, (struct filter){1, SOME, 3, 3, 1, .x_dtype = REE_F32, .w_dtype = REE_F32, .n = 1}));
    REE_TRY(run_conv(
        t, (struct filter){1, SOME, 3, 3, 1, .x_dtype = REE_U8, .w_dtype = REE_I8, .n = 1}));
    REE_TRY(run_long_attention(t));
    for (int32_t stride = 1; stride <= 2; stride++) {
        REE_TRY(run_shared_reduce(t, REE_REDUCE_SUM, REE_F32, stride));
        REE_TRY(run_shared_reduce(t, REE_REDUCE_MAX, REE_F32, stride));
        REE_TRY(run_shared_reduce(t, REE_REDUCE_ARGMAX, REE_F32, stride));
        REE_TRY(run_shared_reduce(t, REE_REDUCE_SUM, REE_I32, stride));
        REE_TRY(run_shared_reduce(t, REE_REDUCE_SUM, REE_F64, stride));
    }
    return REE_OK;
}

static enum ree_status shared(const struct ree_cpu_trial *t) {
    struct ree_cpu_scratch scratch[2] = {0};
    struct ree_cpu_context two = *t->ctx;
    two.n_threads = 2;
    two.thread_grain = 1;
    two.scratch = scratch;
    struct ree_cpu_trial cut = once(t);
    cut.ctx = &two;
    // The calling thread does all parts itself: a test must start no threads. They would stay, and
    // with libgomp a child that the program forks afterwards would wait for them forever.
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    enum ree_status status = run_shared(&cut);
    omp_set_max_active_levels(levels);
    for (int i = 0; i < 2; i++)
        ree_cpu_scratch_finish(&scratch[i]);
    return status;
}

enum ree_status ree_cpu_test_hash(const struct ree_cpu_test *test,
                                  const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                  struct ree_error *err) {
    struct kept kept[REE_MAX_OPERANDS][REE_HARD_FEW_ROUNDS] = {0};
    const struct ree_cpu_trial trial = {
        .ctx = ctx,
        .hasher = hasher,
        .err = err,
        .kept = kept,
        .size =
            {
                .elements = 300,
                .columns = SOME, // fewer stay as they are
                .length = 300,   // a chunk and a part of the next
                .long_length = 550,
                .long_from = UINT32_MAX,
                .keeps_ones = true,
                .few_rows = SOME, // fewer stay as they are
                .rows = ROWS,
                .few_queries = 8,
            },
        .rounds = REE_HARD_FEW_ROUNDS,
    };
    enum ree_status status = test->run(&trial);
    for (size_t i = 0; i < REE_MAX_OPERANDS; i++)
        for (size_t round = 0; round < REE_HARD_FEW_ROUNDS; round++)
            free(kept[i][round].bytes);
    return status;
}

const struct ree_cpu_test ree_cpu_tests[] = {
#include "device/cpu/selftest_recorded.inc"
};
const size_t ree_cpu_n_tests = sizeof ree_cpu_tests / sizeof *ree_cpu_tests;
