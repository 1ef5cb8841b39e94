// Tables of the values of an expression that depend on one number of 8 or 16 bits (struct
// ree_cpu_expr_table).
#include "device/cpu/expr.h"

// What a value depends on.
enum dependence { ON_NOTHING, ON_INDEX, ON_MORE };

// Returns n <= 65,536 if value v of the expression is always below n, so that it can be an index;
// otherwise 0.
static uint32_t n_possible(const struct ree_cpu_expr_plan *plan, uint32_t v) {
    if (v >= plan->first_instr) {
        uint32_t op = plan->expr->instrs[v - plan->first_instr].op;
        return op == REE_MAP_f32_to_bf16 || op == REE_MAP_f32_to_f16 ? 1u << 16 : 0;
    }
    if (v < plan->first_operand) return 0; // an epilogue's sum
    const struct ree_cpu_expr_source *s = &plan->sources[v - plan->first_operand];
    if (!s->base || ree_cpu_expr_is_uniform(s)) return 0;
    return s->load == REE_CPU_LOAD_U8 ? 1u << 8 : s->load == REE_CPU_LOAD_U16 ? 1u << 16 : 0;
}

// Chooses the value that depends on value `index` only and that a table saves most for. Replaces
// plan->table if more than *saving is saved, in picoseconds for all elements.
static void choose_value(struct ree_cpu_expr_plan *plan, uint32_t index, uint32_t n,
                         int64_t *saving) {
    const struct ree_expr *expr = plan->expr;
    // Of each value, the instructions that compute it from the index.
    uint32_t instrs[REE_CPU_EXPR_MAX_VALUES] = {0};
    enum dependence depends[REE_CPU_EXPR_MAX_VALUES];
    for (uint32_t v = 0; v < plan->first_instr; v++)
        depends[v] = v >= plan->first_operand &&
                             ree_cpu_expr_is_uniform(&plan->sources[v - plan->first_operand])
                         ? ON_NOTHING
                         : ON_MORE;
    depends[index] = ON_INDEX;
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_map_op_info *op = &ree_map_op_infos[expr->instrs[i].op];
        uint32_t v = plan->first_instr + i;
        if (v == index) continue;
        depends[v] = ON_NOTHING;
        instrs[v] = op->n_args > 0 ? 1u << i : 0;
        for (uint32_t j = 0; j < op->n_args; j++) {
            uint32_t arg = expr->instrs[i].args[j];
            instrs[v] |= instrs[arg];
            if (depends[arg] > depends[v]) depends[v] = depends[arg];
        }
        if (depends[v] != ON_INDEX || op->result != REE_CLASS_W) continue;
        int64_t cost = 0;
        for (uint32_t k = 0; k <= i; k++)
            if (instrs[v] >> k & 1) cost += (int64_t)ree_cpu_map_op_cost(expr->instrs[k].op);
        // Twice the cost of the entries, because they also take space in the caches.
        int64_t saved = (cost - REE_CPU_LOOKUP_COST) * expr->n_elements - 2 * cost * n;
        if (saved <= *saving) continue;
        *saving = saved;
        plan->table = (struct ree_cpu_expr_table){.n = n, .value = v, .index = index};
    }
}

void ree_cpu_expr_choose_table(struct ree_cpu_expr_plan *plan) {
    const struct ree_expr *expr = plan->expr;
    plan->table = (struct ree_cpu_expr_table){0};
    int64_t saving = 0;
    for (uint32_t v = 0; v < plan->n_values; v++) {
        uint32_t n = n_possible(plan, v);
        if (n == 0 || expr->n_elements <= 2 * n) continue;
        // The entries' expression has the index as one more operand.
        if (v >= plan->first_instr && expr->n_operands == REE_EXPR_MAX_OPERANDS) continue;
        choose_value(plan, v, n, &saving);
    }
}

// Plans the evaluation of the entries of plan->table: element i is entry i, 4 bytes. `entries` is
// overwritten; entries_plan borrows it. `tensors` as for `plan`.
static void plan_entries(const struct ree_cpu_expr_plan *plan, void *const *tensors,
                         enum ree_cpu_isa isa, struct ree_expr *entries,
                         struct ree_cpu_expr_plan *entries_plan) {
    const struct ree_expr *expr = plan->expr;
    const struct ree_cpu_expr_table *table = &plan->table;
    bool needed[REE_CPU_EXPR_MAX_VALUES] = {false};
    needed[table->value] = true;
    for (uint32_t v = table->value + 1; v-- > plan->first_instr;) {
        const struct ree_expr_instr *instr = &expr->instrs[v - plan->first_instr];
        if (!needed[v] || v == table->index) continue;
        for (uint32_t j = 0; j < ree_map_op_infos[instr->op].n_args; j++)
            needed[instr->args[j]] = true;
    }

    // Values are numbered anew: the index first.
    uint32_t number[REE_CPU_EXPR_MAX_VALUES] = {0}, n_tensors = 0;
    void *used[REE_EXPR_MAX_OPERANDS];
    *entries = (struct ree_expr){.rank = 1,
                                 .dims = {table->n},
                                 .n_elements = table->n,
                                 .out_dtype = REE_U32,
                                 .n_operands = 1,
                                 .operands = {{REE_EXPR_IOTA, REE_I32, 0, {1}}}};
    for (uint32_t k = 0; k < expr->n_operands; k++) {
        const struct ree_expr_operand *operand = &expr->operands[k];
        void *tensor = operand->kind == REE_EXPR_TENSOR ? *tensors++ : NULL;
        uint32_t v = plan->first_operand + k;
        if (!needed[v] || v == table->index) continue;
        number[v] = entries->n_operands;
        entries->operands[entries->n_operands] =
            (struct ree_expr_operand){operand->kind, operand->dtype, operand->offset, {0}};
        entries->n_operands++;
        if (operand->kind == REE_EXPR_TENSOR) used[n_tensors++] = tensor;
    }
    for (uint32_t v = plan->first_instr; v <= table->value; v++) {
        if (!needed[v] || v == table->index) continue;
        struct ree_expr_instr *instr = &entries->instrs[entries->n_instrs];
        *instr = expr->instrs[v - plan->first_instr];
        for (uint32_t j = 0; j < ree_map_op_infos[instr->op].n_args; j++)
            instr->args[j] = number[instr->args[j]];
        number[v] = entries->n_operands + entries->n_instrs++;
    }
    ree_cpu_expr_plan(entries_plan, entries, used, false, isa);
}

enum ree_status ree_cpu_expr_prepare(const struct ree_cpu_context *ctx, const struct ree_expr *expr,
                                     void *const *tensors, bool has_accumulator,
                                     struct ree_cpu_expr_plan *plan, struct ree_error *err) {
    ree_cpu_expr_plan(plan, expr, tensors, has_accumulator, ctx->isa);
    if (plan->table.n == 0) return REE_OK;
    size_t size = plan->table.n * sizeof(uint32_t);
    uint32_t *entries = ree_cpu_scratch_get(ctx, 0, REE_CPU_SCRATCH_TABLE, size);
    if (!entries) return ree_cpu_no_memory(err, size);
    struct ree_expr expr_of_entries;
    struct ree_cpu_expr_plan entries_plan;
    plan_entries(plan, tensors, ctx->isa, &expr_of_entries, &entries_plan);
    plan->table.entries = entries;
    return ree_cpu_expr_run_all(ctx, &entries_plan, entries, err);
}
