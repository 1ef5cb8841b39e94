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
    // out[i] = table[index[i]] for i < n. `out` may equal `index`.
    void (*lookup)(size_t n, const void *index, const uint32_t *table, void *out);
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
// Returns the estimated nanoseconds of an instruction for 1024 elements, accurate enough to choose
// a number of threads.
uint64_t ree_cpu_map_op_cost(uint32_t op);
#define REE_CPU_LOOKUP_COST 400 // the same for a value that is looked up in a table

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

// Reports whether the operand has one value for all elements.
static inline bool ree_cpu_expr_is_uniform(const struct ree_cpu_expr_source *s) {
    return s->rank == 1 && s->strides[0] == 0;
}

#define REE_CPU_EXPR_MAX_VALUES (1 + REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS)

// A value that depends on one number of 8 or 16 bits, and otherwise only on constants, has at most
// 65,536 different values. If an expression has many more elements, they are computed once and
// looked up: an activation function of bfloat16 numbers then takes little longer than a copy.
struct ree_cpu_expr_table {
    uint32_t n;              // entries: the index is below n. 0: nothing is looked up
    uint32_t value;          // the value that is looked up
    uint32_t index;          // the value that it depends on: an operand or a result
    const uint32_t *entries; // [n]
};

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
    struct ree_cpu_expr_table table;
    struct ree_cpu_expr_source sources[REE_EXPR_MAX_OPERANDS];
    struct {
        enum ree_cpu_expr_place place;
        uint32_t slot;
        bool wide;
    } values[REE_CPU_EXPR_MAX_VALUES];
};

// Plans the evaluation of `expr`, which the plan borrows. `tensors` are the pointers of its TENSOR
// operands, in order. has_accumulator: the expression is an epilogue. If plan->table.n is not 0,
// its entries must be set before elements are evaluated: ree_cpu_expr_prepare does both.
void ree_cpu_expr_plan(struct ree_cpu_expr_plan *plan, const struct ree_expr *expr,
                       void *const *tensors, bool has_accumulator, enum ree_cpu_isa isa);

// Sets plan->table: chooses the value for which a table saves most time, if it saves any. The
// sources must be planned. For ree_cpu_expr_plan.
void ree_cpu_expr_choose_table(struct ree_cpu_expr_plan *plan);
// Returns the bytes of slots that ree_cpu_expr_run requires for blocks of `block` elements.
static inline size_t ree_cpu_expr_slots_size(const struct ree_cpu_expr_plan *plan, uint32_t block) {
    return plan->n_slots * (((size_t)block * 8 + 63) / 64 * 64);
}

// Plans the evaluation of `expr` as ree_cpu_expr_plan and computes the table, if there is one, in
// the device's scratch memory: it is valid until the next dispatch.
enum ree_status ree_cpu_expr_prepare(const struct ree_cpu_context *ctx, const struct ree_expr *expr,
                                     void *const *tensors, bool has_accumulator,
                                     struct ree_cpu_expr_plan *plan, struct ree_error *err);

// Prefetches what the plan reads for elements [first, first + count) into the second-level cache;
// only dense operands.
void ree_cpu_expr_prefetch(const struct ree_cpu_expr_plan *plan, uint32_t first, uint32_t count);

// Evaluates elements [first, first + count) of the flattened (row-major) expression, in blocks of
// `block` elements, and writes them to out + first * ree_dtype_size(expr->out_dtype). slots:
// 64-byte aligned memory of ree_cpu_expr_slots_size bytes. accumulator: NULL for `map`; for an
// epilogue, the sums of these elements, 4 bytes each, starting with that of element `first`. It may
// be the memory that is written (out + first * 4, if output elements have 4 bytes). Several threads
// may run disjoint ranges of one plan at once.
void ree_cpu_expr_run(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out, uint32_t block, void *slots);
// Evaluates all elements of an expression that is no epilogue, with the device's threads. Uses the
// threads' scratch block 0.
enum ree_status ree_cpu_expr_run_all(const struct ree_cpu_context *ctx,
                                     const struct ree_cpu_expr_plan *plan, void *out,
                                     struct ree_error *err);
// As ree_cpu_expr_run, with slots on the stack; for the short rows of an epilogue.
void ree_cpu_expr_row(const struct ree_cpu_expr_plan *plan, const void *accumulator, uint32_t first,
                      uint32_t count, void *out);

#endif
