// Shared by the rules for elementwise, neural-network and linear-algebra operators: their
// declarations, selection of a scalar operation by type, and common checks.
#ifndef REE_GRAPH_LOWER_OPS_RULES_H
#define REE_GRAPH_LOWER_OPS_RULES_H

#include "graph/lower/core/lower.h"

// One declaration per row. A rule that serves several rows is declared several times, identically.
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    enum ree_status rule(struct ree_lower *lower, struct ree_view *const *in,                      \
                         struct ree_view **out);
#include "graph/lower/ops/ops.def"
#undef OP

// A scalar operation for each family of types; REE_OP_NONE if the operator does not support the
// family. float64 uses f32 (see ree_expr_op1). Signed types narrower than 32 bits use i32, unsigned
// ones u32. bool uses the field `boolean`.
#define REE_OP_NONE REE_N_MAP_OPS
struct ree_typed_op {
    enum ree_map_op f32, i32, u32, i64, u64, boolean;
};
// The member for a type; REE_OP_NONE for types in which no expression computes.
enum ree_map_op ree_typed_op_of(const struct ree_typed_op *op, enum ree_dtype dtype);
// Fails with a message such as "Add of float16 is not supported".
enum ree_status ree_rule_unsupported(struct ree_lower *lower, enum ree_dtype dtype);
#ifdef __clang_analyzer__
#define ree_rule_unsupported(...) ree_never_ok(ree_rule_unsupported(__VA_ARGS__)) // base/status.h
#endif
// Fails with ree_rule_unsupported if `op` has no member for `dtype`.
enum ree_status ree_rule_typed(struct ree_lower *lower, const struct ree_typed_op *op,
                               enum ree_dtype dtype, enum ree_map_op *out);
// in[i], or NULL if it is omitted or beyond the node's inputs.
struct ree_view *ree_rule_input(const struct ree_lower *lower, struct ree_view *const *in,
                                uint32_t i);
bool ree_rule_wants(const struct ree_lower *lower, uint32_t output); // whether the output is used
enum ree_status ree_rule_require_f32(struct ree_lower *lower, const struct ree_view *t);
// Requires float32 or float64: for rules whose steps are expressions and reductions, which support
// both.
enum ree_status ree_rule_require_float(struct ree_lower *lower, const struct ree_view *t);
// Requires that t has the dtype of `as`; fails with "input B is float32[2], expected the type of A,
// int64". `name` and `like` name the two inputs.
enum ree_status ree_rule_same_type(struct ree_lower *lower, const struct ree_view *t,
                                   const char *name, const struct ree_view *as, const char *like);
// Requires `low` to `high` dimensions; `name` is the name in the message.
enum ree_status ree_rule_require_rank(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name, uint32_t low, uint32_t high);
// Requires a vector of n elements; fails with "input scale is float32[3], expected 4 elements".
enum ree_status ree_rule_require_vector(struct ree_lower *lower, const struct ree_view *t,
                                        const char *name, int64_t n);
// Views t[n] as [1, n, 1, ...] of the given rank, so that it broadcasts along axis 1.
enum ree_status ree_rule_channel_view(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                      struct ree_view **out);
// Broadcasting of arithmetic before opset 7: with `broadcast` = 1, b is aligned with a from `axis`
// on (by default at the right). *out is b with dimensions of size 1 appended, so that current
// broadcasting has the same effect.
enum ree_status ree_rule_legacy_broadcast(struct ree_lower *lower, struct ree_view *a,
                                          struct ree_view *b, struct ree_view **out);
// Makes a dense float32 tensor filled with `value`.
enum ree_status ree_rule_fill(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                              float value, struct ree_view **out);
// The sum over the axes in the mask, which are kept with size 1, divided by the number of terms
// (NUMERICS.md: mean).
enum ree_status ree_rule_mean(struct ree_lower *lower, struct ree_view *t, uint32_t axes_mask,
                              enum ree_reduce_kind kind, struct ree_view **out);
// One float operation over one or two broadcast tensors, as a map of its own.
enum ree_status ree_rule_step1(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view **out);
enum ree_status ree_rule_step2(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view *b, struct ree_view **out);

// LogSoftmax of a float32 tensor along one axis.
enum ree_status ree_rule_log_softmax(struct ree_lower *lower, struct ree_view *x, uint32_t axis,
                                     struct ree_view **out);

#endif
