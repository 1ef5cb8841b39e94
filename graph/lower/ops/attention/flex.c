// FlexAttention: attention with subgraphs that modify the scores and the weights.
#include "graph/lower/ops/attention/attention.h"
#include "graph/lower/ops/control/control.h"

// Applies the subgraph `name` to t; the result must have t's type and shape.
static enum ree_status modify(struct ree_lower *lower, const char *name, struct ree_view *t,
                              struct ree_view **out) {
    const struct ree_graph *graph;
    char got[128], wanted[128];
    REE_TRY(ree_control_graph(lower, name, 1, 1, &graph));
    struct ree_view **results =
        ree_arena_alloc_array(lower->arena, graph->n_outputs, sizeof *results);
    if (!results) return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
    if (ree_lower_graph(lower, graph, &t, results) != REE_OK)
        return ree_fail_prefix(lower->err, "%s", name);
    struct ree_view *y = results[0];
    bool fits = y->dtype == t->dtype && y->rank == t->rank;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = y->dims[i] == t->dims[i];
    if (!fits)
        return ree_lower_fail(
            lower, REE_INVALID, "%s returns %s, expected %s, the type and shape of its input", name,
            ree_view_text(y, got, sizeof got), ree_view_text(t, wanted, sizeof wanted));
    *out = y;
    return REE_OK;
}

static enum ree_status modify_scores(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out) {
    return modify(lower, "score_mod", t, out);
}

static enum ree_status modify_weights(struct ree_lower *lower, struct ree_view *t,
                                      struct ree_view **out) {
    return modify(lower, "prob_mod", t, out);
}

enum ree_status ree_lower_op_flex_attention(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    static const char *const names[] = {"query", "key", "value"};
    struct ree_attention a;
    struct ree_view **inputs[] = {&a.q, &a.k, &a.v}, *y;
    char text[128];
    ree_attention_init(&a);
    for (uint32_t i = 0; i < 3; i++) {
        if (!ree_attention_is_float(in[i]->dtype) || in[i]->rank != 4)
            return ree_lower_fail(lower, in[i]->dtype == REE_F64 ? REE_UNSUPPORTED : REE_INVALID,
                                  "the %s is %s, expected float32, float16 or bfloat16 of rank 4",
                                  names[i], ree_view_text(in[i], text, sizeof text));
        *inputs[i] = in[i];
    }
    REE_TRY(ree_lower_cast(lower, a.q, REE_F32, &a.q));
    REE_TRY(ree_attention_precision(lower));
    a.scale = ree_node_float(lower->node, "scale", ree_attention_default_scale(in[0]->dims[3]));
    a.nan_if_empty = true;
    if (ree_node_attr(lower->node, "score_mod")) a.modify_scores = modify_scores;
    if (ree_node_attr(lower->node, "prob_mod")) a.modify_weights = modify_weights;
    REE_TRY(ree_lower_attention(lower, &a, &y, NULL));
    return ree_lower_cast(lower, y, in[0]->dtype, &out[0]);
}
