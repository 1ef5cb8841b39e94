// Products with fused operations: FusedMatMul, FusedGemm, FusedConv; and NhwcMaxPool.
#include "graph/lower/ops/contrib/standard.h"

// Arranges one operand of FusedMatMul. transBatch moves the first dimension to the last but one:
// (d0, d1, ..., k) becomes (d1, ..., d0, k). trans then swaps the last two dimensions. Vectors are
// unchanged.
static enum ree_status arrange(struct ree_lower *lower, struct ree_view *t, const char *trans,
                               const char *trans_batch, struct ree_view **out) {
    uint32_t perm[REE_MAX_RANK], rank = t->rank;
    *out = t;
    if (rank < 2) return REE_OK;
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    if (ree_rule_int(lower, trans_batch, 0)) {
        for (uint32_t i = 0; i + 2 < rank; i++)
            perm[i] = i + 1;
        perm[rank - 2] = 0;
    }
    if (ree_rule_int(lower, trans, 0)) {
        uint32_t last = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = last;
    }
    return ree_lower_transpose(lower, t, perm, out);
}

// Computes alpha * (A B). alpha = 1 does not change any bit and is omitted.
RULE(ms_fused_mat_mul) {
    struct ree_standard product = {.type = "MatMul", .opset = 13};
    float alpha = ree_rule_float(lower, "alpha", 1);
    REE_TRY(ree_rule_require_f32(lower, in[0]));
    REE_TRY(arrange(lower, in[0], "transA", "transBatchA", &product.in[0]));
    REE_TRY(arrange(lower, in[1], "transB", "transBatchB", &product.in[1]));
    REE_TRY(ree_standard_step(lower, &product, 1, out));
    if (alpha == 1) return REE_OK;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, out[0]->rank, out[0]->dims);
    int value = ree_expr_tensor(&b, out[0]);
    value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_f32(&b, alpha));
    return ree_lower_map(&b, value, REE_F32, &out[0]);
}

// FusedGemm has the attributes of Gemm, so the rule of Gemm can read them from this node.
RULE(ms_fused_gemm) {
    const struct ree_node *node = lower->node;
    const char *name = ree_rule_string(lower, "activation", "");
    static const char *const attrs[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    float params[2];
    size_t n = 0;
    // Selu has alpha and gamma. Other activations have no parameter, alpha, or alpha and beta.
    // Collects those present, in this order.
    for (size_t i = 0; i < 3 && n < 2; i++) {
        const struct ree_attr *attr = ree_node_attr(node, attrs[i]);
        if (attr && attr->kind == REE_ATTR_FLOAT) params[n++] = attr->f;
    }
    REE_TRY(ree_rule_require_f32(lower, in[0]));
    REE_TRY(ree_lower_op_gemm(lower, in, out));
    return ree_contrib_activation(lower, name, n, params, out[0], &out[0]);
}

// Computes activation(Conv + Z). Conv includes its bias and reads its attributes from this node.
RULE(ms_fused_conv) {
    struct ree_view *z = ree_rule_input(lower, in, 3);
    size_t n;
    const float *params = ree_rule_floats(lower, "activation_params", &n);
    REE_TRY(ree_lower_op_conv(lower, in, out));
    if (z) {
        char text[128], want[128];
        bool same = z->dtype == out[0]->dtype && z->rank == out[0]->rank;
        for (uint32_t i = 0; same && i < z->rank; i++)
            same = z->dims[i] == out[0]->dims[i];
        if (!same)
            return ree_lower_fail(lower, REE_INVALID, "input Z is %s, expected %s like the output",
                                  ree_view_text(z, text, sizeof text),
                                  ree_view_text(out[0], want, sizeof want));
    }
    REE_TRY(ree_contrib_add(lower, out[0], z, &out[0]));
    return ree_contrib_activation(lower, ree_rule_string(lower, "activation", ""), n, params,
                                  out[0], &out[0]);
}

// MaxPool for the layout (n, sizes..., channels).
RULE(ms_nhwc_max_pool) {
    struct ree_view *x = in[0];
    uint32_t perm[REE_MAX_RANK];
    REE_TRY(ree_rule_require_rank(lower, x, "x", 3, 5));
    perm[0] = 0;
    perm[1] = x->rank - 1;
    for (uint32_t i = 2; i < x->rank; i++)
        perm[i] = i - 1;
    REE_TRY(ree_lower_transpose(lower, x, perm, &x));
    REE_TRY(ree_lower_op_max_pool(lower, &x, out));
    for (uint32_t i = 1; i + 1 < x->rank; i++)
        perm[i] = i + 1;
    perm[x->rank - 1] = 1;
    return ree_lower_transpose(lower, out[0], perm, &out[0]);
}
