// Builds expressions, emits them as maps, and splits them into single steps.
//
// The number of operands is not final until the expression is complete. So the builder returns
// handles: operands count from 0, instructions from INSTR_BASE. ree_lower_map converts handles to
// value numbers.
#include "graph/lower/core/lower.h"

#include <string.h>

#define INSTR_BASE 1000

static int fail(struct ree_expr_builder *b, enum ree_status status, const char *message) {
    if (b->status == REE_OK) {
        b->status = status;
        ree_fail(b->lower->err, status, "%s", message);
    }
    return 0;
}

void ree_expr_init(struct ree_expr_builder *b, struct ree_lower *lower, uint32_t rank,
                   const int64_t *dims) {
    memset(b, 0, sizeof *b);
    b->lower = lower;
    if (rank > REE_MAX_RANK) {
        fail(b, REE_UNSUPPORTED, "an expression with more than 8 dimensions");
        return;
    }
    int64_t count;
    if (!ree_count_elements(rank, dims, &count) || count >= INT64_C(1) << 31) {
        fail(b, REE_UNSUPPORTED, "a result of 2^31 elements or more");
        return;
    }
    b->expr.rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        b->expr.dims[i] = (uint32_t)dims[i];
    b->expr.n_elements = (uint32_t)count;
}

int ree_expr_tensor(struct ree_expr_builder *b, struct ree_view *t) {
    if (b->status != REE_OK) return 0;
    struct ree_expr *e = &b->expr;
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < e->rank; i++)
        dims[i] = e->dims[i];
    struct ree_view *view;
    enum ree_status status = ree_lower_broadcast(b->lower, t, e->rank, dims, &view);
    if (status != REE_OK) {
        b->status = status;
        return 0;
    }
    struct ree_expr_operand operand = {.kind = REE_EXPR_TENSOR, .dtype = (uint32_t)t->dtype};
    operand.offset = (int32_t)view->offset;
    for (uint32_t i = 0; i < e->rank; i++)
        operand.strides[i] = e->dims[i] == 1 ? 0 : (int32_t)view->strides[i];
    for (uint32_t i = 0; i < e->n_operands; i++)
        if (b->tensors[i] && b->tensors[i]->storage == t->storage &&
            !memcmp(&e->operands[i], &operand, sizeof operand))
            return (int)i;
    if (e->n_operands == REE_EXPR_MAX_OPERANDS)
        return fail(b, REE_UNSUPPORTED, "an expression with more than 8 tensors");
    b->tensors[e->n_operands] = t;
    e->operands[e->n_operands] = operand;
    return (int)e->n_operands++;
}

int ree_expr_iota(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t offset,
                  const int64_t *strides) {
    if (b->status != REE_OK) return 0;
    struct ree_expr *e = &b->expr;
    if (e->n_operands == REE_EXPR_MAX_OPERANDS)
        return fail(b, REE_UNSUPPORTED, "an expression with more than 8 operands");
    struct ree_expr_operand *operand = &e->operands[e->n_operands];
    memset(operand, 0, sizeof *operand);
    operand->kind = REE_EXPR_IOTA;
    operand->dtype = (uint32_t)dtype;
    bool fits = offset >= INT32_MIN && offset <= INT32_MAX;
    operand->offset = (int32_t)offset;
    for (uint32_t i = 0; i < e->rank; i++) {
        operand->strides[i] = (int32_t)strides[i];
        if (strides[i] < INT32_MIN || strides[i] > INT32_MAX) fits = false;
    }
    if (!fits) return fail(b, REE_UNSUPPORTED, "an index pattern that exceeds 32 bits");
    b->tensors[e->n_operands] = NULL;
    return (int)e->n_operands++;
}

static int add_instr(struct ree_expr_builder *b, enum ree_map_op op, const int *args, uint32_t imm0,
                     uint32_t imm1) {
    if (b->status != REE_OK) return 0;
    struct ree_expr *e = &b->expr;
    if (e->n_instrs == REE_EXPR_MAX_INSTRS)
        return fail(b, REE_UNSUPPORTED, "an expression with more than 32 steps");
    struct ree_expr_instr *instr = &e->instrs[e->n_instrs];
    memset(instr, 0, sizeof *instr);
    instr->op = (uint32_t)op;
    for (uint32_t i = 0; args && i < ree_map_op_infos[op].n_args; i++)
        instr->args[i] = (uint32_t)args[i];
    instr->imm[0] = imm0;
    instr->imm[1] = imm1;
    // A repeated step gives the same value, so reuse it.
    for (uint32_t i = 0; i < e->n_instrs; i++)
        if (!memcmp(&e->instrs[i], instr, sizeof *instr)) return INSTR_BASE + (int)i;
    return INSTR_BASE + (int)e->n_instrs++;
}

int ree_expr_f32(struct ree_expr_builder *b, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return add_instr(b, REE_MAP_CONST32, NULL, bits, 0);
}

int ree_expr_f64(struct ree_expr_builder *b, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ree_expr_i64(b, (int64_t)bits);
}

int ree_expr_i32(struct ree_expr_builder *b, int32_t value) {
    return add_instr(b, REE_MAP_CONST32, NULL, (uint32_t)value, 0);
}

int ree_expr_i64(struct ree_expr_builder *b, int64_t value) {
    uint64_t bits = (uint64_t)value;
    return add_instr(b, REE_MAP_CONST64, NULL, (uint32_t)bits, (uint32_t)(bits >> 32));
}

// Float64. Rules are written with float32 operations. An operation with a 64-bit argument becomes
// the float64 operation; its other arguments are widened, which is exact.

static enum ree_class class_of(const struct ree_expr_builder *b, int value) {
    if (value >= INSTR_BASE) return ree_map_op_infos[b->expr.instrs[value - INSTR_BASE].op].result;
    return ree_dtype_class((enum ree_dtype)b->expr.operands[value].dtype);
}

static int widen(struct ree_expr_builder *b, int value) {
    if (b->status != REE_OK || class_of(b, value) == REE_CLASS_D) return value;
    const struct ree_expr_instr *from =
        value >= INSTR_BASE ? &b->expr.instrs[value - INSTR_BASE] : NULL;
    if (!from || from->op != REE_MAP_CONST32) return add_instr(b, REE_MAP_f32_to_f64, &value, 0, 0);
    float number;
    memcpy(&number, &from->imm[0], sizeof number);
    return ree_expr_f64(b, (double)number);
}

static int add_op(struct ree_expr_builder *b, enum ree_map_op op, int *args) {
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    enum ree_map_op f64 = op == REE_MAP_select_b32 ? REE_MAP_select_b64 : ree_map_op_in_f64(op);
    uint32_t first = op == REE_MAP_select_b32 ? 1 : 0; // skip the condition of a select
    bool wide = false;
    for (uint32_t i = first; i < info->n_args && b->status == REE_OK && f64 != REE_N_MAP_OPS; i++)
        wide |= class_of(b, args[i]) == REE_CLASS_D;
    if (!wide) return add_instr(b, op, args, 0, 0);
    for (uint32_t i = first; i < info->n_args; i++)
        args[i] = widen(b, args[i]);
    return add_instr(b, f64, args, 0, 0);
}

int ree_expr_op1(struct ree_expr_builder *b, enum ree_map_op op, int a) {
    return add_op(b, op, (int[]){a});
}

int ree_expr_op2(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_) {
    return add_op(b, op, (int[]){a, b_});
}

int ree_expr_op3(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_, int c) {
    return add_op(b, op, (int[]){a, b_, c});
}

// Drops dimensions of size 1 and merges neighbouring dimensions that every operand steps through
// evenly, so that backends get as few dimensions as possible. The output is dense, so it never
// prevents merging.
void ree_expr_coalesce(struct ree_expr *e) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < e->rank; i++) {
        if (e->dims[i] == 1) continue;
        bool merge = rank > 0;
        for (uint32_t k = 0; k < e->n_operands && merge; k++)
            merge = e->operands[k].strides[rank - 1] ==
                    (int64_t)e->operands[k].strides[i] * (int64_t)e->dims[i];
        uint32_t to = merge ? rank - 1 : rank++;
        e->dims[to] = merge ? e->dims[to] * e->dims[i] : e->dims[i];
        for (uint32_t k = 0; k < e->n_operands; k++)
            e->operands[k].strides[to] = e->operands[k].strides[i];
    }
    if (rank == 0) {
        e->dims[0] = e->n_elements;
        for (uint32_t k = 0; k < e->n_operands; k++)
            e->operands[k].strides[0] = 0;
        rank = 1;
    }
    for (uint32_t i = rank; i < REE_MAX_RANK; i++) {
        e->dims[i] = 0;
        for (uint32_t k = 0; k < e->n_operands; k++)
            e->operands[k].strides[i] = 0;
    }
    e->rank = rank;
}

// Makes `result` the last instruction's value (or value 0 if there are no instructions), as the ABI
// requires. Drops everything that `result` does not depend on. Converts handles to value numbers.
static void finish_values(struct ree_expr_builder *b, int result) {
    struct ree_expr *e = &b->expr;
    struct ree_expr old = *e;
    struct ree_view *old_tensors[REE_EXPR_MAX_OPERANDS];
    memcpy(old_tensors, b->tensors, sizeof old_tensors);
    bool need_instr[REE_EXPR_MAX_INSTRS] = {false}, need_operand[REE_EXPR_MAX_OPERANDS] = {false};
    if (result >= INSTR_BASE)
        need_instr[result - INSTR_BASE] = true;
    else
        need_operand[result] = true;
    for (uint32_t i = old.n_instrs; i-- > 0;) {
        if (!need_instr[i]) continue;
        for (uint32_t k = 0; k < ree_map_op_infos[old.instrs[i].op].n_args; k++) {
            uint32_t a = old.instrs[i].args[k];
            if (a >= INSTR_BASE)
                need_instr[a - INSTR_BASE] = true;
            else
                need_operand[a] = true;
        }
    }
    uint32_t operand_to[REE_EXPR_MAX_OPERANDS], instr_to[REE_EXPR_MAX_INSTRS];
    memset(e->operands, 0, sizeof e->operands);
    memset(e->instrs, 0, sizeof e->instrs);
    e->n_operands = e->n_instrs = 0;
    for (uint32_t i = 0; i < old.n_operands; i++) {
        if (!need_operand[i]) continue;
        operand_to[i] = e->n_operands;
        b->tensors[e->n_operands] = old_tensors[i];
        e->operands[e->n_operands++] = old.operands[i];
    }
    for (uint32_t i = 0; i < old.n_instrs; i++) {
        if (!need_instr[i]) continue;
        struct ree_expr_instr *instr = &e->instrs[e->n_instrs];
        *instr = old.instrs[i];
        for (uint32_t k = 0; k < ree_map_op_infos[instr->op].n_args; k++) {
            uint32_t a = instr->args[k];
            instr->args[k] = a >= INSTR_BASE ? instr_to[a - INSTR_BASE] : operand_to[a];
        }
        instr_to[i] = e->n_operands + e->n_instrs++;
    }
}

// Emits the whole expression as one map, which writes to *out, or to a new tensor if *out is NULL.
static enum ree_status emit_map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                                const int64_t *dims, uint32_t rank, struct ree_view **out) {
    if (!*out) REE_TRY(ree_lower_new(b->lower, dtype, rank, dims, out));
    finish_values(b, result);
    b->expr.out_dtype = (uint32_t)dtype;
    ree_expr_coalesce(&b->expr);
    union ree_params params;
    params.map.expr = b->expr;
    struct ree_view *operands[REE_MAX_OPERANDS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->expr.n_operands; i++)
        if (b->expr.operands[i].kind == REE_EXPR_TENSOR) operands[n++] = b->tensors[i];
    operands[n++] = *out;
    return ree_lower_emit(b->lower, REE_REPOP_MAP, &params, operands, n, 1);
}

// Emits one map per instruction, to prove that fusing them does not change the bits. Intermediate
// values are stored as raw bits in int32 or int64 tensors. Constants and index patterns are part of
// the step that uses them.
static enum ree_status emit_steps(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                                  const int64_t *dims, uint32_t rank, struct ree_view **out) {
    struct ree_view *values[REE_EXPR_MAX_INSTRS] = {NULL};
    for (uint32_t i = 0; i < b->expr.n_instrs; i++) {
        const struct ree_expr_instr *instr = &b->expr.instrs[i];
        if (instr->op == REE_MAP_CONST32 || instr->op == REE_MAP_CONST64) continue;
        struct ree_expr_builder step;
        ree_expr_init(&step, b->lower, rank, dims);
        int args[3] = {0};
        for (uint32_t k = 0; k < ree_map_op_infos[instr->op].n_args; k++) {
            uint32_t a = instr->args[k];
            if (a >= INSTR_BASE) {
                const struct ree_expr_instr *from = &b->expr.instrs[a - INSTR_BASE];
                if (from->op == REE_MAP_CONST32 || from->op == REE_MAP_CONST64)
                    args[k] = add_instr(&step, (enum ree_map_op)from->op, NULL, from->imm[0],
                                        from->imm[1]);
                else
                    args[k] = ree_expr_tensor(&step, values[a - INSTR_BASE]);
            } else if (b->tensors[a]) {
                args[k] = ree_expr_tensor(&step, b->tensors[a]);
            } else {
                int64_t strides[REE_MAX_RANK];
                for (uint32_t d = 0; d < rank; d++)
                    strides[d] = b->expr.operands[a].strides[d];
                args[k] = ree_expr_iota(&step, (enum ree_dtype)b->expr.operands[a].dtype,
                                        b->expr.operands[a].offset, strides);
            }
        }
        int value = add_instr(&step, (enum ree_map_op)instr->op, args, 0, 0);
        REE_TRY(step.status);
        bool last = result == INSTR_BASE + (int)i;
        enum ree_dtype type = ree_map_op_infos[instr->op].result == REE_CLASS_D ? REE_I64 : REE_I32;
        REE_TRY(emit_map(&step, value, last ? dtype : type, dims, rank, last ? out : &values[i]));
        if (last) values[i] = *out;
    }
    return REE_OK;
}

static enum ree_status map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                           struct ree_view **out) {
    REE_TRY(b->status);
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = b->expr.rank;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = b->expr.dims[i];
    if (dtype == REE_F32 && class_of(b, result) == REE_CLASS_D) dtype = REE_F64;
    bool step_result = result >= INSTR_BASE;
    if (step_result) {
        uint32_t op = b->expr.instrs[result - INSTR_BASE].op;
        step_result = op != REE_MAP_CONST32 && op != REE_MAP_CONST64;
    }
    if (!b->lower->fuse && step_result) return emit_steps(b, result, dtype, dims, rank, out);
    return emit_map(b, result, dtype, dims, rank, out);
}

enum ree_status ree_lower_map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                              struct ree_view **out) {
    *out = NULL;
    return map(b, result, dtype, out);
}

enum ree_status ree_lower_map_into(struct ree_expr_builder *b, int result, struct ree_view *dst) {
    bool fits = ree_view_is_dense(dst) && (uint32_t)ree_view_count(dst) == b->expr.n_elements;
    if (b->status == REE_OK && !fits)
        return ree_lower_fail(b->lower, REE_INTERNAL, "an expression does not fill its result");
    return map(b, result, dst->dtype, &dst);
}
