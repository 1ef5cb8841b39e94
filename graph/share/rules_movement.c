// Rules of operators that move elements: reshape, transpose, slice, gather, scatter, ...
#include "graph/share/rule.h"

bool ree_rule_reshape(const struct ree_divide *d, const struct ree_value *from,
                      struct ree_samples s, const struct ree_value *to, struct ree_samples *out) {
    if (!ree_share_has_shape(from) || !ree_share_has_shape(to)) return false;
    int64_t before = ree_share_product(from, 0, s.axis), n = 1;
    for (uint32_t axis = 0; axis < to->rank; axis++) {
        if (n == before && to->dims[axis] && to->dims[axis] % d->options->batch == 0) {
            *out = ree_divided_along(axis, to->dims[axis] / d->options->batch);
            return true;
        }
        n *= to->dims[axis];
    }
    return false;
}

// As ree_rule_reshape, if axes before the samples are joined with theirs: these become groups.
static bool join_groups(const struct ree_division *x, struct ree_samples s,
                        struct ree_samples *out) {
    const struct ree_value *to = ree_rule_output(x, 0);
    const int64_t batch = x->d->options->batch;
    int64_t before = ree_share_product(ree_rule_input(x, 0), 0, s.axis), n = 1;
    for (uint32_t axis = 0; axis < to->rank && n && before % n == 0; axis++) {
        int64_t groups = before / n;
        if (groups > 1 && to->dims[axis] && to->dims[axis] % groups == 0 &&
            to->dims[axis] / groups % batch == 0) {
            *out = ree_divided_along(axis, to->dims[axis] / groups / batch);
            out->groups = groups;
            return true;
        }
        n *= to->dims[axis];
    }
    return false;
}

const char *ree_share_reshape(struct ree_division *x) {
    const struct ree_value *made = ree_rule_output(x, 0);
    struct ree_samples s = ree_rule_samples(x, 0);
    int64_t shape[REE_MAX_RANK];
    if (!s.is_divided) return REE_MIXES;
    if (!ree_rule_reshape(x->d, ree_rule_input(x, 0), s, made, &x->outputs[0]) &&
        !join_groups(x, s, &x->outputs[0]))
        return "its new shape does not keep the samples apart";
    ree_rule_own_shape(x->d, made, x->outputs[0], shape);
    x->own->needs[0] = s;
    x->own->is_reshape = true;
    return ree_rule_set_list(x->d, x->own, 1, shape, made->rank) ? NULL : REE_NO_SHAPES;
}

bool ree_rule_order(const struct ree_node *node, uint32_t rank, uint32_t out[REE_MAX_RANK]) {
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

const char *ree_share_transpose(struct ree_division *x) {
    struct ree_samples s = ree_rule_samples(x, 0);
    uint32_t order[REE_MAX_RANK];
    if (!ree_rule_order(x->node, ree_rule_input(x, 0)->rank, order)) return REE_NO_SHAPES;
    for (uint32_t i = 0; i < ree_rule_input(x, 0)->rank; i++)
        if (order[i] == s.axis) x->outputs[0] = ree_divided_along(i, s.per);
    x->own->needs[0] = s;
    return NULL;
}

const char *ree_share_concat(struct ree_division *x) {
    struct ree_samples out = {0};
    uint32_t axis;
    for (size_t i = 0; i < x->node->n_inputs; i++)
        if (ree_rule_samples(x, i).is_divided) out = ree_rule_samples(x, i);
    if (!ree_rule_axis(ree_node_int(x->node, "axis", 0), ree_rule_input(x, 0)->rank, &axis))
        return REE_NO_SHAPES;
    if (axis == out.axis) return REE_MIXES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = ree_rule_samples(x, i);
        if (s.is_divided && !ree_samples_same(s, out)) return REE_NOT_ALIGNED;
        if (!ree_rule_input(x, i) || !ree_axis_fits(x->d, ree_rule_input(x, i), out.axis, out.per))
            return REE_NOT_ALIGNED;
        x->own->needs[i] = out;
    }
    x->outputs[0] = out;
    return NULL;
}

// Keeps the axes of input 0 and works along others; its other inputs are common.
static const char *along(struct ree_division *x, int64_t axis) {
    struct ree_samples s = ree_rule_samples(x, 0);
    uint32_t at;
    if (!s.is_divided) return REE_MIXES;
    for (size_t i = 1; i < x->node->n_inputs; i++)
        if (ree_rule_samples(x, i).is_divided) return REE_MIXES;
    if (!ree_rule_axis(axis, ree_rule_input(x, 0)->rank, &at)) return REE_NO_SHAPES;
    if (at == s.axis) return REE_MIXES;
    x->own->needs[0] = s;
    for (size_t i = 0; i < x->node->n_outputs; i++)
        x->outputs[i] = s;
    return NULL;
}

const char *ree_share_along_attribute(struct ree_division *x) { // default -1
    return along(x, ree_node_int(x->node, "axis", -1));
}

const char *ree_share_along_first(struct ree_division *x) { // default 0
    return along(x, ree_node_int(x->node, "axis", 0));
}

const char *ree_share_cumsum(struct ree_division *x) {
    int64_t axis[REE_MAX_RANK * 2];
    size_t n;
    if (!ree_share_list(x->node, 1, NULL, &n, axis) || n != 1) return "its axis is not constant";
    return along(x, axis[0]);
}

const char *ree_share_arg(struct ree_division *x) {
    const int64_t stated = ree_node_int(x->node, "axis", 0);
    uint32_t axis = 0;
    const char *why = along(x, stated);
    if (why) return why;
    if (!ree_rule_axis(stated, ree_rule_input(x, 0)->rank, &axis)) return REE_NO_SHAPES;
    if (!ree_node_int(x->node, "keepdims", 1) && axis < x->outputs[0].axis) x->outputs[0].axis--;
    return NULL;
}

const char *ree_share_trilu(struct ree_division *x) {
    struct ree_samples s = ree_rule_samples(x, 0);
    if (s.axis + 2 >= ree_rule_input(x, 0)->rank || ree_rule_samples(x, 1).is_divided)
        return REE_MIXES;
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

const char *ree_share_slice(struct ree_division *x) {
    struct ree_samples s = ree_rule_samples(x, 0);
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
        if (!ree_rule_axis(n_axes ? axes[i] : (int64_t)i, ree_rule_input(x, 0)->rank, &axis))
            return REE_NO_SHAPES;
        // An end beyond the own samples is taken as their end.
        bool is_all = starts[i] == 0 && ends[i] >= ree_rule_input(x, 0)->dims[axis] &&
                      (!n_steps || steps[i] == 1);
        if (axis == s.axis && !is_all) return "it selects samples";
    }
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

const char *ree_share_pad(struct ree_division *x) {
    struct ree_samples s = ree_rule_samples(x, 0);
    int64_t pads[REE_MAX_RANK * 2], axes[REE_MAX_RANK * 2];
    size_t n, n_axes;
    uint32_t axis;
    if (!s.is_divided || !ree_share_list(x->node, 1, "pads", &n, pads) ||
        !ree_share_list(x->node, 3, NULL, &n_axes, axes) || n % 2 || (n_axes && n_axes != n / 2))
        return "its pads are not constant";
    for (size_t i = 0; i < n / 2; i++) {
        if (!ree_rule_axis(n_axes ? axes[i] : (int64_t)i, ree_rule_input(x, 0)->rank, &axis))
            return REE_NO_SHAPES;
        if (axis == s.axis && (pads[i] || pads[n / 2 + i])) return "it adds samples";
    }
    x->own->needs[0] = x->outputs[0] = s;
    return NULL;
}

const char *ree_share_gather(struct ree_division *x) {
    struct ree_samples data = ree_rule_samples(x, 0), indices = ree_rule_samples(x, 1);
    uint32_t axis;
    if (!ree_rule_axis(ree_node_int(x->node, "axis", 0), ree_rule_input(x, 0)->rank, &axis) ||
        !ree_rule_input(x, 1))
        return REE_NO_SHAPES;
    if (data.is_divided && (indices.is_divided || data.axis == axis)) return REE_MIXES;
    x->own->needs[0] = data;
    x->own->needs[1] = indices;
    x->outputs[0] = data.is_divided ? data : indices;
    if (indices.is_divided)
        x->outputs[0].axis += axis;
    else if (data.axis > axis)
        x->outputs[0].axis += ree_rule_input(x, 1)->rank - 1;
    return NULL;
}

// Inputs with the same axes, of which the elements along one axis are selected: GatherElements,
// ScatterElements.
const char *ree_share_elements(struct ree_division *x) {
    struct ree_samples out = {0};
    uint32_t axis;
    if (!ree_rule_axis(ree_node_int(x->node, "axis", 0), ree_rule_input(x, 0)->rank, &axis))
        return REE_NO_SHAPES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = ree_rule_samples(x, i);
        if (!ree_rule_input(x, i)) return REE_NO_SHAPES;
        if (!s.is_divided) continue;
        if (out.is_divided && !ree_samples_same(s, out)) return REE_NOT_ALIGNED;
        out = s;
    }
    if (axis == out.axis) return REE_MIXES;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        if (!ree_axis_fits(x->d, ree_rule_input(x, i), out.axis, out.per)) return REE_NOT_ALIGNED;
        x->own->needs[i] = out;
    }
    x->outputs[0] = out;
    return NULL;
}

// Adds to elements of a common tensor that indices select, one update after another.
const char *ree_share_scatter_nd(struct ree_division *x) {
    struct ree_samples indices = ree_rule_samples(x, 1), updates = ree_rule_samples(x, 2);
    if (ree_rule_samples(x, 0).is_divided) return REE_MIXES;
    if (!ree_rule_input(x, 1) || !ree_rule_input(x, 2)) return REE_NO_SHAPES;
    if (ree_rule_input(x, 1)->rank < 2) return "its indices are those of a single update";
    // Rounded once, after the last update: a tensor of this type cannot go from rank to rank.
    const char *reduction = ree_node_string(x->node, "reduction", "none");
    bool rounds = strcmp(reduction, "add") == 0 || strcmp(reduction, "mul") == 0;
    if (rounds &&
        (ree_rule_input(x, 0)->dtype == REE_F16 || ree_rule_input(x, 0)->dtype == REE_BF16))
        return "ree cannot sum this type over several ranks";
    struct ree_samples s = indices.is_divided ? indices : updates;
    if (s.axis || !ree_axis_fits(x->d, ree_rule_input(x, 1), 0, s.per) ||
        !ree_axis_fits(x->d, ree_rule_input(x, 2), 0, s.per) ||
        (indices.is_divided && updates.is_divided && !ree_samples_same(indices, updates)))
        return REE_NOT_ALIGNED;
    x->own->needs[1] = x->own->needs[2] = s;
    x->role = REE_NODE_SUM;
    x->sum->kind = REE_SUM_BY_INDICES;
    x->sum->n_per_sample =
        (uint64_t)(ree_share_product(ree_rule_input(x, 1), 0, ree_rule_input(x, 1)->rank - 1) /
                   x->d->options->batch);
    x->sum->m = x->sum->n = 1;
    return NULL;
}
