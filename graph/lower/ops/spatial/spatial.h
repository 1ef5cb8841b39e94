// Helpers of the lowering rules for images and geometry: they add borders of zeros, and sample
// planes at fractional coordinates.
#ifndef REE_GRAPH_LOWER_SPATIAL_H
#define REE_GRAPH_LOWER_SPATIAL_H

#include "graph/lower/ops/data.h"

// Sets *out to a new dense tensor of zeros of the given type and dimensions.
enum ree_status ree_spatial_zeros(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out);
// Sets *out to t with before[i] zeros before and after[i] zeros behind its elements along axis i,
// or to t itself if all are 0.
enum ree_status ree_spatial_border(struct ree_lower *lower, struct ree_view *t,
                                   const int64_t *before, const int64_t *after,
                                   struct ree_view **out);

// Sampling (sample.c) reads a plane of one to three axes at float32 coordinates, in units of
// elements; 0.0 is the centre of the first element. Dispatches of `map` compute all that depends on
// the coordinates, so the coordinates may be known only on the device.
#define REE_SAMPLE_AXES 3
// Maximum elements along an axis: float32 coordinates cannot select every element of a longer one.
#define REE_SAMPLE_MAX_SIZE (INT64_C(1) << 24)

enum ree_sample_outside {
    REE_SAMPLE_ZERO,          // elements outside of the plane are 0
    REE_SAMPLE_EDGE,          // an element outside is the nearest element inside
    REE_SAMPLE_MIRROR,        // the plane is mirrored at the outer edges of its end elements
    REE_SAMPLE_MIRROR_CENTRE, // the plane is mirrored at the centres of its end elements
};

struct ree_sampler {
    uint32_t n_axes;                // axes of the plane, 1 to REE_SAMPLE_AXES
    int64_t sizes[REE_SAMPLE_AXES]; // elements along each axis, 1 to REE_SAMPLE_MAX_SIZE
    uint32_t taps;                  // elements read per axis: 1 (nearest), 2 (linear), 4 (cubic)
    enum ree_sample_outside outside;
};

// Sets s->n_axes and s->sizes from x (n, channels, sizes...). Fails if a size is 0 ("X has size 0
// along axis 2") or larger than REE_SAMPLE_MAX_SIZE.
enum ree_status ree_sampler_sizes(struct ree_lower *lower, const struct ree_view *x,
                                  struct ree_sampler *s);
// Samples all channels of x (n, channels, sizes...) at the same points: coordinates[axis], float32
// (n, points), holds the points' coordinates along one axis. *out is (n, channels, points). x must
// be float32, or may have any type if taps is 1.
enum ree_status ree_sample(struct ree_lower *lower, const struct ree_sampler *s, struct ree_view *x,
                           struct ree_view *const *coordinates, struct ree_view **out);

#endif
