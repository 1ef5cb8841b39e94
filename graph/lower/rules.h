// What the rules for elementwise, neural-network and linear-algebra operators share: their
// declarations, the choice of a scalar operation by type, and common checks.
#ifndef REE_GRAPH_LOWER_RULES_H
#define REE_GRAPH_LOWER_RULES_H

#include "graph/lower/lower.h"

// One declaration per row; a rule that serves several rows is declared several times, alike.
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    enum ree_status rule(struct ree_lower *lower, struct ree_tval *const *in,                      \
                         struct ree_tval **out);
#include "graph/lower/ops.def"
#undef OP

// A scalar operation in each family of types. REE_OP_NONE where the operator does not have it.
// float64 uses f32 (see ree_expr_op1), signed types narrower than 32 bits i32, unsigned ones u32,
// bool the field `boolean`.
#define REE_OP_NONE REE_N_MAP_OPS
struct ree_typed_op {
    enum ree_map_op f32, i32, u32, i64, u64, boolean;
};
// The member for a type; REE_OP_NONE for types that no expression computes in.
enum ree_map_op ree_typed_op_of(const struct ree_typed_op *op, enum ree_dtype dtype);
// "Add of float16 is not supported".
enum ree_status ree_rule_unsupported(struct ree_lower *lower, enum ree_dtype dtype);
#ifdef __clang_analyzer__
#define ree_rule_unsupported(...) ree_never_ok(ree_rule_unsupported(__VA_ARGS__)) // base/status.h
#endif
// Fails with ree_rule_unsupported when `op` has no member for t's type.
enum ree_status ree_rule_typed(struct ree_lower *lower, const struct ree_typed_op *op,
                               enum ree_dtype dtype, enum ree_map_op *out);
// Brings a value of a narrow integer type back into its range; other types are left alone.
int ree_expr_wrap(struct ree_expr_builder *b, enum ree_dtype dtype, int value);
// A constant of the class and meaning of dtype: a float32, a float64 or an integer.
int ree_expr_number(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t value);
// x where `condition` (W, 0 or 1) holds, else y; both of type dtype.
int ree_expr_select(struct ree_expr_builder *b, enum ree_dtype dtype, int condition, int x, int y);

// in[i], or NULL where it is omitted or beyond the node's inputs.
struct ree_tval *ree_rule_input(const struct ree_lower *lower, struct ree_tval *const *in,
                                uint32_t i);
bool ree_rule_wants(const struct ree_lower *lower, uint32_t output); // is that output used?
enum ree_status ree_rule_require_f32(struct ree_lower *lower, const struct ree_tval *t);
// float32 or float64: for rules whose steps are expressions and reductions, which do either.
enum ree_status ree_rule_require_float(struct ree_lower *lower, const struct ree_tval *t);
// "input B is float32[2], expected the type of A, int64"; `name` and `like` name the inputs.
enum ree_status ree_rule_same_type(struct ree_lower *lower, const struct ree_tval *t,
                                   const char *name, const struct ree_tval *as, const char *like);
// t has `rank` dimensions, named in the message.
enum ree_status ree_rule_require_rank(struct ree_lower *lower, const struct ree_tval *t,
                                      const char *name, uint32_t low, uint32_t high);
// t is a vector of n elements ("input scale is float32[3], expected 4 elements").
enum ree_status ree_rule_require_vector(struct ree_lower *lower, const struct ree_tval *t,
                                        const char *name, int64_t n);
// t[n] seen as [1, n, 1, ...] of the given rank, so that it broadcasts along axis 1.
enum ree_status ree_rule_channel_view(struct ree_lower *lower, struct ree_tval *t, uint32_t rank,
                                      struct ree_tval **out);
// Arithmetic of opsets before 7: `broadcast` = 1 lines b up with a from `axis` on (by default at
// the right). *out has dimensions of 1 appended so that today's broadcasting does the same.
enum ree_status ree_rule_legacy_broadcast(struct ree_lower *lower, struct ree_tval *a,
                                          struct ree_tval *b, struct ree_tval **out);
// A dense float32 tensor full of `value`.
enum ree_status ree_rule_fill(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                              float value, struct ree_tval **out);
// The sum over the axes of the mask, kept as 1, divided by the number of terms (NUMERICS.md:
// mean).
enum ree_status ree_rule_mean(struct ree_lower *lower, struct ree_tval *t, uint32_t axes_mask,
                              enum ree_reduce_kind kind, struct ree_tval **out);
// One float step over one or two broadcast tensors, as its own map.
enum ree_status ree_rule_step1(struct ree_lower *lower, enum ree_map_op op, struct ree_tval *a,
                               struct ree_tval **out);
enum ree_status ree_rule_step2(struct ree_lower *lower, enum ree_map_op op, struct ree_tval *a,
                               struct ree_tval *b, struct ree_tval **out);

// LogSoftmax along one axis of a float32 tensor.
enum ree_status ree_rule_log_softmax(struct ree_lower *lower, struct ree_tval *x, uint32_t axis,
                                     struct ree_tval **out);

#endif
