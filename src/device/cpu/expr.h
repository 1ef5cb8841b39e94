// Evaluates expressions over runs of elements, for `map` and the epilogues.
//
// An expression is planned once per dispatch: the plan says where each value is stored. It is then
// evaluated in blocks of up to REE_CPU_EXPR_BLOCK elements. Every instruction is one vectorised
// loop over the block; values are temporaries that stay in the first-level cache. A dense operand
// is read in place and the last instruction writes the output in place, so an expression of one
// instruction runs from memory to memory.
//
// The loops exist once per instruction set, from one source (expr_kernels.inc); all give the same
// bits. Other kernels use them as a vector library.
#ifndef REE_DEVICE_CPU_EXPR_H
#define REE_DEVICE_CPU_EXPR_H

#include "base/any.h"
#include "device/cpu/cpu_internal.h"

#define REE_CPU_EXPR_BLOCK 1024 // maximum elements of a block

// How an element in memory becomes a value of an expression. S8 and S16 are sign-extended to 32
// bits, U8 and U16 zero-extended; B32 and B64 keep their bits.
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
    REE_CPU_STORE_F32, // NaNs become canonical
    REE_CPU_STORE_64,
    REE_CPU_STORE_F64, // NaNs become canonical
    REE_N_CPU_STORES
};

struct ree_cpu_expr_kernels {
    // out[i] = op(a[i], b[i], c[i]) for i < n. Unused arguments may be NULL. `out` may equal an
    // argument but must not overlap one partially. Instructions for constants have no entry.
    void (*ops[REE_N_MAP_OPS])(size_t n, const void *a, const void *b, const void *c, void *out);
    // out[i] = value of the element src[i * stride], stride in elements.
    void (*loads[REE_N_CPU_LOADS])(size_t n, const void *src, int64_t stride, void *out);
    // out[i] = low bytes of values[i]. `out` may equal `values` if elements have 32 or 64 bits.
    void (*stores[REE_N_CPU_STORES])(size_t n, const void *values, void *out);
    // out[i] = value for i < n.
    void (*fill32)(size_t n, uint32_t value, void *out);
    void (*fill64)(size_t n, uint64_t value, void *out);
    // Bits of the maximum or minimum of n > 0 contiguous floats: map operations max_f32, min_f32.
    uint32_t (*max_f32)(size_t n, const void *x);
    uint32_t (*min_f32)(size_t n, const void *x);
};

extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_portable;
// The AVX2 kernels exist only if REE_CPU_HAVE_AVX2 is defined, the AVX-512 kernels only if
// REE_CPU_HAVE_AVX512 is defined.
extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_avx2;
extern const struct ree_cpu_expr_kernels ree_cpu_expr_kernels_avx512;
const struct ree_cpu_expr_kernels *ree_cpu_expr_kernels(enum ree_cpu_isa isa);

enum ree_cpu_load ree_cpu_load_of(uint32_t dtype);
enum ree_cpu_store ree_cpu_store_of(uint32_t dtype);

// Where a value of an expression is stored while a block of elements is evaluated.
enum ree_cpu_expr_place {
    REE_CPU_EXPR_UNUSED,
    REE_CPU_EXPR_MEMORY,      // an operand that is read in place
    REE_CPU_EXPR_ACCUMULATOR, // value 0 of an epilogue: the finished sum
    REE_CPU_EXPR_UNIFORM,     // one value, repeated in a slot that is filled once
    REE_CPU_EXPR_SLOT,        // loaded or computed into a slot for each block
    REE_CPU_EXPR_OUT,         // computed directly into the output
};

// An operand of a plan, with its dimensions merged as far as its own strides permit.
struct ree_cpu_expr_source {
    const char *base; // address of element 0; NULL for iota operands, which have no memory
    enum ree_cpu_load load;
    size_t size; // bytes per element in memory
    bool wide;   // values have 64 bits (class D)
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
    // Values are numbered: the accumulator (if any) is 0, operands begin at first_operand, results
    // of instructions at first_instr. n_values is their total.
    uint32_t first_operand, first_instr, n_values;
    uint32_t result;
    size_t out_size;
    enum ree_cpu_store store;
    // the result is a float, and its instruction produces no NaN other than the canonical one
    bool result_is_canonical;
    uint32_t n_slots;
    uint64_t cost; // estimated nanoseconds for 1024 elements
    struct ree_cpu_expr_source sources[REE_EXPR_MAX_OPERANDS];
    struct {
        enum ree_cpu_expr_place place;
        uint32_t slot;
        bool wide;
    } values[REE_CPU_EXPR_MAX_VALUES];
};

// Plans the evaluation of `expr`, which the plan borrows. `tensors` are the pointers of its TENSOR
// operands, in order. has_accumulator: the expression is an epilogue.
void ree_cpu_expr_plan(struct ree_cpu_expr_plan *plan, const struct ree_expr *expr,
                       void *const *tensors, bool has_accumulator, enum ree_cpu_isa isa);

// Returns the bytes of slots that ree_cpu_expr_run requires for blocks of `block` elements.
static inline size_t ree_cpu_expr_slots_size(const struct ree_cpu_expr_plan *plan, uint32_t block) {
    return plan->n_slots * (((size_t)block * 8 + 63) / 64 * 64);
}

// Evaluates elements [first, first + count) of the flattened (row-major) expression, in blocks of
// `block` elements, and writes them to out + first * ree_dtype_size(expr->out_dtype). slots:
// 64-byte aligned memory of ree_cpu_expr_slots_size bytes. accumulator: NULL for `map`; for an
// epilogue, the sums of these elements, 4 bytes each, starting with that of element `first`. It may
// be the memory that is written (out + first * 4, if output elements have 4 bytes). Several threads
// may run disjoint ranges of one plan at once.
void ree_cpu_expr_run(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out, uint32_t block, void *slots);
// As ree_cpu_expr_run, with slots on the stack; for the short rows of an epilogue.
void ree_cpu_expr_row(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out);

#endif
