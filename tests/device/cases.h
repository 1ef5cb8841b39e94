// Generates random dispatches with their operands, one generator for each RepOp, for any backend.
// The CPU's kernels are compared with the references (reference.h), other backends with the CPU.
//
// A case is small (its tensors rarely have more than 100,000 elements), well-formed, and the same
// for the same seed. Shapes include sizes 0 and 1, strides that repeat or run backwards, and
// reduction lengths near multiples of the chunk length. Values include NaN, infinities, zeros of
// both signs and subnormals.
#ifndef REE_TESTS_DEVICE_CASES_H
#define REE_TESTS_DEVICE_CASES_H

#include "repops/repop.h"

struct rng {
    uint64_t state;
    bool host; // cases may contain operations that only the CPU has: float64 functions
};
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t n);                 // 0 ... n-1
int32_t rng_between(struct rng *rng, int32_t low, int32_t high); // inclusive
bool rng_one_in(struct rng *rng, uint32_t n);
uint32_t rng_of(struct rng *rng, uint32_t n, const uint32_t *choices);

struct test_case {
    // Operand i is the whole slot i: its offset is 0. dispatch.node is 0.
    struct ree_dispatch dispatch;
    // Initial contents of each slot, dispatch.operands[i].size bytes; includes the output slots.
    void *contents[REE_MAX_OPERANDS];
    bool is_written[REE_MAX_OPERANDS];
};

// Makes a case from the random numbers of `rng`. Returns false if they give no valid case; the
// caller then tries another seed.
typedef bool (*case_generator)(struct rng *rng, struct test_case *out);
bool case_copy(struct rng *rng, struct test_case *out);
bool case_map(struct rng *rng, struct test_case *out);
bool case_reduce(struct rng *rng, struct test_case *out);
bool case_matmul(struct rng *rng, struct test_case *out);
bool case_conv(struct rng *rng, struct test_case *out);
bool case_pool(struct rng *rng, struct test_case *out);
bool case_softmax(struct rng *rng, struct test_case *out);
bool case_norm(struct rng *rng, struct test_case *out);
bool case_gather(struct rng *rng, struct test_case *out);  // some cases have indices out of range
bool case_scatter(struct rng *rng, struct test_case *out); // some cases have indices out of range
bool case_topk(struct rng *rng, struct test_case *out);
bool case_scan(struct rng *rng, struct test_case *out);
bool case_resize(struct rng *rng, struct test_case *out);
bool case_attention(struct rng *rng, struct test_case *out);
extern const case_generator case_generators[REE_N_REPOPS];
// Products of blockwise activations only, larger and better aligned than those of case_matmul.
bool case_matmul_int8(struct rng *rng, struct test_case *out);
// With expressions of case_expr_looked_up, and enough elements.
bool case_map_looked_up(struct rng *rng, struct test_case *out);
bool case_map_of_constant(struct rng *rng, struct test_case *out); // without operands
bool case_matmul_looked_up(struct rng *rng, struct test_case *out);
// Blockwise weights with so many rows that the CPU multiplies by tiles, for which it converts them.
bool case_matmul_blocks(struct rng *rng, struct test_case *out);

void test_case_finish(struct test_case *c); // frees the contents

// Used by the generators

// Parameters of a product of dense float32 matrices, (m, k) by (k, n).
static inline struct ree_matmul_params dense_products(uint32_t m, uint32_t n, uint32_t k) {
    return (struct ree_matmul_params){
        .dtype = REE_F32,
        .a_dtype = REE_F32,
        .b_dtype = REE_F32,
        .m = m,
        .n = n,
        .k = k,
        .a_stride_m = (int32_t)k,
        .a_stride_k = 1,
        .b_stride_k = (int32_t)n,
        .b_stride_n = 1,
        .n_batch = 1,
    };
}

void case_begin(struct test_case *c, enum ree_repop op);
// Append an input or an output of n elements with random contents and return the contents (owned by
// the case). Exit if memory is short.
void *case_input(struct test_case *c, struct rng *rng, enum ree_dtype dtype, uint64_t n);
void *case_output(struct test_case *c, struct rng *rng, enum ree_dtype dtype, uint64_t n);
// Makes a product of blockwise activations and weights: p has m, n, k, a_block, b_block, b_bits and
// has_zero_points.
void case_block_product(struct test_case *c, struct rng *rng, const struct ree_matmul_params *p);
void case_fill(struct rng *rng, enum ree_dtype dtype, uint64_t n, void *out);

// Chooses random dimensions whose product is at most `budget`, rarely one of them 0. Returns the
// rank, 1 to max_rank.
uint32_t case_dims(struct rng *rng, uint32_t max_rank, uint32_t budget, uint32_t *dims);
uint64_t case_count(uint32_t rank, const uint32_t *dims);
void case_dense_strides(uint32_t rank, const uint32_t *dims, int32_t *strides);

enum case_view {
    CASE_VIEW_REPEATS = 1,   // strides of 0
    CASE_VIEW_BACKWARDS = 2, // negative strides
};
// Chooses the strides and the offset, in elements, of a view of shape dims[rank]: dense, permuted,
// with gaps, and as `flags` (enum case_view) allow. Returns the number of elements that the buffer
// under the view must have.
uint64_t case_view(struct rng *rng, uint32_t flags, uint32_t rank, const uint32_t *dims,
                   int32_t *strides, int32_t *offset);
// Returns a length to reduce over: 0, 1, small, or near one chunk or several.
uint32_t case_length(struct rng *rng);

// Makes a random expression of shape dims[rank] and appends its tensors to the case. If
// has_accumulator, it also reads an accumulator, as the epilogue of another RepOp.
void case_expr(struct test_case *c, struct rng *rng, struct ree_expr *expr, uint32_t rank,
               const uint32_t *dims, bool has_accumulator);
// The same with values that depend on a 16-bit number only: an operand or, if has_accumulator, the
// rounded sum. The CPU looks them up if there are more than some 140,000 elements.
void case_expr_looked_up(struct test_case *c, struct rng *rng, struct ree_expr *expr, uint32_t rows,
                         uint32_t columns, bool has_accumulator);

#endif
