// Reference implementations of all RepOps, with which tests compare the kernels. They compute each
// element directly from the definition in repop.h and NUMERICS.md, without regard for speed.
#ifndef REE_TESTS_DEVICE_REFERENCE_H
#define REE_TESTS_DEVICE_REFERENCE_H

#include "base/any.h"
#include "repops/repop.h"

// Computes the dispatch. operands[i] is the memory of the dispatch's operand i; its slot and offset
// are ignored. Returns false if an index of a gather or scatter is out of range; the outputs are
// then undefined.
bool reference_run(const struct ree_dispatch *dispatch, void *const *operands);

void reference_copy(const struct ree_copy_params *p, void *const *operands);
void reference_map(const struct ree_map_params *p, void *const *operands);
void reference_reduce(const struct ree_reduce_params *p, void *const *operands);
void reference_matmul(const struct ree_matmul_params *p, void *const *operands);
void reference_conv(const struct ree_conv_params *p, void *const *operands);
void reference_pool(const struct ree_pool_params *p, void *const *operands);
void reference_softmax(const struct ree_softmax_params *p, void *const *operands);
void reference_norm(const struct ree_norm_params *p, void *const *operands);
bool reference_gather(const struct ree_gather_params *p, void *const *operands);
bool reference_scatter(const struct ree_scatter_params *p, void *const *operands);
void reference_topk(const struct ree_topk_params *p, void *const *operands);
void reference_scan(const struct ree_scan_params *p, void *const *operands);
void reference_resize(const struct ree_resize_params *p, void *const *operands);
void reference_attention(const struct ree_attention_params *p, void *const *operands);

// Shared by the functions above

// Returns the offset, in elements, of element number `at` of a view: the sum over all dimensions of
// coordinate * stride. `at` counts elements in row-major order.
int64_t reference_offset(uint32_t rank, const uint32_t *dims, const int32_t *strides, uint64_t at);
// Returns the bits of element i of a tensor. Signed integers below 32 bits are sign-extended to 32
// bits; all other types, including floats, are zero-extended.
uint64_t reference_load(enum ree_dtype dtype, const void *data, int64_t i);
void reference_store(enum ree_dtype dtype, void *data, int64_t i, uint64_t value);
// Computes element i of an expression and returns its bits. tensors: the memory of the expression's
// tensor operands, in order. accumulator: in an epilogue, the result of the product, which is
// value 0 of the expression; otherwise NULL.
uint64_t reference_expr(const struct ree_expr *expr, void *const *tensors,
                        const uint32_t *accumulator, uint64_t i);

// State of a float32 sum, dot product or product that is computed term by term with the reduction
// scheme of NUMERICS.md section 3: chunks of 256 terms, then the chunk results in ascending order.
struct reference_sum {
    bool product;
    uint64_t n_terms;
    float chunk, total;
    bool has_total;
};
void reference_sum_begin(struct reference_sum *sum, bool product);
// Adds the term x, or multiplies by it if `product` is set.
void reference_sum_add(struct reference_sum *sum, float x);
// Adds the term a * b of a dot product, with one fma.
void reference_sum_fma(struct reference_sum *sum, float a, float b);
uint32_t reference_sum_end(struct reference_sum sum); // returns the result as float32 bits

// The reduction scheme of NUMERICS.md section 3 in binary64, and the RepOps that use it
// (reference_f64.c).
enum reference_f64_kind { REFERENCE_SUM, REFERENCE_PRODUCT, REFERENCE_DOT };
// Returns the sum or product of a[n], or the dot product of a[n] and b[n], as float64 bits. b is
// used only for REFERENCE_DOT.
uint64_t reference_f64_total(enum reference_f64_kind kind, uint32_t n, const double *a,
                             const double *b);
void reference_reduce_f64(const struct ree_reduce_params *p, const double *x, uint64_t *out);
void reference_matmul_f64(const struct ree_matmul_params *p, const double *a, const double *b,
                          uint64_t *out);
void reference_scan_f64(const struct ree_scan_params *p, const double *x, uint64_t *out);

#endif
