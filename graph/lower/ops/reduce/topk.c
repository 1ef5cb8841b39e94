// TopK: one `topk` along the middle of (outer, n, inner), always sorted.
#include "graph/lower/ops/data.h"

#include <string.h>

enum ree_status ree_lower_op_topk(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    const struct ree_node *node = lower->node;
    struct ree_view *t = in[0], *k_input = ree_rule_input(lower, in, 1);
    enum ree_dtype dtype = t->dtype, wide = ree_data_wide(dtype);
    if (!ree_data_is_ordered(wide))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s is not supported", ree_dtype_name(dtype));
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_node_int(node, "axis", -1), t->rank, &axis));
    int64_t k = ree_node_int(node, "k", -1);
    if (k_input) REE_TRY(ree_data_int(lower, k_input, "k", &k));
    if (k < 0 || k > t->dims[axis]) {
        char text[128];
        return ree_lower_fail(lower, REE_INVALID, "k is %lld, but axis %u of %s has %lld elements",
                              (long long)k, axis, ree_view_text(t, text, sizeof text),
                              (long long)t->dims[axis]);
    }
    REE_TRY(ree_lower_cast(lower, t, wide, &t));
    REE_TRY(ree_lower_dense(lower, t, &t));
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    dims[axis] = k;
    struct ree_view *values, *indices;
    REE_TRY(ree_lower_new(lower, wide, t->rank, dims, &values));
    REE_TRY(ree_lower_new(lower, REE_I64, t->rank, dims, &indices));
    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_topk_params *p = &params.topk;
    p->dtype = (uint32_t)wide;
    p->outer = p->inner = 1;
    for (uint32_t i = 0; i < axis; i++)
        p->outer *= (uint32_t)t->dims[i];
    p->n = (uint32_t)t->dims[axis];
    for (uint32_t i = axis + 1; i < t->rank; i++)
        p->inner *= (uint32_t)t->dims[i];
    p->k = (uint32_t)k;
    p->largest = ree_node_int(node, "largest", 1) != 0;
    struct ree_view *operands[3] = {t, values, indices};
    REE_TRY(ree_lower_emit(lower, REE_REPOP_TOPK, &params, operands, 3, 2));
    if (node->n_outputs > 0) REE_TRY(ree_lower_cast(lower, values, dtype, &out[0]));
    if (node->n_outputs > 1) out[1] = indices;
    return REE_OK;
}
