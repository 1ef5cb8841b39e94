// Casts, and operators that give back their input at inference.
#include "graph/lower/rules.h"

#include <ctype.h>
#include <string.h>

#define RULE(name)                                                                                 \
    enum ree_status ree_lower_op_##name(struct ree_lower *lower, struct ree_tval *const *in,       \
                                        struct ree_tval **out)

static bool can_cast(enum ree_dtype t) {
    return ree_dtype_class(t) != REE_CLASS_NONE && t != REE_F64;
}

static enum ree_status cast(struct ree_lower *lower, struct ree_tval *t, enum ree_dtype to,
                            struct ree_tval **out) {
    if (t->dtype != to && (!can_cast(t->dtype) || !can_cast(to)))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s from %s to %s is not supported",
                              lower->node->op_type, ree_dtype_name(t->dtype), ree_dtype_name(to));
    return ree_lower_cast(lower, t, to, out);
}

// Before opset 6 the type is written out ("FLOAT", as in TensorProto.DataType).
static enum ree_dtype type_by_name(const char *name) {
    static const struct {
        const char *name;
        enum ree_dtype dtype;
    } names[] = {
        {"float", REE_F32},  {"uint8", REE_U8},    {"int8", REE_I8},    {"uint16", REE_U16},
        {"int16", REE_I16},  {"int32", REE_I32},   {"int64", REE_I64},  {"string", REE_STRING},
        {"bool", REE_BOOL},  {"float16", REE_F16}, {"double", REE_F64}, {"uint32", REE_U32},
        {"uint64", REE_U64},
    };
    char low[16] = {0};
    for (size_t i = 0; i + 1 < sizeof low && name[i]; i++)
        low[i] = (char)tolower((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(low, names[i].name)) return names[i].dtype;
    return REE_DTYPE_NONE;
}

RULE(cast) {
    const struct ree_attr *to = ree_node_attr(lower->node, "to");
    if (!to) return ree_lower_fail(lower, REE_INVALID, "attribute 'to' is missing");
    if (to->kind == REE_ATTR_STRING) return cast(lower, in[0], type_by_name(to->s), &out[0]);
    if (to->i < 0 || to->i > 64)
        return ree_lower_fail(lower, REE_INVALID, "attribute 'to' is %lld, which is no type",
                              (long long)to->i);
    return cast(lower, in[0], (enum ree_dtype)to->i, &out[0]);
}

RULE(cast_like) {
    return cast(lower, in[0], in[1]->dtype, &out[0]);
}

RULE(identity) {
    (void)lower;
    out[0] = in[0];
    return REE_OK;
}

// At inference nothing is dropped, and the mask (of bool; of the data's type before opset 10) is
// all ones. Training, asked for by an input since opset 12, is refused.
RULE(dropout) {
    struct ree_tval *mode = ree_rule_input(lower, in, 2);
    if (mode) {
        const void *bytes;
        if (mode->dtype != REE_BOOL || ree_tval_count(mode) != 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "input training_mode is %s, expected one bool",
                                  ree_dtype_name(mode->dtype));
        REE_TRY(ree_lower_host(lower, mode, &bytes));
        struct ree_tval *ratio = ree_rule_input(lower, in, 1);
        float rate = 0.5f;
        if (*(const uint8_t *)bytes && ratio)
            REE_TRY(ree_lower_host_float(lower, ratio, "ratio", &rate));
        if (*(const uint8_t *)bytes && rate != 0)
            return ree_lower_fail(lower, REE_UNSUPPORTED, "training_mode is not supported");
    }
    out[0] = in[0];
    if (!ree_rule_wants(lower, 1)) return REE_OK;
    enum ree_dtype dtype = lower->node->opset >= 10 ? REE_BOOL : in[0]->dtype;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    return ree_lower_map(&b, ree_expr_number(&b, dtype, 1), dtype, &out[1]);
}
