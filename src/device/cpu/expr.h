// Expressions over runs of elements: the engine behind `map` and the epilogues.
//
// An expression is planned once per dispatch (which value lies where) and then evaluated in blocks
// of up to REE_CPU_EXPR_BLOCK elements: every instruction is one vectorised loop over the block,
// its values in temporaries that stay in the first-level cache. A dense operand is read in place
// and the last instruction writes the output in place, so an expression of one instruction runs
// from memory to memory.
//
// The loops exist once per instruction set, from one source (expr_kernels.inc); all give the same
// bits. Other kernels use them as a vector library.
#ifndef REE_DEVICE_CPU_EXPR_H
#define REE_DEVICE_CPU_EXPR_H

#include "base/any.h"
#include "device/cpu/cpu_internal.h"

#define REE_CPU_EXPR_BLOCK 1024 // elements

// How an element in memory becomes a value: W (uint32_t) for all but B64.
enum ree_cpu_load {
    REE_CPU_LOAD_S8,
    REE_CPU_LOAD_U8,
    REE_CPU_LOAD_S16,
    REE_CPU_LOAD_U16,
    REE_CPU_LOAD_B32,
    REE_CPU_LOAD_B64,
    REE_N_CPU_LOADS
};

enum ree_cpu_store {
    REE_CPU_STORE_8,
    REE_CPU_STORE_16,
    REE_CPU_STORE_32,
    REE_CPU_STORE_F32, // NaN canonicalised
    REE_CPU_STORE_64,
    REE_CPU_STORE_F64, // NaN canonicalised
    REE_N_CPU_STORES
};

struct ree_cpu_expr_kernels {
    // out[i] = op(a[i], b[i], c[i]) for i < n; unused arguments may be NULL. `out` may be one of
    // the arguments, but must not overlap one otherwise. No entry for the constants.
    void (*ops[REE_N_MAP_OPS])(size_t n, const void *a, const void *b, const void *c, void *out);
    // out[i] = value of src[i * stride], stride in elements.
    void (*loads[REE_N_CPU_LOADS])(size_t n, const void *src, int64_t stride, void *out);
    // out[i] = low bytes of values[i]; may be in place for 32 and 64 bits.
    void (*stores[REE_N_CPU_STORES])(size_t n, const void *values, void *out);
    // out[i] = value
    void (*fill32)(size_t n, uint32_t value, void *out);
    void (*fill64)(size_t n, uint64_t value, void *out);
    // max and min of n > 0 floats as max_f32 and min_f32 define them; stride in elements.
    uint32_t (*max_f32)(size_t n, const void *x);
    uint32_t (*min_f32)(size_t n, const void *x);
};

extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_portable;
extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_avx2;   // REE_CPU_HAVE_AVX2
extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_avx512; // REE_CPU_HAVE_AVX512
const struct ree_cpu_expr_kernels *ree_cpu_expr_kernels(enum ree_cpu_isa isa);

enum ree_cpu_load ree_cpu_load_of(uint32_t dtype);
enum ree_cpu_store ree_cpu_store_of(uint32_t dtype);

// Where a value lies while a block is evaluated.
enum ree_cpu_expr_place {
    REE_CPU_EXPR_UNUSED,
    REE_CPU_EXPR_MEMORY,      // operand read in place: base + first * size
    REE_CPU_EXPR_ACCUMULATOR, // the epilogue's value 0
    REE_CPU_EXPR_UNIFORM,     // one value repeated, in a slot that is filled once
    REE_CPU_EXPR_SLOT,        // loaded or computed into a slot for each block
    REE_CPU_EXPR_OUT,         // computed straight into the output
};

// An operand with its dimensions merged as far as its own strides allow.
struct ree_cpu_expr_source {
    const char *base; // element 0's; NULL for iota
    enum ree_cpu_load load;
    size_t size; // bytes of an element
    bool wide;   // class D
    int64_t offset;
    uint32_t rank; // at least 1
    uint32_t dims[REE_MAX_RANK];
    int64_t strides[REE_MAX_RANK];
};

#define REE_CPU_EXPR_MAX_VALUES (1 + REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS)

struct ree_cpu_expr_plan {
    const struct ree_cpu_expr_kernels *kernels;
    const struct ree_expr *expr;
    bool has_accumulator;
    uint32_t first_operand, first_instr, n_values; // value numbers
    uint32_t result;
    size_t out_size;
    enum ree_cpu_store store;
    bool result_is_canonical; // a float result whose instruction leaves no other NaN
    uint32_t n_slots;
    uint64_t cost; // rough nanoseconds for 1024 elements
    struct ree_cpu_expr_source sources[REE_EXPR_MAX_OPERANDS];
    struct {
        enum ree_cpu_expr_place place;
        uint32_t slot;
        bool wide;
    } values[REE_CPU_EXPR_MAX_VALUES];
};

// `expr` stays in use by the plan. `tensors` are the pointers of its TENSOR operands in order.
void ree_cpu_expr_plan(struct ree_cpu_expr_plan *plan, const struct ree_expr *expr,
                       void *const *tensors, bool has_accumulator, enum ree_cpu_isa isa);

// Bytes of slots that ree_cpu_expr_run needs for blocks of `block` elements.
static inline size_t ree_cpu_expr_slots_size(const struct ree_cpu_expr_plan *plan, uint32_t block) {
    return plan->n_slots * (((size_t)block * 8 + 63) / 64 * 64);
}

// Evaluates elements first ... first+count-1 of the flattened (row-major) expression and writes
// them to out + first * ree_dtype_size(expr->out_dtype), in blocks of `block` elements with
// `slots`, 64-byte aligned memory of ree_cpu_expr_slots_size bytes. `accumulator` is NULL for
// `map`; for an epilogue it holds value 0 of these elements, 4 bytes each, the first that of
// element `first`, and may be the very memory that is written (out + first * 4, when the output's
// elements have 4 bytes). Several threads may run disjoint ranges of one plan at once.
void ree_cpu_expr_run(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out, uint32_t block, void *slots);
// The same with slots of its own on the stack: for the short rows of an epilogue.
void ree_cpu_expr_row(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out);

#endif
