#include "reference.h"
#include "repops/scalar/ops.h"

bool reference_run(const struct ree_dispatch *dispatch, void *const *operands) {
    const union ree_params *p = &dispatch->params;
    switch (dispatch->op) {
    case REE_REPOP_COPY: reference_copy(&p->copy, operands); break;
    case REE_REPOP_MAP: reference_map(&p->map, operands); break;
    case REE_REPOP_REDUCE: reference_reduce(&p->reduce, operands); break;
    case REE_REPOP_MATMUL: reference_matmul(&p->matmul, operands); break;
    case REE_REPOP_CONV: reference_conv(&p->conv, operands); break;
    case REE_REPOP_POOL: reference_pool(&p->pool, operands); break;
    case REE_REPOP_SOFTMAX: reference_softmax(&p->softmax, operands); break;
    case REE_REPOP_NORM: reference_norm(&p->norm, operands); break;
    case REE_REPOP_GATHER: return reference_gather(&p->gather, operands);
    case REE_REPOP_SCATTER: return reference_scatter(&p->scatter, operands);
    case REE_REPOP_TOPK: reference_topk(&p->topk, operands); break;
    case REE_REPOP_SCAN: reference_scan(&p->scan, operands); break;
    case REE_REPOP_RESIZE: reference_resize(&p->resize, operands); break;
    case REE_REPOP_ATTENTION: reference_attention(&p->attention, operands); break;
    case REE_N_REPOPS: break;
    }
    return true;
}

int64_t reference_offset(uint32_t rank, const uint32_t *dims, const int32_t *strides, uint64_t at) {
    int64_t offset = 0;
    for (uint32_t d = rank; d-- > 0;) {
        offset += (int64_t)(at % dims[d]) * strides[d];
        at /= dims[d];
    }
    return offset;
}

uint64_t reference_load(enum ree_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
    case REE_I4:
    case REE_I2:
    case REE_I8: return (uint32_t)((const int8_t *)data)[i];
    case REE_I16: return (uint32_t)((const ree_any_i16 *)data)[i];
    default: break;
    }
    switch (ree_dtype_size(dtype)) {
    case 1: return ((const uint8_t *)data)[i];
    case 2: return ((const ree_any_u16 *)data)[i];
    case 4: return ((const ree_any_u32 *)data)[i];
    default: return ((const ree_any_u64 *)data)[i];
    }
}

void reference_store(enum ree_dtype dtype, void *data, int64_t i, uint64_t value) {
    uint32_t word = (uint32_t)value;
    switch (ree_dtype_size(dtype)) {
    case 1: ((uint8_t *)data)[i] = (uint8_t)value; break;
    case 2: ((ree_any_u16 *)data)[i] = (uint16_t)value; break;
    case 4:
        if (dtype == REE_F32 && (word & 0x7FFFFFFFu) > 0x7F800000u) word = 0x7FC00000u;
        ((ree_any_u32 *)data)[i] = word;
        break;
    default:
        if (dtype == REE_F64 && (value << 1) > UINT64_C(0x7FF0000000000000) << 1)
            value = UINT64_C(0x7FF8000000000000);
        ((ree_any_u64 *)data)[i] = value;
    }
}

#define W(v) (uint32_t)(v)
#define D(v) (v)
#define CALL_1(name, a, b, c) ree_op_##name(a(x))
#define CALL_2(name, a, b, c) ree_op_##name(a(x), b(y))
#define CALL_3(name, a, b, c) ree_op_##name(a(x), b(y), c(z))

// All operations get one function pointer type; arguments are narrowed to their class.
#define MAP_OP(name, n_args, result, a, b, c)                                                      \
    static uint64_t apply_##name(uint64_t x, uint64_t y, uint64_t z) {                             \
        (void)y, (void)z;                                                                          \
        return CALL_##n_args(name, a, b, c);                                                       \
    }
#include "repops/map_ops.def"

static uint64_t (*const functions[REE_N_MAP_OPS])(uint64_t, uint64_t, uint64_t) = {
#define MAP_OP(name, n_args, result, a, b, c) [REE_MAP_##name] = apply_##name,
#include "repops/map_ops.def"
};

static uint64_t apply(const struct ree_expr_instr *instr, const uint64_t *values) {
    if (instr->op == REE_MAP_CONST32) return instr->imm[0];
    if (instr->op == REE_MAP_CONST64) return (uint64_t)instr->imm[1] << 32 | instr->imm[0];
    return functions[instr->op](values[instr->args[0]], values[instr->args[1]],
                                values[instr->args[2]]);
}

uint64_t reference_expr(const struct ree_expr *expr, void *const *tensors,
                        const uint32_t *accumulator, uint64_t i) {
    uint64_t values[1 + REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS] = {0};
    uint32_t n = 0;
    if (accumulator) values[n++] = *accumulator;
    for (uint32_t k = 0; k < expr->n_operands; k++) {
        const struct ree_expr_operand *o = &expr->operands[k];
        int64_t at = o->offset + reference_offset(expr->rank, expr->dims, o->strides, i);
        enum ree_dtype dtype = (enum ree_dtype)o->dtype;
        if (o->kind == REE_EXPR_TENSOR)
            values[n++] = reference_load(dtype, *tensors++, at);
        else
            values[n++] = dtype == REE_I64 ? (uint64_t)at : (uint32_t)at;
    }
    for (uint32_t k = 0; k < expr->n_instrs; k++)
        values[n++] = apply(&expr->instrs[k], values);
    return values[expr->n_instrs > 0 ? n - 1 : 0];
}

void reference_map(const struct ree_map_params *p, void *const *operands) {
    uint32_t n_tensors = 0;
    for (uint32_t k = 0; k < p->expr.n_operands; k++)
        n_tensors += p->expr.operands[k].kind == REE_EXPR_TENSOR;
    for (uint64_t i = 0; i < p->expr.n_elements; i++)
        reference_store((enum ree_dtype)p->expr.out_dtype, operands[n_tensors], (int64_t)i,
                        reference_expr(&p->expr, operands, NULL, i));
}

void reference_sum_begin(struct reference_sum *sum, bool product) {
    *sum = (struct reference_sum){.product = product, .chunk = product ? 1.0f : 0.0f};
}

// Closes a full chunk before the next term is added.
static void next_term(struct reference_sum *sum) {
    if (sum->n_terms > 0 && sum->n_terms % REE_CHUNK == 0) {
        if (!sum->has_total)
            sum->total = sum->chunk;
        else
            sum->total = sum->product ? sum->total * sum->chunk : sum->total + sum->chunk;
        sum->has_total = true;
        sum->chunk = sum->product ? 1.0f : 0.0f;
    }
    sum->n_terms++;
}

void reference_sum_add(struct reference_sum *sum, float x) {
    next_term(sum);
    sum->chunk = sum->product ? sum->chunk * x : sum->chunk + x;
}

void reference_sum_fma(struct reference_sum *sum, float a, float b) {
    next_term(sum);
    sum->chunk = fmaf(a, b, sum->chunk);
}

uint32_t reference_sum_end(struct reference_sum sum) {
    float total = !sum.has_total ? sum.chunk
                  : sum.product  ? sum.total * sum.chunk
                                 : sum.total + sum.chunk;
    return ree_result(sum.product ? total : total + 0.0f);
}
