// GridSample: converts normalised coordinates to units of elements, reflects or clamps them if the
// padding mode requires it, then samples.
#include "graph/lower/ops/spatial/spatial.h"

#include <string.h>

// x if low <= x <= high (and for NaN), else the triangle wave between low and high.
static int reflect(struct ree_expr_builder *b, int x, float low, float high) {
    int lowest = ree_expr_f32(b, low), span = ree_expr_f32(b, high - low);
    int period = ree_expr_f32(b, 2 * (high - low));
    int d = ree_expr_op1(b, REE_MAP_abs_f32, ree_expr_op2(b, REE_MAP_sub_f32, x, lowest));
    int r = ree_expr_op2(b, REE_MAP_fmod_f32, d, period);
    int back = ree_expr_op2(b, REE_MAP_sub_f32, period, r);
    int rises = ree_expr_op2(b, REE_MAP_le_f32, r, span);
    r = ree_expr_select(b, REE_F32, rises, r, back);
    int reflected = ree_expr_op2(b, REE_MAP_add_f32, lowest, r);
    int below = ree_expr_op2(b, REE_MAP_lt_f32, x, lowest);
    int above = ree_expr_op2(b, REE_MAP_lt_f32, ree_expr_f32(b, high), x);
    int outside = ree_expr_op2(b, REE_MAP_or_b32, below, above);
    return ree_expr_select(b, REE_F32, outside, reflected, x);
}

// Returns 0 for x < low, `last` for x > high, else x. The borders low and high may be half an
// element outside of [0, last].
static int clamp(struct ree_expr_builder *b, int x, float low, float high, float last) {
    int below = ree_expr_op2(b, REE_MAP_lt_f32, x, ree_expr_f32(b, low));
    int above = ree_expr_op2(b, REE_MAP_lt_f32, ree_expr_f32(b, high), x);
    x = ree_expr_select(b, REE_F32, below, ree_expr_f32(b, 0), x);
    return ree_expr_select(b, REE_F32, above, ree_expr_f32(b, last), x);
}

// Converts coordinates along one axis from [-1, 1] to units of elements. Rounds them if one tap is
// read, and clamps or reflects them if the padding mode requires it. g is (n, points).
static enum ree_status coordinate(struct ree_lower *lower, const struct ree_sampler *s,
                                  uint32_t axis, bool align_corners, struct ree_view *g,
                                  struct ree_view **out) {
    struct ree_expr_builder b;
    float size = (float)s->sizes[axis];
    float low = align_corners ? 0 : -0.5f, high = align_corners ? size - 1 : size - 0.5f;
    ree_expr_init(&b, lower, g->rank, g->dims);
    int half = ree_expr_f32(&b, 0.5f);
    int x = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_tensor(&b, g), ree_expr_f32(&b, 1));
    if (align_corners) {
        x = ree_expr_op2(&b, REE_MAP_mul_f32, x, half);
        x = ree_expr_op2(&b, REE_MAP_mul_f32, x, ree_expr_f32(&b, size - 1));
    } else {
        x = ree_expr_op2(&b, REE_MAP_mul_f32, x, ree_expr_f32(&b, size));
        x = ree_expr_op2(&b, REE_MAP_sub_f32, x, ree_expr_f32(&b, 1));
        x = ree_expr_op2(&b, REE_MAP_mul_f32, x, half);
    }
    if (s->taps == 1) x = ree_expr_op1(&b, REE_MAP_round_f32, x);
    if (s->outside == REE_SAMPLE_EDGE)
        x = clamp(&b, x, low, high, size - 1);
    else if (s->outside != REE_SAMPLE_ZERO)
        x = reflect(&b, x, low, high);
    return ree_lower_map(&b, x, REE_F32, out);
}

static enum ree_status read_modes(struct ree_lower *lower, bool align_corners,
                                  struct ree_sampler *s) {
    static const struct {
        const char *name;
        uint32_t taps;
    } modes[] = {{"linear", 2}, {"bilinear", 2}, {"nearest", 1}, {"cubic", 4}, {"bicubic", 4}};
    const char *mode = ree_rule_string(lower, "mode", "linear");
    const char *padding = ree_rule_string(lower, "padding_mode", "zeros");
    *s = (struct ree_sampler){0};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (!strcmp(mode, modes[i].name)) s->taps = modes[i].taps;
    if (!s->taps)
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected linear, nearest or cubic",
                              mode);
    if (!strcmp(padding, "zeros"))
        s->outside = REE_SAMPLE_ZERO;
    else if (!strcmp(padding, "border"))
        s->outside = REE_SAMPLE_EDGE;
    else if (!strcmp(padding, "reflection"))
        s->outside = align_corners ? REE_SAMPLE_MIRROR_CENTRE : REE_SAMPLE_MIRROR;
    else
        return ree_lower_fail(lower, REE_INVALID,
                              "padding_mode is '%s', expected zeros, border or reflection",
                              padding);
    return REE_OK;
}

enum ree_status ree_lower_op_grid_sample(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    struct ree_view *x = in[0], *grid = in[1], *coordinates[REE_SAMPLE_AXES];
    struct ree_sampler s;
    char a[128], b[128];
    bool align_corners = ree_rule_int(lower, "align_corners", 0) != 0;
    REE_TRY(read_modes(lower, align_corners, &s));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 2 + REE_SAMPLE_AXES));
    if (s.taps > 1) REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_f32(lower, grid));
    uint32_t n_axes = x->rank - 2, rank = grid->rank;
    if (rank != x->rank || grid->dims[0] != x->dims[0] || grid->dims[rank - 1] != n_axes)
        return ree_lower_fail(lower, REE_INVALID,
                              "grid is %s and X %s, expected grid (%lld, sizes..., %u)",
                              ree_view_text(grid, a, sizeof a), ree_view_text(x, b, sizeof b),
                              (long long)x->dims[0], n_axes);
    int64_t dims[REE_MAX_RANK] = {x->dims[0], x->dims[1]}, points = 1;
    for (uint32_t i = 1; i < rank - 1; i++) {
        dims[1 + i] = grid->dims[i];
        points *= grid->dims[i];
    }
    if (points == 0 || x->dims[0] == 0 || x->dims[1] == 0)
        return ree_lower_new(lower, x->dtype, x->rank, dims, &out[0]);
    REE_TRY(ree_sampler_sizes(lower, x, &s));
    REE_TRY(ree_lower_reshape(lower, grid, 3, (int64_t[]){x->dims[0], points, n_axes}, &grid));
    // The grid's first coordinate is for the innermost axis.
    for (uint32_t i = 0; i < n_axes; i++) {
        struct ree_view *g;
        REE_TRY(ree_lower_slice(lower, grid, 2, n_axes - 1 - i, 1, 1, &g));
        REE_TRY(ree_lower_reshape(lower, g, 2, (int64_t[]){x->dims[0], points}, &g));
        REE_TRY(coordinate(lower, &s, i, align_corners, g, &coordinates[i]));
    }
    REE_TRY(ree_sample(lower, &s, x, coordinates, &out[0]));
    return ree_lower_reshape(lower, out[0], x->rank, dims, &out[0]);
}
