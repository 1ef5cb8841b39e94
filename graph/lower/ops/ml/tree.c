// TreeEnsemble of ai.onnx.ml: all rows walk all trees at once. Each level is a gather of nodes and
// a map.
//
// Nodes and leaves share one numbering: the leaves come after the nodes, and each leaf is its own
// successor. So all walks can take as many levels as the deepest tree has.
#include "graph/lower/ops/data.h"

#include <string.h>

// A comparison, as the set of outcomes that lead to the true branch.
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

enum { MODE_MEMBER = 6, N_MODES = 7 };
static const int32_t outcomes[MODE_MEMBER] = {
    LESS | EQUAL, LESS, GREATER | EQUAL, GREATER, EQUAL, LESS | GREATER | UNORDERED,
};

struct tree_node {
    int32_t outcomes, if_true, if_false;
};

struct ensemble {
    size_t n_nodes, n_leaves,
        n;                   // n: all nodes, including nodes added for membership tests, and leaves
    struct tree_node *nodes; // (n)
    int32_t *features;       // (n)
    enum ree_dtype dtype;    // float32 or float64: type of X, the splits and the weights
    size_t size;             // of one element of that type, in bytes
    char *splits;            // (n)
    size_t n_roots;
    int32_t *roots;
    int64_t n_targets;
    char *weights; // (n, n_targets)
    uint32_t depth;
};

// Attributes

static enum ree_status ints_of(struct ree_lower *lower, const char *name, size_t n,
                               const int64_t **out) {
    size_t count;
    *out = ree_rule_ints(lower, name, &count);
    if (count == n) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "%s has %zu entries, expected %zu", name, count, n);
}

static enum ree_status tensor_of(struct ree_lower *lower, const char *name, enum ree_dtype dtype,
                                 size_t n, const void **out) {
    const struct ree_attr *attr = ree_node_attr(lower->node, name);
    if (!attr || attr->kind != REE_ATTR_TENSOR)
        return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is missing", name);
    if (attr->tensor->dtype != dtype)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s of %s is not supported, only of %s", name,
                              ree_dtype_name(attr->tensor->dtype), ree_dtype_name(dtype));
    if (attr->tensor->nbytes != n * ree_dtype_size(dtype))
        return ree_lower_fail(lower, REE_INVALID, "%s has %zu entries, expected %zu", name,
                              attr->tensor->nbytes / ree_dtype_size(dtype), n);
    *out = attr->tensor->data;
    return REE_OK;
}

static bool is_nan_at(const struct ensemble *e, const void *bytes, size_t i) {
    float narrow;
    double wide;
    if (e->dtype == REE_F32) {
        memcpy(&narrow, (const char *)bytes + 4 * i, sizeof narrow);
        return narrow != narrow;
    }
    memcpy(&wide, (const char *)bytes + 8 * i, sizeof wide);
    return wide != wide;
}

// Computes sizes and allocates memory for nodes, leaves and one more node per member of a set.
static enum ree_status allocate(struct ree_lower *lower, struct ensemble *e) {
    size_t n_members = 0, n_ids, n_targets, n_roots;
    const struct ree_attr *members = ree_node_attr(lower->node, "membership_values");
    if (members && members->kind == REE_ATTR_TENSOR) n_members = members->tensor->nbytes / e->size;
    ree_rule_ints(lower, "nodes_featureids", &n_ids);
    ree_rule_ints(lower, "leaf_targetids", &n_targets);
    ree_rule_ints(lower, "tree_roots", &n_roots);
    e->n_targets = ree_rule_int(lower, "n_targets", 1);
    size_t most = n_ids + n_targets + n_members;
    int64_t n_weights;
    if (!n_ids || !n_targets || !n_roots || e->n_targets < 1 || most > INT32_MAX / 2 ||
        __builtin_mul_overflow((int64_t)most, e->n_targets, &n_weights) || n_weights > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID,
                              "%zu trees of %zu nodes and %zu leaves for %lld targets", n_roots,
                              n_ids, n_targets, (long long)e->n_targets);
    e->n_nodes = n_ids;
    e->n_leaves = n_targets;
    e->n_roots = n_roots;
    e->nodes = ree_arena_alloc_array(lower->arena, most, sizeof *e->nodes);
    e->features = ree_arena_alloc_array(lower->arena, most, sizeof *e->features);
    e->roots = ree_arena_alloc_array(lower->arena, n_roots, sizeof *e->roots);
    e->splits = ree_arena_alloc_array(lower->arena, most, e->size);
    e->weights = ree_arena_alloc_array(lower->arena, (size_t)n_weights, e->size);
    bool all = e->nodes && e->features && e->roots && e->splits && e->weights;
    return all ? REE_OK : ree_lower_no_memory(lower);
}

// Computes the number of a branch's target.
static enum ree_status branch(struct ree_lower *lower, const struct ensemble *e, const char *name,
                              int64_t id, bool leaf, int32_t *out) {
    int64_t n = (int64_t)(leaf ? e->n_leaves : e->n_nodes);
    if (id < 0 || id >= n)
        return ree_lower_fail(lower, REE_INVALID, "%s contains %lld, expected less than %lld", name,
                              (long long)id, (long long)n);
    *out = (int32_t)(leaf ? (int64_t)e->n_nodes + id : id);
    return REE_OK;
}

static enum ree_status read_nodes(struct ree_lower *lower, struct ensemble *e, int64_t n_features) {
    static const char *const names[5] = {"nodes_truenodeids", "nodes_falsenodeids",
                                         "nodes_trueleafs", "nodes_falseleafs", "nodes_featureids"};
    const int64_t *lists[5], *missing = NULL;
    const void *splits, *modes;
    for (uint32_t i = 0; i < 5; i++)
        REE_TRY(ints_of(lower, names[i], e->n_nodes, &lists[i]));
    if (ree_node_attr(lower->node, "nodes_missing_value_tracks_true"))
        REE_TRY(ints_of(lower, "nodes_missing_value_tracks_true", e->n_nodes, &missing));
    REE_TRY(tensor_of(lower, "nodes_splits", e->dtype, e->n_nodes, &splits));
    REE_TRY(tensor_of(lower, "nodes_modes", REE_U8, e->n_nodes, &modes));
    memcpy(e->splits, splits, e->n_nodes * e->size);
    for (size_t i = 0; i < e->n_nodes; i++) {
        struct tree_node *node = &e->nodes[i];
        uint8_t mode = ((const uint8_t *)modes)[i];
        if (mode >= N_MODES)
            return ree_lower_fail(lower, REE_INVALID, "nodes_modes[%zu] is %u, expected 0 to %d", i,
                                  mode, N_MODES - 1);
        if (lists[4][i] < 0 || lists[4][i] >= n_features)
            return ree_lower_fail(lower, REE_INVALID,
                                  "nodes_featureids[%zu] is %lld, but X has %lld features", i,
                                  (long long)lists[4][i], (long long)n_features);
        e->features[i] = (int32_t)lists[4][i];
        node->outcomes = mode == MODE_MEMBER ? 0 : outcomes[mode];
        if (missing && missing[i]) node->outcomes |= UNORDERED;
        REE_TRY(branch(lower, e, names[0], lists[0][i], lists[2][i] != 0, &node->if_true));
        REE_TRY(branch(lower, e, names[1], lists[1][i], lists[3][i] != 0, &node->if_false));
    }
    return REE_OK;
}

static enum ree_status read_leaves(struct ree_lower *lower, struct ensemble *e) {
    const int64_t *targets;
    const void *weights;
    REE_TRY(ints_of(lower, "leaf_targetids", e->n_leaves, &targets));
    REE_TRY(tensor_of(lower, "leaf_weights", e->dtype, e->n_leaves, &weights));
    for (size_t i = 0; i < e->n_leaves; i++) {
        size_t at = e->n_nodes + i;
        if (targets[i] < 0 || targets[i] >= e->n_targets)
            return ree_lower_fail(lower, REE_INVALID,
                                  "leaf_targetids[%zu] is %lld, expected less than %lld", i,
                                  (long long)targets[i], (long long)e->n_targets);
        e->nodes[at] = (struct tree_node){.if_true = (int32_t)at, .if_false = (int32_t)at};
        size_t weight = at * (size_t)e->n_targets + (size_t)targets[i];
        memcpy(e->weights + weight * e->size, (const char *)weights + i * e->size, e->size);
    }
    e->n = e->n_nodes + e->n_leaves;
    const int64_t *roots;
    REE_TRY(ints_of(lower, "tree_roots", e->n_roots, &roots));
    for (size_t i = 0; i < e->n_roots; i++)
        REE_TRY(branch(lower, e, "tree_roots", roots[i], false, &e->roots[i]));
    return REE_OK;
}

// Replaces each membership test by a chain of equality tests, one node per member. The sets are
// stored in the order of their nodes; a NaN ends each set.
static enum ree_status expand_members(struct ree_lower *lower, struct ensemble *e) {
    const struct ree_attr *modes = ree_node_attr(lower->node, "nodes_modes");
    const struct ree_attr *members = ree_node_attr(lower->node, "membership_values");
    const void *values = NULL;
    size_t n = members && members->kind == REE_ATTR_TENSOR ? members->tensor->nbytes / e->size : 0;
    size_t k = 0;
    if (n) REE_TRY(tensor_of(lower, "membership_values", e->dtype, n, &values));
    for (size_t i = 0; i < e->n_nodes; i++) {
        if (((const uint8_t *)modes->tensor->data)[i] != MODE_MEMBER) continue;
        struct tree_node first = e->nodes[i];
        size_t at = i;
        bool any = false;
        for (; k < n && !is_nan_at(e, values, k); k++) {
            if (any) {
                e->nodes[at].if_false = (int32_t)e->n;
                at = e->n++;
                e->features[at] = e->features[i];
                e->nodes[at] = first;
            }
            memcpy(e->splits + at * e->size, (const char *)values + k * e->size, e->size);
            e->nodes[at].outcomes |= EQUAL;
            any = true;
        }
        if (k++ == n)
            return ree_lower_fail(lower, REE_INVALID,
                                  "membership_values has no NaN that ends the set of node %zu", i);
    }
    return REE_OK;
}

// Sets e->depth to the number of nodes on the longest walk from a root to a leaf, without the leaf.
// Fails if a walk does not end. Searches depth first; the stack has the nodes whose branches are
// being visited. A height of 0 means that it is not known yet.
static enum ree_status find_depth(struct ree_lower *lower, struct ensemble *e) {
    uint32_t *height = ree_arena_alloc_array(lower->arena, e->n, sizeof *height);
    bool *open = ree_arena_alloc_array(lower->arena, e->n, sizeof *open);
    int32_t *stack = ree_arena_alloc_array(lower->arena, e->n + 1, sizeof *stack);
    if (!height || !open || !stack) return ree_lower_no_memory(lower);
    for (size_t r = 0; r < e->n_roots; r++) {
        size_t n = 0;
        if (!height[e->roots[r]]) stack[n++] = e->roots[r];
        while (n) {
            int32_t at = stack[n - 1], next = -1;
            const struct tree_node *node = &e->nodes[at];
            // A leaf is its own successor, so it has no branches to visit.
            bool leaf = (size_t)at >= e->n_nodes && (size_t)at < e->n_nodes + e->n_leaves;
            open[at] = true;
            if (!leaf && !height[node->if_true]) next = node->if_true;
            if (!leaf && !height[node->if_false]) next = node->if_false;
            if (next < 0) {
                uint32_t a = leaf ? 0 : height[node->if_true],
                         b = leaf ? 0 : height[node->if_false];
                height[at] = 1 + (a > b ? a : b);
                open[at] = false;
                n--;
            } else if (open[next]) {
                return ree_lower_fail(lower, REE_INVALID, "the nodes of tree %zu form a cycle", r);
            } else {
                stack[n++] = next;
            }
        }
        if (height[e->roots[r]] - 1 > e->depth) e->depth = height[e->roots[r]] - 1;
    }
    return REE_OK;
}

// Walking

// Gathers the rows of table (n, width) that `at` (rows, trees) selects: (rows, trees, width).
static enum ree_status take(struct ree_lower *lower, struct ree_view *table, struct ree_view *at,
                            struct ree_view **out) {
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)table->dims[0];
    p.component_strides[0] = (int32_t)table->strides[0];
    p.data_strides[2] = 1;
    p.index_strides[0] = (int32_t)at->dims[1];
    p.index_strides[1] = 1;
    return ree_data_emit_gather(lower, table, at, &p, 3,
                                (int64_t[]){at->dims[0], at->dims[1], table->dims[1]}, out);
}

// Gathers x[row, feature[row, tree]] for each row and tree: (rows, trees, 1).
static enum ree_status take_feature(struct ree_lower *lower, struct ree_view *x,
                                    struct ree_view *feature, struct ree_view **out) {
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)x->dims[1];
    p.component_strides[0] = (int32_t)x->strides[1];
    p.data_strides[0] = (int32_t)x->strides[0];
    p.index_strides[0] = (int32_t)feature->dims[1];
    p.index_strides[1] = 1;
    return ree_data_emit_gather(lower, x, feature, &p, 3, feature->dims, out);
}

// Walks one level from `at` (rows, trees).
static enum ree_status descend(struct ree_lower *lower, struct ree_view *x, struct ree_view *nodes,
                               struct ree_view *features, struct ree_view *splits,
                               struct ree_view *at, struct ree_view **out) {
    struct ree_view *node, *feature, *split, *value, *field;
    REE_TRY(take(lower, nodes, at, &node));
    REE_TRY(take(lower, features, at, &feature));
    REE_TRY(take(lower, splits, at, &split));
    REE_TRY(take_feature(lower, x, feature, &value));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, value->dims);
    int fields[3], v = ree_expr_tensor(&b, value), s = ree_expr_tensor(&b, split);
    for (uint32_t i = 0; i < 3; i++) {
        REE_TRY(ree_lower_slice(lower, node, 2, i, 1, 1, &field));
        fields[i] = ree_expr_tensor(&b, field);
    }
    // The bit number of the outcome: 0 less, 1 equal, 2 greater, 3 unordered.
    int nan = ree_expr_op1(&b, REE_MAP_isnan_f32, v);
    int bit = ree_expr_op2(&b, REE_MAP_add_i32, ree_expr_i32(&b, 2), nan);
    int equal = ree_expr_op2(&b, REE_MAP_eq_f32, v, s);
    bit = ree_expr_select(&b, REE_I32, equal, ree_expr_i32(&b, 1), bit);
    int less = ree_expr_op2(&b, REE_MAP_lt_f32, v, s);
    bit = ree_expr_select(&b, REE_I32, less, ree_expr_i32(&b, 0), bit);
    int taken = ree_expr_op2(&b, REE_MAP_shr_b32, fields[0], bit);
    taken = ree_expr_op2(&b, REE_MAP_and_b32, taken, ree_expr_i32(&b, 1));
    int next = ree_expr_select(&b, REE_I32, taken, fields[1], fields[2]);
    REE_TRY(ree_lower_map(&b, next, REE_I32, out));
    return ree_lower_reshape(lower, *out, 2, at->dims, out);
}

static enum ree_status walk(struct ree_lower *lower, const struct ensemble *e, struct ree_view *x,
                            struct ree_view **out) {
    struct ree_view *nodes, *features, *splits, *at;
    int64_t n = (int64_t)e->n, rows = x->dims[0], trees = (int64_t)e->n_roots;
    _Static_assert(sizeof(struct tree_node) == 12, "a node must be a row of three numbers");
    REE_TRY(ree_lower_literal(lower, REE_I32, 2, (int64_t[]){n, 3}, e->nodes, &nodes));
    REE_TRY(ree_lower_literal(lower, REE_I32, 2, (int64_t[]){n, 1}, e->features, &features));
    REE_TRY(ree_lower_literal(lower, e->dtype, 2, (int64_t[]){n, 1}, e->splits, &splits));
    REE_TRY(ree_lower_literal(lower, REE_I32, 2, (int64_t[]){1, trees}, e->roots, &at));
    REE_TRY(ree_lower_broadcast(lower, at, 2, (int64_t[]){rows, trees}, &at));
    REE_TRY(ree_lower_dense(lower, at, &at));
    for (uint32_t i = 0; i < e->depth; i++)
        REE_TRY(descend(lower, x, nodes, features, splits, at, &at));
    *out = at;
    return REE_OK;
}

// Results

// Aggregates t (rows, trees, targets) over the trees, in their order, to (rows, targets).
static enum ree_status aggregate(struct ree_lower *lower, const struct ensemble *e,
                                 struct ree_view *t, struct ree_view **out) {
    static const enum ree_reduce_kind kinds[4] = {REE_REDUCE_SUM, REE_REDUCE_SUM, REE_REDUCE_MIN,
                                                  REE_REDUCE_MAX};
    int64_t function = ree_rule_int(lower, "aggregate_function", 1);
    int64_t dims[2] = {t->dims[0], t->dims[2]};
    if (function < 0 || function > 3)
        return ree_lower_fail(lower, REE_INVALID, "aggregate_function is %lld, expected 0 to 3",
                              (long long)function);
    if (function >= 2 && e->n_targets > 1)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the minimum or maximum of several targets is not supported");
    if (function == 0)
        REE_TRY(ree_rule_mean(lower, t, 1u << 1, REE_REDUCE_SUM, out));
    else
        REE_TRY(ree_lower_reduce(lower, t, kinds[function], 1u << 1, true, false, out));
    return ree_lower_reshape(lower, *out, 2, dims, out);
}

static enum ree_status transform(struct ree_lower *lower, struct ree_view *t,
                                 struct ree_view **out) {
    int64_t kind = ree_rule_int(lower, "post_transform", 0);
    *out = t;
    if (kind == 0) return REE_OK;
    if (kind == 2) return ree_rule_step1(lower, REE_MAP_sigmoid_f32, t, out);
    return ree_lower_fail(
        lower, REE_UNSUPPORTED,
        "post_transform %lld is not supported; supported are 0 (none) and 2 (logistic)",
        (long long)kind);
}

enum ree_status ree_lower_op_tree_ensemble(struct ree_lower *lower, struct ree_view *const *in,
                                           struct ree_view **out) {
    struct ree_view *x = in[0], *at, *weights, *scores;
    struct ensemble e = {0};
    REE_TRY(ree_rule_require_float(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 2, 2));
    e.dtype = x->dtype;
    e.size = ree_dtype_size(x->dtype);
    REE_TRY(allocate(lower, &e));
    REE_TRY(read_nodes(lower, &e, x->dims[1]));
    REE_TRY(read_leaves(lower, &e));
    REE_TRY(expand_members(lower, &e));
    REE_TRY(find_depth(lower, &e));
    REE_TRY(walk(lower, &e, x, &at));
    REE_TRY(ree_lower_literal(lower, e.dtype, 2, (int64_t[]){(int64_t)e.n, e.n_targets}, e.weights,
                              &weights));
    REE_TRY(take(lower, weights, at, &scores));
    REE_TRY(aggregate(lower, &e, scores, &scores));
    return transform(lower, scores, &out[0]);
}
