// Samples planes at fractional coordinates. For each axis, one map computes the places of the taps
// (index along the axis, times its stride) and another their weights. Sums of places and products
// of weights over the axes give the flat place and the weight of each tap of a point. One gather
// per tap reads the elements; the result is their weighted sum.
#include "graph/lower/ops/spatial/spatial.h"

#include <string.h>

enum ree_status ree_sampler_sizes(struct ree_lower *lower, const struct ree_view *x,
                                  struct ree_sampler *s) {
    s->n_axes = x->rank - 2;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        s->sizes[i] = x->dims[2 + i];
        if (s->sizes[i] == 0)
            return ree_lower_fail(lower, REE_INVALID, "X has size 0 along axis %u", 2 + i);
        if (s->sizes[i] > REE_SAMPLE_MAX_SIZE)
            return ree_lower_fail(
                lower, REE_UNSUPPORTED,
                "X has size %lld along axis %u; float32 coordinates are exact only up to %lld",
                (long long)s->sizes[i], 2 + i, (long long)REE_SAMPLE_MAX_SIZE);
    }
    return REE_OK;
}

// The index of the tap along dimension `dim` of an expression, 0 to taps - 1.
static int tap_number(struct ree_expr_builder *b, uint32_t dim) {
    int64_t strides[REE_MAX_RANK] = {0};
    strides[dim] = 1;
    return ree_expr_iota(b, REE_I32, 0, strides);
}

static int clamp_i32(struct ree_expr_builder *b, int value, int64_t low, int64_t high) {
    value = ree_expr_op2(b, REE_MAP_max_i32, value, ree_expr_i32(b, (int32_t)low));
    return ree_expr_op2(b, REE_MAP_min_i32, value, ree_expr_i32(b, (int32_t)high));
}

// Maps an index outside [0, size) to one inside. With REE_SAMPLE_ZERO, the plane has a border of
// one zero, so that indices are 1 larger and every index outside becomes one of the border.
static int bring_inside(struct ree_expr_builder *b, const struct ree_sampler *s, int at,
                        int64_t size) {
    if (s->outside == REE_SAMPLE_ZERO)
        return ree_expr_op2(b, REE_MAP_add_i32, clamp_i32(b, at, -1, size), ree_expr_i32(b, 1));
    if (s->outside == REE_SAMPLE_EDGE) return clamp_i32(b, at, 0, size - 1);
    bool centre = s->outside == REE_SAMPLE_MIRROR_CENTRE;
    int64_t period = centre ? 2 * (size - 1) : 2 * size;
    at = ree_expr_op2(b, REE_MAP_mod_i32, at, ree_expr_i32(b, (int32_t)period));
    int last = ree_expr_i32(b, (int32_t)(centre ? period : period - 1));
    return ree_expr_op2(b, REE_MAP_min_i32, at, ree_expr_op2(b, REE_MAP_sub_i32, last, at));
}

// Sets *out to the places along one axis, times `stride`: i32 (n, 1.., taps, ..1, points), with the
// taps at dimension 1 + axis. `at`, the coordinates, is (n, 1.., points) with one dimension of size
// 1 per axis.
static enum ree_status tap_places(struct ree_lower *lower, const struct ree_sampler *s,
                                  uint32_t axis, struct ree_view *at, int64_t stride,
                                  struct ree_view **out) {
    struct ree_expr_builder b;
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, at->dims, sizeof dims);
    dims[1 + axis] = s->taps;
    ree_expr_init(&b, lower, at->rank, dims);
    // Clamping keeps the integers small. Beyond the limits all taps are outside, where every
    // coordinate gives the same result; in the mirror modes, the caller has reflected all
    // coordinates into the plane. NaN becomes 0.
    int place = ree_expr_op1(&b, REE_MAP_floor_f32, ree_expr_tensor(&b, at));
    place = ree_expr_op2(&b, REE_MAP_max_f32, place, ree_expr_f32(&b, -4));
    place = ree_expr_op2(&b, REE_MAP_min_f32, place, ree_expr_f32(&b, (float)s->sizes[axis] + 4));
    place = ree_expr_op1(&b, REE_MAP_f32_to_i32, place);
    if (s->taps > 1) {
        int32_t first = 1 - (int32_t)s->taps / 2;
        place = ree_expr_op2(&b, REE_MAP_add_i32, place, tap_number(&b, 1 + axis));
        place = ree_expr_op2(&b, REE_MAP_add_i32, place, ree_expr_i32(&b, first));
    }
    place = bring_inside(&b, s, place, s->sizes[axis]);
    place = ree_expr_op2(&b, REE_MAP_mul_i32, place, ree_expr_i32(&b, (int32_t)stride));
    return ree_lower_map(&b, place, REE_I32, out);
}

// c0 + c1 d + c2 d^2 + c3 d^3 by Horner's scheme, starting with c[3].
static int cubic(struct ree_expr_builder *b, int d, const float c[4]) {
    int value = ree_expr_f32(b, c[3]);
    for (int i = 2; i >= 0; i--) {
        value = ree_expr_op2(b, REE_MAP_mul_f32, value, d);
        if (c[i] != 0) value = ree_expr_op2(b, REE_MAP_add_f32, value, ree_expr_f32(b, c[i]));
    }
    return value;
}

// Sets *out to the weights along one axis, in the shape of the places. r is the fractional part of
// the coordinate.
static enum ree_status tap_weights(struct ree_lower *lower, const struct ree_sampler *s,
                                   uint32_t axis, struct ree_view *at, struct ree_view **out) {
    struct ree_expr_builder b;
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, at->dims, sizeof dims);
    dims[1 + axis] = s->taps;
    ree_expr_init(&b, lower, at->rank, dims);
    int x = ree_expr_tensor(&b, at), t = tap_number(&b, 1 + axis), one = ree_expr_f32(&b, 1);
    int r = ree_expr_op2(&b, REE_MAP_sub_f32, x, ree_expr_op1(&b, REE_MAP_floor_f32, x));
    if (s->taps == 2) {
        int value = ree_expr_select(&b, REE_F32, t, r, ree_expr_op2(&b, REE_MAP_sub_f32, one, r));
        return ree_lower_map(&b, value, REE_F32, out);
    }
    // Keys' cubic convolution with a = -3/4: for distances up to 1 (inner) and above 1 (outer).
    static const float inner[4] = {1, 0, -2.25f, 1.25f}, outer[4] = {3, -6, 3.75f, -0.75f};
    int tap = ree_expr_op1(&b, REE_MAP_i32_to_f32,
                           ree_expr_op2(&b, REE_MAP_sub_i32, t, ree_expr_i32(&b, 1)));
    int d = ree_expr_op1(&b, REE_MAP_abs_f32, ree_expr_op2(&b, REE_MAP_sub_f32, r, tap));
    int near = ree_expr_op2(&b, REE_MAP_le_f32, d, one);
    int value = ree_expr_select(&b, REE_F32, near, cubic(&b, d, inner), cubic(&b, d, outer));
    return ree_lower_map(&b, value, REE_F32, out);
}

// Combines the tensors of all axes, starting with the first: adds places, multiplies weights.
static enum ree_status combine(struct ree_lower *lower, const struct ree_sampler *s,
                               enum ree_map_op op, enum ree_dtype dtype, struct ree_view *const *ts,
                               struct ree_view **out) {
    if (s->n_axes == 1) {
        *out = ts[0];
        return REE_OK;
    }
    struct ree_expr_builder b;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    REE_TRY(ree_lower_broadcast_dims(lower, s->n_axes, ts, &rank, dims));
    ree_expr_init(&b, lower, rank, dims);
    int value = ree_expr_tensor(&b, ts[0]);
    for (uint32_t i = 1; i < s->n_axes; i++)
        value = ree_expr_op2(&b, op, value, ree_expr_tensor(&b, ts[i]));
    return ree_lower_map(&b, value, dtype, out);
}

// Reads the elements of tap k of all points: planes (n, channels, plane) at places (n, taps,
// points). *out is (n, channels, points).
static enum ree_status gather_tap(struct ree_lower *lower, struct ree_view *planes,
                                  struct ree_view *places, int64_t k, struct ree_view **out) {
    int64_t n = places->dims[0], taps = places->dims[1], points = places->dims[2];
    struct ree_view *index = ree_lower_view(lower, places);
    if (!index) return ree_lower_no_memory(lower);
    // The view begins at tap k of the first sample. The index strides lead to the other samples.
    index->offset += k * points;
    struct ree_gather_params p = {.n_components = 1};
    p.data_strides[0] = (int32_t)planes->strides[0];
    p.data_strides[1] = (int32_t)planes->strides[1];
    p.index_strides[0] = (int32_t)(taps * points);
    p.index_strides[2] = 1;
    p.component_sizes[0] = (uint32_t)planes->dims[2];
    p.component_strides[0] = (int32_t)planes->strides[2];
    return ree_data_emit_gather(lower, planes, index, &p, 3,
                                (int64_t[]){n, planes->dims[1], points}, out);
}

// Sets *out to the chunk-dot of weights (n, taps, points) and the elements of the taps. There are
// at most 64 taps, so the chunk-dot has one chunk. Each map handles as many taps as an expression
// has operands for.
static enum ree_status weigh(struct ree_lower *lower, struct ree_view *planes,
                             struct ree_view *places, struct ree_view *weights,
                             struct ree_view **out) {
    int64_t taps = weights->dims[1];
    struct ree_view *total = NULL;
    for (int64_t k = 0; k < taps;) {
        int64_t end = k + (total ? 3 : 4) < taps ? k + (total ? 3 : 4) : taps;
        struct ree_view *value, *weight;
        struct ree_expr_builder b;
        int64_t dims[3] = {weights->dims[0], planes->dims[1], weights->dims[2]};
        ree_expr_init(&b, lower, 3, dims);
        int zero = ree_expr_f32(&b, 0), sum = total ? ree_expr_tensor(&b, total) : zero;
        for (; k < end; k++) {
            REE_TRY(gather_tap(lower, planes, places, k, &value));
            REE_TRY(ree_lower_slice(lower, weights, 1, k, 1, 1, &weight));
            sum = ree_expr_op3(&b, REE_MAP_fma_f32, ree_expr_tensor(&b, weight),
                               ree_expr_tensor(&b, value), sum);
        }
        if (end == taps) sum = ree_expr_op2(&b, REE_MAP_add_f32, sum, zero);
        REE_TRY(ree_lower_map(&b, sum, REE_F32, &total));
    }
    *out = total;
    return REE_OK;
}

enum ree_status ree_sample(struct ree_lower *lower, const struct ree_sampler *s, struct ree_view *x,
                           struct ree_view *const *coordinates, struct ree_view **out) {
    int64_t n = x->dims[0], channels = x->dims[1], points = coordinates[0]->dims[1];
    int64_t before[REE_MAX_RANK] = {0}, taps = 1, plane = 1;
    struct ree_view *places[REE_SAMPLE_AXES], *weights[REE_SAMPLE_AXES], *all_places, *all_weights;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        before[2 + i] = s->outside == REE_SAMPLE_ZERO;
        taps *= s->taps;
    }
    if (points == 0 || n == 0 || channels == 0)
        return ree_lower_new(lower, x->dtype, 3, (int64_t[]){n, channels, points}, out);
    REE_TRY(ree_spatial_border(lower, x, before, before, &x));
    int64_t seen[REE_MAX_RANK] = {n};
    for (uint32_t i = 0; i < s->n_axes; i++)
        seen[1 + i] = 1;
    seen[1 + s->n_axes] = points;
    for (uint32_t i = s->n_axes; i-- > 0;) {
        struct ree_view *at;
        REE_TRY(ree_lower_reshape(lower, coordinates[i], 2 + s->n_axes, seen, &at));
        REE_TRY(tap_places(lower, s, i, at, plane, &places[i]));
        if (s->taps > 1) REE_TRY(tap_weights(lower, s, i, at, &weights[i]));
        plane *= x->dims[2 + i];
    }
    int64_t flat[3] = {n, taps, points};
    REE_TRY(combine(lower, s, REE_MAP_add_i32, REE_I32, places, &all_places));
    REE_TRY(ree_lower_reshape(lower, all_places, 3, flat, &all_places));
    REE_TRY(ree_lower_dense(lower, all_places, &all_places));
    REE_TRY(ree_lower_reshape(lower, x, 3, (int64_t[]){n, channels, plane}, &x));
    if (s->taps == 1) return gather_tap(lower, x, all_places, 0, out);
    REE_TRY(combine(lower, s, REE_MAP_mul_f32, REE_F32, weights, &all_weights));
    REE_TRY(ree_lower_reshape(lower, all_weights, 3, flat, &all_weights));
    return weigh(lower, x, all_places, all_weights, out);
}
