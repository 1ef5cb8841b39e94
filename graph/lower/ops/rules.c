// Checks and small steps that many rules use.
#include "graph/lower/ops/rules.h"

#include <string.h>

enum ree_map_op ree_typed_op_of(const struct ree_typed_op *op, enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32:
    case REE_F64: return op->f32; // float64 if an argument is float64: see ree_expr_op1
    case REE_I8:
    case REE_I16:
    case REE_I32: return op->i32;
    case REE_U8:
    case REE_U16:
    case REE_U32: return op->u32;
    case REE_I64: return op->i64;
    case REE_U64: return op->u64;
    case REE_BOOL: return op->boolean;
    default: return REE_OP_NONE;
    }
}

#undef ree_rule_unsupported // the header wraps this function for clang's analyzer
enum ree_status ree_rule_unsupported(struct ree_lower *lower, enum ree_dtype dtype) {
    return ree_lower_fail(lower, REE_UNSUPPORTED, "%s of %s is not supported", lower->node->op_type,
                          ree_dtype_name(dtype));
}

enum ree_status ree_rule_typed(struct ree_lower *lower, const struct ree_typed_op *op,
                               enum ree_dtype dtype, enum ree_map_op *out) {
    *out = ree_typed_op_of(op, dtype);
    return *out == REE_OP_NONE ? ree_rule_unsupported(lower, dtype) : REE_OK;
}

struct ree_view *ree_rule_input(const struct ree_lower *lower, struct ree_view *const *in,
                                uint32_t i) {
    return i < lower->node->n_inputs ? in[i] : NULL;
}

bool ree_rule_wants(const struct ree_lower *lower, uint32_t output) {
    return output < lower->node->n_outputs && lower->node->outputs[output];
}

enum ree_status ree_rule_require_f32(struct ree_lower *lower, const struct ree_view *t) {
    return t->dtype == REE_F32 ? REE_OK : ree_rule_unsupported(lower, t->dtype);
}

enum ree_status ree_rule_require_float(struct ree_lower *lower, const struct ree_view *t) {
    if (t->dtype == REE_F32 || t->dtype == REE_F64) return REE_OK;
    return ree_rule_unsupported(lower, t->dtype);
}

enum ree_status ree_rule_same_type(struct ree_lower *lower, const struct ree_view *t,
                                   const char *name, const struct ree_view *as, const char *like) {
    if (t->dtype == as->dtype) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %s like input %s", name,
                          ree_dtype_name(t->dtype), ree_dtype_name(as->dtype), like);
}

enum ree_status ree_rule_require_rank(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name, uint32_t low, uint32_t high) {
    if (t->rank >= low && t->rank <= high) return REE_OK;
    if (low == high)
        return ree_lower_fail(lower, REE_INVALID, "input %s has rank %u, expected %u", name,
                              t->rank, low);
    if (high >= REE_MAX_RANK)
        return ree_lower_fail(lower, REE_INVALID, "input %s has rank %u, expected at least %u",
                              name, t->rank, low);
    return ree_lower_fail(lower, t->rank > high ? REE_UNSUPPORTED : REE_INVALID,
                          "input %s has rank %u, expected %u to %u", name, t->rank, low, high);
}

enum ree_status ree_rule_require_vector(struct ree_lower *lower, const struct ree_view *t,
                                        const char *name, int64_t n) {
    char text[128];
    if (t->rank == 1 && t->dims[0] == n) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %lld elements", name,
                          ree_view_text(t, text, sizeof text), (long long)n);
}

enum ree_status ree_rule_channel_view(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                      struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == 1 ? ree_view_count(t) : 1;
    return ree_lower_reshape(lower, t, rank, dims, out);
}

enum ree_status ree_rule_legacy_broadcast(struct ree_lower *lower, struct ree_view *a,
                                          struct ree_view *b, struct ree_view **out) {
    *out = b;
    if (lower->node->opset >= 7 || !ree_node_int(lower->node, "broadcast", 0)) return REE_OK;
    if (!ree_node_attr(lower->node, "axis") || b->rank == 0) return REE_OK;
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_node_int(lower->node, "axis", 0), a->rank, &axis));
    if (b->rank > a->rank - axis)
        return ree_lower_fail(
            lower, REE_INVALID,
            "input B has rank %u, expected at most %u, the rank of A from axis %u on", b->rank,
            a->rank - axis, axis);
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < a->rank - axis; i++)
        dims[i] = i < b->rank ? b->dims[i] : 1;
    return ree_lower_reshape(lower, b, a->rank - axis, dims, out);
}

enum ree_status ree_rule_fill(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                              float value, struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    return ree_lower_map(&b, ree_expr_f32(&b, value), REE_F32, out);
}

enum ree_status ree_rule_mean(struct ree_lower *lower, struct ree_view *t, uint32_t axes_mask,
                              enum ree_reduce_kind kind, struct ree_view **out) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (axes_mask >> i & 1) n *= t->dims[i];
    struct ree_view *sum;
    REE_TRY(ree_lower_reduce(lower, t, kind, axes_mask, true, false, &sum));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, sum->rank, sum->dims);
    int mean = ree_expr_op2(&b, REE_MAP_div_f32, ree_expr_tensor(&b, sum),
                            ree_expr_number(&b, t->dtype, n));
    return ree_lower_map(&b, mean, REE_F32, out);
}

enum ree_status ree_rule_step1(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, a->rank, a->dims);
    return ree_lower_map(&b, ree_expr_op1(&b, op, ree_expr_tensor(&b, a)), REE_F32, out);
}

enum ree_status ree_rule_step2(struct ree_lower *lower, enum ree_map_op op, struct ree_view *a,
                               struct ree_view *b, struct ree_view **out) {
    struct ree_view *both[2] = {a, b};
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_lower_broadcast_dims(lower, 2, both, &rank, dims));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, rank, dims);
    int x = ree_expr_tensor(&e, a), y = ree_expr_tensor(&e, b);
    return ree_lower_map(&e, ree_expr_op2(&e, op, x, y), REE_F32, out);
}
