// Evaluates expr(i) for a range of elements i, block by block, with one loop per instruction
// (NUMERICS.md section 2).
#include "device/cpu/expr.h"

const struct ree_cpu_expr_kernels *ree_cpu_expr_kernels(enum ree_cpu_isa isa) {
    switch (isa) {
#ifdef REE_CPU_HAVE_AVX512
    case REE_CPU_AVX512: return &ree_cpu_expr_kernels_avx512;
#endif
#ifdef REE_CPU_HAVE_AVX2
    case REE_CPU_AVX2: return &ree_cpu_expr_kernels_avx2;
#endif
    default: return &ree_cpu_expr_kernels_portable;
    }
}

enum ree_cpu_load ree_cpu_load_of(uint32_t dtype) {
    switch (dtype) {
    case REE_I8:
    case REE_I4:
    case REE_I2: return REE_CPU_LOAD_S8;
    case REE_I16: return REE_CPU_LOAD_S16;
    default: break;
    }
    switch (ree_dtype_size((enum ree_dtype)dtype)) {
    case 1: return REE_CPU_LOAD_U8;
    case 2: return REE_CPU_LOAD_U16;
    case 8: return REE_CPU_LOAD_B64;
    default: return REE_CPU_LOAD_B32;
    }
}

enum ree_cpu_store ree_cpu_store_of(uint32_t dtype) {
    if (dtype == REE_F32) return REE_CPU_STORE_F32;
    if (dtype == REE_F64) return REE_CPU_STORE_F64;
    switch (ree_dtype_size((enum ree_dtype)dtype)) {
    case 1: return REE_CPU_STORE_8;
    case 2: return REE_CPU_STORE_16;
    case 8: return REE_CPU_STORE_64;
    default: return REE_CPU_STORE_32;
    }
}

// Sources

static void plan_source(struct ree_cpu_expr_source *s, const struct ree_expr *expr,
                        const struct ree_expr_operand *operand, const void *tensor) {
    s->base = tensor;
    s->size = ree_dtype_size((enum ree_dtype)operand->dtype);
    s->load = ree_cpu_load_of(operand->dtype);
    s->wide = s->load == REE_CPU_LOAD_B64;
    s->offset = operand->offset;
    s->rank = 0;
    for (uint32_t d = 0; d < expr->rank; d++) {
        uint32_t dim = expr->dims[d];
        int64_t stride = operand->strides[d];
        if (dim == 1) continue;
        uint32_t last = s->rank - 1;
        if (s->rank > 0 && s->strides[last] == stride * (int64_t)dim) {
            s->dims[last] *= dim; // below 2^31, like n_elements
            s->strides[last] = stride;
        } else {
            s->dims[s->rank] = dim;
            s->strides[s->rank++] = stride;
        }
    }
    if (s->rank == 0) {
        s->dims[0] = 1;
        s->strides[0] = 0;
        s->rank = 1;
    }
}

// Runs of fewer elements than this are loaded by a loop in place, because the call of a kernel
// would take longer.
#define SHORT_RUN 16

// Loads elements [first, first + n) of a source into out.
static void load_source(const struct ree_cpu_expr_kernels *kernels,
                        const struct ree_cpu_expr_source *s, uint32_t first, uint32_t n,
                        void *out) {
    uint32_t coord[REE_MAX_RANK];
    int64_t at = s->offset;
    uint32_t rest = first;
    for (uint32_t d = s->rank; d-- > 0;) {
        coord[d] = rest % s->dims[d];
        rest /= s->dims[d];
        at += coord[d] * s->strides[d];
    }
    uint32_t last = s->rank - 1;
    int64_t stride = s->strides[last];
    char *to = out;
    size_t value_size = s->wide ? 8 : 4;
    while (n > 0) {
        uint32_t run = s->dims[last] - coord[last];
        if (run > n) run = n;
        if (s->load == REE_CPU_LOAD_B32 && s->base && run < SHORT_RUN) {
            const ree_any_u32 *from = (const ree_any_u32 *)s->base + at;
            for (uint32_t i = 0; i < run; i++)
                ((ree_any_u32 *)to)[i] = from[i * stride];
        } else if (s->base) {
            kernels->loads[s->load](run, s->base + at * (int64_t)s->size, stride, to);
        } else if (s->wide) {
            for (uint32_t i = 0; i < run; i++)
                ((ree_any_u64 *)to)[i] = (uint64_t)(at + i * stride);
        } else { // values keep 32 bits, so the sum may wrap
            uint32_t value = (uint32_t)at, step = (uint32_t)stride;
            for (uint32_t i = 0; i < run; i++)
                ((ree_any_u32 *)to)[i] = value + i * step;
        }
        to += run * value_size;
        n -= run;
        if (n == 0) break;
        at -= coord[last] * stride;
        coord[last] = 0;
        for (uint32_t d = last; d-- > 0;) {
            at += s->strides[d];
            if (++coord[d] < s->dims[d]) break;
            at -= (int64_t)s->dims[d] * s->strides[d];
            coord[d] = 0;
        }
    }
}

// Planning

static bool is_float_op(uint32_t op) {
    // These operations produce float32 bits whose only NaN is the canonical one.
    switch (op) {
    case REE_MAP_add_f32:
    case REE_MAP_sub_f32:
    case REE_MAP_mul_f32:
    case REE_MAP_div_f32:
    case REE_MAP_fma_f32:
    case REE_MAP_min_f32:
    case REE_MAP_max_f32: return true;
    default: return op >= REE_MAP_mod_f32 && op <= REE_MAP_round_f32;
    }
}

uint64_t ree_cpu_map_op_cost(uint32_t op) {
    if (op >= REE_MAP_mod_f32 && op <= REE_MAP_softplus_f32) return 2000;
    if (op == REE_MAP_pow_i32 || op == REE_MAP_pow_u32) return 8000;
    if (op == REE_MAP_pow_i64 || op == REE_MAP_pow_u64) return 8000;
    if (op >= REE_MAP_div_i64 && op <= REE_MAP_mod_u64) return 8000;
    if (op >= REE_MAP_div_i32 && op <= REE_MAP_mod_u32) return 3000;
    return 150;
}

static bool is_looked_up(const struct ree_cpu_expr_plan *plan, uint32_t i) {
    return plan->table.n > 0 && plan->first_instr + i == plan->table.value;
}
// The number of arguments of instruction i, and argument j: of a value that is looked up, only the
// index.
static uint32_t n_args_of(const struct ree_cpu_expr_plan *plan, uint32_t i) {
    return is_looked_up(plan, i) ? 1 : ree_map_op_infos[plan->expr->instrs[i].op].n_args;
}
static uint32_t arg_of(const struct ree_cpu_expr_plan *plan, uint32_t i, uint32_t j) {
    return is_looked_up(plan, i) ? plan->table.index : plan->expr->instrs[i].args[j];
}

void ree_cpu_expr_plan(struct ree_cpu_expr_plan *plan, const struct ree_expr *expr,
                       void *const *tensors, bool has_accumulator, enum ree_cpu_isa isa) {
    plan->kernels = ree_cpu_expr_kernels(isa);
    plan->expr = expr;
    plan->has_accumulator = has_accumulator;
    plan->first_operand = has_accumulator ? 1 : 0;
    plan->first_instr = plan->first_operand + expr->n_operands;
    plan->n_values = plan->first_instr + expr->n_instrs;
    plan->result = expr->n_instrs > 0 ? plan->n_values - 1 : 0;
    plan->out_size = ree_dtype_size((enum ree_dtype)expr->out_dtype);
    plan->store = ree_cpu_store_of(expr->out_dtype);
    plan->result_is_canonical =
        expr->n_instrs > 0 && is_float_op(expr->instrs[expr->n_instrs - 1].op);
    plan->cost = 200;
    for (uint32_t k = 0; k < expr->n_operands; k++) {
        const struct ree_expr_operand *operand = &expr->operands[k];
        const void *tensor = operand->kind == REE_EXPR_TENSOR ? *tensors++ : NULL;
        plan_source(&plan->sources[k], expr, operand, tensor);
    }
    ree_cpu_expr_choose_table(plan);

    // For each value, 1 + the number of the last instruction that needs it; 0: none. After that
    // instruction the value's slot is free.
    uint32_t last_use[REE_CPU_EXPR_MAX_VALUES] = {0};
    last_use[plan->result] = expr->n_instrs + 1;
    for (uint32_t i = expr->n_instrs; i-- > 0;) {
        if (last_use[plan->first_instr + i] == 0) continue;
        for (uint32_t j = 0; j < n_args_of(plan, i); j++) {
            uint32_t arg = arg_of(plan, i, j);
            if (last_use[arg] == 0) last_use[arg] = i + 1;
        }
    }

    uint32_t n_slots = 0;
    if (has_accumulator) {
        plan->values[0].place = REE_CPU_EXPR_ACCUMULATOR;
        plan->values[0].wide = false;
    }
    for (uint32_t k = 0; k < expr->n_operands; k++) {
        const struct ree_cpu_expr_source *s = &plan->sources[k];
        uint32_t v = plan->first_operand + k;
        plan->values[v].wide = s->wide;
        plan->values[v].slot = 0;
        if (last_use[v] == 0) {
            plan->values[v].place = REE_CPU_EXPR_UNUSED;
        } else if (ree_cpu_expr_is_uniform(s)) {
            plan->values[v].place = REE_CPU_EXPR_UNIFORM;
            plan->values[v].slot = n_slots++;
        } else if (s->base && s->rank == 1 && s->strides[0] == 1 && s->load >= REE_CPU_LOAD_B32) {
            plan->values[v].place = REE_CPU_EXPR_MEMORY;
            plan->cost += 300;
        } else {
            plan->values[v].place = REE_CPU_EXPR_SLOT;
            plan->values[v].slot = n_slots++;
            plan->cost += 700;
        }
    }
    // Slots of constants and operands are permanent; slots of results are reused.
    bool reusable[REE_CPU_EXPR_MAX_VALUES] = {false};
    uint32_t free_slots[REE_CPU_EXPR_MAX_VALUES], n_free = 0;
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *instr = &expr->instrs[i];
        uint32_t v = plan->first_instr + i;
        bool wide = ree_map_op_infos[instr->op].result == REE_CLASS_D;
        plan->values[v].wide = wide;
        plan->values[v].slot = 0;
        if (last_use[v] == 0) {
            plan->values[v].place = REE_CPU_EXPR_UNUSED;
            continue;
        }
        if (instr->op == REE_MAP_CONST32 || instr->op == REE_MAP_CONST64) {
            plan->values[v].place = REE_CPU_EXPR_UNIFORM;
            plan->values[v].slot = n_slots++;
            continue;
        }
        plan->cost += is_looked_up(plan, i) ? REE_CPU_LOOKUP_COST : ree_cpu_map_op_cost(instr->op);
        if (v == plan->result && plan->out_size == (wide ? 8u : 4u)) {
            plan->values[v].place = REE_CPU_EXPR_OUT;
        } else {
            plan->values[v].place = REE_CPU_EXPR_SLOT;
            plan->values[v].slot = n_free > 0 ? free_slots[--n_free] : n_slots++;
            reusable[v] = true;
        }
        for (uint32_t j = 0; j < n_args_of(plan, i); j++) {
            uint32_t arg = arg_of(plan, i, j);
            if (!reusable[arg] || last_use[arg] != i + 1) continue;
            free_slots[n_free++] = plan->values[arg].slot;
            reusable[arg] = false;
        }
    }
    plan->n_slots = n_slots;
}

// Running

static void fill_uniform(const struct ree_cpu_expr_plan *plan, uint32_t v, uint32_t n, void *slot) {
    const struct ree_cpu_expr_kernels *kernels = plan->kernels;
    if (v < plan->first_instr) {
        const struct ree_cpu_expr_source *s = &plan->sources[v - plan->first_operand];
        load_source(kernels, s, 0, 1, slot);
        if (s->wide)
            kernels->fill64(n, *(ree_any_u64 *)slot, slot);
        else
            kernels->fill32(n, *(ree_any_u32 *)slot, slot);
        return;
    }
    const struct ree_expr_instr *instr = &plan->expr->instrs[v - plan->first_instr];
    if (instr->op == REE_MAP_CONST64)
        kernels->fill64(n, (uint64_t)instr->imm[1] << 32 | instr->imm[0], slot);
    else
        kernels->fill32(n, instr->imm[0], slot);
}

void ree_cpu_expr_prefetch(const struct ree_cpu_expr_plan *plan, uint32_t first, uint32_t count) {
    for (uint32_t k = 0; k < plan->expr->n_operands; k++) {
        const struct ree_cpu_expr_source *s = &plan->sources[k];
        if (!s->base || s->rank != 1 || s->strides[0] != 1) continue;
        const char *from = s->base + (s->offset + first) * (int64_t)s->size;
        for (size_t at = 0; at < count * s->size; at += 64)
            __builtin_prefetch(from + at, 0, 2);
    }
}

void ree_cpu_expr_run(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out, uint32_t block, void *slots) {
    const struct ree_expr *expr = plan->expr;
    const struct ree_cpu_expr_kernels *kernels = plan->kernels;
    if (count < block) block = count;
    size_t slot_size = ((size_t)block * 8 + 63) / 64 * 64;
    char *slot_base = slots;
    char *where[REE_CPU_EXPR_MAX_VALUES];
    for (uint32_t v = 0; v < plan->n_values; v++) {
        where[v] = slot_base + plan->values[v].slot * slot_size;
        if (plan->values[v].place == REE_CPU_EXPR_UNIFORM) fill_uniform(plan, v, block, where[v]);
    }

    for (uint32_t done = 0; done < count; done += block) {
        uint32_t n = count - done < block ? count - done : block;
        uint32_t begin = first + done;
        char *to = (char *)out + (size_t)begin * plan->out_size;
        if (plan->has_accumulator) where[0] = (char *)(uintptr_t)accumulator + (size_t)done * 4;
        for (uint32_t k = 0; k < expr->n_operands; k++) {
            const struct ree_cpu_expr_source *s = &plan->sources[k];
            uint32_t v = plan->first_operand + k;
            if (plan->values[v].place == REE_CPU_EXPR_MEMORY)
                where[v] = (char *)(uintptr_t)s->base + (s->offset + begin) * (int64_t)s->size;
            else if (plan->values[v].place == REE_CPU_EXPR_SLOT)
                load_source(kernels, s, begin, n, where[v]);
        }
        for (uint32_t i = 0; i < expr->n_instrs; i++) {
            uint32_t v = plan->first_instr + i;
            if (plan->values[v].place == REE_CPU_EXPR_OUT)
                where[v] = to;
            else if (plan->values[v].place != REE_CPU_EXPR_SLOT)
                continue;
            const struct ree_expr_instr *instr = &expr->instrs[i];
            const void *args[3] = {NULL, NULL, NULL};
            for (uint32_t j = 0; j < n_args_of(plan, i); j++)
                args[j] = where[arg_of(plan, i, j)];
            if (is_looked_up(plan, i))
                kernels->lookup(n, args[0], plan->table.entries, where[v]);
            else
                kernels->ops[instr->op](n, args[0], args[1], args[2], where[v]);
        }
        bool stored = where[plan->result] == to;
        bool is_float = plan->store == REE_CPU_STORE_F32 || plan->store == REE_CPU_STORE_F64;
        if (!stored || (is_float && !plan->result_is_canonical))
            kernels->stores[plan->store](n, where[plan->result], to);
    }
}

// Elements of a block: enough for most rows of an epilogue; longer rows are divided into blocks.
#define ROW_BLOCK 256
#define SLOT_SIZE (ROW_BLOCK * 8)
#define FEW_SLOTS 8

// Not inlined into ree_cpu_expr_row: with -fstack-clash-protection, a call touches every page of
// the arrays in its stack frame, used or not.
__attribute__((noinline)) static void row_with_many_slots(const struct ree_cpu_expr_plan *plan,
                                                          const void *accumulator, uint32_t first,
                                                          uint32_t count, void *out) {
    _Alignas(64) char slots[(REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS) * SLOT_SIZE];
    ree_cpu_expr_run(plan, accumulator, first, count, out, ROW_BLOCK, slots);
}

void ree_cpu_expr_row(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out) {
    if (plan->n_slots > FEW_SLOTS) {
        row_with_many_slots(plan, accumulator, first, count, out);
        return;
    }
    _Alignas(64) char slots[FEW_SLOTS * SLOT_SIZE];
    ree_cpu_expr_run(plan, accumulator, first, count, out, ROW_BLOCK, slots);
}
