// CumSum and CumProd: one `scan` along the middle of (outer, k, inner).
#include "graph/lower/ops/data.h"

#include <string.h>

static enum ree_status scan(struct ree_lower *lower, struct ree_view *const *in, bool product,
                            struct ree_view **out) {
    struct ree_view *t = in[0];
    enum ree_dtype dtype = t->dtype, wide = ree_data_wide(dtype);
    if (wide != REE_F32 && wide != REE_F64 && wide != REE_I32 && wide != REE_U32 &&
        wide != REE_I64 && wide != REE_U64)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s is not supported", ree_dtype_name(dtype));
    int64_t axis_value;
    uint32_t axis;
    REE_TRY(ree_data_int(lower, in[1], "axis", &axis_value));
    REE_TRY(ree_lower_axis(lower, axis_value, t->rank, &axis));
    REE_TRY(ree_lower_cast(lower, t, wide, &t));
    REE_TRY(ree_lower_dense(lower, t, &t));
    struct ree_view *result;
    REE_TRY(ree_lower_new(lower, wide, t->rank, t->dims, &result));
    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_scan_params *p = &params.scan;
    p->product = product;
    p->dtype = (uint32_t)wide;
    p->outer = p->inner = 1;
    for (uint32_t i = 0; i < axis; i++)
        p->outer *= (uint32_t)t->dims[i];
    p->k = (uint32_t)t->dims[axis];
    for (uint32_t i = axis + 1; i < t->rank; i++)
        p->inner *= (uint32_t)t->dims[i];
    p->exclusive = ree_node_int(lower->node, "exclusive", 0) != 0;
    p->reverse = ree_node_int(lower->node, "reverse", 0) != 0;
    struct ree_view *operands[2] = {t, result};
    REE_TRY(ree_lower_emit(lower, REE_REPOP_SCAN, &params, operands, 2, 1));
    return ree_lower_cast(lower, result, dtype, out);
}

enum ree_status ree_lower_op_cumsum(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    return scan(lower, in, false, &out[0]);
}

enum ree_status ree_lower_op_cumprod(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    return scan(lower, in, true, &out[0]);
}
