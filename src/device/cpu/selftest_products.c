// Self-test problems of matrix products, convolutions and attention, also with epilogues, and
// divided as between two threads.
#include "device/cpu/execute.h"
#include "device/cpu/selftest_problems.h"

#include <omp.h>

// Products

enum layout { BY_ROWS, BY_COLUMNS, APART }; // of B: which elements are adjacent in memory

struct product {
    uint32_t m, n, a_dtype, b_dtype;
    enum layout layout;
    uint32_t bits; // bits of a blockwise weight; 0: plain B
    bool zero_points;
    uint32_t n_batch;                // 0 counts as 1
    const struct ree_expr *epilogue; // NULL: none
    bool moderate;                   // no element of A or B is subnormal or infinite
    uint32_t a_block;                // block length of blockwise activations; 0: plain A
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
        .dtype = x.a_block ? REE_F32 : sum_dtype(x.a_dtype),
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
        .a_block = x.a_block,
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
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d.n_operands = ree_twin_shrink(&d, &t->size, operands);
    if (x.moderate) operands[0].values.role = operands[1].values.role = REE_HARD_MODERATE;
    return ree_cpu_trial_run_whole(t, &d, operands);
}

// Runs every tile height, with whole and partial vectors.
static enum ree_status run_heights(const struct ree_cpu_trial *t, uint32_t a_dtype,
                                   uint32_t b_dtype) {
    struct ree_cpu_trial shorter = ree_cpu_trial_once(t);
    shorter.size.length = 40;
    for (uint32_t n = COLUMNS; n <= 57; n += 57 - COLUMNS)
        for (uint32_t m = 1; m <= MAX_HEIGHT; m++)
            REE_TRY(
                run_matmul(&shorter, (struct product){m, n, a_dtype, b_dtype, .layout = APART}));
    return REE_OK;
}

// Up to 8 rows are multiplied by B in its memory layout, or by panels of B.
static enum ree_status run_few_rows(const struct ree_cpu_trial *t, uint32_t b_dtype) {
    for (uint32_t m = 2; m <= 8; m++)
        REE_TRY(run_matmul(t, (struct product){m, 21, REE_F32, b_dtype, .layout = BY_COLUMNS}));
    static const uint32_t rows[] = {2, 3, 4, 7};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        REE_TRY(
            run_matmul(t, (struct product){rows[i], COLUMNS, REE_F32, b_dtype, .layout = BY_ROWS}));
    return REE_OK;
}

enum ree_status ree_cpu_test_matmul(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
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

enum ree_status ree_cpu_test_matmul_blocks(const struct ree_cpu_trial *t) {
    static const uint32_t rows[] = {1, 2, 3, 4, 7, ROWS};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (uint32_t bits = 4; bits <= 8; bits += 4)
        for (int zero_points = 0; zero_points < 2; zero_points++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                REE_TRY(run_matmul(rows[i] == 1 ? t : &first,
                                   (struct product){rows[i], COLUMNS, REE_F32, REE_U8, .bits = bits,
                                                    .zero_points = zero_points}));
    return REE_OK;
}

// Runs several sizes of groups of rows, with blocks of A that are shorter and longer than those of
// B.
enum ree_status ree_cpu_test_matmul_int8(const struct ree_cpu_trial *t) {
    static const uint32_t rows[] = {1, 2, 3, 4, 5, 6, 7, ROWS, MAX_HEIGHT};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (uint32_t bits = 4; bits <= 8; bits += 4)
        for (int zero_points = 0; zero_points < 2; zero_points++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                for (uint32_t a_block = 16; a_block <= 256; a_block *= 16)
                    REE_TRY(run_matmul(rows[i] == 1 ? t : &first,
                                       (struct product){rows[i], COLUMNS, REE_I8, REE_U8,
                                                        .bits = bits, .zero_points = zero_points,
                                                        .a_block = a_block}));
    return REE_OK;
}

// Each combination of signs has its own tiles.
enum ree_status ree_cpu_test_matmul_bytes(const struct ree_cpu_trial *t) {
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

// Products of bfloat16, whose tiles may multiply pairs of terms. Panels with subnormal elements are
// multiplied as floats instead.
enum ree_status ree_cpu_test_matmul_pairs(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (int moderate = 0; moderate < 2; moderate++) {
        for (enum layout layout = BY_ROWS; layout <= APART; layout++)
            REE_TRY(run_matmul(moderate ? t : &first,
                               (struct product){ROWS, COLUMNS, REE_BF16, REE_BF16, .layout = layout,
                                                .moderate = moderate}));
        REE_TRY(run_matmul(&first, (struct product){TALL_ROWS, TALL_COLUMNS, REE_BF16, REE_BF16,
                                                    .layout = BY_COLUMNS, .moderate = moderate}));
    }
    REE_TRY(run_matmul(&first, (struct product){ROWS, COLUMNS, REE_BF16, REE_BF16, .n_batch = 2,
                                                .moderate = true}));
    struct ree_cpu_trial shorter = first;
    shorter.size.length = 40;
    for (uint32_t n = COLUMNS; n <= 57; n += 57 - COLUMNS)
        for (uint32_t m = 9; m <= 9 + MAX_HEIGHT; m++) // up to 8 rows are streamed
            REE_TRY(run_matmul(&shorter, (struct product){m, n, REE_BF16, REE_BF16,
                                                          .layout = BY_COLUMNS, .moderate = true}));
    return REE_OK;
}

// Products of types that have no tiles.
enum ree_status ree_cpu_test_matmul_wide(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F64, REE_I32, REE_I64};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (enum layout layout = BY_ROWS; layout <= BY_COLUMNS; layout++)
            REE_TRY(run_matmul(i == 0 ? t : &first, (struct product){5, COLUMNS, dtypes[i],
                                                                     dtypes[i], .layout = layout}));
    return REE_OK;
}

struct filter {
    uint32_t groups, c, m; // c, m: per group
    uint32_t kernel, stride;
    uint32_t x_dtype, w_dtype;
    bool transposed;
    uint32_t n;                      // images; 0 counts as 2
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
    return ree_cpu_trial_run(t, &d);
}

// Runs a convolution with few channels unchanged: its kernels vectorise along the rows of the
// output, so the length of a row selects the code.
static enum ree_status run_planes(const struct ree_cpu_trial *t, struct filter f, uint32_t width) {
    struct ree_dispatch d = {.op = REE_REPOP_CONV};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    f.n = 1;
    d.params.conv = conv_params(f, width);
    const struct ree_conv_params *p = &d.params.conv;
    const uint32_t kernel = p->kernel[1] * p->kernel[2], channels = f.groups * f.c;
    ree_cpu_trial_add_operand(&d, operands, f.x_dtype, (uint64_t)channels * p->in[1] * p->in[2],
                              false);
    ree_cpu_trial_add_operand(&d, operands, f.w_dtype, (uint64_t)f.groups * f.m * f.c * kernel,
                              false);
    operands[1].values.role = REE_HARD_FINITE;
    if (p->has_pad_value) ree_cpu_trial_add_operand(&d, operands, f.x_dtype, 1, false);
    ree_cpu_trial_add_operand(&d, operands, ree_conv_sum_dtype(p),
                              (uint64_t)f.groups * f.m * p->out[1] * p->out[2], true);
    return ree_cpu_trial_run_whole(t, &d, operands);
}

enum ree_status ree_cpu_test_conv(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
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
    // With a 1x1 kernel all rows together are one row, which fills eight vectors.
    return run_planes(&first,
                      (struct filter){1, 2, 1, 1, 1, .x_dtype = REE_F32, .w_dtype = REE_F32}, 12);
}

enum ree_status ree_cpu_test_conv_bytes(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_U8, REE_I8};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
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
    bool all_keys;  // false: a query sees no keys after its own position
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
    return ree_cpu_trial_run(t, &d);
}

// Runs attention over two chunks of keys, whose maxima and sums are joined: with one query, and
// with a tile of 24 rows.
static enum ree_status run_long_attention(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial longer = ree_cpu_trial_once(t);
    longer.size.long_from = 1;
    longer.size.long_length = 2 * (REE_CHUNK + 34);
    longer.size.few_queries = 12;
    REE_TRY(run_attention(&longer, (struct queries){1, 4, 1, .dtype = REE_F32}));
    return run_attention(&longer, (struct queries){12, 2, 1, .dtype = REE_F32});
}

enum ree_status ree_cpu_test_attention(const struct ree_cpu_trial *t) {
    static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16};
    struct ree_cpu_trial all = *t, first = ree_cpu_trial_once(t);
    all.size.keys = first.size.keys = 70;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        REE_TRY(run_attention(&all, (struct queries){1, 4, 2, .dtype = dtypes[i]}));
        REE_TRY(
            run_attention(i == 0 ? &all : &first, (struct queries){20, 2, 2, .dtype = dtypes[i]}));
    }
    REE_TRY(run_attention(&all, (struct queries){20, 4, 2, .dtype = REE_F32, .all_keys = true}));
    return run_long_attention(t);
}

// Epilogues

// Returns acc * x + y, converted to out_dtype. x (operand 0, float32) has one element per column, y
// (operand 1, bfloat16) has the shape of the output. An integer acc becomes a float first. dims:
// the last two are the output's rows and columns.
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
    // Values: 0 is acc, 1 and 2 are the operands, then the instructions' results.
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

enum ree_status ree_cpu_test_epilogue(const struct ree_cpu_trial *t) {
    static const struct {
        uint32_t m, a_dtype, b_dtype, out_dtype;
    } products[] = {
        {ROWS, REE_F32, REE_F32, REE_F32}, {ROWS, REE_F32, REE_F32, REE_F16},
        {3, REE_F32, REE_BF16, REE_F32},   {ROWS, REE_U8, REE_I8, REE_F32},
        {ROWS, REE_U8, REE_I8, REE_I8},
    };
    static const uint32_t image[5] = {2, ROWS, 1, 20, 20};
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
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

// Work shared by threads: parts of one output are computed separately and then joined. The problems
// are divided as for two threads.

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
    longer.size.length = 33 * REE_CHUNK + 50; // several vectors of chunks per thread
    return ree_cpu_trial_run(&longer, &d);
}

static enum ree_status run_shared(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial longer = *t;
    longer.size.length = 2 * REE_CHUNK + 50; // three chunks, added in order
    // Threads share the chunks of a panel if there are few panels. With n = 25 this happens for
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
    // With few groups, tiles compute convolutions that otherwise have their own kernels.
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

enum ree_status ree_cpu_test_shared(const struct ree_cpu_trial *t) {
    struct ree_cpu_scratch scratch[2] = {0};
    struct ree_cpu_context two = *t->ctx;
    two.n_threads = 2;
    two.thread_grain = 1;
    two.scratch = scratch;
    struct ree_cpu_trial cut = ree_cpu_trial_once(t);
    cut.ctx = &two;
    // The calling thread computes all parts itself: a test must start no threads. They would stay
    // alive, and with libgomp a child that the program forks later would wait for them forever.
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    enum ree_status status = run_shared(&cut);
    omp_set_max_active_levels(levels);
    for (int i = 0; i < 2; i++)
        ree_cpu_scratch_finish(&scratch[i]);
    return status;
}
