// DeformConv: samples the input at the positions that the offsets give. The samples under the
// kernel at one output position are a column of a matrix; the result is the weights times this
// matrix.
#include "graph/lower/ops/spatial/spatial.h"
#include "graph/lower/ops/conv/window.h"

#include <string.h>

struct deform {
    struct ree_window window;
    uint32_t n_axes;
    int64_t n, channels, groups, offset_groups;
    int64_t kernel, positions; // taps of the kernel; output positions of a sample
};

static enum ree_status read_group(struct ree_lower *lower, const char *name, int64_t channels,
                                  int64_t *out) {
    *out = ree_rule_int(lower, name, 1);
    if (*out >= 1 && *out <= INT32_MAX && channels % *out == 0) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID,
                          "%s is %lld, expected a divisor of the %lld channels of X", name,
                          (long long)*out, (long long)channels);
}

// Checks that offset or mask has the shape (n, offset_groups * kernel * per_tap, output sizes...).
static enum ree_status check_field(struct ree_lower *lower, const struct deform *d,
                                   const struct ree_view *t, const char *name, int64_t per_tap) {
    int64_t dims[REE_MAX_RANK] = {d->n, d->offset_groups * d->kernel * per_tap};
    char text[128], wanted[128];
    bool fits = t->dtype == REE_F32 && t->rank == d->n_axes + 2;
    for (uint32_t i = 0; i < d->n_axes; i++)
        dims[2 + i] = d->window.out[d->window.first + i];
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == dims[i];
    if (fits) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected float32%s", name,
                          ree_view_text(t, text, sizeof text),
                          ree_data_list_text(d->n_axes + 2, dims, wanted, sizeof wanted));
}

static enum ree_status read_deform(struct ree_lower *lower, struct ree_view *const *in,
                                   struct deform *d) {
    struct ree_view *x = in[0], *w = in[1];
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_same_type(lower, w, "W", x, "X"));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 2 + REE_WINDOW_DIMS));
    REE_TRY(ree_rule_require_rank(lower, w, "W", x->rank, x->rank));
    d->n_axes = x->rank - 2;
    d->n = x->dims[0];
    d->channels = x->dims[1];
    REE_TRY(read_group(lower, "group", d->channels, &d->groups));
    REE_TRY(read_group(lower, "offset_group", d->channels, &d->offset_groups));
    if (w->dims[1] != d->channels / d->groups || w->dims[0] % d->groups)
        return ree_lower_fail(
            lower, REE_INVALID,
            "W has %lld output and %lld input channels, but X has %lld channels in %lld groups",
            (long long)w->dims[0], (long long)w->dims[1], (long long)d->channels,
            (long long)d->groups);
    REE_TRY(ree_window_read(lower, x, w, &d->window));
    REE_TRY(ree_window_forward(lower, &d->window, false));
    d->kernel = d->positions = 1;
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++) {
        d->kernel *= d->window.kernel[i];
        d->positions *= d->window.out[i];
    }
    return REE_OK;
}

// Sets *out to the coordinates along one axis: (n * offset groups, kernel * positions). A position
// without its offset is an integer; one float32 addition adds the offset.
static enum ree_status coordinate(struct ree_lower *lower, const struct deform *d,
                                  struct ree_view *offset, uint32_t axis, struct ree_view **out) {
    const struct ree_window *w = &d->window;
    uint32_t at = w->first + axis, rank = 1 + 2 * REE_WINDOW_DIMS;
    int64_t batch = d->n * d->offset_groups;
    // (batch, kernel..., output...), three sizes each. In `offset`, the axis index comes after the
    // kernel.
    int64_t dims[REE_MAX_RANK] = {batch}, strides[REE_MAX_RANK] = {0};
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++) {
        dims[1 + i] = w->kernel[i];
        dims[1 + REE_WINDOW_DIMS + i] = w->out[i];
    }
    strides[1 + at] = w->dilation[at];
    strides[1 + REE_WINDOW_DIMS + at] = w->stride[at];
    struct ree_view *own;
    int64_t split[4] = {batch, d->kernel, d->n_axes, d->positions};
    REE_TRY(ree_lower_reshape(lower, offset, 4, split, &own));
    REE_TRY(ree_lower_slice(lower, own, 2, axis, 1, 1, &own));
    REE_TRY(ree_lower_reshape(lower, own, rank, dims, &own));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int whole = ree_expr_iota(&b, REE_I32, -w->pad_begin[at], strides);
    int value = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_op1(&b, REE_MAP_i32_to_f32, whole),
                             ree_expr_tensor(&b, own));
    REE_TRY(ree_lower_map(&b, value, REE_F32, out));
    return ree_lower_reshape(lower, *out, 2, (int64_t[]){batch, d->kernel * d->positions}, out);
}

// Sets *out to the samples under the kernel, times the mask: (n * offset groups, channels per
// offset group, kernel * positions).
static enum ree_status columns(struct ree_lower *lower, const struct deform *d, struct ree_view *x,
                               struct ree_view *offset, struct ree_view *mask,
                               struct ree_view **out) {
    struct ree_sampler s = {.taps = 2, .outside = REE_SAMPLE_ZERO};
    struct ree_view *coordinates[REE_SAMPLE_AXES];
    int64_t batch = d->n * d->offset_groups, dims[REE_MAX_RANK] = {batch};
    REE_TRY(ree_sampler_sizes(lower, x, &s));
    for (uint32_t i = 0; i < d->n_axes; i++)
        REE_TRY(coordinate(lower, d, offset, i, &coordinates[i]));
    dims[1] = d->channels / d->offset_groups;
    for (uint32_t i = 0; i < d->n_axes; i++)
        dims[2 + i] = x->dims[2 + i];
    REE_TRY(ree_lower_reshape(lower, x, x->rank, dims, &x));
    REE_TRY(ree_sample(lower, &s, x, coordinates, out));
    if (!mask) return REE_OK;
    int64_t points[3] = {batch, 1, d->kernel * d->positions};
    REE_TRY(ree_lower_reshape(lower, mask, 3, points, &mask));
    return ree_rule_step2(lower, REE_MAP_mul_f32, *out, mask, out);
}

enum ree_status ree_lower_op_deform_conv(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    struct ree_view *x = in[0], *w = in[1], *offset = in[2], *seen, *product;
    struct ree_view *bias = ree_rule_input(lower, in, 3), *mask = ree_rule_input(lower, in, 4);
    struct deform d;
    REE_TRY(read_deform(lower, in, &d));
    REE_TRY(check_field(lower, &d, offset, "offset", d.n_axes));
    if (mask) REE_TRY(check_field(lower, &d, mask, "mask", 1));
    int64_t m = w->dims[0], dims[REE_MAX_RANK] = {d.n, m};
    for (uint32_t i = 0; i < d.n_axes; i++)
        dims[2 + i] = d.window.out[d.window.first + i];
    if (bias) {
        REE_TRY(ree_rule_same_type(lower, bias, "B", x, "X"));
        REE_TRY(ree_rule_require_vector(lower, bias, "B", m));
    }
    if (ree_view_count(x) == 0 || ree_view_count(w) == 0) {
        REE_TRY(ree_rule_fill(lower, x->rank, dims, 0, &product)); // all sums are empty
    } else {
        int64_t k = d.channels / d.groups * d.kernel;
        REE_TRY(columns(lower, &d, x, offset, mask, &seen));
        int64_t left[4] = {1, d.groups, m / d.groups, k};
        int64_t right[4] = {d.n, d.groups, k, d.positions};
        REE_TRY(ree_lower_reshape(lower, w, 4, left, &w));
        REE_TRY(ree_lower_reshape(lower, seen, 4, right, &seen));
        REE_TRY(ree_lower_matmul(lower, w, seen, &product));
        REE_TRY(ree_lower_reshape(lower, product, x->rank, dims, &product));
    }
    out[0] = product;
    if (!bias) return REE_OK;
    REE_TRY(ree_rule_channel_view(lower, bias, x->rank, &bias));
    return ree_rule_step2(lower, REE_MAP_add_f32, product, bias, &out[0]);
}
