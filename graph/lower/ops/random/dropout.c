// Dropout: at inference returns the input; in training drops elements at random and scales the
// others.
#include "graph/lower/ops/random/random.h"

#include "base/dtype.h"

// Reads whether the node trains. Since opset 12, an input selects training.
static enum ree_status read_mode(struct ree_lower *lower, struct ree_view *mode, bool *out) {
    *out = false;
    if (!mode) return REE_OK;
    if (mode->dtype != REE_BOOL || ree_view_count(mode) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input training_mode is %s, expected one bool",
                              ree_dtype_name(mode->dtype));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, mode, &bytes));
    *out = *(const uint8_t *)bytes != 0;
    return REE_OK;
}

// Reads the ratio as a float32 scalar; 0.5 if it is absent. Its type may differ from the data's
// type.
static enum ree_status read_ratio(struct ree_lower *lower, struct ree_view *ratio,
                                  struct ree_view **out) {
    char text[128];
    if (!ratio) return ree_lower_literal(lower, REE_F32, 0, NULL, &(float){0.5f}, out);
    bool is_float = ratio->dtype == REE_F32 || ratio->dtype == REE_F16 ||
                    ratio->dtype == REE_BF16 || ratio->dtype == REE_F64;
    if (!is_float || ree_view_count(ratio) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input ratio is %s, expected one float",
                              ree_view_text(ratio, text, sizeof text));
    REE_TRY(ree_lower_reshape(lower, ratio, 0, NULL, out));
    return ratio->dtype == REE_F32 ? REE_OK : ree_lower_cast(lower, *out, REE_F32, out);
}

// For a uniform random number u per element: keeps the element, multiplied by 1 / (1 - ratio), if
// ratio <= u; else makes it 0.
static enum ree_status drop(struct ree_lower *lower, struct ree_view *x, struct ree_view *ratio,
                            struct ree_view **out) {
    struct ree_view *scale, *data = x;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 0, NULL);
    int rest = ree_expr_op2(&b, REE_MAP_sub_f32, ree_expr_f32(&b, 1), ree_expr_tensor(&b, ratio));
    REE_TRY(ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_div_f32, ree_expr_f32(&b, 1), rest), REE_F32,
                          &scale));
    ree_expr_init(&b, lower, x->rank, x->dims);
    int keep = ree_expr_op2(&b, REE_MAP_le_f32, ree_expr_tensor(&b, ratio), ree_random_uniform(&b));
    REE_TRY(ree_lower_map(&b, keep, REE_BOOL, &out[1]));
    if (x->dtype != REE_F32) REE_TRY(ree_lower_cast(lower, x, REE_F32, &data));
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value =
        ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, data), ree_expr_tensor(&b, scale));
    value = ree_expr_select(&b, REE_F32, ree_expr_tensor(&b, out[1]), value, ree_expr_f32(&b, 0));
    REE_TRY(ree_lower_map(&b, value, REE_F32, &out[0]));
    return x->dtype == REE_F32 ? REE_OK : ree_lower_cast(lower, out[0], x->dtype, &out[0]);
}

// The mask is bool; before opset 10 it has the data's type.
enum ree_status ree_lower_op_dropout(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    bool training;
    REE_TRY(read_mode(lower, ree_rule_input(lower, in, 2), &training));
    struct ree_view *results[2] = {in[0], NULL};
    if (training) {
        struct ree_view *ratio;
        if (!ree_dtype_is_float(in[0]->dtype)) return ree_rule_unsupported(lower, in[0]->dtype);
        REE_TRY(read_ratio(lower, ree_rule_input(lower, in, 1), &ratio));
        REE_TRY(drop(lower, in[0], ratio, results));
    } else if (ree_rule_wants(lower, 1)) {
        enum ree_dtype dtype = lower->node->opset >= 10 ? REE_BOOL : in[0]->dtype;
        if (dtype == REE_STRING) return ree_rule_unsupported(lower, dtype);
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
        int one = ree_expr_cast(&b, ree_expr_f32(&b, 1), REE_F32, dtype);
        REE_TRY(ree_lower_map(&b, one, dtype, &results[1]));
    }
    for (uint32_t i = 0; i < 2; i++)
        if (ree_rule_wants(lower, i)) out[i] = results[i];
    return REE_OK;
}
