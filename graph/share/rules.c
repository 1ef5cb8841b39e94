// Rules: through which operators samples can be followed.
#include "graph/share/divide.h"

#include <string.h>

#define NOT_ALIGNED "its inputs do not have their samples at the same place"
#define NO_SHAPES "the shapes of its values are not known"
#define MIXES "it mixes the samples"

int64_t ree_share_own(const struct ree_divide *d) {
    return d->options->end - d->options->begin;
}

bool ree_share_has_shape(const struct ree_value *value) {
    int64_t n = 1;
    if (!value || !value->has_shape || value->kind != REE_TENSOR) return false;
    for (uint32_t i = 0; i < value->rank; i++) {
        // No tensor has more elements; so products of dimensions and small numbers do not overflow.
        if (value->dims[i] < 0 || value->dims[i] > INT32_MAX) return false;
        if (value->dims[i] && (n *= value->dims[i]) > INT32_MAX) return false;
    }
    return true;
}

int64_t ree_share_product(const struct ree_value *value, uint32_t begin, uint32_t end) {
    int64_t n = 1;
    for (uint32_t i = begin; i < end; i++)
        n *= value->dims[i];
    return n;
}

bool ree_samples_same(struct ree_samples a, struct ree_samples b) {
    return a.is_divided == b.is_divided && (!a.is_divided || (a.axis == b.axis && a.per == b.per));
}

static struct ree_samples divided(uint32_t axis, int64_t per) {
    return (struct ree_samples){true, axis, per};
}

static const struct ree_value *input(const struct ree_division *x, size_t i) {
    return i < x->node->n_inputs ? x->node->inputs[i] : NULL;
}

static const struct ree_value *output(const struct ree_division *x, size_t i) {
    return i < x->node->n_outputs ? x->node->outputs[i] : NULL;
}

static struct ree_samples samples_of(const struct ree_divide *d, const struct ree_value *value) {
    return value ? d->samples[value->id] : (struct ree_samples){0};
}

static struct ree_samples samples(const struct ree_division *x, size_t i) {
    return samples_of(x->d, input(x, i));
}

bool ree_samples_fit(const struct ree_divide *d, const struct ree_value *value,
                     struct ree_samples s) {
    return !s.is_divided ||
           (s.axis < value->rank && value->dims[s.axis] == d->options->batch * s.per);
}

// Returns whether the axis has `per` elements for each sample of the batch.
static bool fits(const struct ree_divide *d, const struct ree_value *value, uint32_t axis,
                 int64_t per) {
    return ree_samples_fit(d, value, divided(axis, per));
}

bool ree_share_list(const struct ree_node *node, size_t i, const char *attribute, size_t *out_n,
                    int64_t out[REE_MAX_RANK * 2]) {
    const struct ree_value *value = i < node->n_inputs ? node->inputs[i] : NULL;
    *out_n = 0;
    if (value) {
        size_t size = ree_dtype_size(value->dtype);
        bool is_integer = value->dtype == REE_I64 || value->dtype == REE_I32;
        if (!value->data || value->is_input || !is_integer) return false;
        size_t n = value->nbytes / size;
        if (n > REE_MAX_RANK * 2) return false;
        for (size_t k = 0; k < n; k++)
            out[k] = value->dtype == REE_I64 ? ((const int64_t *)value->data)[k]
                                             : ((const int32_t *)value->data)[k];
        *out_n = n;
        return true;
    }
    const int64_t *ints = attribute ? ree_node_ints(node, attribute, out_n) : NULL;
    if (*out_n > REE_MAX_RANK * 2) return false;
    if (*out_n) memcpy(out, ints, *out_n * sizeof *out);
    return true;
}

// Reads an axis attribute or number in [-rank, rank). Returns false if it is outside.
static bool read_axis(int64_t axis, uint32_t rank, uint32_t *out) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    *out = (uint32_t)axis;
    return true;
}

static bool set_list(struct ree_divide *d, struct ree_own_node *own, size_t at, const int64_t *list,
                     size_t n) {
    own->list = ree_arena_alloc_array(&d->arena, n + 1, sizeof *own->list);
    if (!own->list) return false;
    memcpy(own->list, list, n * sizeof *list);
    own->list_input = at;
    own->n_list = n;
    return true;
}

// The shape of a value that consists of one rank's samples.
static void own_shape(const struct ree_divide *d, const struct ree_value *value,
                      struct ree_samples s, int64_t out[REE_MAX_RANK]) {
    memcpy(out, value->dims, sizeof value->dims);
    out[s.axis] = ree_share_own(d) * s.per;
}

// Elementwise operators

// Sets how the inputs are read if the output has the form `out`. Each input is broadcast to the
// output's shape; axes are aligned at the end.
static bool broadcast_needs(const struct ree_divide *d, const struct ree_node *node,
                            struct ree_samples out, struct ree_own_node *own) {
    const struct ree_value *made = node->outputs[0];
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *value = node->inputs[i];
        if (!value) continue;
        if (!ree_share_has_shape(value) || value->rank > made->rank) return false;
        uint32_t shift = made->rank - value->rank;
        if (out.axis < shift || !fits(d, value, out.axis - shift, out.per)) continue;
        own->needs[i] = divided(out.axis - shift, out.per);
    }
    return true;
}

static const char *elementwise(struct ree_division *x) {
    const struct ree_value *made = output(x, 0);
    if (x->node->n_outputs != 1) return NO_SHAPES;
    struct ree_samples out = {0};
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = samples(x, i);
        if (!s.is_divided) continue;
        if (input(x, i)->rank > made->rank) return NO_SHAPES;
        s.axis += made->rank - input(x, i)->rank;
        if (out.is_divided && !ree_samples_same(s, out)) return NOT_ALIGNED;
        out = s;
    }
    if (!fits(x->d, made, out.axis, out.per)) return MIXES;
    if (!broadcast_needs(x->d, x->node, out, x->own)) return NO_SHAPES;
    x->outputs[0] = out;
    return NULL;
}

static const char *expand(struct ree_division *x) {
    const struct ree_value *made = output(x, 0);
    struct ree_samples s = samples(x, 0);
    int64_t shape[REE_MAX_RANK];
    if (samples(x, 1).is_divided) return MIXES;
    if (input(x, 0)->rank > made->rank) return NO_SHAPES;
    s.axis += made->rank - input(x, 0)->rank;
    if (!fits(x->d, made, s.axis, s.per)) return MIXES;
    x->own->needs[0] = samples(x, 0);
    x->outputs[0] = s;
    own_shape(x->d, made, s, shape);
    return set_list(x->d, x->own, 1, shape, made->rank) ? NULL : NO_SHAPES;
}

// Movement

// Finds how `to`, a reshaped form of `from`, is divided. Samples must be contiguous in both, after
// the same number of elements that enclose them.
static bool reshape_samples(const struct ree_divide *d, const struct ree_value *from,
                            struct ree_samples s, const struct ree_value *to,
                            struct ree_samples *out) {
    if (!ree_share_has_shape(from) || !ree_share_has_shape(to)) return false;
    int64_t before = ree_share_product(from, 0, s.axis), n = 1;
    for (uint32_t axis = 0; axis < to->rank; axis++) {
        if (n == before && to->dims[axis] && to->dims[axis] % d->options->batch == 0) {
            *out = divided(axis, to->dims[axis] / d->options->batch);
            return true;
        }
        n *= to->dims[axis];
    }
    return false;
}

static const char *reshape(struct ree_division *x) {
    const struct ree_value *made = output(x, 0);
    int64_t shape[REE_MAX_RANK];
    if (!samples(x, 0).is_divided) return MIXES;
    if (!reshape_samples(x->d, input(x, 0), samples(x, 0), made, &x->outputs[0]))
        return "its new shape does not keep the samples apart";
    own_shape(x->d, made, x->outputs[0], shape);
    x->own->needs[0] = samples(x, 0);
    x->own->is_reshape = true;
    return set_list(x->d, x->own, 1, shape, made->rank) ? NULL : NO_SHAPES;
}

// Reads the permutation of a Transpose.
static bool read_order(const struct ree_node *node, uint32_t rank, uint32_t out[REE_MAX_RANK]) {
    size_t n;
    const int64_t *perm = ree_node_ints(node, "perm", &n);
    if (rank > REE_MAX_RANK || (perm && n != rank)) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!perm)
            out[i] = rank - 1 - i;
        else if (perm[i] < 0 || perm[i] >= rank)
            return false;
        else
            out[i] = (uint32_t)perm[i];
    return true;
}

static const char *transpose(struct ree_division *x) {
    struct ree_samples s = samples(x, 0);
    uint32_t order[REE_MAX_RANK];
    if (!read_order(x->node, input(x, 0)->rank, order)) return NO_SHAPES;
    for (uint32_t i = 0; i < input(x, 0)->rank; i++)
        if (order[i] == s.axis) x->outputs[0] = divided(i, s.per);
    x->own->needs[0] = s;
    return NULL;
}

static const char *concat(struct ree_division *x) {
    struct ree_samples out = {0};
    uint32_t axis;
    for (size_t i = 0; i < x->node->n_inputs; i++)
        if (samples(x, i).is_divided) out = samples(x, i);
    if (!read_axis(ree_node_int(x->node, "axis", 0), input(x, 0)->rank, &axis)) return NO_SHAPES;
    if (axis == out.axis) return MIXES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = samples(x, i);
        if (s.is_divided && !ree_samples_same(s, out)) return NOT_ALIGNED;
        if (!input(x, i) || !fits(x->d, input(x, i), out.axis, out.per)) return NOT_ALIGNED;
        x->own->needs[i] = out;
    }
    x->outputs[0] = out;
    return NULL;
}

// Keeps the axes of input 0 and works along others; its other inputs are common.
static const char *along(struct ree_division *x, int64_t axis) {
    struct ree_samples s = samples(x, 0);
    uint32_t at;
    if (!s.is_divided) return MIXES;
    for (size_t i = 1; i < x->node->n_inputs; i++)
        if (samples(x, i).is_divided) return MIXES;
    if (!read_axis(axis, input(x, 0)->rank, &at)) return NO_SHAPES;
    if (at == s.axis) return MIXES;
    x->own->needs[0] = s;
    for (size_t i = 0; i < x->node->n_outputs; i++)
        x->outputs[i] = s;
    return NULL;
}

static const char *along_attribute(struct ree_division *x) { // default -1
    return along(x, ree_node_int(x->node, "axis", -1));
}

static const char *along_first(struct ree_division *x) { // default 0
    return along(x, ree_node_int(x->node, "axis", 0));
}

static const char *cumsum(struct ree_division *x) {
    int64_t axis[REE_MAX_RANK * 2];
    size_t n;
    if (!ree_share_list(x->node, 1, NULL, &n, axis) || n != 1) return "its axis is not constant";
    return along(x, axis[0]);
}

static const char *arg(struct ree_division *x) {
    const int64_t stated = ree_node_int(x->node, "axis", 0);
    uint32_t axis = 0;
    const char *why = along(x, stated);
    if (why) return why;
    if (!read_axis(stated, input(x, 0)->rank, &axis)) return NO_SHAPES;
    if (!ree_node_int(x->node, "keepdims", 1) && axis < x->outputs[0].axis) x->outputs[0].axis--;
    return NULL;
}

static const char *trilu(struct ree_division *x) {
    struct ree_samples s = samples(x, 0);
    if (s.axis + 2 >= input(x, 0)->rank || samples(x, 1).is_divided) return MIXES;
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

static const char *slice(struct ree_division *x) {
    struct ree_samples s = samples(x, 0);
    int64_t starts[REE_MAX_RANK * 2], ends[REE_MAX_RANK * 2], axes[REE_MAX_RANK * 2],
        steps[REE_MAX_RANK * 2];
    size_t n, n_ends, n_axes, n_steps;
    uint32_t axis;
    if (!s.is_divided || !ree_share_list(x->node, 1, NULL, &n, starts) ||
        !ree_share_list(x->node, 2, NULL, &n_ends, ends) || n_ends != n ||
        !ree_share_list(x->node, 3, NULL, &n_axes, axes) ||
        !ree_share_list(x->node, 4, NULL, &n_steps, steps) || (n_axes && n_axes != n) ||
        (n_steps && n_steps != n))
        return "its ranges are not constant";
    for (size_t i = 0; i < n; i++) {
        if (!read_axis(n_axes ? axes[i] : (int64_t)i, input(x, 0)->rank, &axis)) return NO_SHAPES;
        // An end beyond the own samples is taken as their end.
        bool is_all =
            starts[i] == 0 && ends[i] >= input(x, 0)->dims[axis] && (!n_steps || steps[i] == 1);
        if (axis == s.axis && !is_all) return "it selects samples";
    }
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

static const char *pad(struct ree_division *x) {
    struct ree_samples s = samples(x, 0);
    int64_t pads[REE_MAX_RANK * 2], axes[REE_MAX_RANK * 2];
    size_t n, n_axes;
    uint32_t axis;
    if (!s.is_divided || !ree_share_list(x->node, 1, "pads", &n, pads) ||
        !ree_share_list(x->node, 3, NULL, &n_axes, axes) || n % 2 || (n_axes && n_axes != n / 2))
        return "its pads are not constant";
    for (size_t i = 0; i < n / 2; i++) {
        if (!read_axis(n_axes ? axes[i] : (int64_t)i, input(x, 0)->rank, &axis)) return NO_SHAPES;
        if (axis == s.axis && (pads[i] || pads[n / 2 + i])) return "it adds samples";
    }
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

static const char *gather(struct ree_division *x) {
    struct ree_samples data = samples(x, 0), indices = samples(x, 1);
    uint32_t axis;
    if (!read_axis(ree_node_int(x->node, "axis", 0), input(x, 0)->rank, &axis) || !input(x, 1))
        return NO_SHAPES;
    if (data.is_divided && (indices.is_divided || data.axis == axis)) return MIXES;
    x->own->needs[0] = data;
    x->own->needs[1] = indices;
    x->outputs[0] = data.is_divided ? data : indices;
    if (indices.is_divided)
        x->outputs[0].axis += axis;
    else if (data.axis > axis)
        x->outputs[0].axis += input(x, 1)->rank - 1;
    return NULL;
}

// Inputs with the same axes, of which the elements along one axis are selected: GatherElements,
// ScatterElements.
static const char *elements(struct ree_division *x) {
    struct ree_samples out = {0};
    uint32_t axis;
    if (!read_axis(ree_node_int(x->node, "axis", 0), input(x, 0)->rank, &axis)) return NO_SHAPES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = samples(x, i);
        if (!input(x, i)) return NO_SHAPES;
        if (!s.is_divided) continue;
        if (out.is_divided && !ree_samples_same(s, out)) return NOT_ALIGNED;
        out = s;
    }
    if (axis == out.axis) return MIXES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        if (!fits(x->d, input(x, i), out.axis, out.per)) return NOT_ALIGNED;
        x->own->needs[i] = out;
    }
    x->outputs[0] = out;
    return NULL;
}

// Adds to elements of a common tensor that indices select, one update after another.
static const char *scatter_nd(struct ree_division *x) {
    struct ree_samples indices = samples(x, 1), updates = samples(x, 2);
    if (samples(x, 0).is_divided) return MIXES;
    if (!input(x, 1) || !input(x, 2)) return NO_SHAPES;
    if (input(x, 1)->rank < 2) return "its indices are those of a single update";
    // Rounded once, after the last update: a tensor of this type cannot go from rank to rank.
    const char *reduction = ree_node_string(x->node, "reduction", "none");
    bool rounds = strcmp(reduction, "add") == 0 || strcmp(reduction, "mul") == 0;
    if (rounds && (input(x, 0)->dtype == REE_F16 || input(x, 0)->dtype == REE_BF16))
        return "ree cannot sum this type over several ranks";
    struct ree_samples s = indices.is_divided ? indices : updates;
    if (s.axis || !fits(x->d, input(x, 1), 0, s.per) || !fits(x->d, input(x, 2), 0, s.per) ||
        (indices.is_divided && updates.is_divided && !ree_samples_same(indices, updates)))
        return NOT_ALIGNED;
    x->own->needs[1] = x->own->needs[2] = s;
    x->role = REE_NODE_SUM;
    x->sum->kind = REE_SUM_BY_INDICES;
    x->sum->n_per_sample =
        (uint64_t)(ree_share_product(input(x, 1), 0, input(x, 1)->rank - 1) / x->d->options->batch);
    x->sum->m = x->sum->n = 1;
    return NULL;
}

// Reductions

static bool is_op(const struct ree_node *node, const char *op_type) {
    return strcmp(node->op_type, op_type) == 0;
}

// Terms are ordered by the reduced axes, in the order of the tensor's axes.
static const char *reduce(struct ree_division *x) {
    const struct ree_value *value = input(x, 0);
    struct ree_samples s = samples(x, 0);
    int64_t axes[REE_MAX_RANK * 2];
    bool is_reduced[REE_MAX_RANK] = {false};
    size_t n;
    if (!ree_share_list(x->node, 1, "axes", &n, axes)) return "its axes are not constant";
    bool keeps = ree_node_int(x->node, "keepdims", 1) != 0;
    if (n == 0 && ree_node_int(x->node, "noop_with_empty_axes", 0)) return elementwise(x);
    for (uint32_t i = 0; n == 0 && i < value->rank; i++)
        is_reduced[i] = true;
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!read_axis(axes[i], value->rank, &axis)) return NO_SHAPES;
        is_reduced[axis] = true;
    }
    x->own->needs[0] = s;
    if (!is_reduced[s.axis]) {
        x->outputs[0] = s;
        for (uint32_t i = 0; !keeps && i < s.axis; i++)
            x->outputs[0].axis -= is_reduced[i];
        return NULL;
    }
    struct ree_sum_node *sum = x->sum;
    bool is_mean = is_op(x->node, "ReduceMean");
    if (!is_mean && !is_op(x->node, "ReduceSum")) return "ree cannot compute it over several ranks";
    x->role = REE_NODE_SUM;
    int64_t n_terms = 1;
    sum->m = sum->n = 1;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (!is_reduced[i]) continue;
        if (i < s.axis && value->dims[i] > 1)
            return "its terms are not in the order of the samples";
        sum->order[sum->n_summed++] = i;
        n_terms *= value->dims[i];
    }
    uint32_t at = sum->n_summed;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (is_reduced[i]) continue;
        sum->order[at++] = i;
        sum->m *= value->dims[i];
    }
    sum->n_per_sample = (uint64_t)(n_terms / x->d->options->batch);
    sum->is_mean = is_mean;
    sum->divisor = (float)n_terms;
    bool is_integer = value->dtype == REE_I64 || value->dtype == REE_I32;
    bool is_float = value->dtype == REE_F32 || value->dtype == REE_F16 || value->dtype == REE_BF16;
    if (is_integer && !is_mean)
        sum->kind = REE_SUM_OF_INTEGERS;
    else if (is_float)
        sum->kind = REE_SUM_OF_ROWS;
    else
        return "ree cannot sum this type over several ranks";
    return NULL;
}

// Products

static bool is_float32_or_narrower(const struct ree_value *value) {
    return value->dtype == REE_F32 || value->dtype == REE_F16 || value->dtype == REE_BF16;
}

// A vector counts as a row of the first operand, as a column of the second one.
static const char *product_of_terms(struct ree_division *x) {
    const struct ree_value *a = input(x, 0), *b = input(x, 1);
    struct ree_samples s = samples(x, 0).is_divided ? samples(x, 0) : samples(x, 1);
    if (a->rank > 2 || b->rank > 2) return "it sums over samples, and is not a product of matrices";
    if (!is_float32_or_narrower(a) || !is_float32_or_narrower(b))
        return "ree cannot sum this type over several ranks";
    x->own->needs[0] = divided(a->rank - 1, s.per);
    x->own->needs[1] = divided(0, s.per);
    for (size_t i = 0; i < 2; i++)
        if (!fits(x->d, input(x, i), x->own->needs[i].axis, s.per) ||
            (samples(x, i).is_divided && !ree_samples_same(samples(x, i), x->own->needs[i])))
            return NOT_ALIGNED;
    x->role = REE_NODE_SUM;
    x->sum->kind = REE_SUM_OF_PRODUCTS;
    x->sum->n_per_sample = (uint64_t)s.per;
    x->sum->m = a->rank == 2 ? a->dims[0] : 1;
    x->sum->n = b->rank == 2 ? b->dims[1] : 1;
    return NULL;
}

static const char *matmul(struct ree_division *x) {
    const struct ree_value *a = input(x, 0), *b = input(x, 1), *made = output(x, 0);
    struct ree_samples sa = samples(x, 0), sb = samples(x, 1);
    bool is_plain = !x->node->domain[0];
    if (!b || !a->rank || !b->rank) return NO_SHAPES;
    bool a_is_row = a->rank == 1, b_is_column = b->rank == 1;
    bool sums = (sa.is_divided && sa.axis == a->rank - 1) ||
                (sb.is_divided && sb.axis == (b_is_column ? 0 : b->rank - 2));
    if (sums) return is_plain ? product_of_terms(x) : MIXES;
    if (!is_plain && sb.is_divided) return MIXES;
    // The axis among those of a product of matrices, before axes of size 1 are removed.
    uint32_t rank = made->rank + a_is_row + b_is_column;
    struct ree_samples out = sa.is_divided ? divided(sa.axis + rank - a->rank, sa.per)
                                           : divided(sb.axis + rank - b->rank, sb.per);
    x->own->needs[sa.is_divided ? 0 : 1] = sa.is_divided ? sa : sb;
    // An axis of the batch of matrices is an axis of both operands; rows are only a's, columns b's.
    if (out.axis + 2 < rank)
        for (size_t i = 0; i < 2; i++) {
            const struct ree_value *value = input(x, i);
            uint32_t shift = rank - value->rank;
            if (value->rank > 2 && out.axis >= shift &&
                fits(x->d, value, out.axis - shift, out.per))
                x->own->needs[i] = divided(out.axis - shift, out.per);
        }
    for (size_t i = 0; i < 2; i++)
        if (samples(x, i).is_divided && !ree_samples_same(samples(x, i), x->own->needs[i]))
            return NOT_ALIGNED;
    if (a_is_row && out.axis + 1 == rank) out.axis--;
    if (!fits(x->d, made, out.axis, out.per)) return NOT_ALIGNED;
    x->outputs[0] = out;
    return NULL;
}

// The first input and the outputs have their samples along axis 0, the other inputs are common.
static const char *per_sample(struct ree_division *x) {
    struct ree_samples s = samples(x, 0);
    if (!s.is_divided || s.axis || s.per != 1) return MIXES;
    for (size_t i = 1; i < x->node->n_inputs; i++)
        if (samples(x, i).is_divided) return MIXES;
    x->own->needs[0] = s;
    for (size_t i = 0; i < x->node->n_outputs; i++)
        if (output(x, i)) x->outputs[i] = s;
    return NULL;
}

// A convolution with the samples as channels: the gradient of weights.
static const char *conv_of_terms(struct ree_division *x) {
    const struct ree_value *a = input(x, 0), *b = input(x, 1), *made = output(x, 0);
    struct ree_samples s = divided(1, 1);
    if (ree_node_int(x->node, "group", 1) != 1) return "it has several groups";
    if (input(x, 2)) return "it has a bias";
    const char *pads = ree_node_string(x->node, "auto_pad", "NOTSET");
    if (strcmp(pads, "NOTSET")) return "it has an automatic pad";
    if (!is_float32_or_narrower(a) || !is_float32_or_narrower(b))
        return "ree cannot sum this type over several ranks";
    for (size_t i = 0; i < 2; i++) {
        if (!fits(x->d, input(x, i), 1, 1) ||
            (samples(x, i).is_divided && !ree_samples_same(samples(x, i), s)))
            return NOT_ALIGNED;
        x->own->needs[i] = s;
    }
    x->role = REE_NODE_SUM;
    x->sum->kind = REE_SUM_OF_PRODUCTS;
    x->sum->is_conv = true;
    x->sum->n_per_sample = (uint64_t)ree_share_product(b, 2, b->rank);
    x->sum->n_positions = ree_share_product(made, 2, made->rank);
    x->sum->m = a->dims[0] * x->sum->n_positions;
    x->sum->n = b->dims[0];
    return NULL;
}

static const char *conv(struct ree_division *x) {
    if (!input(x, 1) || input(x, 0)->rank < 3 || input(x, 1)->rank != input(x, 0)->rank ||
        output(x, 0)->rank != input(x, 0)->rank)
        return NO_SHAPES;
    for (size_t i = 0; i < 2; i++)
        if (samples(x, i).is_divided && samples(x, i).axis == 1) return conv_of_terms(x);
    return per_sample(x);
}

static const char *max_pool(struct ree_division *x) {
    const char *why = per_sample(x);
    if (why) return why;
    if (!output(x, 1)) return NULL;
    // Indices count the elements of all samples before this one.
    x->own->added_to_second =
        x->d->options->begin * ree_share_product(input(x, 0), 1, input(x, 0)->rank);
    return NULL;
}

static const char *layer_norm(struct ree_division *x) {
    uint32_t axis;
    if (!read_axis(ree_node_int(x->node, "axis", -1), input(x, 0)->rank, &axis)) return NO_SHAPES;
    if (!axis) return MIXES;
    const char *why = per_sample(x);
    // Scale and bias are broadcast.
    for (size_t i = 1; !why && i < x->node->n_inputs; i++)
        if (input(x, i) && input(x, i)->rank == input(x, 0)->rank && fits(x->d, input(x, i), 0, 1))
            x->own->needs[i] = divided(0, 1);
    return why;
}

static const char *batch_norm(struct ree_division *x) {
    if (ree_node_int(x->node, "training_mode", 0)) return MIXES;
    // Statistics of the batch: before opset 14 they are what asks for training.
    for (size_t i = 1; i < x->node->n_outputs; i++)
        if (output(x, i)) return MIXES;
    return per_sample(x);
}

// Operators that treat all elements alike, with broadcasting.
static const char *const elementwise_ops[] = {
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
};

static const struct ree_share_row rules[] = {
    {"ArgMax", arg},
    {"ArgMin", arg},
    {"AveragePool", per_sample},
    {"BatchNormalization", batch_norm},
    {"Concat", concat},
    {"Conv", conv},
    {"ConvTranspose", per_sample},
    {"CumSum", cumsum},
    {"Expand", expand},
    {"Flatten", reshape},
    {"Gather", gather},
    {"GatherElements", elements},
    {"GlobalAveragePool", per_sample},
    {"GlobalMaxPool", per_sample},
    {"GroupNormalization", per_sample},
    {"InstanceNormalization", per_sample},
    {"LayerNormalization", layer_norm},
    {"LogSoftmax", along_attribute},
    {"MatMul", matmul},
    {"MaxPool", max_pool},
    {"Pad", pad},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Reshape", reshape},
    {"ScatterElements", elements},
    {"ScatterND", scatter_nd},
    {"Slice", slice},
    {"Softmax", along_attribute},
    {"Split", along_first},
    {"Squeeze", reshape},
    {"TopK", along_attribute},
    {"Transpose", transpose},
    {"Trilu", trilu},
    {"Unsqueeze", reshape},
};

static bool is_elementwise(const struct ree_node *node) {
    for (size_t i = 0; i < sizeof elementwise_ops / sizeof *elementwise_ops; i++)
        if (is_op(node, elementwise_ops[i])) return true;
    return false;
}

ree_share_rule ree_share_find(const struct ree_node *node) {
    bool is_internal = strcmp(node->domain, "ree.internal") == 0;
    if (is_internal) return is_op(node, "MatMul") ? matmul : NULL;
    if (node->domain[0]) return NULL;
    if (is_elementwise(node)) return elementwise;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_op(node, rules[i].op_type)) return rules[i].rule;
    return NULL;
}

// Common values of which each rank reads its own samples

// Returns whether the node is a Range of integers whose numbers, and the one behind the last, fit
// into 32 bits.
static bool is_integer_range(const struct ree_node *node) {
    int64_t numbers[3][REE_MAX_RANK * 2];
    size_t n;
    for (size_t i = 0; i < 3; i++)
        if (!ree_share_list(node, i, NULL, &n, numbers[i]) || n != 1 || numbers[i][0] > INT32_MAX ||
            numbers[i][0] < INT32_MIN)
            return false;
    int64_t end = numbers[0][0] + numbers[2][0] * node->outputs[0]->dims[0];
    return end <= INT32_MAX && end >= INT32_MIN;
}

bool ree_share_push(struct ree_divide *d, const struct ree_node *node, struct ree_samples out,
                    struct ree_own_node *own) {
    const struct ree_value *made = node->outputs[0];
    int64_t shape[REE_MAX_RANK];
    if (node->n_outputs != 1 || node->domain[0] || !ree_share_has_shape(made)) return false;
    if (is_elementwise(node)) return broadcast_needs(d, node, out, own);
    own_shape(d, made, out, shape);
    if (is_op(node, "Reshape") || is_op(node, "Unsqueeze") || is_op(node, "Squeeze")) {
        // What reshapes the output to the input finds the input's samples.
        if (!reshape_samples(d, made, out, node->inputs[0], &own->needs[0])) return false;
        own->is_reshape = true;
        return set_list(d, own, 1, shape, made->rank);
    }
    if (is_op(node, "Transpose")) {
        uint32_t order[REE_MAX_RANK];
        if (!read_order(node, made->rank, order)) return false;
        own->needs[0] = divided(order[out.axis], out.per);
        return true;
    }
    if (is_op(node, "Expand"))
        return broadcast_needs(d, node, out, own) && set_list(d, own, 1, shape, made->rank);
    return is_op(node, "Range") && is_integer_range(node);
}
