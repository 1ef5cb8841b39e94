// Rules for operators that move elements, and for operators that make shapes and positions.
#include "graph/causality/facts.h"

#include <math.h>
#include <string.h>

static const int same[REE_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};

static void copy_shape(struct ree_fact *out, const struct ree_fact *f) {
    out->rank = f->rank;
    memcpy(out->axes, f->axes, sizeof out->axes);
}

// Copies all statements of `f` except `past` and `present`. All axes stay in place.
static void keep(struct ree_fact *out, const struct ree_fact *f) {
    copy_shape(out, f);
    ree_fact_move(out, f, same);
}

const char *ree_causality_identity(struct ree_derivation *d) {
    keep(d->out, d->in[0]);
    return NULL;
}

const char *ree_causality_constant_node(struct ree_derivation *d) {
    const struct ree_attr *value = ree_node_attr(d->node, "value");
    const struct ree_attr *number = ree_node_attr(d->node, "value_int");
    size_t n;
    const int64_t *numbers = ree_node_ints(d->node, "value_ints", &n);
    if (value && value->tensor && d->node->n_attrs == 1) {
        ree_fact_constant(d->out, value->tensor);
        return d->out->why_not;
    }
    if (number) {
        numbers = &number->i;
        n = 1;
    }
    if (!numbers || n < 1 || n > REE_MAX_COUNTS || d->node->n_attrs != 1)
        return "ree has no rule for this kind of constant";
    d->out->dtype = REE_I64;
    d->out->rank = number ? 0 : 1;
    d->out->axes[0] = (struct ree_axis){REE_AXIS_FIXED, (int64_t)n};
    d->out->has_fill = n == 1;
    d->out->fill = (double)numbers[0];
    d->out->n_counts = n;
    for (size_t i = 0; i < n; i++)
        d->out->counts[i].n = numbers[i];
    return NULL;
}

// Shapes

const char *ree_causality_shape(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    int64_t rank = x->rank, start = ree_node_int(d->node, "start", 0);
    int64_t end = ree_node_int(d->node, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < 0 ? 0 : end > rank ? rank : end;
    if (start >= end) return "a shape without dimensions";
    d->out->dtype = REE_I64;
    d->out->rank = 1;
    d->out->axes[0] = (struct ree_axis){REE_AXIS_FIXED, end - start};
    d->out->n_counts = (size_t)(end - start);
    for (int64_t i = start; i < end; i++) {
        if (x->axes[i].kind == REE_AXIS_ROWS)
            return "ree has no rule for the number of requested rows";
        d->out->counts[i - start] = ree_axis_count(&x->axes[i]);
    }
    return NULL;
}

// Sets out->rank and out->axes from input number `input`, a list of sizes.
static const char *read_shape(const struct ree_derivation *d, size_t input, struct ree_fact *out) {
    const struct ree_fact *shape = ree_causality_in(d, input);
    if (!shape || !shape->n_counts) return "its shape does not consist of sizes";
    out->rank = (uint32_t)shape->n_counts;
    for (size_t i = 0; i < shape->n_counts; i++)
        if (!ree_count_axis(d, shape->counts[i], &out->axes[i]))
            return "its shape has a dimension that is not a number of tokens";
    return NULL;
}

const char *ree_causality_constant_of_shape(struct ree_derivation *d) {
    const struct ree_attr *value = ree_node_attr(d->node, "value");
    const char *why = read_shape(d, 0, d->out);
    struct ree_fact fill = {.dtype = REE_F32, .has_fill = true};
    if (why) return why;
    if (value && value->tensor) ree_fact_constant(&fill, value->tensor);
    if (fill.why_not) return fill.why_not;
    d->out->dtype = fill.dtype;
    d->out->has_fill = fill.has_fill;
    d->out->fill = fill.fill;
    return NULL;
}

// Range(start, limit, delta). With delta 1, one element for each token, and a start at the position
// of the first of these tokens plus a constant, element i is the position of token i plus this
// constant.
const char *ree_causality_range(struct ree_derivation *d) {
    const struct ree_fact *start = d->in[0], *limit = d->in[1], *delta = d->in[2];
    struct ree_fact *out = d->out;
    if (start->n_counts != 1 || limit->n_counts != 1 || !delta->has_fill || delta->fill != 1)
        return "its elements are not proved to be positions";
    struct ree_count from = start->counts[0], to = limit->counts[0];
    struct ree_count n;
    if (__builtin_sub_overflow(to.n, from.n, &n.n) ||
        __builtin_sub_overflow(to.fresh, from.fresh, &n.fresh) ||
        __builtin_sub_overflow(to.past, from.past, &n.past))
        return "its elements are not proved to be positions";
    out->dtype = start->dtype;
    out->rank = 1;
    if (!ree_count_axis(d, n, &out->axes[0])) return "its length is not the number of tokens";
    if (!ree_axis_is_position(&out->axes[0]))
        return from.fresh || from.past ? "it begins at the position of the new tokens" : NULL;
    bool from_first = !from.fresh && !from.past;
    bool from_new = !from.fresh && from.past == 1 && !d->prover->question->has_slack;
    bool is_new = out->axes[0].kind == REE_AXIS_NEW && d->prover->has_cache;
    if (is_new ? !from_new : !from_first) return "its elements are not proved to be positions";
    if (from.n < -(1 << 20) || from.n > 1 << 20)
        return "its elements are not proved to be positions";
    out->is_ramp = true;
    out->ramp = 0;
    out->shift = from.n;
    return NULL;
}

// Reshape

// Every position axis of x must be an axis of `out`, in the same order, with equal numbers of
// elements before, between and after these axes. to[i] becomes the axis of `out` that corresponds
// to axis i of x, or -1.
static const char *align(const struct ree_fact *x, const struct ree_fact *out, int *to) {
    uint32_t j = 0;
    int64_t left = 1, right = 1;
    for (uint32_t i = 0; i <= x->rank; i++) {
        bool is_end = i == x->rank;
        if (!is_end) to[i] = -1;
        if (!is_end && !ree_axis_is_position(&x->axes[i])) {
            if (__builtin_mul_overflow(left, x->axes[i].size, &left)) return "it is too large";
            continue;
        }
        for (; j < out->rank && !ree_axis_is_position(&out->axes[j]); j++)
            if (__builtin_mul_overflow(right, out->axes[j].size, &right)) return "it is too large";
        bool ends = j == out->rank;
        if (left != right || ends != is_end ||
            (!ends && !ree_axes_same(&x->axes[i], &out->axes[j])))
            return "it joins or divides the axis of tokens";
        if (!is_end) to[i] = (int)j++;
        left = right = 1;
    }
    return NULL;
}

// Infers the size that the shape leaves open (-1), at out->axes[open].
static const char *infer_size(const struct ree_fact *x, struct ree_fact *out, uint32_t open) {
    int64_t inside = 1, outside = 1;
    uint32_t n_inside = 0, n_outside = 0, before = 0;
    const struct ree_axis *nth[REE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        if (ree_axis_is_position(&x->axes[i]))
            nth[n_inside++] = &x->axes[i];
        else if (__builtin_mul_overflow(inside, x->axes[i].size, &inside))
            return "it is too large";
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        if (i == open) continue;
        if (ree_axis_is_position(&out->axes[i])) {
            n_outside++;
            before += i < open;
        } else if (__builtin_mul_overflow(outside, out->axes[i].size, &outside)) {
            return "it is too large";
        }
    }
    if (outside == 0 || inside % outside) return "its shape does not match in every run";
    if (n_inside == n_outside)
        out->axes[open] = (struct ree_axis){REE_AXIS_FIXED, inside / outside};
    else if (n_inside == n_outside + 1 && inside == outside)
        out->axes[open] = *nth[before];
    else
        return "it joins or divides the axis of tokens";
    return NULL;
}

const char *ree_causality_reshape(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *shape = ree_causality_in(d, 1);
    struct ree_fact *out = d->out, counts = {0};
    bool zero_is_size = ree_node_int(d->node, "allowzero", 0) != 0;
    if (!shape && d->n_in < 2) {
        size_t n;
        const int64_t *sizes = ree_node_ints(d->node, "shape", &n);
        if (n > REE_MAX_COUNTS) return "its shape does not consist of sizes";
        for (counts.n_counts = 0; counts.n_counts < n; counts.n_counts++)
            counts.counts[counts.n_counts].n = sizes[counts.n_counts];
        shape = &counts;
    }
    if (!shape || !shape->n_counts) return "its shape does not consist of sizes";
    int open = -1, to[REE_MAX_RANK];
    out->rank = (uint32_t)shape->n_counts;
    for (uint32_t i = 0; i < out->rank; i++) {
        struct ree_count c = shape->counts[i];
        bool is_number = ree_count_is_number(c);
        if (is_number && c.n == -1 && open < 0) {
            open = (int)i;
            out->axes[i] = (struct ree_axis){REE_AXIS_FIXED, 1};
        } else if (is_number && c.n == 0 && !zero_is_size) {
            if (i >= x->rank) return "its shape copies a dimension that does not exist";
            out->axes[i] = x->axes[i];
        } else if (!ree_count_axis(d, c, &out->axes[i])) {
            return "its shape has a dimension that is not a number of tokens";
        }
    }
    const char *why = open >= 0 ? infer_size(x, out, (uint32_t)open) : NULL;
    if (!why) why = align(x, out, to);
    if (!why) ree_fact_move(out, x, to);
    return why;
}

const char *ree_causality_transpose(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    size_t n;
    const int64_t *perm = ree_node_ints(d->node, "perm", &n);
    int to[REE_MAX_RANK];
    if (perm && n != x->rank) return "its permutation is of another rank";
    d->out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        to[i] = -1;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t from = x->rank - 1 - i;
        if (perm && !ree_read_axis(perm[i], x->rank, &from)) return "its permutation is wrong";
        if (to[from] >= 0) return "its permutation is wrong";
        to[from] = (int)i;
        d->out->axes[i] = x->axes[from];
    }
    ree_fact_move(d->out, x, to);
    if (x->rank > 1 && x->n_counts > 1) d->out->n_counts = 0; // the order of elements changes
    return NULL;
}

const char *ree_causality_squeeze(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    int64_t axes[REE_MAX_COUNTS];
    size_t n;
    bool gone[REE_MAX_RANK] = {false};
    const char *why = ree_read_numbers(d, "axes", 1, &n, axes);
    if (why) return why;
    if (!n) return "it has no axes";
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!ree_read_axis(axes[i], x->rank, &axis)) return "an axis is out of range";
        if (!ree_axis_is_fixed(&x->axes[axis], 1)) return "an axis is not of size 1";
        gone[axis] = true;
    }
    int to[REE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        to[i] = gone[i] ? -1 : (int)d->out->rank++;
        if (to[i] >= 0) d->out->axes[to[i]] = x->axes[i];
    }
    ree_fact_move(d->out, x, to);
    return NULL;
}

const char *ree_causality_unsqueeze(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    int64_t axes[REE_MAX_COUNTS];
    size_t n;
    bool fresh[REE_MAX_RANK] = {false};
    const char *why = ree_read_numbers(d, "axes", 1, &n, axes);
    if (why) return why;
    uint32_t rank = x->rank + (uint32_t)n;
    if (!n || rank > REE_MAX_RANK) return "its axes are out of range";
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!ree_read_axis(axes[i], rank, &axis) || fresh[axis]) return "an axis is out of range";
        fresh[axis] = true;
    }
    int to[REE_MAX_RANK];
    d->out->rank = rank;
    for (uint32_t i = 0, j = 0; i < rank; i++) {
        d->out->axes[i] = fresh[i] ? (struct ree_axis){REE_AXIS_FIXED, 1} : x->axes[j];
        if (!fresh[i]) to[j++] = (int)i;
    }
    ree_fact_move(d->out, x, to);
    return NULL;
}

const char *ree_causality_expand(struct ree_derivation *d) {
    struct ree_fact target = {0};
    uint32_t shifts[2];
    int to[REE_MAX_RANK];
    const char *why = read_shape(d, 1, &target);
    if (why) return why;
    why =
        ree_fact_broadcast(d->out, 2, (const struct ree_fact *const[]){d->in[0], &target}, shifts);
    if (why) return why;
    for (uint32_t i = 0; i < d->in[0]->rank; i++)
        to[i] = (int)(i + shifts[0]);
    ree_fact_move(d->out, d->in[0], to);
    d->out->n_counts = 0;
    return NULL;
}

// Joining and cutting

static void join_counts(struct ree_derivation *d) {
    size_t n = 0;
    for (size_t i = 0; i < d->n_in; i++) {
        const struct ree_fact *x = d->in[i];
        if (!x->n_counts || x->rank != 1 || x->n_counts > REE_MAX_COUNTS - n) return;
        for (size_t k = 0; k < x->n_counts; k++)
            d->out->counts[n++] = x->counts[k];
    }
    d->out->n_counts = n;
}

const char *ree_causality_concat(struct ree_derivation *d) {
    const struct ree_fact *first = ree_causality_in(d, 0);
    uint32_t axis;
    if (!first || !ree_read_axis(ree_node_int(d->node, "axis", 1), first->rank, &axis))
        return "its axis is out of range";
    if (first->past) {
        if (d->n_in != 2 || !d->in[1]) return "it does not append new tokens to a cache";
        return ree_fact_append(d, first, d->in[1], 0, axis);
    }
    ree_fact_like(d->out, first);
    int64_t size = 0;
    for (size_t i = 0; i < d->n_in; i++) {
        const struct ree_fact *x = d->in[i];
        if (!x || x->rank != first->rank || x->dtype != first->dtype)
            return "its inputs' shapes do not match";
        for (uint32_t k = 0; k < x->rank; k++)
            if (k == axis ? ree_axis_is_position(&x->axes[k])
                          : !ree_axes_same(&x->axes[k], &first->axes[k]))
                return "it joins along the axis of tokens, but not a cache with the new tokens";
        d->out->follows |= x->follows;
        d->out->may_be_nan = d->out->may_be_nan || x->may_be_nan;
        if (__builtin_add_overflow(size, x->axes[axis].size, &size)) return "it is too large";
    }
    d->out->axes[axis].size = size;
    join_counts(d);
    return NULL;
}

const char *ree_causality_split(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    int64_t sizes[REE_MAX_COUNTS];
    size_t n;
    uint32_t axis;
    if (!ree_read_axis(ree_node_int(d->node, "axis", 0), x->rank, &axis))
        return "its axis is out of range";
    if (ree_axis_is_position(&x->axes[axis])) return "it divides the axis of tokens";
    const char *why = ree_read_numbers(d, "split", 1, &n, sizes);
    if (why) return why;
    if (n ? n != d->n_out : x->axes[axis].size % (int64_t)d->n_out)
        return "its split sizes are not constant";
    int64_t left = x->axes[axis].size;
    for (size_t i = 0; i < n; left -= sizes[i++])
        if (sizes[i] < 0 || sizes[i] > left)
            return "its split sizes do not add up to the size of the axis";
    if (n && left) return "its split sizes do not add up to the size of the axis";
    for (size_t i = 0; i < d->n_out; i++) {
        struct ree_fact part = *x;
        part.axes[axis].size = n ? sizes[i] : x->axes[axis].size / (int64_t)d->n_out;
        part.n_counts = 0;
        keep(&d->out[i], &part);
    }
    return NULL;
}

struct bounds {
    size_t n;
    int64_t starts[REE_MAX_COUNTS], axes[REE_MAX_COUNTS], steps[REE_MAX_COUNTS];
    struct ree_count ends[REE_MAX_COUNTS];
};

static const char *read_bounds(const struct ree_derivation *d, struct bounds *b) {
    size_t n_ends, n_axes = 0, n_steps = 0;
    int64_t ends[REE_MAX_COUNTS];
    const struct ree_fact *end = ree_causality_in(d, 2);
    const char *why = ree_read_numbers(d, "starts", 1, &b->n, b->starts);
    if (why) return why;
    if (end && end->n_counts) {
        n_ends = end->n_counts;
        memcpy(b->ends, end->counts, sizeof b->ends);
    } else {
        why = ree_read_numbers(d, "ends", 2, &n_ends, ends);
        if (why) return why;
        for (size_t i = 0; i < n_ends; i++)
            b->ends[i] = (struct ree_count){.n = ends[i]};
    }
    why = ree_read_numbers(d, "axes", 3, &n_axes, b->axes);
    if (!why) why = ree_read_numbers(d, NULL, 4, &n_steps, b->steps);
    if (why) return why;
    if (!b->n || n_ends != b->n || (n_axes && n_axes != b->n) || (n_steps && n_steps != b->n))
        return "its bounds are not constant";
    for (size_t i = 0; i < b->n; i++) {
        if (!n_axes) b->axes[i] = (int64_t)i;
        if (!n_steps) b->steps[i] = 1;
    }
    return NULL;
}

static bool is_whole(const struct ree_axis *axis, int64_t start, struct ree_count end) {
    struct ree_count size = ree_axis_count(axis);
    bool beyond = ree_count_is_number(end) && end.n >= INT32_MAX;
    bool equal = axis->kind != REE_AXIS_ROWS && !memcmp(&size, &end, sizeof size);
    return start == 0 && (beyond || equal);
}

static int64_t clamp(int64_t at, int64_t size) {
    at = at < 0 ? at + size : at;
    return at < 0 ? 0 : at > size ? size : at;
}

// n elements of an axis: start, start + step and so on. `start` is within the axis unless n is 0.
// `step` is at least 1.
struct cut {
    int64_t start, step, n;
};

static struct cut cut_axis(int64_t size, int64_t from, int64_t to, int64_t step) {
    int64_t start = clamp(from, size), end = clamp(to, size);
    return (struct cut){start, step, end > start ? 1 + (end - start - 1) / step : 0};
}

// Selects the counts of a list. Drops the counts of values of other ranks.
static void cut_counts(struct ree_fact *part, const struct ree_fact *x, struct cut c) {
    part->n_counts = 0;
    if (x->rank != 1) return;
    for (int64_t k = 0; k < c.n && c.start + k * c.step < (int64_t)x->n_counts; k++)
        part->counts[part->n_counts++] = x->counts[c.start + k * c.step];
}

const char *ree_causality_slice(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    struct ree_fact part = *x;
    struct bounds b = {0};
    uint32_t cut = 0;
    const char *why = read_bounds(d, &b);
    if (why) return why;
    for (size_t i = 0; i < b.n; i++) {
        uint32_t axis;
        if (!ree_read_axis(b.axes[i], x->rank, &axis)) return "an axis is out of range";
        if (b.steps[i] < 1) return "it has a negative step";
        if (cut >> axis & 1) return "it slices an axis twice";
        cut |= 1u << axis;
        if (ree_axis_is_position(&x->axes[axis])) {
            if (b.steps[i] != 1 || !is_whole(&x->axes[axis], b.starts[i], b.ends[i]))
                return "it slices the axis of tokens";
            continue;
        }
        if (!ree_count_is_number(b.ends[i])) return "its bounds depend on the number of tokens";
        struct cut c = cut_axis(x->axes[axis].size, b.starts[i], b.ends[i].n, b.steps[i]);
        part.axes[axis].size = c.n;
        cut_counts(&part, x, c);
    }
    if (part.is_rows) return "it selects only some of the requested rows";
    keep(d->out, &part);
    return NULL;
}

const char *ree_causality_gather(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *index = d->in[1];
    struct ree_fact *out = d->out;
    uint32_t axis;
    if (!ree_read_axis(ree_node_int(d->node, "axis", 0), x->rank, &axis))
        return "its axis is out of range";
    if (index->counts_only) return "its index depends on the number of tokens";
    if (ree_axis_is_position(&x->axes[axis])) return "it selects tokens by their index";
    out->dtype = x->dtype;
    out->rank = x->rank - 1 + index->rank;
    if (out->rank > REE_MAX_RANK) return "its result has too many dimensions";
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i == axis) continue;
        uint32_t to = i < axis ? i : i - 1 + index->rank;
        out->axes[to] = x->axes[i];
        if (x->follows >> i & 1) out->follows |= 1u << to;
    }
    memcpy(out->axes + axis, index->axes, index->rank * sizeof *out->axes);
    out->follows |= index->follows << axis;
    out->may_be_nan = x->may_be_nan;
    if (!x->n_counts || x->rank != 1) return NULL;
    int64_t numbers[REE_MAX_COUNTS];
    size_t n = 0;
    bool known = index->rank <= 1 && ree_fact_numbers(index, &n, numbers);
    for (size_t i = 0; i < n && known; i++) {
        int64_t at = numbers[i] < 0 ? numbers[i] + (int64_t)x->n_counts : numbers[i];
        known = at >= 0 && at < (int64_t)x->n_counts;
        if (known) out->counts[i] = x->counts[at];
    }
    out->n_counts = known ? n : 0;
    if (out->n_counts == 1 && ree_count_is_number(out->counts[0])) {
        out->has_fill = true;
        out->fill = (double)out->counts[0].n;
    }
    return NULL;
}

// GatherBlockQuantized, only as a lookup of rows in a constant matrix: a quantised embedding table.
const char *ree_causality_gather_block_quantized(struct ree_derivation *d) {
    const struct ree_fact *data = d->in[0], *index = d->in[1];
    struct ree_fact *out = d->out;
    uint32_t gather_axis, quantize_axis;
    if (!ree_read_axis(ree_node_int(d->node, "gather_axis", 0), data->rank, &gather_axis) ||
        !ree_read_axis(ree_node_int(d->node, "quantize_axis", 1), data->rank, &quantize_axis))
        return "an axis is out of range";
    if (data->rank != 2 || gather_axis != 0 || quantize_axis != 1)
        return "its table is not a matrix whose rows are looked up";
    for (size_t i = 0; i < d->n_in; i++)
        if (i != 1 && d->in[i] && !ree_fact_is_plain(d->in[i])) return "its table is not constant";
    if (index->counts_only) return "its index depends on the number of tokens";
    if (index->rank >= REE_MAX_RANK) return "its result has too many dimensions";
    int64_t bits = data->dtype == REE_U8 ? ree_node_int(d->node, "bits", 4) : 8;
    if (bits != 2 && bits != 4 && bits != 8) return "its numbers do not have 2, 4 or 8 bits";
    out->dtype = d->in[2]->dtype;
    out->rank = index->rank + 1;
    memcpy(out->axes, index->axes, index->rank * sizeof *out->axes);
    out->axes[index->rank] = data->axes[1];
    out->axes[index->rank].size *= 8 / bits;
    out->follows = index->follows;
    out->may_be_nan = true; // 0 times an infinite scale is NaN
    return NULL;
}

// GatherND, only in the form that ree_pass_select_rows inserts: it selects the requested rows.
const char *ree_causality_gather_nd(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *index = d->in[1];
    bool is_choice = index->is_rows && index->rank == 3 && ree_axis_is_fixed(&index->axes[0], 1) &&
                     index->axes[1].kind == REE_AXIS_ROWS && ree_axis_is_fixed(&index->axes[2], 1);
    if (!is_choice || ree_node_int(d->node, "batch_dims", 0) != 1 || x->rank != 3 ||
        x->axes[1].kind != REE_AXIS_NEW || !ree_axis_is_fixed(&x->axes[0], 1))
        return "it selects elements by their index";
    ree_fact_like(d->out, x);
    d->out->axes[1] = (struct ree_axis){REE_AXIS_ROWS, 0};
    return NULL;
}

// Trilu. Rows are queries and columns are keys, if both are counted from the first token.
const char *ree_causality_trilu(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0], *k = ree_causality_in(d, 1);
    bool upper = ree_node_int(d->node, "upper", 1) != 0;
    if (x->rank < 2) return "it has no rows";
    if (k && (!k->has_fill || k->counts_only)) return "its diagonal is not constant";
    if (!k && d->n_in > 1 && d->node->inputs[1]) return "its diagonal is not known";
    double diagonal = k ? k->fill : 0;
    struct ree_order order = {true, x->rank - 1, x->rank - 2};
    const struct ree_axis *rows = &x->axes[order.query], *columns = &x->axes[order.key];
    bool fixed = !ree_axis_is_position(rows) && !ree_axis_is_position(columns);
    ree_fact_like(d->out, x);
    if (fixed) return NULL;
    if (!ree_axis_is_complete(d, rows) || !ree_axis_is_complete(d, columns))
        return "it is not proved that its diagonal lets each token see only itself and earlier "
               "tokens";
    bool is_bool = x->dtype == REE_BOOL;
    if (!upper && diagonal <= 0) *(is_bool ? &d->out->if_true : &d->out->zeroed) = order;
    if (upper && diagonal <= 1) {
        // These elements keep the numbers of x: those whose key is later than the query.
        bool masked =
            x->masked.holds && x->masked.key == order.key && x->masked.query == order.query;
        if (!is_bool && (masked || (x->has_fill && x->fill == -INFINITY))) d->out->masked = order;
        if (is_bool && x->has_fill && x->fill == 1) d->out->if_false = order;
    }
    return NULL;
}
