// What the rules for images and geometry share: borders of zeros and reading planes at fractional
// coordinates.
#ifndef REE_GRAPH_LOWER_SPATIAL_H
#define REE_GRAPH_LOWER_SPATIAL_H

#include "graph/lower/data.h"

// A new dense tensor of zeros, of any type.
enum ree_status ree_spatial_zeros(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, struct ree_tval **out);
// t with `before[i]` and `after[i]` zeros around axis i; t itself when there are none.
enum ree_status ree_spatial_border(struct ree_lower *lower, struct ree_tval *t,
                                   const int64_t *before, const int64_t *after,
                                   struct ree_tval **out);

// Sampling (sample.c): a plane of one to three axes read at float32 coordinates that count its
// elements, 0.0 being the centre of the first. Everything that depends on the coordinates is
// computed by maps, so that they may come from the device.
#define REE_SAMPLE_AXES 3
#define REE_SAMPLE_MAX_SIZE (INT64_C(1) << 24) // beyond it float32 coordinates skip elements

enum ree_sample_outside {
    REE_SAMPLE_ZERO,          // elements outside are 0
    REE_SAMPLE_EDGE,          // ... the nearest one inside
    REE_SAMPLE_MIRROR,        // ... mirrored at the outer edges of the first and last element
    REE_SAMPLE_MIRROR_CENTRE, // ... mirrored at their centres
};

struct ree_sampler {
    uint32_t n_axes;                // 1 to REE_SAMPLE_AXES
    int64_t sizes[REE_SAMPLE_AXES]; // of a plane, 1 to REE_SAMPLE_MAX_SIZE
    uint32_t taps;                  // per axis: 1 (nearest), 2 (linear) or 4 (cubic)
    enum ree_sample_outside outside;
};

// "X has size 0 along axis 2", or larger than REE_SAMPLE_MAX_SIZE; also counts the axes and fills
// `sizes` from x (n, channels, sizes...).
enum ree_status ree_sampler_sizes(struct ree_lower *lower, const struct ree_tval *x,
                                  struct ree_sampler *s);
// Samples x (n, channels, sizes...) at coordinates[axis] (n, points) float32 each: out (n,
// channels, points). float32; any type where taps is 1.
enum ree_status ree_sample(struct ree_lower *lower, const struct ree_sampler *s, struct ree_tval *x,
                           struct ree_tval *const *coordinates, struct ree_tval **out);

#endif
