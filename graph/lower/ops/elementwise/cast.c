// Casts, BitCast and Identity.
#include "graph/lower/ops/control/text.h"
#include "graph/lower/ops/data.h"
#include "repops/scalar/narrow.h"

#include <ctype.h>
#include <string.h>

// Reads from the node's attributes how float8 results round and saturate.
static enum ree_status read_mode(struct ree_lower *lower, struct ree_cast_mode *out) {
    static const char *const names[] = {
        [REE_E8M0_UP] = "up", [REE_E8M0_DOWN] = "down", [REE_E8M0_NEAREST] = "nearest"};
    const char *name = ree_rule_string(lower, "round_mode", "up");
    *out = (struct ree_cast_mode){.no_saturate = !ree_rule_int(lower, "saturate", 1)};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i])) continue;
        out->e8m0_rounding = i;
        return REE_OK;
    }
    return ree_lower_fail(lower, REE_INVALID, "round_mode is '%s', expected up, down or nearest",
                          name);
}

static enum ree_status cast(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                            struct ree_view **out) {
    bool from_text = t->dtype == REE_STRING, to_text = to == REE_STRING;
    if ((from_text && ree_dtype_class(to) != REE_CLASS_NONE) ||
        (to_text && ree_dtype_class(t->dtype) != REE_CLASS_NONE))
        return ree_lower_cast_strings(lower, t, to, out);
    struct ree_cast_mode mode;
    REE_TRY(read_mode(lower, &mode));
    if (t->dtype != to &&
        (ree_dtype_class(t->dtype) == REE_CLASS_NONE || ree_dtype_class(to) == REE_CLASS_NONE))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s from %s to %s is not supported",
                              lower->node->op_type, ree_dtype_name(t->dtype), ree_dtype_name(to));
    return ree_lower_cast_mode(lower, t, to, mode, out);
}

// Before opset 6, the attribute is the name of the type ("FLOAT", as in TensorProto.DataType).
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
    int64_t dtype = ree_rule_int(lower, "to", 0);
    if (dtype < 0 || dtype > 64)
        return ree_lower_fail(lower, REE_INVALID, "attribute 'to' is %lld, which is not a type",
                              (long long)dtype);
    return cast(lower, in[0], (enum ree_dtype)dtype, &out[0]);
}

RULE(cast_like) {
    return cast(lower, in[0], in[1]->dtype, &out[0]);
}

static bool has_nan_payloads(enum ree_dtype dtype) {
    return dtype == REE_F32 || dtype == REE_F64 || dtype == REE_F16 || dtype == REE_BF16 ||
           dtype == REE_F8E4M3FN || dtype == REE_F8E5M2;
}

// Returns the bits of the value, with every NaN replaced by the canonical NaN (NUMERICS.md, section
// 1). The expression uses only integers, and its result is stored as an integer, because a map that
// stores a float may keep a NaN's bits unchanged.
static int canonical_bits(struct ree_expr_builder *b, enum ree_dtype dtype, int x) {
    static const struct {
        enum ree_dtype dtype;
        int32_t magnitude, infinity, nan; // x is a NaN if (x & magnitude) > infinity
    } formats[] = {
        // float8e4m3fn has no infinity, so its entry has the largest number, 0x7E
        {REE_F32, 0x7FFFFFFF, 0x7F800000, 0x7FC00000},
        {REE_F16, 0x7FFF, 0x7C00, 0x7E00},
        {REE_BF16, 0x7FFF, 0x7F80, 0x7FC0},
        {REE_F8E4M3FN, 0x7F, 0x7E, 0x7F},
        {REE_F8E5M2, 0x7F, 0x7C, 0x7E},
    };
    if (dtype == REE_F64) {
        int is_nan = ree_expr_op1(b, REE_MAP_isnan_f64, x);
        return ree_expr_op3(b, REE_MAP_select_b64, is_nan,
                            ree_expr_i64(b, INT64_C(0x7FF8000000000000)), x);
    }
    size_t i = 0;
    while (formats[i].dtype != dtype)
        i++;
    int magnitude = ree_expr_op2(b, REE_MAP_and_b32, x, ree_expr_i32(b, formats[i].magnitude));
    int is_nan = ree_expr_op2(b, REE_MAP_lt_i32, ree_expr_i32(b, formats[i].infinity), magnitude);
    return ree_expr_op3(b, REE_MAP_select_b32, is_nan, ree_expr_i32(b, formats[i].nan), x);
}

// Keeps the bits of the elements, under another type to which ONNX gives the same width. Here a
// type of less than 8 bits uses one byte per element, sign-extended if the type is signed.
RULE(bit_cast) {
    int64_t number = ree_rule_int(lower, "to", 0);
    enum ree_dtype from = in[0]->dtype, to = (enum ree_dtype)number;
    if (number <= 0 || number > 64 || ree_dtype_size(to) == 0)
        return ree_lower_fail(lower, REE_INVALID,
                              "attribute 'to' is %lld, expected a type with a size",
                              (long long)number);
    if (ree_dtype_bits(from) != ree_dtype_bits(to))
        return ree_lower_fail(
            lower, REE_INVALID,
            "cannot cast the bits of %s, which has %u bits, to %s, which has %u bits",
            ree_dtype_name(from), ree_dtype_bits(from), ree_dtype_name(to), ree_dtype_bits(to));
    if (to == REE_BOOL && from != REE_BOOL)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "cannot cast the bits of %s to bool: only 0 and 1 are valid",
                              ree_dtype_name(from));
    struct ree_view *t = in[0];
    if (from != to && has_nan_payloads(from)) {
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, t->rank, t->dims);
        return ree_lower_map(&b, canonical_bits(&b, from, ree_expr_tensor(&b, t)), to, &out[0]);
    }
    if (ree_dtype_bits(to) < 8) {
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, t->rank, t->dims);
        // The bits of a float4e2m1 are stored like those of a uint4.
        enum ree_dtype as = to == REE_F4E2M1 ? REE_U4 : to;
        int value = ree_expr_wrap(&b, as, ree_expr_tensor(&b, t));
        return ree_lower_map(&b, value, to, &out[0]);
    }
    return ree_data_reinterpret(lower, t, to, &out[0]);
}

RULE(identity) {
    (void)lower;
    out[0] = in[0];
    return REE_OK;
}
