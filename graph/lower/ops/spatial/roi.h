// Shared by the rules for regions of interest: feature maps with the channels innermost, so that a
// gather reads whole rows, and regions processed in blocks that fit in memory.
#ifndef REE_GRAPH_LOWER_OPS_SPATIAL_ROI_H
#define REE_GRAPH_LOWER_OPS_SPATIAL_ROI_H

#include "graph/lower/ops/spatial/spatial.h"

#define REE_ROI_MAX_ROWS (INT64_C(1) << 29)

// Converts x to (n * height * width + 1, channels). The last row is zeros.
enum ree_status ree_roi_rows(struct ree_lower *lower, struct ree_view *x, struct ree_view **out);
// Gathers the rows that `index` lists: (m, channels), dense. index is i32 (m); every entry must be
// below rows->dims[0].
enum ree_status ree_roi_gather(struct ree_lower *lower, struct ree_view *rows,
                               struct ree_view *index, struct ree_view **out);
// Number of regions per block if each region has `elements` intermediate elements: at least 1.
int64_t ree_roi_block(int64_t elements);
// Checks that X is (n, channels, height, width) with at least one position and rois is (regions,
// columns), both float32.
enum ree_status ree_roi_check(struct ree_lower *lower, const struct ree_view *x,
                              const struct ree_view *rois, int64_t columns);

#endif
