// DFT: moves the axis to the end, transforms, and moves it back.
#include "graph/lower/ops/signal/fourier.h"
#include "graph/lower/ops/spatial/spatial.h"

static enum ree_status divide(struct ree_lower *lower, struct ree_view *x, int64_t n,
                              struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value =
        ree_expr_op2(&b, REE_MAP_div_f32, ree_expr_tensor(&b, x), ree_expr_number(&b, x->dtype, n));
    return ree_lower_map(&b, value, REE_F32, out);
}

// Makes the whole spectrum (rows, n, parts) of a real signal from its first n / 2 + 1 numbers: the
// remaining numbers are their conjugates in reverse order.
static enum ree_status whole_spectrum(struct ree_lower *lower, struct ree_view *x, int64_t n,
                                      struct ree_view **out) {
    int64_t half = n / 2 + 1, rows = x->dims[0], parts = x->dims[2];
    int64_t none[REE_MAX_RANK] = {0}, after[REE_MAX_RANK] = {0};
    int64_t known = x->dims[1] < half ? x->dims[1] : half;
    struct ree_view *place, *mirrored;
    REE_TRY(ree_lower_slice(lower, x, 1, 0, 1, known, &x));
    after[1] = half - known;
    REE_TRY(ree_spatial_border(lower, x, none, after, &x));
    REE_TRY(ree_lower_new(lower, x->dtype, 3, (int64_t[]){rows, n, parts}, out));
    REE_TRY(ree_lower_slice(lower, *out, 1, 0, 1, half, &place));
    REE_TRY(ree_lower_copy_into(lower, x, place));
    if (n == half) return REE_OK;
    REE_TRY(ree_lower_slice(lower, x, 1, n - half, -1, n - half, &mirrored));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, mirrored->dims);
    int part = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 0, 1});
    int value = ree_expr_tensor(&b, mirrored), negative = ree_expr_op1(&b, REE_MAP_neg_f32, value);
    value = ree_expr_select(&b, x->dtype, part, negative, value);
    REE_TRY(ree_lower_map(&b, value, REE_F32, &mirrored));
    REE_TRY(ree_lower_slice(lower, *out, 1, half, 1, n - half, &place));
    return ree_lower_copy_into(lower, mirrored, place);
}

struct dft {
    uint32_t axis;
    int64_t n; // length of the transform
    bool inverse, onesided;
};

static enum ree_status read_dft(struct ree_lower *lower, struct ree_view *const *in,
                                struct dft *d) {
    const struct ree_node *node = lower->node;
    struct ree_view *x = in[0], *length = ree_rule_input(lower, in, 1);
    struct ree_view *axis_input = node->opset < 20 ? NULL : ree_rule_input(lower, in, 2);
    char text[128];
    REE_TRY(ree_rule_require_float(lower, x));
    uint32_t last = x->rank ? x->rank - 1 : 0;
    if (x->rank < 2 || (x->dims[last] != 1 && x->dims[last] != 2))
        return ree_lower_fail(lower, REE_INVALID,
                              "the input is %s, expected real or complex numbers along the last "
                              "axis, of size 1 or 2",
                              ree_view_text(x, text, sizeof text));
    int64_t axis = node->opset < 20 ? ree_rule_int(lower, "axis", 1) : -2;
    if (axis_input) REE_TRY(ree_data_int(lower, axis_input, "axis", &axis));
    REE_TRY(ree_lower_axis(lower, axis, x->rank, &d->axis));
    if (d->axis == last)
        return ree_lower_fail(lower, REE_INVALID,
                              "axis is %lld, which contains the real and imaginary parts",
                              (long long)axis);
    d->inverse = ree_rule_int(lower, "inverse", 0) != 0;
    d->onesided = ree_rule_int(lower, "onesided", 0) != 0;
    if (d->onesided && !d->inverse && x->dims[last] == 2)
        return ree_lower_fail(lower, REE_INVALID, "onesided is not defined for complex input");
    int64_t samples = x->dims[d->axis];
    d->n = d->onesided && d->inverse ? 2 * (samples - 1) : samples;
    if (length) REE_TRY(ree_data_int(lower, length, "dft_length", &d->n));
    if (d->n < 1 || d->n > REE_FOURIER_MAX_LENGTH || samples < 1)
        return ree_lower_fail(
            lower, REE_INVALID, "a transform of length %lld over %lld samples, expected 1 to %lld",
            (long long)d->n, (long long)samples, (long long)REE_FOURIER_MAX_LENGTH);
    return REE_OK;
}

enum ree_status ree_lower_op_dft(struct ree_lower *lower, struct ree_view *const *in,
                                 struct ree_view **out) {
    struct ree_view *x = in[0], *t;
    struct dft d;
    REE_TRY(read_dft(lower, in, &d));
    uint32_t perm[REE_MAX_RANK], n_perm = 0, last = x->rank - 1;
    int64_t dims[REE_MAX_RANK], rows = 1;
    for (uint32_t i = 0; i < last; i++) {
        if (i == d.axis) continue;
        dims[n_perm] = x->dims[i];
        perm[n_perm++] = i;
        rows *= x->dims[i];
    }
    perm[last - 1] = d.axis;
    perm[last] = last;
    REE_TRY(ree_lower_transpose(lower, x, perm, &t));
    REE_TRY(ree_lower_reshape(lower, t, 3, (int64_t[]){rows, x->dims[d.axis], x->dims[last]}, &t));
    bool real = d.onesided && d.inverse;
    int64_t n_out = d.onesided && !d.inverse ? d.n / 2 + 1 : d.n;
    if (real) REE_TRY(whole_spectrum(lower, t, d.n, &t));
    REE_TRY(ree_fourier(lower, t, d.n, d.inverse, n_out, &t));
    if (real) REE_TRY(ree_lower_slice(lower, t, 2, 0, 1, 1, &t));
    if (d.inverse) REE_TRY(divide(lower, t, d.n, &t));
    dims[last - 1] = n_out;
    dims[last] = real ? 1 : 2;
    REE_TRY(ree_lower_reshape(lower, t, x->rank, dims, &t));
    uint32_t back[REE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++)
        back[perm[i]] = i;
    return ree_lower_transpose(lower, t, back, &out[0]);
}
