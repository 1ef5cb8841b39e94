// Shared by the rules for images and geometry: borders of zeros, and sampling planes at fractional
// coordinates.
#ifndef REE_GRAPH_LOWER_SPATIAL_H
#define REE_GRAPH_LOWER_SPATIAL_H

#include "graph/lower/ops/data.h"

// Makes a dense tensor of zeros of any type.
enum ree_status ree_spatial_zeros(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out);
// Pads t with before[i] and after[i] zeros along axis i; returns t itself if all are 0.
enum ree_status ree_spatial_border(struct ree_lower *lower, struct ree_view *t,
                                   const int64_t *before, const int64_t *after,
                                   struct ree_view **out);

// Sampling (sample.c). Reads a plane of one to three axes at float32 coordinates, in units of
// elements; 0.0 is the centre of the first element. Maps compute everything that depends on the
// coordinates, so that the coordinates may be on the device.
#define REE_SAMPLE_AXES 3
#define REE_SAMPLE_MAX_SIZE (INT64_C(1) << 24) // above this, float32 coordinates skip elements

enum ree_sample_outside {
    REE_SAMPLE_ZERO,          // elements outside are 0
    REE_SAMPLE_EDGE,          // ... are the nearest element inside
    REE_SAMPLE_MIRROR,        // ... are mirrored at the outer edges of the first and last element
    REE_SAMPLE_MIRROR_CENTRE, // ... are mirrored at the centres of the first and last element
};

struct ree_sampler {
    uint32_t n_axes;                // 1 to REE_SAMPLE_AXES
    int64_t sizes[REE_SAMPLE_AXES]; // of a plane, each 1 to REE_SAMPLE_MAX_SIZE
    uint32_t taps;                  // per axis: 1 (nearest), 2 (linear) or 4 (cubic)
    enum ree_sample_outside outside;
};

// Counts the axes and fills `sizes` from x (n, channels, sizes...). Fails with "X has size 0 along
// axis 2", or if a size is larger than REE_SAMPLE_MAX_SIZE.
enum ree_status ree_sampler_sizes(struct ree_lower *lower, const struct ree_view *x,
                                  struct ree_sampler *s);
// Samples x (n, channels, sizes...) at coordinates[axis], each float32 (n, points). *out is (n,
// channels, points). x is float32; any type if taps is 1.
enum ree_status ree_sample(struct ree_lower *lower, const struct ree_sampler *s, struct ree_view *x,
                           struct ree_view *const *coordinates, struct ree_view **out);

#endif
