// The problems of selftest.h. Each is a dispatch that ree_twin_shrink makes small and fills with
// hard values, in all rounds; what its kernel writes goes into the group's digest. Products run
// twice, with their weights as they are and packed.
#include "base/sha256.h"
#include "device/cpu/execute.h"
#include "device/cpu/selftest.h"
#include "device/selftest/twin_shapes.h"

#include <stdlib.h>

static const struct ree_twin_size size = {
    .elements = 300,
    .columns = 37, // a tile and a part of the next
    .length = 300, // a chunk and a part of the next
    .long_length = 550,
    .long_from = UINT32_MAX,
    .keeps_ones = true,
    .few_rows = 4,
    .rows = 19,
    .few_queries = 8,
};

#define SOME 100 // a dimension that the twin makes its own

static void free_packed(struct ree_cpu_context *ctx) {
    for (uint32_t i = 0; i < REE_CPU_MAX_PACKED; i++) {
        free((void *)(uintptr_t)ctx->packed[i]);
        ctx->packed[i] = NULL;
    }
}

// Packs the weights of a product. False: nothing to pack, or no memory.
static bool pack(struct ree_cpu_context *ctx, const struct ree_dispatch *d, void *const *operands) {
    bool any = false, failed = false;
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
            failed = true;
            continue;
        }
        if (d->op == REE_REPOP_MATMUL)
            ree_cpu_matmul_pack(ctx, &d->params.matmul, i, operands[i], packed);
        else
            ree_cpu_conv_pack(ctx, &d->params.conv, operands[i], packed);
        ctx->packed[i] = packed;
        any = true;
    }
    if (failed) free_packed(ctx);
    return any && !failed;
}

static enum ree_status run_round(const struct ree_cpu_context *ctx, const struct ree_dispatch *d,
                                 const struct ree_twin_operand *operands, void *const *memory,
                                 uint32_t round, struct ree_hasher *hasher, struct ree_error *err) {
    for (uint32_t i = 0; i < d->n_operands; i++)
        ree_hard_values_fill(&operands[i].values, round, i, memory[i]);
    REE_TRY(ree_cpu_run_dispatch(ctx, d, memory, err));
    for (uint32_t i = 0; i < d->n_operands; i++)
        if (operands[i].is_written) ree_hasher_update(hasher, memory[i], d->operands[i].size);
    // Once more with packed weights, where there is such a form: that must change nothing.
    struct ree_cpu_context packed = *ctx;
    if (!pack(&packed, d, memory)) return REE_OK;
    const uint32_t last = d->n_operands - 1;
    const size_t nbytes = d->operands[last].size;
    void *before = malloc(nbytes + 1);
    enum ree_status status = before ? REE_OK : ree_fail(err, REE_NO_MEMORY, "no memory");
    if (before) memcpy(before, memory[last], nbytes);
    if (status == REE_OK) status = ree_cpu_run_dispatch(&packed, d, memory, err);
    if (status == REE_OK && memcmp(before, memory[last], nbytes) != 0)
        ree_hasher_update(hasher, "packed", 6); // a digest that is not the recorded one
    free(before);
    free_packed(&packed);
    return status;
}

static enum ree_status run(const struct ree_cpu_context *ctx, struct ree_dispatch *d,
                           struct ree_hasher *hasher, struct ree_error *err) {
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    void *memory[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = REE_OK;
    d->n_operands = ree_twin_shrink(d, &size, operands);
    d->n_outputs = d->op == REE_REPOP_SCATTER ? 0 : 1;
    for (uint32_t i = 0; i < d->n_operands; i++) {
        const struct ree_hard_values *v = &operands[i].values;
        d->operands[i].size = v->n * ree_dtype_size((enum ree_dtype)v->dtype);
        memory[i] = aligned_alloc(64, (d->operands[i].size / 64 + 1) * 64);
        if (!memory[i]) status = ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
    }
    for (uint32_t round = 0; round < REE_HARD_FEW_ROUNDS && status == REE_OK; round++)
        status = run_round(ctx, d, operands, memory, round, hasher, err);
    for (uint32_t i = 0; i < d->n_operands; i++)
        free(memory[i]);
    return status;
}

// Products: m rows; B by rows (its columns side by side in memory) or by columns.
static enum ree_status run_matmul(const struct ree_cpu_context *ctx, uint32_t m, uint32_t a_dtype,
                                  uint32_t b_dtype, bool by_columns, uint32_t bits,
                                  struct ree_hasher *hasher, struct ree_error *err) {
    bool bytes = a_dtype == REE_I8 || a_dtype == REE_U8;
    struct ree_dispatch d = {.op = REE_REPOP_MATMUL};
    d.params.matmul = (struct ree_matmul_params){
        .dtype = bytes ? REE_I32 : REE_F32,
        .a_dtype = a_dtype,
        .b_dtype = b_dtype,
        .m = m,
        .n = 1000,
        .k = 1000,
        .a_stride_m = 1000,
        .a_stride_k = 1,
        .b_stride_k = bits         ? 0
                      : by_columns ? 1
                                   : 1000,
        .b_stride_n = bits         ? 0
                      : by_columns ? 1000
                                   : 1,
        .n_batch = 1,
        .b_block = bits ? 32 : 0,
        .b_bits = bits,
        .has_zero_points = bits == 4,
    };
    return run(ctx, &d, hasher, err);
}

static enum ree_status matmul(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                              struct ree_error *err) {
    for (uint32_t m = 1; m <= SOME; m += SOME - 1)
        for (int by_columns = 0; by_columns < 2; by_columns++) {
            static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16};
            for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
                REE_TRY(run_matmul(ctx, m, REE_F32, dtypes[i], by_columns, 0, hasher, err));
        }
    return REE_OK;
}

static enum ree_status matmul_blocks(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                     struct ree_error *err) {
    for (uint32_t m = 1; m <= SOME; m += SOME - 1)
        for (uint32_t bits = 4; bits <= 8; bits += 4)
            REE_TRY(run_matmul(ctx, m, REE_F32, REE_U8, false, bits, hasher, err));
    return REE_OK;
}

static enum ree_status matmul_bytes(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                    struct ree_error *err) {
    for (uint32_t m = 1; m <= SOME; m += SOME - 1) {
        REE_TRY(run_matmul(ctx, m, REE_U8, REE_I8, false, 0, hasher, err));
        REE_TRY(run_matmul(ctx, m, REE_I8, REE_I8, true, 0, hasher, err));
    }
    return REE_OK;
}

static enum ree_status run_conv(const struct ree_cpu_context *ctx, uint32_t groups, uint32_t c,
                                uint32_t m, uint32_t kernel, uint32_t stride, bool transposed,
                                uint32_t dtype, struct ree_hasher *hasher, struct ree_error *err) {
    struct ree_dispatch d = {.op = REE_REPOP_CONV};
    uint32_t pad = kernel / 2;
    d.params.conv = (struct ree_conv_params){
        .n = 2,
        .groups = groups,
        .c = c,
        .m = m,
        .in = {1, 20 * stride, 20 * stride},
        .kernel = {1, kernel, kernel},
        .out = {1, 20, 20},
        .stride = {1, stride, stride},
        .dilation = {1, 1, 1},
        .pad = {0, (int32_t)pad, (int32_t)pad},
        .transposed = transposed,
        .x_dtype = dtype,
        .w_dtype = dtype,
    };
    return run(ctx, &d, hasher, err);
}

static enum ree_status conv(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                            struct ree_error *err) {
    REE_TRY(run_conv(ctx, 1, SOME, SOME, 3, 1, false, REE_F32, hasher, err));
    REE_TRY(run_conv(ctx, 1, SOME, SOME, 3, 2, false, REE_F32, hasher, err));
    REE_TRY(run_conv(ctx, 1, SOME, SOME, 1, 1, false, REE_F32, hasher, err));
    REE_TRY(run_conv(ctx, 2, 1, 1, 3, 1, false, REE_F32, hasher, err)); // depthwise
    REE_TRY(run_conv(ctx, 1, SOME, 3, 3, 2, true, REE_F32, hasher, err));
    return run_conv(ctx, 1, SOME, SOME, 3, 1, false, REE_U8, hasher, err);
}

static enum ree_status run_attention(const struct ree_cpu_context *ctx, uint32_t q_len,
                                     uint32_t n_heads, uint32_t dtype, bool causal,
                                     struct ree_hasher *hasher, struct ree_error *err) {
    const int32_t dim = 64, len = SOME;
    struct ree_dispatch d = {.op = REE_REPOP_ATTENTION};
    int32_t q = (int32_t)q_len, heads = (int32_t)n_heads;
    d.params.attention = (struct ree_attention_params){
        .batch = 1,
        .n_heads = n_heads,
        .n_kv_heads = 2,
        .q_len = q_len,
        .kv_len = SOME,
        .head_dim = 64,
        .v_head_dim = 64,
        .k_dtype = dtype,
        .v_dtype = dtype,
        .q_strides = {heads * q * dim, q * dim, dim, 1},
        .k_strides = {2 * len * dim, len * dim, dim, 1},
        .v_strides = {2 * len * dim, len * dim, dim, 1},
        .out_strides = {heads * q * dim, q * dim, dim},
        .scale = 0.125f,
        .left = REE_ATTENTION_UNBOUNDED,
        .right = causal ? 0 : REE_ATTENTION_UNBOUNDED,
        .start = causal ? len - q : 0,
    };
    return run(ctx, &d, hasher, err);
}

static enum ree_status attention(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                                 struct ree_error *err) {
    static const uint32_t dtypes[] = {REE_F32, REE_F16, REE_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        REE_TRY(run_attention(ctx, 1, 4, dtypes[i], true, hasher, err));
        REE_TRY(run_attention(ctx, 20, 2, dtypes[i], true, hasher, err));
    }
    return run_attention(ctx, 20, 4, REE_F32, false, hasher, err);
}

static enum ree_status softmax(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                               struct ree_error *err) {
    for (uint32_t i = 0; i < 4; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX};
        d.params.softmax = (struct ree_softmax_params){
            .log = i & 1, .outer = SOME, .k = SOME, .inner = i & 2 ? SOME : 1};
        REE_TRY(run(ctx, &d, hasher, err));
    }
    return REE_OK;
}

static enum ree_status norm(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                            struct ree_error *err) {
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
        REE_TRY(run(ctx, &d, hasher, err));
    }
    return REE_OK;
}

static enum ree_status reduce(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                              struct ree_error *err) {
    static const uint32_t dtypes[] = {REE_F32, REE_F64, REE_I32};
    for (uint32_t kind = REE_REDUCE_SUM; kind <= REE_REDUCE_ARGMIN; kind++)
        for (uint32_t i = 0; i < 6; i++) {
            const bool columns = i & 1; // reduced terms lie a row apart
            struct ree_dispatch d = {.op = REE_REPOP_REDUCE};
            d.params.reduce = (struct ree_reduce_params){
                .kind = kind,
                .dtype = dtypes[i / 2],
                .n_outer = SOME,
                .n_reduce = SOME,
                .outer_rank = 1,
                .reduce_rank = 1,
                .outer_dims = {SOME},
                .outer_strides = {columns ? 1 : SOME},
                .reduce_dims = {SOME},
                .reduce_strides = {columns ? SOME : 1},
            };
            REE_TRY(run(ctx, &d, hasher, err));
        }
    return REE_OK;
}

static enum ree_status scan(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                            struct ree_error *err) {
    for (uint32_t i = 0; i < 8; i++) {
        struct ree_dispatch d = {.op = REE_REPOP_SCAN};
        d.params.scan = (struct ree_scan_params){.product = i & 1,
                                                 .dtype = i & 4 ? REE_F64 : REE_F32,
                                                 .outer = SOME,
                                                 .k = SOME,
                                                 .inner = i & 2 ? SOME : 1,
                                                 .reverse = i & 2};
        REE_TRY(run(ctx, &d, hasher, err));
    }
    return REE_OK;
}

static enum ree_status windows(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                               struct ree_error *err) {
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
        REE_TRY(run(ctx, &d, hasher, err));
    }
    struct ree_dispatch d = {.op = REE_REPOP_RESIZE};
    d.params.resize = (struct ree_resize_params){
        .outer = SOME, .k_in = SOME, .k_out = SOME, .inner = SOME, .taps = 4};
    return run(ctx, &d, hasher, err);
}

static enum ree_status indices(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                               struct ree_error *err) {
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
        REE_TRY(run(ctx, &d, hasher, err));
    }
    struct ree_dispatch d = {.op = REE_REPOP_TOPK};
    d.params.topk =
        (struct ree_topk_params){.dtype = REE_F32, .outer = SOME, .n = SOME, .inner = 1, .k = SOME};
    return run(ctx, &d, hasher, err);
}

// Every scalar operation, over operands of the types that its arguments may be read as.
static enum ree_status run_operation(const struct ree_cpu_context *ctx, uint32_t op,
                                     struct ree_hasher *hasher, struct ree_error *err) {
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
    return run(ctx, &d, hasher, err);
}

static enum ree_status map(const struct ree_cpu_context *ctx, struct ree_hasher *hasher,
                           struct ree_error *err) {
    for (uint32_t op = REE_MAP_CONST64 + 1; op < REE_N_MAP_OPS; op++)
        if (!ree_map_op_is_host_only(op)) REE_TRY(run_operation(ctx, op, hasher, err));
    return REE_OK;
}

const struct ree_cpu_test ree_cpu_tests[] = {
#include "device/cpu/selftest_recorded.inc"
};
const size_t ree_cpu_n_tests = sizeof ree_cpu_tests / sizeof *ree_cpu_tests;
