// Helpers of the lowering rules for regions of interest (RoiAlign, MaxRoiPool). Feature maps become
// matrices with one row of channels per position, so that a gather reads whole rows. Regions are
// processed in blocks that fit in memory.
#ifndef REE_GRAPH_LOWER_OPS_SPATIAL_ROI_H
#define REE_GRAPH_LOWER_OPS_SPATIAL_ROI_H

#include "graph/lower/ops/spatial/spatial.h"

#define REE_ROI_MAX_ROWS (INT64_C(1) << 29)

// Copies x (n, channels, height, width), float32, to a dense matrix *out (n * height * width + 1,
// channels): one row per position, and a last row of zeros.
enum ree_status ree_roi_rows(struct ree_lower *lower, struct ree_view *x, struct ree_view **out);
// Sets row i of *out (m, channels), dense, to row index[i] of `rows`. `index` is an int32 tensor of
// m elements; each must be in [0, rows->dims[0]).
enum ree_status ree_roi_gather(struct ree_lower *lower, struct ree_view *rows,
                               struct ree_view *index, struct ree_view **out);
// Returns the number of regions to process in one block if each region has `elements` intermediate
// elements: at least 1.
int64_t ree_roi_block(int64_t elements);
// Fails unless x is float32 (n, channels, height, width) and rois is float32 (regions, columns).
// height and width must be 1 to REE_SAMPLE_MAX_SIZE, and n * height * width must be below
// REE_ROI_MAX_ROWS.
enum ree_status ree_roi_check(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *rois, int64_t columns);

#endif
