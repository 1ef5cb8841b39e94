// What the rules for regions of interest share: feature maps with the channels innermost, of which
// a gather takes whole rows, and the regions cut into blocks that fit in memory.
#ifndef REE_GRAPH_LOWER_SPATIAL_ROI_H
#define REE_GRAPH_LOWER_SPATIAL_ROI_H

#include "graph/lower/spatial/spatial.h"

#define REE_ROI_MAX_ROWS (INT64_C(1) << 29)

// x (n, channels, height, width) as (n * height * width + 1, channels); the last row is zeros.
enum ree_status ree_roi_rows(struct ree_lower *lower, struct ree_tval *x, struct ree_tval **out);
// The rows that index (m) i32 names, dense, each below rows->dims[0]: (m, channels).
enum ree_status ree_roi_gather(struct ree_lower *lower, struct ree_tval *rows,
                               struct ree_tval *index, struct ree_tval **out);
// How many regions to do at once when each takes `elements` of memory: at least 1.
int64_t ree_roi_block(int64_t elements);
// X is (n, channels, height, width) with positions; rois (regions, columns); both float32.
enum ree_status ree_roi_check(struct ree_lower *lower, const struct ree_tval *x,
                              const struct ree_tval *rois, int64_t columns);

#endif
