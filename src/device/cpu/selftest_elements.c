// Self-test problems of pool and resize, scatter and topk, scalar operations on elements (map), and
// movement of elements (copy, gather).
#include "device/cpu/selftest_problems.h"

#define MPFR_ELEMENTS 24

enum ree_status ree_cpu_test_windows(const struct ree_cpu_trial *t) {
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
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    struct ree_dispatch d = {.op = REE_REPOP_RESIZE};
    d.params.resize = (struct ree_resize_params){
        .outer = SOME, .k_in = SOME, .k_out = SOME, .inner = SOME, .taps = 4};
    return ree_cpu_trial_run(t, &d);
}

enum ree_status ree_cpu_test_indices(const struct ree_cpu_trial *t) {
    for (uint32_t kind = REE_SCATTER_ADD; kind <= REE_SCATTER_MAX; kind++) {
        struct ree_dispatch d = {.op = REE_REPOP_SCATTER};
        d.params.scatter = (struct ree_scatter_params){
            .kind = kind,
            .dtype = REE_F32,
            .index_dtype = REE_I64,
            .rank = 2,
            .n_step_dims = 1,
            .n_vectors = SOME,
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
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    struct ree_dispatch d = {.op = REE_REPOP_TOPK};
    d.params.topk =
        (struct ree_topk_params){.dtype = REE_F32, .outer = SOME, .n = SOME, .inner = 1, .k = SOME};
    return ree_cpu_trial_run(t, &d);
}

// Makes a dispatch of one scalar operation on n elements.
static struct ree_dispatch operation(uint32_t op, uint32_t n) {
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    struct ree_dispatch d = {.op = REE_REPOP_MAP};
    struct ree_expr *expr = &d.params.map.expr;
    *expr = (struct ree_expr){
        .rank = 1,
        .dims = {n},
        .n_elements = n,
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
    return d;
}

// Operands have hard float32 or float64 values, even if an operation reads their bits as integers.
enum ree_status ree_cpu_test_map(const struct ree_cpu_trial *t) {
    for (uint32_t op = REE_MAP_CONST64 + 1; op < REE_N_MAP_OPS; op++) {
        if (ree_map_op_is_host_only(op)) continue;
        struct ree_dispatch d = operation(op, SOME);
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    return REE_OK;
}

// Powers with one constant as the exponent, for which kernels have loops of their own.
enum ree_status ree_cpu_test_map_powers(const struct ree_cpu_trial *t) {
    static const float exponents[] = {2, 3, 0.5f, -0.5f, 1, -1};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        struct ree_dispatch d = operation(REE_MAP_pow_f32, SOME);
        struct ree_expr *expr = &d.params.map.expr;
        expr->n_operands = 1;
        expr->n_instrs = 2;
        expr->instrs[0] = (struct ree_expr_instr){.op = REE_MAP_CONST32};
        memcpy(expr->instrs[0].imm, &exponents[i], sizeof exponents[i]);
        // Value 0 is the operand, value 1 the constant.
        expr->instrs[1] = (struct ree_expr_instr){.op = REE_MAP_pow_f32, .args = {0, 1}};
        REE_TRY(ree_cpu_trial_run(t, &d));
    }
    return REE_OK;
}

// x f(x) for so many numbers of 8 or 16 bits that kernels look up the results.
static enum ree_status run_looked_up(const struct ree_cpu_trial *t, uint32_t dtype, uint32_t to_f32,
                                     uint32_t function, uint32_t n) {
    struct ree_dispatch d = {.op = REE_REPOP_MAP};
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    struct ree_expr *expr = &d.params.map.expr;
    // Value 0 is the operand, value 1 is x.
    *expr = (struct ree_expr){
        .rank = 1,
        .dims = {n},
        .n_elements = n,
        .out_dtype = REE_F32,
        .n_operands = 1,
        .operands = {{.kind = REE_EXPR_TENSOR, .dtype = dtype, .strides = {1}}},
        .n_instrs = 3,
        .instrs = {{.op = to_f32, .args = {0}},
                   {.op = function, .args = {1}},
                   {.op = REE_MAP_mul_f32, .args = {1, 2}}},
    };
    ree_cpu_trial_add_operand(&d, operands, dtype, n, false);
    ree_cpu_trial_add_operand(&d, operands, REE_F32, n, true);
    return ree_cpu_trial_run_whole(t, &d, operands);
}

enum ree_status ree_cpu_test_looked_up(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    REE_TRY(run_looked_up(&first, REE_U8, REE_MAP_u32_to_f32, REE_MAP_rsqrt_f32, 3001));
    return run_looked_up(&first, REE_BF16, REE_MAP_bf16_to_f32, REE_MAP_erf_f32, 200003);
}

// The elementary functions of float64, which the CPU computes with the MPFR library: few elements,
// because each takes some microseconds.
enum ree_status ree_cpu_test_map_mpfr(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
    for (uint32_t op = REE_MAP_CONST64 + 1; op < REE_N_MAP_OPS; op++) {
        if (!ree_map_op_is_host_only(op)) continue;
        struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
        struct ree_dispatch d = operation(op, MPFR_ELEMENTS);
        for (uint32_t a = 0; a < d.params.map.expr.n_operands; a++)
            ree_cpu_trial_add_operand(&d, operands, REE_F64, MPFR_ELEMENTS, false);
        ree_cpu_trial_add_operand(&d, operands, REE_U64, MPFR_ELEMENTS, true);
        REE_TRY(ree_cpu_trial_run_whole(&first, &d, operands));
    }
    return REE_OK;
}

// Computes out = op(x, x) for elements of one type, including load and store; if op is
// REE_N_MAP_OPS, out = x. stride: stride of x.
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
    return ree_cpu_trial_run(t, &d);
}

enum ree_status ree_cpu_test_stored(const struct ree_cpu_trial *t) {
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

// Movement: elements of every size, contiguous, transposed, reversed, repeated and at a distance.

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
    ree_cpu_trial_add_operand(&d, operands, dtype, 2 * 21 * COLUMNS, false);
    ree_cpu_trial_add_operand(&d, operands, dtype, 21 * COLUMNS, true);
    return ree_cpu_trial_run_whole(t, &d, operands);
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
    ree_cpu_trial_add_operand(&d, operands, dtype, 11 * COLUMNS, false);
    ree_cpu_trial_add_operand(&d, operands, index_dtype, whole_rows ? 21 : 21 * COLUMNS, false);
    operands[1].values.role = REE_HARD_BOUNDED;
    operands[1].values.low = -11;
    operands[1].values.high = 10;
    ree_cpu_trial_add_operand(&d, operands, dtype, 21 * COLUMNS, true);
    return ree_cpu_trial_run_whole(t, &d, operands);
}

enum ree_status ree_cpu_test_movement(const struct ree_cpu_trial *t) {
    const struct ree_cpu_trial first = ree_cpu_trial_once(t);
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
