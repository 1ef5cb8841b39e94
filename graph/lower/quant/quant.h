// What the quantised operators share: numbers q of a narrow type that stand for (q - zero) * scale.
//
// The steps are those of NUMERICS.md, section 10, "Quantisation". Scales are float32 here; float16
// and bfloat16 ones have been converted. A zero point that is absent, or known to be all zeros, is
// NULL: leaving its steps out changes no bits.
#ifndef REE_GRAPH_LOWER_QUANT_H
#define REE_GRAPH_LOWER_QUANT_H

#include "graph/lower/rules.h"

#define QUANT_RULE(name)                                                                           \
    enum ree_status ree_lower_op_##name(struct ree_lower *lower, struct ree_tval *const *in,       \
                                        struct ree_tval **out)

// Lowest and highest number of a quantised type; false for types that are none.
bool ree_quant_range(enum ree_dtype dtype, int32_t *out_low, int32_t *out_high);
// The narrow floats that numbers are quantised to as well (QuantizeLinear and DequantizeLinear).
bool ree_quant_is_float(enum ree_dtype dtype);
// "input A is float32[3], expected integers of 2, 4, 8 or 16 bits"
enum ree_status ree_quant_require(struct ree_lower *lower, const struct ree_tval *t,
                                  const char *name);
// "input B is float32[3], expected int8 or uint8"
enum ree_status ree_quant_require_byte(struct ree_lower *lower, const struct ree_tval *t,
                                       const char *name);
// "input x is float16[3], expected float32"
enum ree_status ree_quant_require_f32(struct ree_lower *lower, const struct ree_tval *t,
                                      const char *name);
// A scale as float32.
enum ree_status ree_quant_scale(struct ree_lower *lower, struct ree_tval *t, const char *name,
                                struct ree_tval **out);
// The zero point of numbers of type dtype: t, or NULL where it is absent or all zeros.
enum ree_status ree_quant_zero(struct ree_lower *lower, struct ree_tval *t, const char *name,
                               enum ree_dtype dtype, struct ree_tval **out);
// t seen so that it broadcasts over a tensor of `rank` whose axis `axis` it runs along: a scalar
// or one element for all, or a vector of `size` elements.
enum ree_status ree_quant_along(struct ree_lower *lower, struct ree_tval *t, const char *name,
                                uint32_t rank, uint32_t axis, int64_t size, struct ree_tval **out);
// The same where t has one element ("per tensor").
enum ree_status ree_quant_single(struct ree_lower *lower, struct ree_tval *t, const char *name,
                                 struct ree_tval **out);

// Expressions. `scale` and `zero` are values; zero is NO_ZERO where there is none.
#define REE_QUANT_NO_ZERO (-1)
// A zero point as a value; NO_ZERO for NULL.
int ree_quant_expr_zero(struct ree_expr_builder *e, struct ree_tval *zero);
// saturate(round(x) + zero) in dtype
int ree_quant_expr_round(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// x + zero in dtype, a narrow float; the node's attribute `saturate` says what is beyond its range
int ree_quant_expr_narrow(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype);
// (q - zero) * scale, q of type dtype
int ree_quant_expr_real(struct ree_expr_builder *e, int q, enum ree_dtype dtype, int zero,
                        int scale);

// (q - zero) * scale as a float32 tensor; scale and zero broadcast.
enum ree_status ree_quant_dequantize(struct ree_lower *lower, struct ree_tval *q,
                                     struct ree_tval *scale, struct ree_tval *zero,
                                     struct ree_tval **out);
// saturate(round(x / scale) + zero) of a float32 tensor.
enum ree_status ree_quant_quantize(struct ree_lower *lower, struct ree_tval *x,
                                   struct ree_tval *scale, struct ree_tval *zero,
                                   enum ree_dtype dtype, struct ree_tval **out);
// DynamicQuantizeLinear: uint8 numbers, their scale and zero point (scalars).
enum ree_status ree_quant_dynamic(struct ree_lower *lower, struct ree_tval *x,
                                  struct ree_tval **out_q, struct ree_tval **out_scale,
                                  struct ree_tval **out_zero);
// ((a * b) / c) of scales that broadcast; c may be NULL.
enum ree_status ree_quant_factor(struct ree_lower *lower, struct ree_tval *a, struct ree_tval *b,
                                 struct ree_tval *c, struct ree_tval **out);

// sum over l of (a - a_zero) * (b - b_zero), int32, of int8 or uint8 matrices of rank 2 or more.
// The zero points broadcast: a_zero over (..., m, 1), b_zero over (..., 1, n).
enum ree_status ree_quant_product(struct ree_lower *lower, struct ree_tval *a,
                                  struct ree_tval *a_zero, struct ree_tval *b,
                                  struct ree_tval *b_zero, struct ree_tval **out);
// What a quantised product becomes: y = sum * factor, then + bias (float32) as a float32; or, with
// a dtype other than float32, saturate(round(y) + zero).
enum ree_status ree_quant_finish(struct ree_lower *lower, struct ree_tval *sum,
                                 struct ree_tval *factor, struct ree_tval *bias,
                                 struct ree_tval *zero, enum ree_dtype dtype,
                                 struct ree_tval **out);

#endif
