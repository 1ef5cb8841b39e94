// BlackmanWindow, HammingWindow, HannWindow: sums of cosines of an element's index, in the order of
// operations of the ONNX function definitions.
#include "graph/lower/ops/data.h"

// Element i of n is (a0 - a1 cos t) + a2 cos 2t with t = 2 pi i / n if the window is periodic, else
// t = 2 pi i / (n - 1). If a2 = 0, the last step is omitted.
static enum ree_status window(struct ree_lower *lower, struct ree_view *size, float a0, float a1,
                              float a2, struct ree_view **out) {
    int64_t n;
    REE_TRY(ree_data_int(lower, size, "size", &n));
    if (n < 0 || n > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "size is %lld, expected 0 or more", (long long)n);
    bool periodic = ree_rule_int(lower, "periodic", 1) != 0;
    int64_t dtype = ree_rule_int(lower, "output_datatype", REE_F32);
    float length = periodic ? (float)n : (float)n - 1, step = 0x1.921fb6p+2f / length;
    struct ree_expr_builder b;
    struct ree_view *values;
    ree_expr_init(&b, lower, 1, &n);
    int i = ree_expr_op1(&b, REE_MAP_i32_to_f32, ree_expr_iota(&b, REE_I32, 0, &(int64_t){1}));
    int t = ree_expr_op2(&b, REE_MAP_mul_f32, i, ree_expr_f32(&b, step));
    int first = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_f32(&b, a1),
                             ree_expr_op1(&b, REE_MAP_cos_f32, t));
    int value = ree_expr_op2(&b, REE_MAP_sub_f32, ree_expr_f32(&b, a0), first);
    if (a2 != 0) {
        int twice = ree_expr_op2(&b, REE_MAP_mul_f32, t, ree_expr_f32(&b, 2));
        int second = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_f32(&b, a2),
                                  ree_expr_op1(&b, REE_MAP_cos_f32, twice));
        value = ree_expr_op2(&b, REE_MAP_add_f32, value, second);
    }
    REE_TRY(ree_lower_map(&b, value, REE_F32, &values));
    return ree_lower_cast(lower, values, (enum ree_dtype)dtype, out);
}

RULE(blackman_window) {
    return window(lower, in[0], 0.42f, 0.5f, 0.08f, &out[0]);
}

RULE(hamming_window) {
    return window(lower, in[0], 0x1.1642c8p-1f, 0x1.d37a7p-2f, 0, &out[0]); // 25/46 and 1 - 25/46
}

RULE(hann_window) {
    return window(lower, in[0], 0.5f, 0.5f, 0, &out[0]);
}
