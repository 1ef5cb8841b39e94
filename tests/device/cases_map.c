#include "cases.h"

#include "repops/scalar/narrow.h"

#include <string.h>

static uint32_t class_of_value(const struct ree_expr *expr, bool has_accumulator, uint32_t v) {
    if (has_accumulator) {
        if (v == 0) return REE_CLASS_W;
        v--;
    }
    if (v < expr->n_operands) return ree_dtype_class((enum ree_dtype)expr->operands[v].dtype);
    return ree_map_op_infos[expr->instrs[v - expr->n_operands].op].result;
}

static uint32_t append_instr(struct ree_expr *expr, bool has_accumulator, uint32_t op) {
    expr->instrs[expr->n_instrs].op = op;
    return (has_accumulator ? 1 : 0) + expr->n_operands + expr->n_instrs++;
}

static uint32_t append_const(struct rng *rng, struct ree_expr *expr, bool has_accumulator,
                             uint32_t class) {
    uint32_t v = append_instr(expr, has_accumulator,
                              class == REE_CLASS_D ? REE_MAP_CONST64 : REE_MAP_CONST32);
    case_fill(rng,
              class == REE_CLASS_D ? REE_I64
              : rng_one_in(rng, 2) ? REE_I32
                                   : REE_F32,
              1, expr->instrs[expr->n_instrs - 1].imm);
    return v;
}

// Chooses a value of that class, mostly a recent one; a constant if none exists.
static uint32_t choose_value(struct rng *rng, struct ree_expr *expr, bool has_accumulator,
                             uint32_t class) {
    uint32_t n = (has_accumulator ? 1 : 0) + expr->n_operands + expr->n_instrs;
    for (uint32_t attempt = 0; attempt < 12 && n > 0; attempt++) {
        uint32_t v = rng_one_in(rng, 3) ? n - 1 : rng_below(rng, n);
        if (class_of_value(expr, has_accumulator, v) == class) return v;
    }
    return append_const(rng, expr, has_accumulator, class);
}

// Appends a narrow format as a constant. Constants other than the format words are undefined.
static uint32_t append_format(struct rng *rng, struct ree_expr *expr, bool has_accumulator) {
    static const uint32_t formats[] = {REE_NARROW_F8E4M3FN, REE_NARROW_F8E4M3FNUZ,
                                       REE_NARROW_F8E5M2, REE_NARROW_F8E5M2FNUZ, REE_NARROW_F4E2M1};
    uint32_t v = append_instr(expr, has_accumulator, REE_MAP_CONST32);
    uint32_t format = rng_of(rng, sizeof formats / sizeof *formats, formats);
    expr->instrs[expr->n_instrs - 1].imm[0] =
        format | (rng_one_in(rng, 2) ? REE_NARROW_SATURATE : 0);
    return v;
}

static void append_operand(struct test_case *c, struct rng *rng, struct ree_expr *expr) {
    static const uint32_t dtypes[] = {
        REE_F32, REE_F32, REE_F32,  REE_I32, REE_U32,  REE_I64, REE_I64, REE_U64, REE_U8,    REE_I8,
        REE_U16, REE_I16, REE_BOOL, REE_F16, REE_BF16, REE_F64, REE_I4,  REE_U2,  REE_F8E5M2};
    struct ree_expr_operand *operand = &expr->operands[expr->n_operands++];
    if (rng_one_in(rng, 6)) {
        operand->kind = REE_EXPR_IOTA;
        operand->dtype = rng_one_in(rng, 2) ? REE_I32 : REE_I64;
        operand->offset = rng_between(rng, -100, 100);
        for (uint32_t d = 0; d < expr->rank; d++)
            operand->strides[d] = rng_between(rng, -3, 3);
        return;
    }
    operand->kind = REE_EXPR_TENSOR;
    operand->dtype = rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    uint64_t n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, expr->rank, expr->dims,
                           operand->strides, &operand->offset);
    case_input(c, rng, (enum ree_dtype)operand->dtype, n);
}

void case_expr(struct test_case *c, struct rng *rng, struct ree_expr *expr, uint32_t rank,
               const uint32_t *dims, bool has_accumulator) {
    expr->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        expr->dims[d] = dims[d];
    expr->n_elements = (uint32_t)case_count(rank, dims);
    uint32_t n_operands = rng_below(rng, rng_one_in(rng, 4) ? 8 : 4);
    for (uint32_t i = 0; i < n_operands; i++)
        append_operand(c, rng, expr);

    uint32_t n_instrs = rng_below(rng, rng_one_in(rng, 5) ? 20 : 5);
    if (!has_accumulator && n_operands == 0 && n_instrs == 0) n_instrs = 1;
    for (uint32_t i = 0; i < n_instrs && expr->n_instrs < REE_EXPR_MAX_INSTRS - 5; i++) {
        uint32_t op =
            rng_below(rng, rng->host && rng_one_in(rng, 8) ? REE_N_MAP_OPS : REE_MAP_mod_f64);
        if (op == REE_MAP_CONST32 || op == REE_MAP_CONST64) {
            append_const(rng, expr, has_accumulator, ree_map_op_infos[op].result);
            continue;
        }
        uint32_t args[3] = {0};
        for (uint32_t j = 0; j < ree_map_op_infos[op].n_args; j++)
            args[j] = choose_value(rng, expr, has_accumulator, ree_map_op_infos[op].args[j]);
        if (op == REE_MAP_narrow_to_f32 || op == REE_MAP_f32_to_narrow)
            args[1] = append_format(rng, expr, has_accumulator);
        append_instr(expr, has_accumulator, op);
        for (uint32_t j = 0; j < 3; j++)
            expr->instrs[expr->n_instrs - 1].args[j] = args[j];
    }

    static const uint32_t narrow[] = {REE_F32, REE_F32, REE_I32, REE_U32,  REE_U8, REE_I8,
                                      REE_U16, REE_I16, REE_F16, REE_BF16, REE_I4, REE_F8E4M3FN};
    static const uint32_t wide[] = {REE_I64, REE_I64, REE_U64, REE_F64};
    uint32_t result =
        expr->n_instrs == 0 ? 0 : (has_accumulator ? 1 : 0) + expr->n_operands + expr->n_instrs - 1;
    if (class_of_value(expr, has_accumulator, result) == REE_CLASS_D)
        expr->out_dtype = rng_of(rng, sizeof wide / sizeof *wide, wide);
    else
        expr->out_dtype = rng_of(rng, sizeof narrow / sizeof *narrow, narrow);
}

bool case_map(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MAP);
    struct ree_expr *expr = &c->dispatch.params.map.expr;
    uint32_t dims[REE_MAX_RANK], rank = case_dims(rng, 5, 9000, dims);
    case_expr(c, rng, expr, rank, dims, false);
    case_output(c, rng, (enum ree_dtype)expr->out_dtype, expr->n_elements);
    return true;
}

void case_expr_looked_up(struct test_case *c, struct rng *rng, struct ree_expr *expr, uint32_t rows,
                         uint32_t columns, bool has_accumulator) {
    static const uint32_t dtypes[] = {REE_BF16, REE_F16, REE_U16};
    static const uint32_t to_f32[] = {REE_MAP_bf16_to_f32, REE_MAP_f16_to_f32, REE_MAP_u32_to_f32};
    static const uint32_t to_narrow[] = {REE_MAP_f32_to_bf16, REE_MAP_f32_to_f16,
                                         REE_MAP_f32_to_u32};
    static const uint32_t functions[] = {REE_MAP_sigmoid_f32, REE_MAP_exp_f32, REE_MAP_erf_f32,
                                         REE_MAP_tanh_f32, REE_MAP_rsqrt_f32};
    *expr = (struct ree_expr){
        .rank = 2, .dims = {rows, columns}, .n_elements = rows * columns, .out_dtype = REE_F32};
    uint32_t type = rng_below(rng, has_accumulator ? 2 : 3);
    for (uint32_t k = has_accumulator ? 1 : 0; k < 2; k++) {
        struct ree_expr_operand *operand = &expr->operands[expr->n_operands++];
        operand->kind = REE_EXPR_TENSOR;
        operand->dtype = k == 0 ? dtypes[type] : REE_F32;
        uint64_t n = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, 2, expr->dims,
                               operand->strides, &operand->offset);
        case_input(c, rng, (enum ree_dtype)operand->dtype, n);
    }
    // Value 1 is the operand of type float32 in both cases.
    uint32_t index = 0;
    if (has_accumulator) {
        index = append_instr(expr, true, to_narrow[type]);
        expr->instrs[0].args[0] = 0;
    }
    // x and f(x), rounded; then f(x), or x f(x), alone or with products and sums of it and of x.
    const uint32_t x = index + 1 + (has_accumulator ? 0 : 1);
    const struct ree_expr_instr instrs[] = {
        {.op = to_f32[type], .args = {index}},
        {.op = functions[rng_below(rng, 5)], .args = {x}},
        {.op = to_narrow[type], .args = {x + 1}},
        {.op = to_f32[type], .args = {x + 2}},
        {.op = REE_MAP_mul_f32, .args = {x, x + 3}},
        {.op = REE_MAP_CONST32, .imm = {0x40490FDBu}},
        {.op = REE_MAP_fma_f32, .args = {x + 4, x + 5, 1}},
        {.op = REE_MAP_fma_f32, .args = {x, x + 5, x + 6}},
    };
    static const uint32_t n_instrs[] = {3, 5, 7, 8};
    const uint32_t n = rng_of(rng, 4, n_instrs);
    memcpy(expr->instrs + expr->n_instrs, instrs, n * sizeof *instrs);
    expr->n_instrs += n;
    if (n == 3) expr->out_dtype = dtypes[type];
}

bool case_map_of_constant(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MAP);
    struct ree_expr *expr = &c->dispatch.params.map.expr;
    const uint32_t n = 170000 + rng_below(rng, 1000), to = rng_one_in(rng, 2);
    *expr = (struct ree_expr){.rank = 1, .dims = {n}, .n_elements = n, .out_dtype = REE_F32};
    const struct ree_expr_instr instrs[] = {
        {.op = REE_MAP_CONST32, .imm = {0x3F000000u + rng_below(rng, 1u << 20)}},
        {.op = to ? REE_MAP_f32_to_bf16 : REE_MAP_f32_to_f16, .args = {0}},
        {.op = to ? REE_MAP_bf16_to_f32 : REE_MAP_f16_to_f32, .args = {1}},
        {.op = REE_MAP_sigmoid_f32, .args = {2}},
    };
    expr->n_instrs = sizeof instrs / sizeof *instrs;
    memcpy(expr->instrs, instrs, sizeof instrs);
    case_output(c, rng, REE_F32, n);
    return true;
}

bool case_map_looked_up(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MAP);
    struct ree_expr *expr = &c->dispatch.params.map.expr;
    case_expr_looked_up(c, rng, expr, 3, (uint32_t)rng_between(rng, 60000, 70000), false);
    case_output(c, rng, (enum ree_dtype)expr->out_dtype, expr->n_elements);
    return true;
}
