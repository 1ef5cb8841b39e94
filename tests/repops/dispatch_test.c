// ree_dispatch_check accepts a valid dispatch of each RepOp and names the error in invalid ones.
// ree_dispatch_print prints every RepOp. The tables of RepOps and scalar operations are complete.
#include "base/strbuf.h"
#include "repops/repop.h"

#include "test.h"

#include <string.h>

static void operand(struct ree_dispatch *d, uint64_t size) {
    d->operands[d->n_operands] = (struct ree_operand){.slot = d->n_operands, .size = size};
    d->n_operands++;
}

static struct ree_expr expression(void) { // relu(a + b) over (2, 3), b broadcast
    struct ree_expr e = {.rank = 2, .dims = {2, 3}, .n_elements = 6, .out_dtype = REE_F32};
    e.n_operands = 2;
    e.operands[0] = (struct ree_expr_operand){.dtype = REE_F32, .strides = {3, 1}};
    e.operands[1] = (struct ree_expr_operand){.dtype = REE_F32, .strides = {0, 1}};
    e.n_instrs = 3;
    e.instrs[0] = (struct ree_expr_instr){.op = REE_MAP_add_f32, .args = {0, 1}};
    e.instrs[1] = (struct ree_expr_instr){.op = REE_MAP_CONST32};
    e.instrs[2] = (struct ree_expr_instr){.op = REE_MAP_max_f32, .args = {2, 3}};
    return e;
}

// A valid dispatch of each RepOp.
static struct ree_dispatch good(enum ree_repop op) {
    struct ree_dispatch d = {.op = op, .n_outputs = 1};
    union ree_params *p = &d.params;
    switch (op) {
    case REE_REPOP_COPY: // a transposition of (2, 3)
        p->copy = (struct ree_copy_params){.elem_size = 4,
                                           .rank = 2,
                                           .n_elements = 6,
                                           .dims = {3, 2},
                                           .src_strides = {1, 3},
                                           .dst_strides = {2, 1}};
        operand(&d, 24);
        operand(&d, 24);
        break;
    case REE_REPOP_MAP:
        p->map.expr = expression();
        operand(&d, 24);
        operand(&d, 12);
        operand(&d, 24);
        break;
    case REE_REPOP_REDUCE:
        p->reduce = (struct ree_reduce_params){.kind = REE_REDUCE_ARGMAX,
                                               .dtype = REE_F32,
                                               .n_outer = 2,
                                               .n_reduce = 3,
                                               .outer_rank = 1,
                                               .reduce_rank = 1,
                                               .outer_dims = {2},
                                               .outer_strides = {3},
                                               .reduce_dims = {3},
                                               .reduce_strides = {1}};
        operand(&d, 24);
        operand(&d, 16);
        break;
    case REE_REPOP_MATMUL: // (2, 4) by (4, 3), epilogue adds the expression's second tensor
        p->matmul = (struct ree_matmul_params){.dtype = REE_F32,
                                               .a_dtype = REE_F32,
                                               .b_dtype = REE_F32,
                                               .m = 2,
                                               .n = 3,
                                               .k = 4,
                                               .a_stride_m = 4,
                                               .a_stride_k = 1,
                                               .b_stride_k = 3,
                                               .b_stride_n = 1,
                                               .n_batch = 1,
                                               .has_epilogue = 1};
        p->matmul.epilogue = expression();
        p->matmul.epilogue.n_operands = 1;
        p->matmul.epilogue.operands[0].strides[0] = 0;
        operand(&d, 32);
        operand(&d, 48);
        operand(&d, 12);
        operand(&d, 24);
        break;
    case REE_REPOP_CONV:
        p->conv = (struct ree_conv_params){.n = 1,
                                           .groups = 2,
                                           .c = 2,
                                           .m = 3,
                                           .in = {1, 5, 5},
                                           .kernel = {1, 3, 3},
                                           .out = {1, 5, 5},
                                           .stride = {1, 1, 1},
                                           .dilation = {1, 1, 1},
                                           .pad = {0, 1, 1},
                                           .x_dtype = REE_F32,
                                           .w_dtype = REE_F32};
        operand(&d, 4 * 25 * 4);
        operand(&d, 6 * 2 * 9 * 4);
        operand(&d, 6 * 25 * 4);
        break;
    case REE_REPOP_POOL:
        p->pool = (struct ree_pool_params){.kind = REE_POOL_MAX,
                                           .dtype = REE_F32,
                                           .planes = 2,
                                           .in = {1, 4, 4},
                                           .kernel = {1, 2, 2},
                                           .out = {1, 2, 2},
                                           .stride = {1, 2, 2},
                                           .dilation = {1, 1, 1},
                                           .has_indices = 1};
        d.n_outputs = 2;
        operand(&d, 128);
        operand(&d, 32);
        operand(&d, 64);
        break;
    case REE_REPOP_SOFTMAX:
        p->softmax = (struct ree_softmax_params){.outer = 2, .k = 3, .inner = 4};
        operand(&d, 96);
        operand(&d, 96);
        break;
    case REE_REPOP_NORM:
        p->norm = (struct ree_norm_params){.rows = 4,
                                           .cols = 3,
                                           .has_scale = 1,
                                           .has_bias = 1,
                                           .scale_row_div = 1,
                                           .scale_row_mod = 2,
                                           .scale_row_stride = 3,
                                           .scale_col_stride = 1};
        operand(&d, 48);
        operand(&d, 24);
        operand(&d, 24);
        operand(&d, 48);
        break;
    case REE_REPOP_GATHER: // two rows of a (5, 3), chosen by index
        p->gather = (struct ree_gather_params){.elem_size = 4,
                                               .index_dtype = REE_I64,
                                               .rank = 2,
                                               .n_elements = 6,
                                               .dims = {2, 3},
                                               .data_strides = {0, 1},
                                               .index_strides = {1, 0},
                                               .n_components = 1,
                                               .component_sizes = {5},
                                               .component_strides = {3}};
        operand(&d, 60);
        operand(&d, 16);
        operand(&d, 24);
        break;
    case REE_REPOP_SCATTER: // two updates to each of 3 columns of a (5, 3)
        p->scatter = (struct ree_scatter_params){.kind = REE_SCATTER_ADD,
                                                 .dtype = REE_F32,
                                                 .index_dtype = REE_I32,
                                                 .rank = 2,
                                                 .n_step_dims = 1,
                                                 .n_vectors = 3,
                                                 .n_steps = 2,
                                                 .dims = {3, 2},
                                                 .data_strides = {1, 0},
                                                 .index_strides = {1, 3},
                                                 .update_strides = {1, 3},
                                                 .n_components = 1,
                                                 .component_sizes = {5},
                                                 .component_strides = {3}};
        d.n_outputs = 0;
        operand(&d, 60);
        operand(&d, 24);
        operand(&d, 24);
        break;
    case REE_REPOP_TOPK:
        p->topk =
            (struct ree_topk_params){.dtype = REE_I64, .outer = 2, .n = 5, .inner = 1, .k = 2};
        d.n_outputs = 2;
        operand(&d, 80);
        operand(&d, 32);
        operand(&d, 32);
        break;
    case REE_REPOP_SCAN:
        p->scan = (struct ree_scan_params){.dtype = REE_F32, .outer = 2, .k = 3, .inner = 4};
        operand(&d, 96);
        operand(&d, 96);
        break;
    case REE_REPOP_RESIZE:
        p->resize =
            (struct ree_resize_params){.outer = 2, .k_in = 3, .k_out = 6, .inner = 1, .taps = 2};
        operand(&d, 24);
        operand(&d, 48);
        operand(&d, 48);
        operand(&d, 48);
        break;
    case REE_REPOP_ATTENTION: // 4 heads over 2, 3 queries, 5 keys, every option set
        p->attention = (struct ree_attention_params){.batch = 1,
                                                     .n_heads = 4,
                                                     .n_kv_heads = 2,
                                                     .q_len = 3,
                                                     .kv_len = 5,
                                                     .head_dim = 2,
                                                     .v_head_dim = 3,
                                                     .k_dtype = REE_F16,
                                                     .v_dtype = REE_F32,
                                                     .q_strides = {24, 6, 2, 1},
                                                     .k_strides = {20, 10, 2, 1},
                                                     .v_strides = {30, 15, 3, 1},
                                                     .out_strides = {36, 3, 12},
                                                     .scale = 0.5f,
                                                     .left = REE_ATTENTION_UNBOUNDED,
                                                     .starts_dtype = REE_I64,
                                                     .n_keys_dtype = REE_I32,
                                                     .has_allowed = 1,
                                                     .has_bias = 1,
                                                     .has_sink = 1,
                                                     .allowed_strides = {0, 0, 5, 1},
                                                     .bias_strides = {0, 15, 5, 1},
                                                     .sink_strides = {0, 1, 0}};
        operand(&d, 96);
        operand(&d, 40);
        operand(&d, 120);
        operand(&d, 8);
        operand(&d, 4);
        operand(&d, 15);
        operand(&d, 240);
        operand(&d, 16);
        operand(&d, 144);
        break;
    case REE_N_REPOPS: break;
    }
    return d;
}

static void refused(const struct ree_dispatch *d, const char *part) {
    struct ree_error err = {0};
    enum ree_status status = ree_dispatch_check(d, &err);
    CHECK_MSG(status == REE_INTERNAL, "a bad %s is accepted (expected: %s)", ree_repop_name(d->op),
              part);
    CHECK_MSG(strstr(err.message, part) != NULL, "'%s' does not say '%s'", err.message, part);
}

// Every operand of every RepOp must have the size that the parameters require.
static void sizes(void) {
    for (int op = 0; op < REE_N_REPOPS; op++) {
        struct ree_dispatch d = good((enum ree_repop)op);
        struct ree_error err = {0};
        CHECK_MSG(ree_dispatch_check(&d, &err) == REE_OK, "%s", err.message);
        for (uint32_t i = 0; i < d.n_operands; i++) {
            char part[32];
            snprintf(part, sizeof part, "operand %u (", i);
            struct ree_dispatch small = d;
            small.operands[i].size -= 1;
            refused(&small, part);
            small = d;
            small.operands[i].offset = 2;
            refused(&small, "not a multiple of 4");
        }
        struct ree_dispatch fewer = d;
        fewer.n_operands--;
        CHECK(ree_dispatch_check(&fewer, NULL) == REE_INTERNAL);
        struct ree_dispatch more = d;
        operand(&more, 1 << 20);
        refused(&more, "operands, expected");
        struct ree_dispatch outputs = d;
        outputs.n_outputs++;
        refused(&outputs, "outputs, expected");
    }
}

static void expressions(void) {
    struct ree_dispatch d = good(REE_REPOP_MAP);
    struct ree_expr *e = &d.params.map.expr;
#define BAD(field, value, part)                                                                    \
    do {                                                                                           \
        d = good(REE_REPOP_MAP);                                                                   \
        e->field = (value);                                                                        \
        refused(&d, part);                                                                         \
    } while (0)
    BAD(rank, 0, "rank 0");
    BAD(rank, 9, "rank 9");
    BAD(n_elements, 7, "the product of its dimensions is 6");
    BAD(dims[0], 0x40000000, "2^31");
    BAD(n_operands, 9, "the maximum is 8");
    BAD(n_instrs, 33, "the maximum is");
    BAD(operands[0].kind, 2, "kind 2");
    BAD(operands[0].dtype, REE_STRING, "operand 0");
    BAD(operands[0].dtype, REE_I64, "operand 0 (of the expression)"); // reaches twice as many bytes
    BAD(operands[0].offset, -1, "reach elements -1");
    BAD(operands[0].strides[0], -3, "reach elements -3");
    BAD(operands[0].strides[0], INT32_MAX, "reach elements 0");
    BAD(operands[1].kind, REE_EXPR_IOTA, "iota");
    BAD(instrs[0].op, REE_N_MAP_OPS, "no operation");
    BAD(instrs[0].args[1], 2, "uses value 2 of 2");
    BAD(instrs[2].op, REE_MAP_add_i64, "argument 0 has 32 bits");
    BAD(out_dtype, REE_I64, "has 32 bits, but out_dtype is int64");
    BAD(out_dtype, REE_STRING, "out_dtype");
    d = good(REE_REPOP_MAP);
    e->n_operands = e->n_instrs = 0;
    refused(&d, "no value");
    d = good(REE_REPOP_MATMUL);
    d.params.matmul.epilogue.dims[1] = 2;
    d.params.matmul.epilogue.n_elements = 4;
    refused(&d, "dimension 1 of the epilogue is 2, expected 3");
    d.params.matmul.epilogue.rank = 1;
    refused(&d, "rank 1, expected 2");
}

static void others(void) {
    struct ree_dispatch d;
#define BAD_IN(op, path, value, part)                                                              \
    do {                                                                                           \
        d = good(op);                                                                              \
        d.params.path = (value);                                                                   \
        refused(&d, part);                                                                         \
    } while (0)
    BAD_IN(REE_REPOP_COPY, copy.elem_size, 3, "element size 3");
    BAD_IN(REE_REPOP_COPY, copy.dst_strides[1], 0, "stride 0");
    BAD_IN(REE_REPOP_COPY, copy.rank, 0, "rank 0");
    BAD_IN(REE_REPOP_REDUCE, reduce.dtype, REE_F16, "float16");
    BAD_IN(REE_REPOP_REDUCE, reduce.kind, 8, "kind 8");
    BAD_IN(REE_REPOP_REDUCE, reduce.n_reduce, 4, "the product of its dimensions is 3");
    BAD_IN(REE_REPOP_REDUCE, reduce.outer_rank, 9, "rank 9");
    BAD_IN(REE_REPOP_MATMUL, matmul.dtype, REE_I32, "a_dtype is float32, but the sum is int32");
    BAD_IN(REE_REPOP_MATMUL, matmul.b_dtype, REE_I64, "b_dtype is int64");
    BAD_IN(REE_REPOP_MATMUL, matmul.b_block, 32, "4 operands, expected 5");
    BAD_IN(REE_REPOP_CONV, conv.x_dtype, REE_I8, "x is int8, w is float32");
    BAD_IN(REE_REPOP_CONV, conv.has_pad_value, 1, "a pad value, but no integers");
    BAD_IN(REE_REPOP_MATMUL, matmul.batch_rank, 7, "batch rank 7");
    BAD_IN(REE_REPOP_MATMUL, matmul.k, 5, "operand 0 (A)");
    BAD_IN(REE_REPOP_CONV, conv.stride[2], 0, "stride is 0");
    BAD_IN(REE_REPOP_CONV, conv.dilation[0], 0, "dilation is 0");
    BAD_IN(REE_REPOP_CONV, conv.groups, 0x80000000, "channels");
    BAD_IN(REE_REPOP_POOL, pool.dtype, REE_I64, "int64");
    BAD_IN(REE_REPOP_POOL, pool.kind, REE_POOL_AVG, "without a maximum");
    BAD_IN(REE_REPOP_POOL, pool.kernel[1], 0, "kernel is 0");
    BAD_IN(REE_REPOP_NORM, norm.scale_row_mod, 0, "scale_row_mod is 0");
    BAD_IN(REE_REPOP_GATHER, gather.index_dtype, REE_F32, "index dtype is float32");
    BAD_IN(REE_REPOP_GATHER, gather.n_components, 9, "9 index components");
    BAD_IN(REE_REPOP_GATHER, gather.component_sizes[0], 6, "operand 0 (data)");
    BAD_IN(REE_REPOP_SCATTER, scatter.kind, 5, "kind 5");
    BAD_IN(REE_REPOP_SCATTER, scatter.dtype, REE_BOOL, "bool");
    BAD_IN(REE_REPOP_SCATTER, scatter.n_step_dims, 3, "3 step dimensions");
    BAD_IN(REE_REPOP_SCATTER, scatter.n_steps, 3, "n_steps is 3");
    BAD_IN(REE_REPOP_TOPK, topk.k, 6, "first 6 of 5");
    BAD_IN(REE_REPOP_TOPK, topk.dtype, REE_F16, "float16");
    BAD_IN(REE_REPOP_SCAN, scan.dtype, REE_I8, "int8");
    BAD_IN(REE_REPOP_RESIZE, resize.outer, 0x7FFFFFFF, "2^31");
    BAD_IN(REE_REPOP_ATTENTION, attention.k_dtype, REE_I8, "k_dtype is int8");
    BAD_IN(REE_REPOP_ATTENTION, attention.n_keys_dtype, REE_U8, "n_keys_dtype is uint8");
    BAD_IN(REE_REPOP_ATTENTION, attention.n_kv_heads, 3, "4 heads is not a multiple of 3 kv heads");
    BAD_IN(REE_REPOP_ATTENTION, attention.left, -2, "window of -2");
    BAD_IN(REE_REPOP_ATTENTION, attention.start, 1 << 29, "too long");
    BAD_IN(REE_REPOP_ATTENTION, attention.out_strides[2], 13, "operand 8 (output)");
    BAD_IN(REE_REPOP_ATTENTION, attention.has_sink, 0, "9 operands, expected 8");
    d = good(REE_REPOP_COPY);
    d.op = REE_N_REPOPS;
    refused(&d, "does not exist");
}

static void printing(void) {
    for (int op = 0; op < REE_N_REPOPS; op++) {
        struct ree_dispatch d = good((enum ree_repop)op);
        struct ree_strbuf out;
        ree_strbuf_init(&out);
        ree_dispatch_print(&d, &out);
        const char *name = ree_repop_name((enum ree_repop)op);
        CHECK_MSG(out.data != NULL && strncmp(out.data, name, strlen(name)) == 0 &&
                      strchr(out.data, '\n') == NULL && strstr(out.data, "-> ") != NULL,
                  "%s prints as '%s'", name, out.data);
        ree_strbuf_finish(&out);
    }
    struct ree_dispatch d = good(REE_REPOP_MAP);
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    ree_dispatch_print(&d, &out);
    const char *want = "map dims=[2,3] to float32 { v0=float32 view=0+[3,1] v1=float32 "
                       "view=0+[0,1] v2=add_f32(v0,v1) v3=const32(0x00000000) v4=max_f32(v2,v3) } "
                       "(0+0:24, 1+0:12, -> 2+0:24)";
    CHECK_MSG(strcmp(out.data, want) == 0, "'%s'", out.data);
    ree_strbuf_finish(&out);
}

static void tables(void) {
    for (int op = 0; op < REE_N_REPOPS; op++) {
        CHECK(strlen(ree_repop_name((enum ree_repop)op)) > 1);
        size_t size = ree_repop_params_size((enum ree_repop)op);
        CHECK(size > 0 && size <= sizeof(union ree_params));
    }
    CHECK(strcmp(ree_repop_name(REE_N_REPOPS), "?") == 0);
    CHECK(ree_repop_params_size(REE_N_REPOPS) == 0);
    for (int op = 0; op < REE_N_MAP_OPS; op++) {
        const struct ree_map_op_info *info = &ree_map_op_infos[op];
        CHECK(info->name != NULL && info->result != REE_CLASS_NONE && info->n_args <= 3);
        for (uint32_t i = 0; i < 3; i++)
            CHECK_MSG((info->args[i] != REE_CLASS_NONE) == (i < info->n_args), "%s", info->name);
    }
    CHECK(ree_dtype_class(REE_I64) == REE_CLASS_D && ree_dtype_class(REE_U64) == REE_CLASS_D);
    CHECK(ree_dtype_class(REE_BOOL) == REE_CLASS_W && ree_dtype_class(REE_F16) == REE_CLASS_W);
    CHECK(ree_dtype_class(REE_STRING) == REE_CLASS_NONE);
}

int main(void) {
    tables();
    sizes();
    expressions();
    others();
    printing();
    return test_finish();
}
