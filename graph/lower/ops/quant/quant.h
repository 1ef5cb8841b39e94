// Shared by the quantised operators: numbers q of a narrow type that represent (q - zero) * scale.
//
// The steps are those of NUMERICS.md, section 10, "Quantisation". Scales are float32 in these
// functions; float16 and bfloat16 scales have been converted before. A zero point that is absent,
// or known to be all zeros, is NULL: omitting its steps does not change any bit of an integer
// result. (Adding +0 to a narrow float changes -0, so QuantizeLinear keeps the zero point then.)
#ifndef REE_GRAPH_LOWER_QUANT_H
#define REE_GRAPH_LOWER_QUANT_H

#include "graph/lower/ops/rules.h"

// Lowest and highest number of a quantised type; returns false for other types.
bool ree_quant_range(enum ree_dtype dtype, int32_t *out_low, int32_t *out_high);
// Returns whether dtype is a narrow float that QuantizeLinear and DequantizeLinear also accept.
bool ree_quant_is_float(enum ree_dtype dtype);
// Fails with "input A is float32[3], expected integers of 2, 4, 8 or 16 bits".
enum ree_status ree_quant_require(struct ree_lower *lower, const struct ree_view *t,
                                  const char *name);
// Fails with "input B is float32[3], expected int8 or uint8".
enum ree_status ree_quant_require_byte(struct ree_lower *lower, const struct ree_view *t,
                                       const char *name);
// Fails with "input x is float16[3], expected float32".
enum ree_status ree_quant_require_f32(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name);
// Returns a scale as float32.
enum ree_status ree_quant_scale(struct ree_lower *lower, struct ree_view *t, const char *name,
                                struct ree_view **out);
// The zero point of numbers of type dtype: t, or NULL if it is absent or all zeros.
enum ree_status ree_quant_zero(struct ree_lower *lower, struct ree_view *t, const char *name,
                               enum ree_dtype dtype, struct ree_view **out);
// Views t so that it broadcasts over a tensor of rank `rank`. t is one element (or a scalar) for
// the whole tensor, or a vector of `size` elements along `axis`.
enum ree_status ree_quant_along(struct ree_lower *lower, struct ree_view *t, const char *name,
                                uint32_t rank, uint32_t axis, int64_t size, struct ree_view **out);
// Spreads t over x: t has x's shape, but one element per `block` elements along the axis.
enum ree_status ree_quant_along_blocks(struct ree_lower *lower, struct ree_view *t,
                                       const char *name, const struct ree_view *x, uint32_t axis,
                                       int64_t block, struct ree_view **out);
// As ree_quant_along, for one element only ("per tensor").
enum ree_status ree_quant_single(struct ree_lower *lower, struct ree_view *t, const char *name,
                                 struct ree_view **out);

// Expressions. `scale` and `zero` are values of the expression; zero is REE_QUANT_NO_ZERO if there
// is none.
#define REE_QUANT_NO_ZERO (-1)
// Adds a zero point as a value; returns REE_QUANT_NO_ZERO for NULL.
int ree_quant_expr_zero(struct ree_expr_builder *e, struct ree_view *zero);
// saturate(round(x) + zero) in dtype
int ree_quant_expr_round(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// x + zero in dtype, a narrow float. The node's attribute `saturate` decides the result of an
// overflow.
int ree_quant_expr_narrow(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// (q - zero) * scale, q of type dtype
int ree_quant_expr_real(struct ree_expr_builder *e, int q, enum ree_dtype dtype, int zero,
                        int scale);

// (q - zero) * scale as a float32 tensor; scale and zero broadcast.
enum ree_status ree_quant_dequantize(struct ree_lower *lower, struct ree_view *q,
                                     struct ree_view *scale, struct ree_view *zero,
                                     struct ree_view **out);
// saturate(round(x / scale) + zero) of a float32 tensor.
enum ree_status ree_quant_quantize(struct ree_lower *lower, struct ree_view *x,
                                   struct ree_view *scale, struct ree_view *zero,
                                   enum ree_dtype dtype, struct ree_view **out);
// DynamicQuantizeLinear: returns uint8 numbers, and their scale and zero point (scalars).
enum ree_status ree_quant_dynamic(struct ree_lower *lower, struct ree_view *x,
                                  struct ree_view **out_q, struct ree_view **out_scale,
                                  struct ree_view **out_zero);
// ((a * b) / c) for scales that broadcast; c may be NULL.
enum ree_status ree_quant_operand(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                  struct ree_view *c, struct ree_view **out);

// The sum over l of (a - a_zero) * (b - b_zero), int32, for int8 or uint8 matrices of rank 2 or
// more. The zero points broadcast: a_zero over (..., m, 1), b_zero over (..., 1, n).
enum ree_status ree_quant_product(struct ree_lower *lower, struct ree_view *a,
                                  struct ree_view *a_zero, struct ree_view *b,
                                  struct ree_view *b_zero, struct ree_view **out);
// Converts a quantised product: y = sum * factor, then + bias (float32). The result is y if dtype
// is float32, else saturate(round(y) + zero).
enum ree_status ree_quant_finish(struct ree_lower *lower, struct ree_view *sum,
                                 struct ree_view *factor, struct ree_view *bias,
                                 struct ree_view *zero, enum ree_dtype dtype,
                                 struct ree_view **out);

#endif
