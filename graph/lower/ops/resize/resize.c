// Resize and Upsample: one axis after another, in ascending order. Nearest selects elements of any
// type; linear and cubic are one `resize` per axis in float32. NUMERICS.md, "Resize".
#include "graph/lower/ops/data.h"

#include <math.h>
#include <string.h>

// The settings from the attributes, the same for every axis.
struct settings {
    enum ree_resize_mode mode;
    enum ree_resize_coordinates coordinates;
    float cubic_a, extrapolation;
    bool antialias, exclude_outside;
};

static enum ree_status choose(struct ree_lower *lower, const char *attr, const char *fallback,
                              const char *const *names, int n, int *out) {
    const char *given = ree_rule_string(lower, attr, fallback);
    for (int i = 0; i < n; i++) {
        if (strcmp(given, names[i]) != 0) continue;
        *out = i;
        return REE_OK;
    }
    return ree_lower_fail(lower, REE_UNSUPPORTED, "%s '%s' is not supported", attr, given);
}

// Names in the order of the enumerators
static const char *const mode_names[] = {"nearest", "linear", "cubic"};
static const char *const coordinate_names[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize",
};
static const char *const rounding_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                             "ceil"};

static enum ree_status read_settings(struct ree_lower *lower, struct settings *out) {
    int mode, coordinates;
    REE_TRY(choose(lower, "mode", "nearest", mode_names, 3, &mode));
    REE_TRY(choose(lower, "coordinate_transformation_mode", "half_pixel", coordinate_names, 7,
                   &coordinates));
    out->mode = (enum ree_resize_mode)mode;
    out->coordinates = (enum ree_resize_coordinates)coordinates;
    out->cubic_a = ree_rule_float(lower, "cubic_coeff_a", -0.75f);
    out->extrapolation = ree_rule_float(lower, "extrapolation_value", 0);
    out->antialias = ree_rule_int(lower, "antialias", 0) != 0;
    out->exclude_outside = ree_rule_int(lower, "exclude_outside", 0) != 0;
    return REE_OK;
}

// Lists of numbers

static enum ree_status read_floats(struct ree_lower *lower, struct ree_view *t, const char *what,
                                   size_t expected, const float **out) {
    char text[128];
    *out = NULL;
    if (!t || ree_view_count(t) == 0) return REE_OK; // an empty list counts as absent
    if (t->rank != 1 || (size_t)t->dims[0] != expected || ree_data_wide(t->dtype) != REE_F32)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected float32[%zu]", what,
                              ree_view_text(t, text, sizeof text), expected);
    REE_TRY(ree_lower_cast(lower, t, REE_F32, &t));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    *out = bytes;
    return REE_OK;
}

// The resized axes with their output sizes, scales and regions.
struct plan {
    uint32_t n;
    uint32_t axis[REE_MAX_RANK];
    double scale[REE_MAX_RANK];
    int64_t size[REE_MAX_RANK];
    enum ree_resize_rounding rounding[REE_MAX_RANK];
    double roi_start[REE_MAX_RANK], roi_end[REE_MAX_RANK];
};

// Computes the sizes from the scales, each with one float32 product, as in ONNX's shape inference.
static enum ree_status plan_scales(struct ree_lower *lower, const struct ree_view *t,
                                   const float *scales, struct plan *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        float size = floorf((float)t->dims[p->axis[i]] * scales[i]);
        if (!(scales[i] > 0) || !(size < 2147483648.0f))
            return ree_lower_fail(lower, REE_INVALID, "scale %g of axis %u is out of range",
                                  (double)scales[i], p->axis[i]);
        p->scale[i] = (double)scales[i];
        p->size[i] = (int64_t)size;
    }
    return REE_OK;
}

static enum ree_status plan_sizes(struct ree_lower *lower, const struct ree_view *t,
                                  const int64_t *sizes, struct plan *p) {
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy;
    REE_TRY(choose(lower, "keep_aspect_ratio_policy", "stretch", policies, 3, &policy));
    double common = 0.0;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t dim = t->dims[p->axis[i]];
        if (sizes[i] < 0 || sizes[i] > INT32_MAX || (dim == 0 && sizes[i] > 0))
            return ree_lower_fail(lower, REE_INVALID, "cannot resize axis %u from %lld to %lld",
                                  p->axis[i], (long long)dim, (long long)sizes[i]);
        p->size[i] = sizes[i];
        p->scale[i] = dim ? (double)sizes[i] / (double)dim : 1.0;
        bool better = policy == 1 ? p->scale[i] < common : p->scale[i] > common;
        if (i == 0 || better) common = p->scale[i];
    }
    if (policy == 0) return REE_OK;
    for (uint32_t i = 0; i < p->n; i++) {
        double size = floor(common * (double)t->dims[p->axis[i]] + 0.5);
        if (!(size < 2147483648.0))
            return ree_lower_fail(lower, REE_UNSUPPORTED, "axis %u becomes too long", p->axis[i]);
        p->scale[i] = common;
        p->size[i] = (int64_t)size;
    }
    return REE_OK;
}

static enum ree_status plan_axes(struct ree_lower *lower, const struct ree_view *t,
                                 struct plan *p) {
    const int64_t *axes;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, NULL, REE_DATA_ATTR_ONLY, "axes", &axes, &n, &given));
    int rounding;
    REE_TRY(choose(lower, "nearest_mode", "round_prefer_floor", rounding_names, 4, &rounding));
    p->n = given ? (uint32_t)n : t->rank;
    if (given) {
        uint32_t mask;
        REE_TRY(ree_data_axes_mask(lower, n, axes, t->rank, &mask));
    }
    for (uint32_t i = 0; i < p->n; i++) {
        p->axis[i] = i;
        if (given) REE_TRY(ree_lower_axis(lower, axes[i], t->rank, &p->axis[i]));
        p->rounding[i] = (enum ree_resize_rounding)rounding;
        p->roi_start[i] = 0.0;
        p->roi_end[i] = 1.0;
    }
    return REE_OK;
}

// Nearest

// Gives the extrapolation value to the positions of one axis that are outside the input: those
// whose entry in `outside` is 1.
static enum ree_status fill_outside(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                    const uint8_t *outside, float value, struct ree_view **out) {
    struct ree_view *mask;
    int64_t shape[REE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        shape[i] = i == axis ? t->dims[i] : 1;
    REE_TRY(ree_lower_literal(lower, REE_BOOL, t->rank, shape, outside, &mask));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, t->rank, t->dims);
    int fill = ree_expr_cast(&b, ree_expr_f32(&b, value), REE_F32, t->dtype);
    bool wide = ree_dtype_class(t->dtype) == REE_CLASS_D;
    int result = ree_expr_op3(&b, wide ? REE_MAP_select_b64 : REE_MAP_select_b32,
                              ree_expr_tensor(&b, mask), fill, ree_expr_tensor(&b, t));
    return ree_lower_map(&b, result, t->dtype, out);
}

static enum ree_status resize_nearest(struct ree_lower *lower, struct ree_view *t,
                                      const struct ree_resize_axis *axes, float extrapolation,
                                      struct ree_view **out) {
    struct ree_axis_table tables[REE_MAX_RANK] = {{NULL, 0}};
    uint8_t *outside[REE_MAX_RANK] = {NULL};
    for (uint32_t i = 0; i < t->rank; i++) {
        if (axes[i].n_in < 0) continue;
        size_t n = (size_t)axes[i].n_out;
        int32_t *index = ree_arena_alloc_array(lower->arena, n, sizeof *index);
        if (!index) return ree_lower_no_memory(lower);
        if (ree_resize_fill(&axes[i], 1, index, NULL)) {
            outside[i] = ree_arena_alloc(lower->arena, n);
            if (!outside[i]) return ree_lower_no_memory(lower);
            for (size_t k = 0; k < n; k++) {
                outside[i][k] = index[k] < 0;
                if (index[k] < 0) index[k] = 0;
            }
        }
        tables[i] = (struct ree_axis_table){index, axes[i].n_out};
    }
    REE_TRY(ree_data_select(lower, t, tables, &t));
    for (uint32_t i = 0; i < t->rank; i++)
        if (outside[i]) REE_TRY(fill_outside(lower, t, i, outside[i], extrapolation, &t));
    *out = t;
    return REE_OK;
}

// Linear and cubic

static enum ree_status filter_axis(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                   const struct ree_resize_axis *a, float extrapolation,
                                   struct ree_view **out) {
    REE_TRY(ree_lower_dense(lower, t, &t));
    int64_t dims[REE_MAX_RANK], count;
    memcpy(dims, t->dims, sizeof dims);
    dims[axis] = a->n_out;
    REE_TRY(ree_lower_new(lower, REE_F32, t->rank, dims, out));
    if (ree_view_count(*out) == 0) return REE_OK;
    int64_t taps = ree_resize_taps(a), table[2] = {a->n_out, taps};
    if (!ree_count_elements(2, table, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a filter of %lld taps is too long",
                              (long long)taps);
    int32_t *index = ree_arena_alloc_array(lower->arena, (size_t)count, sizeof *index);
    float *weights = ree_arena_alloc_array(lower->arena, (size_t)count, sizeof *weights);
    if (!index || !weights) return ree_lower_no_memory(lower);
    ree_resize_fill(a, taps, index, weights);
    struct ree_view *index_t, *weights_t;
    REE_TRY(ree_lower_literal(lower, REE_I32, 2, table, index, &index_t));
    REE_TRY(ree_lower_literal(lower, REE_F32, 2, table, weights, &weights_t));

    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_resize_params *p = &params.resize;
    p->outer = p->inner = 1;
    for (uint32_t i = 0; i < axis; i++)
        p->outer *= (uint32_t)t->dims[i];
    for (uint32_t i = axis + 1; i < t->rank; i++)
        p->inner *= (uint32_t)t->dims[i];
    p->k_in = (uint32_t)a->n_in;
    p->k_out = (uint32_t)a->n_out;
    p->taps = (uint32_t)taps;
    p->extrapolation = extrapolation;
    struct ree_view *operands[4] = {t, index_t, weights_t, *out};
    return ree_lower_emit(lower, REE_REPOP_RESIZE, &params, operands, 4, 1);
}

// Converts the float32 result to dtype. For integer types it is rounded to nearest even and
// saturated.
static enum ree_status filtered_to_type(struct ree_lower *lower, struct ree_view *t,
                                        enum ree_dtype dtype, struct ree_view **out) {
    struct ree_expr_builder b;
    if (dtype == REE_F32) {
        *out = t;
        return REE_OK;
    }
    ree_expr_init(&b, lower, t->rank, t->dims);
    int value = ree_expr_tensor(&b, t);
    if (ree_data_wide(dtype) != REE_F32) value = ree_expr_op1(&b, REE_MAP_round_f32, value);
    return ree_lower_map(&b, ree_expr_cast(&b, value, REE_F32, dtype), dtype, out);
}

static enum ree_status resize_filtered(struct ree_lower *lower, struct ree_view *t,
                                       const struct ree_resize_axis *axes, float extrapolation,
                                       struct ree_view **out) {
    enum ree_dtype dtype = t->dtype;
    // The filter computes in binary32.
    if (dtype == REE_BOOL || dtype == REE_F64)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s supports only the mode nearest",
                              ree_dtype_name(dtype));
    REE_TRY(ree_lower_cast(lower, t, REE_F32, &t));
    for (uint32_t i = 0; i < t->rank; i++)
        if (axes[i].n_in >= 0) REE_TRY(filter_axis(lower, t, i, &axes[i], extrapolation, &t));
    return filtered_to_type(lower, t, dtype, out);
}

// Returns whether an axis keeps its elements: it keeps its size and its whole extent.
static bool stays(const struct plan *p, uint32_t i, const struct ree_view *t,
                  const struct settings *s) {
    bool whole = s->coordinates != REE_COORD_TF_CROP_AND_RESIZE ||
                 (p->roi_start[i] == 0.0 && p->roi_end[i] == 1.0);
    return p->size[i] == t->dims[p->axis[i]] && p->scale[i] == 1.0 && whole;
}

static enum ree_status resize(struct ree_lower *lower, struct ree_view *t, const struct plan *p,
                              const struct settings *s, struct ree_view **out) {
    struct ree_resize_axis axes[REE_MAX_RANK];
    for (uint32_t i = 0; i < REE_MAX_RANK; i++)
        axes[i].n_in = -1; // the axis is unchanged
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (stays(p, i, t, s)) continue;
        any = true;
        axes[p->axis[i]] = (struct ree_resize_axis){
            .mode = s->mode,
            .coordinates = s->coordinates,
            .rounding = p->rounding[i],
            .cubic_a = (double)s->cubic_a,
            .antialias = s->antialias,
            .exclude_outside = s->exclude_outside,
            .n_in = t->dims[p->axis[i]],
            .n_out = p->size[i],
            .scale = p->scale[i],
            .roi_start = p->roi_start[i],
            .roi_end = p->roi_end[i],
        };
    }
    *out = t;
    if (!any) return REE_OK;
    return s->mode == REE_RESIZE_NEAREST ? resize_nearest(lower, t, axes, s->extrapolation, out)
                                         : resize_filtered(lower, t, axes, s->extrapolation, out);
}

// Up to opset 10, coordinates are asymmetric, and nearest selects the element below, or the one
// above if the axis shrinks.
static enum ree_status resize_old(struct ree_lower *lower, struct ree_view *t, const float *scales,
                                  struct ree_view **out) {
    static const char *const modes[] = {"nearest", "linear", "bilinear"};
    int mode;
    REE_TRY(choose(lower, "mode", "nearest", modes, 3, &mode));
    struct settings s = {.mode = mode ? REE_RESIZE_LINEAR : REE_RESIZE_NEAREST,
                         .coordinates = REE_COORD_ASYMMETRIC};
    struct plan p = {.n = t->rank};
    for (uint32_t i = 0; i < t->rank; i++) {
        p.axis[i] = i;
        p.rounding[i] = scales[i] < 1 ? REE_ROUND_CEIL : REE_ROUND_FLOOR;
    }
    REE_TRY(plan_scales(lower, t, scales, &p));
    return resize(lower, t, &p, &s, out);
}

enum ree_status ree_lower_op_upsample(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    const struct ree_node *node = lower->node;
    struct ree_view *t = in[0], *scales_input = ree_rule_input(lower, in, 1);
    const float *scales = NULL;
    float sides[4] = {1, 1, 1, 1};
    if (scales_input) {
        REE_TRY(read_floats(lower, scales_input, "scales", t->rank, &scales));
    } else if (node->opset < 7) {
        sides[2] = ree_rule_float(lower, "height_scale", 0);
        sides[3] = ree_rule_float(lower, "width_scale", 0);
        if (t->rank == 4) scales = sides;
    } else {
        size_t n;
        scales = ree_rule_floats(lower, "scales", &n);
        if (n != t->rank) scales = NULL;
    }
    if (!scales)
        return ree_lower_fail(lower, REE_INVALID, "expected a scale for each of the %u axes",
                              t->rank);
    return resize_old(lower, t, scales, &out[0]);
}

enum ree_status ree_lower_op_resize(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *t = in[0];
    const float *scales, *roi;
    if (lower->node->opset < 11) {
        REE_TRY(read_floats(lower, in[1], "scales", t->rank, &scales));
        if (!scales) return ree_lower_fail(lower, REE_INVALID, "scales is empty");
        return resize_old(lower, t, scales, &out[0]);
    }
    struct settings s;
    struct plan p;
    REE_TRY(read_settings(lower, &s));
    REE_TRY(plan_axes(lower, t, &p));
    if (s.coordinates == REE_COORD_TF_CROP_AND_RESIZE) {
        REE_TRY(read_floats(lower, ree_rule_input(lower, in, 1), "roi", 2 * (size_t)p.n, &roi));
        if (!roi) return ree_lower_fail(lower, REE_INVALID, "tf_crop_and_resize requires roi");
        for (uint32_t i = 0; i < p.n; i++) {
            p.roi_start[i] = (double)roi[i];
            p.roi_end[i] = (double)roi[p.n + i];
        }
    }
    struct ree_view *sizes_input = ree_rule_input(lower, in, 3);
    bool by_size = sizes_input && ree_view_count(sizes_input);
    REE_TRY(read_floats(lower, ree_rule_input(lower, in, 2), "scales", p.n, &scales));
    if (by_size == (scales != NULL))
        return ree_lower_fail(lower, REE_INVALID,
                              "has %s scales and sizes, expected exactly one of them",
                              by_size ? "both" : "neither");
    if (by_size) {
        const int64_t *sizes;
        size_t n;
        bool given;
        REE_TRY(ree_data_ints(lower, in, 3, "sizes", &sizes, &n, &given));
        if (n != p.n)
            return ree_lower_fail(lower, REE_INVALID, "sizes has %zu elements, expected %u", n,
                                  p.n);
        REE_TRY(plan_sizes(lower, t, sizes, &p));
    } else {
        REE_TRY(plan_scales(lower, t, scales, &p));
    }
    return resize(lower, t, &p, &s, &out[0]);
}
