// Rules for operators that sum: products, softmax, reductions, convolutions, norms.
#include "graph/causality/facts.h"

#include <string.h>

#include "graph/causality/kinds.h"

static const char *const over_tokens = "it sums over tokens, including later ones";

// Products

// Returns `follows` without the summed axis. The caller must show that the sum does not depend on
// tokens later than the query.
static uint32_t without(uint32_t follows, uint32_t axis) {
    return follows & ~(1u << axis);
}

// Returns whether axis `key` of a is complete, and all elements with a later position on it than on
// the query's axis, a->zeroed.query, are zero.
static bool is_weighed(const struct ree_derivation *d, const struct ree_fact *a, uint32_t key) {
    return a->zeroed.holds && a->zeroed.key == key && ree_axis_is_complete(d, &a->axes[key]);
}

const char *ree_causality_matmul(struct ree_derivation *d) {
    const struct ree_fact *a = d->in[0], *b = d->in[1];
    struct ree_fact *out = d->out;
    if (a->rank < 2 || b->rank < 2) return "a product with a vector";
    if (a->dtype != b->dtype) return "its inputs have different types";
    uint32_t ka = a->rank - 1, kb = b->rank - 2, rank = a->rank > b->rank ? a->rank : b->rank;
    uint32_t sa = rank - a->rank, sb = rank - b->rank;
    if (!ree_axes_same(&a->axes[ka], &b->axes[kb])) return "its inputs' shapes do not match";
    // With size 1 for the summed axes, broadcasting gives the product's shape: (batch..., rows,
    // columns).
    struct ree_fact left = *a, right = *b;
    left.axes[ka] = right.axes[kb] = (struct ree_axis){REE_AXIS_FIXED, 1};
    left.follows = without(a->follows, ka);
    right.follows = without(b->follows, kb);
    uint32_t shifts[2];
    const char *why =
        ree_fact_broadcast(out, 2, (const struct ree_fact *const[]){&left, &right}, shifts);
    if (why) return why;
    out->dtype = a->dtype;
    if (!ree_axis_is_position(&a->axes[ka])) {
        bool mixes = a->follows >> ka & 1 || b->follows >> kb & 1;
        return mixes ? over_tokens : NULL;
    }
    // Elements of later tokens are multiplied by 0. 0 * inf is NaN, so the result may be NaN.
    if (is_weighed(d, a, ka))
        out->follows |= 1u << (a->zeroed.query + sa);
    else if (is_weighed(d, b, kb))
        out->follows |= 1u << (b->zeroed.query + sb);
    else
        return over_tokens;
    if (!ree_fact_is_float(out)) return over_tokens;
    out->may_be_nan = true;
    return NULL;
}

// Products of x (..., k) with a matrix of weights, which give (..., n). All inputs except x must be
// constant.
static const char *by_weights(struct ree_derivation *d, int64_t k, int64_t n) {
    const struct ree_fact *x = d->in[0];
    for (size_t i = 1; i < d->n_in; i++)
        if (d->in[i] && !ree_fact_is_plain(d->in[i])) return "its weights are not constant";
    if (x->rank < 1 || !ree_axis_is_fixed(&x->axes[x->rank - 1], k))
        return "its inputs' shapes do not match";
    ree_fact_like(d->out, x);
    d->out->axes[x->rank - 1].size = n;
    return NULL;
}

const char *ree_causality_internal_matmul(struct ree_derivation *d) {
    const struct ree_fact *b = d->in[1];
    bool transposed = ree_node_int(d->node, "transB", 0) != 0;
    if (b->rank != 2 || !ree_fact_is_plain(b)) return "its weights are not constant";
    return by_weights(d, b->axes[transposed].size, b->axes[!transposed].size);
}

const char *ree_causality_gemm(struct ree_derivation *d) {
    if (ree_node_int(d->node, "transA", 0) || d->in[0]->rank != 2)
        return "its first input is transposed";
    const struct ree_fact *c = ree_causality_in(d, 2);
    if (c && c->rank == 2 && !ree_axis_is_fixed(&c->axes[0], 1))
        return "its third input has several rows";
    return ree_causality_internal_matmul(d);
}

const char *ree_causality_matmul_nbits(struct ree_derivation *d) {
    return by_weights(d, ree_node_int(d->node, "K", -1), ree_node_int(d->node, "N", -1));
}

// Softmax and reductions

const char *ree_causality_softmax(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    struct ree_fact *out = d->out;
    uint32_t axis;
    bool one_axis = d->node->opset >= 13;
    if (!ree_read_axis(ree_node_int(d->node, "axis", one_axis ? -1 : 1), x->rank, &axis))
        return "its axis is out of range";
    if (!one_axis && axis + 1 != x->rank) return "it computes a softmax over several axes";
    ree_fact_like(out, x);
    if (!ree_axis_is_position(&x->axes[axis])) return x->follows >> axis & 1 ? over_tokens : NULL;
    if (!x->masked.holds || x->masked.key != axis || !ree_axis_is_complete(d, &x->axes[axis]))
        return "it is not proved that its scores of later tokens are -infinity";
    out->follows = without(x->follows, axis) | 1u << x->masked.query;
    out->zeroed = x->masked;
    return NULL;
}

const char *ree_causality_reduce(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    struct ree_fact *out = d->out;
    int64_t axes[REE_MAX_COUNTS];
    size_t n;
    bool keeps = ree_node_int(d->node, "keepdims", 1) != 0;
    const char *why = ree_read_numbers(d, "axes", 1, &n, axes);
    if (why) return why;
    if (!n && ree_node_int(d->node, "noop_with_empty_axes", 0)) return "it has no axes";
    bool reduced[REE_MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!ree_read_axis(axes[i], x->rank, &axis)) return "an axis is out of range";
        reduced[axis] = true;
    }
    struct ree_fact kept = *x;
    int to[REE_MAX_RANK];
    struct ree_count ones = {.n = 1};
    bool counts = x->has_fill && x->fill == 1 && (x->dtype == REE_I64 || x->dtype == REE_I32) &&
                  ree_causality_arg(d) == REE_REDUCE_TO_SUM;
    bool is_count = false;
    for (uint32_t i = 0; i < x->rank; i++) {
        reduced[i] = reduced[i] || !n;
        if (reduced[i] && ree_axis_is_position(&x->axes[i])) {
            if (!counts || is_count || x->axes[i].kind == REE_AXIS_ROWS) return over_tokens;
            ones = ree_axis_count(&x->axes[i]);
            is_count = true;
        } else if (counts && !ree_axis_is_fixed(&x->axes[i], 1)) {
            counts = false; // with other axes, the result is not one number of tokens
        }
        if (reduced[i] && x->follows >> i & 1) return over_tokens;
        to[i] = reduced[i] && !keeps ? -1 : (int)out->rank++;
        if (to[i] >= 0)
            out->axes[to[i]] = reduced[i] ? (struct ree_axis){REE_AXIS_FIXED, 1} : x->axes[i];
    }
    if (is_count && !counts) return over_tokens;
    kept.if_true = kept.if_false = kept.masked = kept.zeroed = (struct ree_order){0};
    kept.is_ramp = kept.has_fill = false;
    kept.n_counts = 0;
    ree_fact_move(out, &kept, to);
    if (!is_count) return NULL;
    // A sum of ones is the number of ones.
    out->n_counts = 1;
    out->counts[0] = ones;
    return NULL;
}

const char *ree_causality_cumsum(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    int64_t axes[REE_MAX_COUNTS];
    size_t n;
    uint32_t axis;
    if (!ree_fact_numbers(ree_causality_in(d, 1), &n, axes) || n != 1 ||
        !ree_read_axis(axes[0], x->rank, &axis))
        return "its axis is not constant";
    ree_fact_like(d->out, x);
    if (!ree_axis_is_position(&x->axes[axis])) return x->follows >> axis & 1 ? over_tokens : NULL;
    if (ree_node_int(d->node, "reverse", 0)) return "it sums from the last token backwards";
    if (!ree_axis_is_complete(d, &x->axes[axis]))
        return "it sums over the new tokens, which begin at another position in each run";
    if (!x->has_fill || x->fill != 1 || (x->dtype != REE_I64 && x->dtype != REE_I32)) return NULL;
    // A running sum of ones gives positions.
    d->out->is_ramp = true;
    d->out->ramp = axis;
    d->out->shift = ree_node_int(d->node, "exclusive", 0) ? 0 : 1;
    return NULL;
}

// Conv, only along the tokens and with padding before the first token, so that output i reads no
// input after i.
const char *ree_causality_conv(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *w = d->in[1], *bias = ree_causality_in(d, 2);
    size_t n_pads, n_strides, n_dilations;
    const int64_t *pads = ree_node_ints(d->node, "pads", &n_pads);
    const int64_t *strides = ree_node_ints(d->node, "strides", &n_strides);
    const int64_t *dilations = ree_node_ints(d->node, "dilations", &n_dilations);
    if (x->rank != 3 || w->rank != 3 || !ree_fact_is_plain(w) || (bias && !ree_fact_is_plain(bias)))
        return "it is not along one axis, with constant weights";
    if (strcmp(ree_node_string(d->node, "auto_pad", "NOTSET"), "NOTSET"))
        return "its padding is automatic";
    if (!ree_axis_is_complete(d, &x->axes[2]) || ree_axis_is_position(&x->axes[1]) ||
        x->follows >> 1 & 1)
        return "it sums over the new tokens, which begin at another position in each run";
    int64_t reach;
    if (__builtin_mul_overflow(w->axes[2].size - 1, n_dilations == 1 ? dilations[0] : 1, &reach))
        return "its kernel is too large";
    bool steps = n_strides == 1 && strides[0] != 1;
    if (steps || w->axes[2].size < 1 || n_dilations > 1 || n_strides > 1 || (n_pads && n_pads != 2))
        return "its stride, dilation or padding along the tokens has no rule";
    if ((n_pads ? pads[0] : 0) != reach || (n_pads ? pads[1] : 0) != 0)
        return "it reads later tokens: its padding is not only before the first token";
    ree_fact_like(d->out, x);
    d->out->axes[1].size = w->axes[0].size;
    return NULL;
}

// Norms over the last axes, which must not be axes of tokens.

// Checks that each scale or bias is constant and, along each axis, has as many elements as x, or
// one.
static const char *check_scales(const struct ree_derivation *d, const struct ree_fact *x,
                                size_t from) {
    for (size_t i = from; i < d->n_in; i++) {
        const struct ree_fact *scale = d->in[i];
        if (!scale) continue;
        if (!ree_fact_is_plain(scale)) return "its scale or bias is not constant";
        if (scale->rank > x->rank) return "its scale or bias does not match in every run";
        for (uint32_t k = 0; k < scale->rank; k++) {
            const struct ree_axis *axis = &scale->axes[k];
            if (!ree_axis_is_fixed(axis, 1) &&
                !ree_axes_same(axis, &x->axes[x->rank - scale->rank + k]))
                return "its scale or bias does not match in every run";
        }
    }
    return NULL;
}

static const char *norm_over(const struct ree_fact *x, int64_t from) {
    uint32_t axis;
    if (!ree_read_axis(from, x->rank, &axis)) return "its axis is out of range";
    for (; axis < x->rank; axis++)
        if (ree_axis_is_position(&x->axes[axis]) || x->follows >> axis & 1) return over_tokens;
    return NULL;
}

const char *ree_causality_norm(struct ree_derivation *d) {
    const char *why = check_scales(d, d->in[0], 1);
    if (why) return why;
    for (size_t i = 1; i < d->n_out; i++)
        d->out[i].why_not = "ree has a rule only for its first output";
    ree_fact_like(d->out, d->in[0]);
    return norm_over(d->in[0], ree_node_int(d->node, "axis", -1));
}

// Inputs: input, skip, then scales and biases. The fourth output is input + skip.
const char *ree_causality_skip_norm(struct ree_derivation *d) {
    uint32_t shifts[2];
    const char *why = ree_fact_broadcast(d->out, 2, d->in, shifts);
    if (!why) why = check_scales(d, d->out, 2);
    if (why) return why;
    d->out->dtype = d->in[0]->dtype;
    for (size_t i = 1; i < d->n_out; i++)
        if (i != 3) d->out[i].why_not = "ree has rules only for its first output and the sum";
    if (d->n_out > 3) d->out[3] = *d->out;
    return norm_over(d->out, -1);
}
