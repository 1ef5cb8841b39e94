// Prepares expressions for the interpreter of cuda/expr.h. Constants are stored separately. Each
// value that is used after the next instruction gets a slot, which is reused once the value is
// dead.
#include "device/cuda/encode.h"
#include "repops/merge.h"

#include <string.h>

#define MAX_VALUES (REE_EXPR_MAX_OPERANDS + 1 + REE_EXPR_MAX_INSTRS)

static bool is_constant(const struct ree_expr_instr *instr) {
    return instr->op == REE_MAP_CONST32 || instr->op == REE_MAP_CONST64;
}

bool ree_cuda_expr_is_arithmetic(const struct ree_expr *expr) {
    for (uint32_t i = 0; i < expr->n_operands; i++)
        if (ree_dtype_class((enum ree_dtype)expr->operands[i].dtype) != REE_CLASS_W) return false;
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_map_op_info *info = &ree_map_op_infos[expr->instrs[i].op];
        if (info->result != REE_CLASS_W) return false;
        for (uint32_t a = 0; a < info->n_args; a++)
            if (info->args[a] != REE_CLASS_W) return false;
        switch (expr->instrs[i].op) {
#define LONG_OP(name) case REE_MAP_##name:
            REE_CUDA_LONG_OPS(LONG_OP)
            return false;
        default: break;
        }
    }
    return ree_dtype_class((enum ree_dtype)expr->out_dtype) == REE_CLASS_W;
}

static void prepare_operands(const struct ree_expr *expr, struct ree_cuda_expr *out) {
    for (uint32_t d = 0; d < expr->rank; d++)
        out->dims[d] = ree_cuda_divider_of(expr->dims[d]);
    for (uint32_t o = 0; o < expr->n_operands; o++) {
        const struct ree_expr_operand *from = &expr->operands[o];
        struct ree_cuda_expr_operand *to = &out->operands[o];
        to->kind = from->kind;
        to->dtype = from->dtype;
        to->offset = from->offset;
        to->tensor = out->n_tensors;
        if (from->kind == REE_EXPR_TENSOR) out->n_tensors++;
        memcpy(to->strides, from->strides, sizeof to->strides);
        bool linear = true, same = true;
        int64_t dense = 1;
        for (uint32_t d = expr->rank; d-- > 0;) {
            if (expr->dims[d] == 1) continue;
            linear = linear && from->strides[d] == dense;
            same = same && from->strides[d] == 0;
            dense *= expr->dims[d];
        }
        to->access = same ? REE_CUDA_SAME : linear ? REE_CUDA_LINEAR : REE_CUDA_STRIDED;
    }
}

struct slots {
    bool used[REE_CUDA_EXPR_MAX_SLOTS];
    uint32_t n;
};

static uint32_t take_slot(struct slots *slots) {
    uint32_t s = 0;
    while (slots->used[s])
        s++;
    slots->used[s] = true;
    if (s >= slots->n) slots->n = s + 1;
    return s;
}

static void prepare_instrs(const struct ree_expr *expr, bool epilogue, struct ree_cuda_expr *out) {
    const uint32_t n_operands = expr->n_operands, first = n_operands + epilogue;
    uint32_t place[MAX_VALUES];    // by value: its location, as an argument
    uint32_t last_use[MAX_VALUES]; // by value: its last user's index in expr
    uint32_t n_uses[MAX_VALUES] = {0};
    bool has_slot[MAX_VALUES] = {false};
    struct slots slots = {.n = 0};
    // The first slots hold the operands, the next one an epilogue's accumulator, which is its value
    // 0.
    for (uint32_t v = 0; v < first; v++) {
        place[v] = !epilogue ? v : v == 0 ? n_operands : v - 1;
        has_slot[v] = true;
        slots.used[take_slot(&slots)] = true;
    }
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *instr = &expr->instrs[i];
        for (uint32_t a = 0; a < ree_map_op_infos[instr->op].n_args; a++) {
            last_use[instr->args[a]] = i;
            n_uses[instr->args[a]]++;
        }
    }
    for (uint32_t v = 0; v < first; v++)
        if (n_uses[v] == 0 && expr->n_instrs > 0) slots.used[place[v]] = false;

    uint32_t n_constants = 0;
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *from = &expr->instrs[i];
        if (is_constant(from)) {
            uint64_t high = from->op == REE_MAP_CONST64 ? from->imm[1] : 0;
            place[first + i] = REE_CUDA_ARG_CONSTANT | n_constants;
            out->constants[n_constants++] = high << 32 | from->imm[0];
            continue;
        }
        struct ree_cuda_instr *to = &out->instrs[out->n_instrs++];
        to->op = (uint16_t)from->op;
        to->to = REE_CUDA_NOWHERE;
        memset(to->args, REE_CUDA_ARG_LAST, sizeof to->args);
        uint32_t n_args = ree_map_op_infos[from->op].n_args;
        for (uint32_t a = 0; a < n_args; a++)
            to->args[a] = (uint8_t)place[from->args[a]];
        for (uint32_t a = 0; a < n_args; a++) {
            uint32_t v = from->args[a];
            if (has_slot[v] && last_use[v] == i) slots.used[place[v]] = false;
        }
        // The next instruction finds the result in registers; later ones read it from a slot.
        uint32_t v = first + i, next = i + 1;
        while (next < expr->n_instrs && is_constant(&expr->instrs[next]))
            next++;
        place[v] = REE_CUDA_ARG_LAST;
        if (n_uses[v] > 0 && last_use[v] > next) {
            place[v] = take_slot(&slots);
            has_slot[v] = true;
            to->to = (uint8_t)place[v];
        }
    }
    // The result is the value of the last instruction, even if this is a constant.
    out->result = expr->n_instrs > 0 ? place[first + expr->n_instrs - 1] : place[0];
    if (epilogue && expr->n_instrs == 0) out->result = REE_CUDA_ARG_LAST;
    out->n_slots = slots.n;
}

void ree_cuda_expr_prepare(const struct ree_expr *expr, bool epilogue, struct ree_cuda_expr *out) {
    struct ree_expr merged = *expr;
    ree_merge_expr(&merged);
    memset(out, 0, sizeof *out);
    out->rank = merged.rank;
    out->n_elements = merged.n_elements;
    out->out_dtype = merged.out_dtype;
    out->n_operands = merged.n_operands;
    prepare_operands(&merged, out);
    prepare_instrs(&merged, epilogue, out);
}
