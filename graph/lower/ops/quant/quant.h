// Shared by the quantised operators: numbers q of a narrow type that represent (q - zero) * scale.
//
// The steps are those of NUMERICS.md, section 10, "Quantisation". Scales are float32 in these
// functions; float16 and bfloat16 scales must be converted before (ree_quant_scale). A zero point
// that is absent, or known to be all zeros, is NULL: omitting its steps does not change any bit of
// an integer result. (To narrow floats, adding +0 changes -0, so QuantizeLinear keeps the zero
// point then.)
#ifndef REE_GRAPH_LOWER_QUANT_H
#define REE_GRAPH_LOWER_QUANT_H

#include "graph/lower/ops/rules.h"

// Writes the lowest and the highest number of a quantised integer type; returns false for other
// types.
bool ree_quant_range(enum ree_dtype dtype, int32_t *out_low, int32_t *out_high);
// Returns whether dtype is a narrow float (float8 or float4) that QuantizeLinear and
// DequantizeLinear accept besides integers.
bool ree_quant_is_float(enum ree_dtype dtype);
// Requires a quantised integer type; fails with "input A is float32[3], expected integers of 2, 4,
// 8 or 16 bits".
enum ree_status ree_quant_require(struct ree_lower *lower, const struct ree_view *t,
                                  const char *name);
// Requires int8 or uint8; fails with "input B is float32[3], expected int8 or uint8".
enum ree_status ree_quant_require_byte(struct ree_lower *lower, const struct ree_view *t,
                                       const char *name);
// Requires float32; fails with "input x is float16[3], expected float32".
enum ree_status ree_quant_require_f32(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name);
// Converts a scale (float32, float16 or bfloat16) to float32.
enum ree_status ree_quant_scale(struct ree_lower *lower, struct ree_view *t, const char *name,
                                struct ree_view **out);
// Sets *out to the zero point t of numbers of type dtype, or to NULL if t is NULL or known to be
// all zeros. Fails if t has another type.
enum ree_status ree_quant_zero(struct ree_lower *lower, struct ree_view *t, const char *name,
                               enum ree_dtype dtype, struct ree_view **out);
// Views t so that it broadcasts over a tensor of rank `rank`. t has one element for the whole
// tensor, or is a vector of `size` elements along `axis`.
enum ree_status ree_quant_along(struct ree_lower *lower, struct ree_view *t, const char *name,
                                uint32_t rank, uint32_t axis, int64_t size, struct ree_view **out);
// Repeats the elements of t so that *out has the shape of x. t has the shape of x, except along
// `axis`, where it has one element per `block` elements of x.
enum ree_status ree_quant_along_blocks(struct ree_lower *lower, struct ree_view *t,
                                       const char *name, const struct ree_view *x, uint32_t axis,
                                       int64_t block, struct ree_view **out);
// Views t, which must have exactly one element ("per tensor"), as a scalar.
enum ree_status ree_quant_single(struct ree_lower *lower, struct ree_view *t, const char *name,
                                 struct ree_view **out);

// In the ree_quant_expr functions, `scale` and `zero` are values of the expression. `zero` is
// REE_QUANT_NO_ZERO if there is no zero point.
#define REE_QUANT_NO_ZERO (-1)
// Adds a zero point to the expression; returns REE_QUANT_NO_ZERO if it is NULL.
int ree_quant_expr_zero(struct ree_expr_builder *e, struct ree_view *zero);
// Adds saturate(round(x) + zero), x float32, to the range of the integer type dtype.
int ree_quant_expr_round(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// Adds the conversion of x + zero, x float32, to dtype, a narrow float. The attribute `saturate` of
// the node decides the result of an overflow.
int ree_quant_expr_narrow(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// Adds (q - zero) * scale as float32. q and zero are of type dtype.
int ree_quant_expr_real(struct ree_expr_builder *e, int q, enum ree_dtype dtype, int zero,
                        int scale);

// Makes the float32 tensor (q - zero) * scale. scale and zero broadcast to q; zero may be NULL.
enum ree_status ree_quant_dequantize(struct ree_lower *lower, struct ree_view *q,
                                     struct ree_view *scale, struct ree_view *zero,
                                     struct ree_view **out);
// Quantises a float32 tensor: saturate(round(x / scale) + zero) of type dtype. scale and zero
// broadcast to x; zero may be NULL.
enum ree_status ree_quant_quantize(struct ree_lower *lower, struct ree_view *x,
                                   struct ree_view *scale, struct ree_view *zero,
                                   enum ree_dtype dtype, struct ree_view **out);
// DynamicQuantizeLinear of a float32 tensor: makes uint8 numbers, their scale and their zero point.
// The latter two are scalars.
enum ree_status ree_quant_dynamic(struct ree_lower *lower, struct ree_view *x,
                                  struct ree_view **out_q, struct ree_view **out_scale,
                                  struct ree_view **out_zero);
// Makes (a * b) / c, broadcast; a * b if c is NULL. For factors that consist of several scales.
enum ree_status ree_quant_operand(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                  struct ree_view *c, struct ree_view **out);

// Makes the product of int8 or uint8 matrices a (..., m, k) and b (..., k, n): int32, the sum over
// l of (a - a_zero)[m, l] * (b - b_zero)[l, n]. The zero points may be NULL; otherwise they
// broadcast, a_zero over (..., m, 1), b_zero over (..., 1, n).
enum ree_status ree_quant_product(struct ree_lower *lower, struct ree_view *a,
                                  struct ree_view *a_zero, struct ree_view *b,
                                  struct ree_view *b_zero, struct ree_view **out);
// Converts sum, an int32 product: y = sum * factor, then + bias (float32, may be NULL). The result
// is y if dtype is float32, else saturate(round(y) + zero) of type dtype; zero may be NULL.
enum ree_status ree_quant_finish(struct ree_lower *lower, struct ree_view *sum,
                                 struct ree_view *factor, struct ree_view *bias,
                                 struct ree_view *zero, enum ree_dtype dtype,
                                 struct ree_view **out);

#endif
