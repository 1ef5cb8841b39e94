// ree_dispatch_print: a dispatch as one line of text, for descriptions of programs
// (session/describe.c) and for failing tests.
#include "repops/repop.h"

#include "base/strbuf.h"

#include <inttypes.h>

static void print_dims(struct ree_strbuf *out, const char *name, uint32_t rank,
                       const uint32_t *dims) {
    ree_strbuf_printf(out, " %s=[", name);
    for (uint32_t i = 0; i < rank && i < REE_MAX_RANK; i++)
        ree_strbuf_printf(out, "%s%" PRIu32, i == 0 ? "" : ",", dims[i]);
    ree_strbuf_printf(out, "]");
}

static void print_strides(struct ree_strbuf *out, const char *name, int32_t offset, uint32_t rank,
                          const int32_t *strides) {
    ree_strbuf_printf(out, " %s=%" PRId32 "+[", name, offset);
    for (uint32_t i = 0; i < rank && i < REE_MAX_RANK; i++)
        ree_strbuf_printf(out, "%s%" PRId32, i == 0 ? "" : ",", strides[i]);
    ree_strbuf_printf(out, "]");
}

static const char *dtype_name(uint32_t dtype) {
    return ree_dtype_name((enum ree_dtype)dtype);
}

static void print_instr(struct ree_strbuf *out, const struct ree_expr_instr *instr,
                        uint32_t value) {
    if (instr->op >= REE_N_MAP_OPS) {
        ree_strbuf_printf(out, " v%" PRIu32 "=?", value);
        return;
    }
    const struct ree_map_op_info *info = &ree_map_op_infos[instr->op];
    ree_strbuf_printf(out, " v%" PRIu32 "=%s(", value, info->name);
    if (instr->op == REE_MAP_CONST32) ree_strbuf_printf(out, "0x%08" PRIX32, instr->imm[0]);
    if (instr->op == REE_MAP_CONST64)
        ree_strbuf_printf(out, "0x%08" PRIX32 "%08" PRIX32, instr->imm[1], instr->imm[0]);
    for (uint32_t j = 0; j < info->n_args; j++)
        ree_strbuf_printf(out, "%sv%" PRIu32, j == 0 ? "" : ",", instr->args[j]);
    ree_strbuf_printf(out, ")");
}

static void print_expr(struct ree_strbuf *out, const struct ree_expr *expr, bool epilogue) {
    print_dims(out, "dims", expr->rank, expr->dims);
    ree_strbuf_printf(out, " to %s {", dtype_name(expr->out_dtype));
    uint32_t value = 0;
    if (epilogue) ree_strbuf_printf(out, " v%" PRIu32 "=acc", value++);
    for (uint32_t i = 0; i < expr->n_operands && i < REE_EXPR_MAX_OPERANDS; i++) {
        const struct ree_expr_operand *o = &expr->operands[i];
        ree_strbuf_printf(out, " v%" PRIu32 "=%s", value++, dtype_name(o->dtype));
        print_strides(out, o->kind == REE_EXPR_IOTA ? "iota" : "view", o->offset, expr->rank,
                      o->strides);
    }
    for (uint32_t i = 0; i < expr->n_instrs && i < REE_EXPR_MAX_INSTRS; i++)
        print_instr(out, &expr->instrs[i], value++);
    ree_strbuf_printf(out, " }");
}

static void print_matmul(struct ree_strbuf *out, const struct ree_matmul_params *p) {
    ree_strbuf_printf(out, " %s of %s", dtype_name(p->dtype), dtype_name(p->a_dtype));
    if (p->a_block) ree_strbuf_printf(out, " in blocks of %" PRIu32, p->a_block);
    ree_strbuf_printf(out, " and ");
    if (p->b_block)
        ree_strbuf_printf(out, "%" PRIu32 " bits in blocks of %" PRIu32 "%s", p->b_bits, p->b_block,
                          p->has_zero_points ? " with zero points" : "");
    else
        ree_strbuf_printf(out, "%s", dtype_name(p->b_dtype));
    ree_strbuf_printf(out, " m=%" PRIu32 " n=%" PRIu32 " k=%" PRIu32, p->m, p->n, p->k);
    print_dims(out, "batch", p->batch_rank, p->batch_dims);
    print_strides(out, "a", p->a_offset, p->batch_rank, p->a_batch_strides);
    ree_strbuf_printf(out, "(m %" PRId32 ", k %" PRId32 ")", p->a_stride_m, p->a_stride_k);
    print_strides(out, "b", p->b_offset, p->batch_rank, p->b_batch_strides);
    ree_strbuf_printf(out, "(k %" PRId32 ", n %" PRId32 ")", p->b_stride_k, p->b_stride_n);
    if (p->has_epilogue) print_expr(out, &p->epilogue, true);
}

static void print_conv(struct ree_strbuf *out, const struct ree_conv_params *p) {
    ree_strbuf_printf(
        out, "%s %s by %s%s n=%" PRIu32 " groups=%" PRIu32 " c=%" PRIu32 " m=%" PRIu32,
        p->transposed ? " transposed" : "", dtype_name(p->x_dtype), dtype_name(p->w_dtype),
        p->has_pad_value ? " padded by a value" : "", p->n, p->groups, p->c, p->m);
    print_dims(out, "in", 3, p->in);
    print_dims(out, "kernel", 3, p->kernel);
    print_dims(out, "out", 3, p->out);
    print_dims(out, "stride", 3, p->stride);
    print_dims(out, "dilation", 3, p->dilation);
    print_strides(out, "pad", 0, 3, p->pad);
    if (p->has_epilogue) print_expr(out, &p->epilogue, true);
}

static void print_pool(struct ree_strbuf *out, const struct ree_pool_params *p) {
    static const char *const kinds[] = {"max", "avg", "sum_sq"};
    ree_strbuf_printf(out, " %s %s planes=%" PRIu32, p->kind < 3 ? kinds[p->kind] : "?",
                      dtype_name(p->dtype), p->planes);
    print_dims(out, "in", 3, p->in);
    print_dims(out, "kernel", 3, p->kernel);
    print_dims(out, "out", 3, p->out);
    print_dims(out, "stride", 3, p->stride);
    print_dims(out, "dilation", 3, p->dilation);
    ree_strbuf_printf(out, "%s%s%s", p->count_include_pad ? " count_include_pad" : "",
                      p->has_indices ? " indices" : "", p->storage_order ? " column_major" : "");
}

static void print_reduce(struct ree_strbuf *out, const struct ree_reduce_params *p) {
    static const char *const kinds[] = {"sum", "sum_sq", "sum_abs", "prod",
                                        "max", "min",    "argmax",  "argmin"};
    ree_strbuf_printf(out, " %s %s%s", p->kind < 8 ? kinds[p->kind] : "?", dtype_name(p->dtype),
                      p->select_last ? " last" : "");
    print_dims(out, "outer", p->outer_rank, p->outer_dims);
    print_strides(out, "view", p->offset, p->outer_rank, p->outer_strides);
    print_dims(out, "reduce", p->reduce_rank, p->reduce_dims);
    print_strides(out, "view", 0, p->reduce_rank, p->reduce_strides);
}

static void print_norm(struct ree_strbuf *out, const struct ree_norm_params *p) {
    ree_strbuf_printf(out, "%s rows=%" PRIu32 " cols=%" PRIu32 " epsilon=%a%s%s",
                      p->rms ? " rms" : "", p->rows, p->cols, (double)p->epsilon,
                      p->has_scale ? " scale" : "", p->has_bias ? " bias" : "");
    if (p->has_scale || p->has_bias)
        ree_strbuf_printf(
            out, " (row / %" PRIu32 " %% %" PRIu32 " * %" PRIu32 " + col * %" PRIu32 ")",
            p->scale_row_div, p->scale_row_mod, p->scale_row_stride, p->scale_col_stride);
}

static void print_gather(struct ree_strbuf *out, const struct ree_gather_params *p) {
    ree_strbuf_printf(out, " %" PRIu32 " bytes by %s", p->elem_size, dtype_name(p->index_dtype));
    print_dims(out, "dims", p->rank, p->dims);
    print_strides(out, "data", p->data_offset, p->rank, p->data_strides);
    print_strides(out, "index", 0, p->rank, p->index_strides);
    print_dims(out, "sizes", p->n_components, p->component_sizes);
    print_strides(out, "strides", p->component_stride, p->n_components, p->component_strides);
}

static void print_scatter(struct ree_strbuf *out, const struct ree_scatter_params *p) {
    static const char *const kinds[] = {"set", "add", "mul", "min", "max"};
    ree_strbuf_printf(out, " %s %s by %s vectors=%" PRIu32 " steps=%" PRIu32,
                      p->kind < 5 ? kinds[p->kind] : "?", dtype_name(p->dtype),
                      dtype_name(p->index_dtype), p->n_vectors, p->n_steps);
    print_dims(out, "dims", p->rank, p->dims);
    print_strides(out, "data", 0, p->rank, p->data_strides);
    print_strides(out, "index", 0, p->rank, p->index_strides);
    print_strides(out, "updates", 0, p->rank, p->update_strides);
    print_dims(out, "sizes", p->n_components, p->component_sizes);
    print_strides(out, "strides", p->component_stride, p->n_components, p->component_strides);
}

static void print_attention(struct ree_strbuf *out, const struct ree_attention_params *p) {
    const uint32_t heads[] = {p->n_heads, p->n_kv_heads};
    const uint32_t len[] = {p->q_len, p->kv_len}, size[] = {p->head_dim, p->v_head_dim};
    ree_strbuf_printf(out, " batch=%" PRIu32, p->batch);
    print_dims(out, "heads", 2, heads);
    print_dims(out, "len", 2, len);
    print_dims(out, "size", 2, size);
    print_strides(out, "q", p->q_offset, 4, p->q_strides);
    ree_strbuf_printf(out, " %s", dtype_name(p->k_dtype));
    print_strides(out, "k", p->k_offset, 4, p->k_strides);
    ree_strbuf_printf(out, " %s", dtype_name(p->v_dtype));
    print_strides(out, "v", p->v_offset, 4, p->v_strides);
    print_strides(out, "out", 0, 3, p->out_strides);
    ree_strbuf_printf(out, " scale=%a softcap=%a start=%" PRId32, (double)p->scale,
                      (double)p->softcap, p->start);
    if (p->left >= 0) ree_strbuf_printf(out, " left=%" PRId32, p->left);
    if (p->right >= 0) ree_strbuf_printf(out, " right=%" PRId32, p->right);
    if (p->starts_dtype) {
        ree_strbuf_printf(out, " %s", dtype_name(p->starts_dtype));
        print_strides(out, "starts", p->starts_offset, 1, &p->starts_stride);
    }
    if (p->n_keys_dtype) {
        ree_strbuf_printf(out, " %s", dtype_name(p->n_keys_dtype));
        print_strides(out, "n_keys", p->n_keys_offset, 1, &p->n_keys_stride);
    }
    if (p->has_allowed) print_strides(out, "allowed", p->allowed_offset, 4, p->allowed_strides);
    if (p->has_bias) print_strides(out, "bias", p->bias_offset, 4, p->bias_strides);
    if (p->has_sink) print_strides(out, "sink", p->sink_offset, 3, p->sink_strides);
    if (p->zero_empty) ree_strbuf_printf(out, " zero_empty");
    if (p->page_bits) {
        ree_strbuf_printf(out, " page=%" PRIu32 " pool=%" PRIu32, UINT32_C(1) << p->page_bits,
                          p->pool_len);
        print_strides(out, "pages", p->pages_offset, 1, &p->pages_stride);
    }
}

static void print_params(struct ree_strbuf *out, const struct ree_dispatch *d) {
    const union ree_params *p = &d->params;
    switch (d->op) {
    case REE_REPOP_COPY:
        ree_strbuf_printf(out, " %" PRIu32 " bytes", p->copy.elem_size);
        print_dims(out, "dims", p->copy.rank, p->copy.dims);
        print_strides(out, "src", p->copy.src_offset, p->copy.rank, p->copy.src_strides);
        print_strides(out, "dst", p->copy.dst_offset, p->copy.rank, p->copy.dst_strides);
        break;
    case REE_REPOP_MAP: print_expr(out, &p->map.expr, false); break;
    case REE_REPOP_REDUCE: print_reduce(out, &p->reduce); break;
    case REE_REPOP_MATMUL: print_matmul(out, &p->matmul); break;
    case REE_REPOP_CONV: print_conv(out, &p->conv); break;
    case REE_REPOP_POOL: print_pool(out, &p->pool); break;
    case REE_REPOP_SOFTMAX:
        ree_strbuf_printf(out, "%s%s outer=%" PRIu32 " k=%" PRIu32 " inner=%" PRIu32,
                          p->softmax.log ? " log" : "", p->softmax.zero_empty ? " zero_empty" : "",
                          p->softmax.outer, p->softmax.k, p->softmax.inner);
        break;
    case REE_REPOP_NORM: print_norm(out, &p->norm); break;
    case REE_REPOP_GATHER: print_gather(out, &p->gather); break;
    case REE_REPOP_SCATTER: print_scatter(out, &p->scatter); break;
    case REE_REPOP_TOPK:
        ree_strbuf_printf(out,
                          " %s %s outer=%" PRIu32 " n=%" PRIu32 " inner=%" PRIu32 " k=%" PRIu32,
                          p->topk.largest ? "largest" : "smallest", dtype_name(p->topk.dtype),
                          p->topk.outer, p->topk.n, p->topk.inner, p->topk.k);
        break;
    case REE_REPOP_SCAN:
        ree_strbuf_printf(out, " %s %s outer=%" PRIu32 " k=%" PRIu32 " inner=%" PRIu32 "%s%s",
                          p->scan.product ? "product" : "sum", dtype_name(p->scan.dtype),
                          p->scan.outer, p->scan.k, p->scan.inner,
                          p->scan.exclusive ? " exclusive" : "", p->scan.reverse ? " reverse" : "");
        break;
    case REE_REPOP_RESIZE:
        ree_strbuf_printf(out,
                          " outer=%" PRIu32 " k_in=%" PRIu32 " k_out=%" PRIu32 " inner=%" PRIu32
                          " taps=%" PRIu32 " extrapolation=%a",
                          p->resize.outer, p->resize.k_in, p->resize.k_out, p->resize.inner,
                          p->resize.taps, (double)p->resize.extrapolation);
        break;
    case REE_REPOP_ATTENTION: print_attention(out, &p->attention); break;
    case REE_N_REPOPS: break;
    }
}

void ree_dispatch_print(const struct ree_dispatch *dispatch, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "%s", ree_repop_name(dispatch->op));
    print_params(out, dispatch);
    ree_strbuf_printf(out, " (");
    for (uint32_t i = 0; i < dispatch->n_operands && i < REE_MAX_OPERANDS; i++) {
        const struct ree_operand *o = &dispatch->operands[i];
        bool written = i + dispatch->n_outputs >= dispatch->n_operands ||
                       (dispatch->op == REE_REPOP_SCATTER && i == 0);
        ree_strbuf_printf(out, "%s%s%" PRIu32 "+%" PRIu64 ":%" PRIu64, i == 0 ? "" : ", ",
                          written ? "-> " : "", o->slot, o->offset, o->size);
    }
    ree_strbuf_printf(out, ")");
}
