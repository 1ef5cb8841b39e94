// Shared by the rules of all operators: their declarations, the choice of a scalar operation by
// type, and common checks.
#ifndef REE_GRAPH_LOWER_OPS_RULES_H
#define REE_GRAPH_LOWER_OPS_RULES_H

#include "graph/lower/core/lower.h"

// Declares the rule of each row of the operator table. A rule that serves several rows is declared
// several times, identically.
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    enum ree_status rule(struct ree_lower *lower, struct ree_view *const *in,                      \
                         struct ree_view **out);
#include "graph/lower/ops/ops.def"
#undef OP

// Begins the definition of the rule ree_lower_op_NAME.
#define RULE(name)                                                                                 \
    enum ree_status ree_lower_op_##name(struct ree_lower *lower, struct ree_view *const *in,       \
                                        struct ree_view **out)

// The scalar operation of an operator for each family of types; REE_OP_NONE if the operator does
// not support the family. float64 uses f32 (see ree_expr_op1). Signed types narrower than 32 bits
// use i32, unsigned ones u32. bool uses `boolean`.
#define REE_OP_NONE REE_N_MAP_OPS
struct ree_typed_op {
    enum ree_map_op f32, i32, u32, i64, u64, boolean;
};
// Returns the operation for a type; REE_OP_NONE for types with which expressions do not compute.
enum ree_map_op ree_typed_op_of(const struct ree_typed_op *op, enum ree_dtype dtype);
// Fails with a message such as "Add of float16 is not supported".
enum ree_status ree_rule_unsupported(struct ree_lower *lower, enum ree_dtype dtype);
#ifdef __clang_analyzer__
#define ree_rule_unsupported(...) ree_never_ok(ree_rule_unsupported(__VA_ARGS__)) // base/status.h
#endif
// Sets *out to the operation for `dtype`; fails with ree_rule_unsupported if there is none.
enum ree_status ree_rule_typed(struct ree_lower *lower, const struct ree_typed_op *op,
                               enum ree_dtype dtype, enum ree_map_op *out);
// Read an attribute of the node being lowered. Return `fallback` if the attribute is absent or of
// another kind. An attribute of another kind also makes the node fail after its rule has returned.
int64_t ree_rule_int(struct ree_lower *lower, const char *name, int64_t fallback);
float ree_rule_float(struct ree_lower *lower, const char *name, float fallback);
const char *ree_rule_string(struct ree_lower *lower, const char *name, const char *fallback);
// Return the array of an attribute and its length in *out_n; NULL and 0 if it is absent or of
// another kind.
const int64_t *ree_rule_ints(struct ree_lower *lower, const char *name, size_t *out_n);
const float *ree_rule_floats(struct ree_lower *lower, const char *name, size_t *out_n);

// Returns in[i], or NULL if the input is omitted or i is not below the number of inputs.
struct ree_view *ree_rule_input(const struct ree_lower *lower, struct ree_view *const *in,
                                uint32_t i);
// Returns whether the node has this output and names it.
bool ree_rule_wants(const struct ree_lower *lower, uint32_t output);
enum ree_status ree_rule_require_f32(struct ree_lower *lower, const struct ree_view *t);
// Requires float32 or float64. For rules whose steps are expressions and reductions, which support
// both types.
enum ree_status ree_rule_require_float(struct ree_lower *lower, const struct ree_view *t);
// Requires that t has the dtype of `as`; fails with "input B is float32, expected int64 like input
// A". `name` (B) and `like` (A) name the two inputs.
enum ree_status ree_rule_same_type(struct ree_lower *lower, const struct ree_view *t,
                                   const char *name, const struct ree_view *as, const char *like);
// Requires a rank from `low` to `high`. `name` names the input in the message.
enum ree_status ree_rule_require_rank(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name, uint32_t low, uint32_t high);
// Requires a vector of n elements; fails with "input scale is float32[3], expected 4 elements".
enum ree_status ree_rule_require_vector(struct ree_lower *lower, const struct ree_view *t,
                                        const char *name, int64_t n);
// Views t, a vector of n elements, as [1, n, 1, ...] of the given rank, so that it broadcasts along
// axis 1.
enum ree_status ree_rule_channel_view(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                      struct ree_view **out);
// Views b so that current broadcasting has the effect of the broadcasting before opset 7: with the
// attribute `broadcast` = 1, b is aligned with a from `axis` on (by default at the right). *out is
// b with dimensions of size 1 appended.
enum ree_status ree_rule_legacy_broadcast(struct ree_lower *lower, struct ree_view *a,
                                          struct ree_view *b, struct ree_view **out);
// Makes a dense float32 tensor filled with `value`.
enum ree_status ree_rule_fill(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                              float value, struct ree_view **out);
// Makes the mean of t (NUMERICS.md: mean) over the axes in the mask, which are kept with size 1:
// the reduction `kind`, a sum or a sum of squares, divided by the number of terms.
enum ree_status ree_rule_mean(struct ree_lower *lower, struct ree_view *t, uint32_t axes_mask,
                              enum ree_reduce_kind kind, struct ree_view **out);
// Apply one float operation to one tensor, or to two tensors that broadcast, as a map of its own.
enum ree_status ree_rule_step1(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view **out);
enum ree_status ree_rule_step2(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view *b, struct ree_view **out);

// Makes the LogSoftmax of a float32 tensor along one axis.
enum ree_status ree_rule_log_softmax(struct ree_lower *lower, struct ree_view *x, uint32_t axis,
                                     struct ree_view **out);

#endif
