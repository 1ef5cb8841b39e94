// What RoiAlign and MaxRoiPool share: the input as rows of channels, gathers of rows, the size of
// blocks, and the checks of the inputs.
#include "graph/lower/ops/spatial/roi.h"

#define BLOCK_ELEMENTS (INT64_C(1) << 24) // 64 MiB

enum ree_status ree_roi_rows(struct ree_lower *lower, struct ree_view *x, struct ree_view **out) {
    int64_t n = x->dims[0], channels = x->dims[1], height = x->dims[2], width = x->dims[3];
    int64_t rows = n * height * width, dims[2] = {rows + 1, channels};
    const float zero = 0;
    struct ree_view *turned, *place, *scalar, *filling;
    REE_TRY(ree_lower_new(lower, REE_F32, 2, dims, out));
    REE_TRY(ree_lower_transpose(lower, x, (uint32_t[]){0, 2, 3, 1}, &turned));
    REE_TRY(ree_lower_slice(lower, *out, 0, 0, 1, rows, &place));
    REE_TRY(ree_lower_reshape(lower, place, 4, turned->dims, &place));
    REE_TRY(ree_lower_copy_into(lower, turned, place));
    REE_TRY(ree_lower_literal(lower, REE_F32, 0, NULL, &zero, &scalar));
    REE_TRY(ree_lower_slice(lower, *out, 0, rows, 1, 1, &place));
    REE_TRY(ree_lower_broadcast(lower, scalar, 2, place->dims, &filling));
    return ree_lower_copy_into(lower, filling, place);
}

enum ree_status ree_roi_gather(struct ree_lower *lower, struct ree_view *rows,
                               struct ree_view *index, struct ree_view **out) {
    struct ree_gather_params p = {.n_components = 1};
    p.data_strides[1] = 1;
    p.index_strides[0] = 1;
    p.component_sizes[0] = (uint32_t)rows->dims[0];
    p.component_strides[0] = (int32_t)rows->dims[1];
    return ree_data_emit_gather(lower, rows, index, &p, 2,
                                (int64_t[]){ree_view_count(index), rows->dims[1]}, out);
}

int64_t ree_roi_block(int64_t elements) {
    return elements < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / elements : 1;
}

enum ree_status ree_roi_check(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *rois, int64_t columns) {
    char text[128];
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 4, 4));
    REE_TRY(ree_rule_same_type(lower, rois, "rois", x, "X"));
    if (rois->rank != 2 || rois->dims[1] != columns)
        return ree_lower_fail(lower, REE_INVALID, "input rois is %s, expected (regions, %lld)",
                              ree_view_text(rois, text, sizeof text), (long long)columns);
    for (uint32_t i = 2; i < 4; i++)
        if (x->dims[i] < 1 || x->dims[i] > REE_SAMPLE_MAX_SIZE)
            return ree_lower_fail(lower, REE_INVALID,
                                  "X has size %lld along axis %u, expected 1 "
                                  "to %lld",
                                  (long long)x->dims[i], i, (long long)REE_SAMPLE_MAX_SIZE);
    int64_t rows;
    if (!ree_count_elements(3, (int64_t[]){x->dims[0], x->dims[2], x->dims[3]}, &rows) ||
        rows >= REE_ROI_MAX_ROWS)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "X has 2^29 positions or more");
    return REE_OK;
}
