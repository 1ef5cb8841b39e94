// GroupQueryAttention: causal attention in which several query heads share a key head, over a cache
// whose filled length differs between the sequences of a batch.
#include "graph/lower/ops/contrib/rotary.h"
#include "graph/lower/ops/attention/attention.h"
#include "graph/lower/ops/data.h"

#include <string.h>

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, SEQLENS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK };
enum { K_SCALE = 12, V_SCALE, Q_NORM, K_NORM };

struct group_query {
    enum ree_dtype dtype;
    int64_t n_heads, n_kv_heads;
    int64_t batch, length; // length: number of new tokens
    int64_t total;         // largest number of tokens of any sequence, including new ones
    int64_t past_len;      // capacity of the past's buffer
    int64_t capacity;      // capacity of the present's buffer
    // For each sequence, int32 (batch): `before` is the number of tokens before the new ones,
    // `keys` the number including them. before NULL: there are no earlier tokens.
    struct ree_view *before, *keys;
    struct ree_view *q, *kv[2]; // float32 (batch, heads, length, head_dim)
};

static enum ree_status read_attributes(struct ree_lower *lower, struct ree_view *const *in,
                                       struct group_query *g) {
    static const char *const quants[2] = {"k_quant_type", "v_quant_type"};
    g->n_heads = ree_rule_int(lower, "num_heads", 0);
    g->n_kv_heads = ree_rule_int(lower, "kv_num_heads", 0);
    if (g->n_heads < 1 || g->n_kv_heads < 1 || g->n_heads > INT32_MAX || g->n_heads % g->n_kv_heads)
        return ree_lower_fail(lower, REE_INVALID,
                              "num_heads = %lld and kv_num_heads = %lld, expected the first to be "
                              "a multiple of the second",
                              (long long)g->n_heads, (long long)g->n_kv_heads);
    for (uint32_t i = 0; i < 2; i++)
        if (strcmp(ree_rule_string(lower, quants[i], "NONE"), "NONE") ||
            ree_rule_input(lower, in, K_SCALE + i))
            return ree_lower_fail(lower, REE_UNSUPPORTED, "a quantised cache is not supported");
    if (ree_rule_int(lower, "sliding_window_cache", 0))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "sliding_window_cache is not supported");
    return REE_OK;
}

// Reads queries, keys and values: separate inputs, or adjacent in the rows of the query.
static enum ree_status read_heads(struct ree_lower *lower, struct ree_view *const *in,
                                  struct group_query *g) {
    static const char *const names[3] = {"query", "key", "value"};
    const int64_t heads[3] = {g->n_heads, g->n_kv_heads, g->n_kv_heads};
    struct ree_view *key = in[KEY], *value = in[VALUE], *parts[3] = {in[QUERY], key, value};
    REE_TRY(ree_rule_require_rank(lower, in[QUERY], "query", 3, 3));
    if (!key != !value)
        return ree_lower_fail(lower, REE_INVALID, "key and value are expected together");
    if (!key) {
        int64_t all = g->n_heads + 2 * g->n_kv_heads, width = in[QUERY]->dims[2], at = 0;
        if (width % all)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the packed query has rows of %lld elements, expected a multiple "
                                  "of the %lld heads of query, key and value",
                                  (long long)width, (long long)all);
        for (uint32_t i = 0; i < 3; i++) {
            int64_t size = width / all * heads[i];
            REE_TRY(ree_lower_slice(lower, in[QUERY], 2, at, 1, size, &parts[i]));
            at += size;
        }
    }
    struct ree_view *split[3];
    for (uint32_t i = 0; i < 3; i++) {
        REE_TRY(ree_rule_same_type(lower, parts[i], names[i], in[QUERY], "query"));
        REE_TRY(ree_lower_split_heads(lower, parts[i], heads[i], names[i], &split[i]));
        REE_TRY(ree_contrib_widen(lower, split[i], &split[i]));
        REE_TRY(ree_rule_require_f32(lower, split[i]));
        if (split[i]->dims[0] != split[0]->dims[0] || split[i]->dims[2] != split[0]->dims[2])
            return ree_lower_fail(lower, REE_INVALID,
                                  "the %s and the query have different batch sizes or lengths",
                                  names[i]);
    }
    g->dtype = in[QUERY]->dtype;
    g->batch = split[0]->dims[0];
    g->length = split[0]->dims[2];
    g->q = split[0];
    g->kv[0] = split[1];
    g->kv[1] = split[2];
    return REE_OK;
}

// Computes the number of tokens before the new ones, for each sequence: keys - length, at least 0.
static enum ree_status count_before(struct ree_lower *lower, const struct group_query *g,
                                    struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 1, &g->batch);
    int new = ree_expr_i32(&b, (int32_t)g->length);
    int before = ree_expr_op2(&b, REE_MAP_sub_i32, ree_expr_tensor(&b, g->keys), new);
    before = ree_expr_op2(&b, REE_MAP_max_i32, before, ree_expr_i32(&b, 0));
    return ree_lower_map(&b, before, REE_I32, out);
}

// Reads the lengths. total_sequence_length is read at bind time, because shapes depend on it. The
// lengths of the sequences stay on the device.
static enum ree_status read_lengths(struct ree_lower *lower, struct ree_view *const *in,
                                    struct group_query *g) {
    struct ree_view *past = in[PAST_KEY], *seqlens = in[SEQLENS];
    char text[128];
    if (!in[PAST_KEY] != !in[PAST_VALUE])
        return ree_lower_fail(lower, REE_INVALID, "past_key and past_value are expected together");
    for (uint32_t i = 0; past && i < 2; i++) {
        const struct ree_view *t = in[PAST_KEY + i], *new = g->kv[i];
        if (t->dtype == g->dtype && t->rank == 4 && t->dims[0] == g->batch &&
            t->dims[1] == g->n_kv_heads && t->dims[2] == past->dims[2] &&
            t->dims[3] == new->dims[3])
            continue;
        return ree_lower_fail(
            lower, REE_INVALID, "past_%s is %s, expected %s (%lld,%lld,length,%lld)",
            i ? "value" : "key", ree_view_text(t, text, sizeof text), ree_dtype_name(g->dtype),
            (long long)g->batch, (long long)g->n_kv_heads, (long long)new->dims[3]);
    }
    if (seqlens->dtype != REE_I32 || ree_view_count(seqlens) != g->batch)
        return ree_lower_fail(lower, REE_INVALID, "seqlens_k is %s, expected %lld int32",
                              ree_view_text(seqlens, text, sizeof text), (long long)g->batch);
    REE_TRY(ree_data_int(lower, in[TOTAL], "total_sequence_length", &g->total));
    g->past_len = past ? past->dims[2] : 0;
    if (g->total < g->length || g->total - g->length > g->past_len)
        return ree_lower_fail(lower, REE_INVALID,
                              "total_sequence_length is %lld, expected %lld to %lld: the new "
                              "tokens plus at most the length of the past",
                              (long long)g->total, (long long)g->length,
                              (long long)(g->length + g->past_len));
    g->capacity = g->total > g->past_len ? g->total : g->past_len;
    REE_TRY(ree_lower_reshape(lower, seqlens, 1, &g->batch, &seqlens));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 1, &g->batch);
    int keys = ree_expr_op2(&b, REE_MAP_add_i32, ree_expr_tensor(&b, seqlens), ree_expr_i32(&b, 1));
    REE_TRY(ree_lower_map(&b, keys, REE_I32, &g->keys));
    g->before = NULL;
    if (g->total == g->length) return REE_OK; // a prompt, perhaps padded at the end
    return count_before(lower, g, &g->before);
}

// Computes the position of each new token: after the earlier tokens, or as given by position_ids.
static enum ree_status token_positions(struct ree_lower *lower, struct ree_view *const *in,
                                       const struct group_query *g, struct ree_view **out) {
    struct ree_view *given = ree_rule_input(lower, in, POSITIONS), *before;
    int64_t dims[2] = {g->batch, g->length}, column[2] = {g->batch, 1};
    char text[128];
    if (given) {
        *out = given;
        if (given->dtype == REE_I64 && given->rank == 2 && given->dims[0] == g->batch &&
            given->dims[1] == g->length)
            return REE_OK;
        return ree_lower_fail(lower, REE_INVALID, "position_ids is %s, expected int64[%lld,%lld]",
                              ree_view_text(given, text, sizeof text), (long long)g->batch,
                              (long long)g->length);
    }
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, dims);
    int position = ree_expr_iota(&b, REE_I64, 0, (int64_t[]){0, 1});
    if (g->before) {
        REE_TRY(ree_lower_reshape(lower, g->before, 2, column, &before));
        int first = ree_expr_op1(&b, REE_MAP_i32_to_i64, ree_expr_tensor(&b, before));
        position = ree_expr_op2(&b, REE_MAP_add_i64, first, position);
    }
    return ree_lower_map(&b, position, REE_I64, out);
}

// Normalises each head of queries and keys (RMS) if there are weights for that, and then rotates it
// if do_rotary is set.
static enum ree_status prepare_heads(struct ree_lower *lower, struct ree_view *const *in,
                                     struct group_query *g) {
    struct ree_view **heads[2] = {&g->q, &g->kv[0]}, *positions = NULL;
    float epsilon = ree_rule_float(lower, "qk_norm_epsilon", 1e-6f);
    bool rotary = ree_rule_int(lower, "do_rotary", 0) != 0;
    bool interleaved = ree_rule_int(lower, "rotary_interleaved", 0) != 0;
    struct ree_view *tables[2] = {NULL, NULL};
    if (rotary) {
        for (uint32_t i = 0; i < 2; i++) {
            REE_TRY(ree_contrib_required(lower, in, COS + i, i ? "sin_cache" : "cos_cache",
                                         &tables[i]));
            REE_TRY(ree_contrib_widen(lower, tables[i], &tables[i]));
        }
        REE_TRY(token_positions(lower, in, g, &positions));
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct ree_view *weight = ree_rule_input(lower, in, Q_NORM + i), **t = heads[i];
        if (weight) {
            REE_TRY(ree_rule_require_vector(lower, weight, "q_norm_weight or k_norm_weight",
                                            (*t)->dims[3]));
            REE_TRY(ree_contrib_widen(lower, weight, &weight));
            struct ree_standard step = {.type = "RMSNormalization",
                                        .opset = 23,
                                        .in = {*t, weight},
                                        .attrs = {REE_FLOAT_ATTR("epsilon", epsilon)}};
            REE_TRY(ree_standard_step(lower, &step, 1, t));
        }
        if (rotary)
            REE_TRY(ree_contrib_rotate(lower, *t, positions, tables[0], tables[1], interleaved, t));
    }
    return REE_OK;
}

// Writes the new tokens of each sequence after the tokens of its past, into the past's own memory.
// Later positions keep their contents. Only sequences of a batch that are shorter than others have
// them, and no query attends to them.
static enum ree_status merge_in_place(struct ree_lower *lower, const struct group_query *g,
                                      struct ree_view *past, struct ree_view *new,
                                      struct ree_view **out) {
    if (!g->before) return ree_lower_append(lower, past, 2, new, out);
    struct ree_expr_builder b;
    struct ree_view *before, *rows;
    REE_TRY(ree_lower_reshape(lower, g->before, 2, (int64_t[]){g->batch, 1}, &before));
    ree_expr_init(&b, lower, 2, (int64_t[]){g->batch, g->length});
    int s = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 1});
    int row = ree_expr_op2(&b, REE_MAP_add_i32, ree_expr_tensor(&b, before), s);
    REE_TRY(ree_lower_map(&b, row, REE_I32, &rows));
    REE_TRY(ree_lower_extend(lower, past, 2, g->length, out));
    return ree_lower_scatter_positions(lower, *out, 0, 2, rows, new);
}

// Reports whether only this input of the node reads the elements of its value, and only once. The
// value must be an input of the graph that contains the node. Shape reads only dimensions.
static bool is_only_reader(const struct ree_node *node, size_t input) {
    const struct ree_value *value = node->inputs[input];
    uint32_t n_known = 0;
    const struct ree_graph *graph = value->graph;
    if (value->producer || !value->is_input) return false;
    // The body of a loop may run several times.
    if (node->id >= graph->n_nodes || graph->nodes[node->id] != node) return false;
    if (value->n_uses == 1) return true;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *other = graph->nodes[i];
        bool is_shape = strcmp(other->op_type, "Shape") == 0 && !other->domain[0];
        for (size_t k = 0; k < other->n_inputs; k++)
            n_known += other->inputs[k] == value && (is_shape || (other == node && k == input));
    }
    return n_known == value->n_uses;
}

// Returns whether the new tokens may be written into the past's memory. The lengths of sequences
// are not known during the bind. They may count fewer tokens than the past has, and then the
// present has zeros where the past has tokens.
static bool can_merge_in_place(const struct ree_lower *lower, const struct group_query *g,
                               size_t input, const struct ree_view *past) {
    if (g->capacity != g->past_len + g->length ||
        !ree_lower_grows_in_place(lower, past, 2, g->length))
        return false;
    // New rows may replace rows of the past that another node would still read.
    if (!is_only_reader(lower->node, input)) return false;
    return !g->before || (past->storage->kv_cache->in_order && !ree_lower_pages_of(past));
}

// Makes a present cache. Position j of a sequence is position j of its past if j < before; then
// come its new tokens, then zeros. A gather takes them from a pool that consists of past, new
// tokens and one position of zeros.
static enum ree_status merge(struct ree_lower *lower, const struct group_query *g, size_t input,
                             struct ree_view *past, struct ree_view *new, struct ree_view **out) {
    int64_t dims[4] = {g->batch, g->n_kv_heads, g->past_len + g->length + 1, new->dims[3]};
    int64_t zero_row[4] = {dims[0], dims[1], 1, dims[3]}, column[2] = {g->batch, 1};
    struct ree_view *pool, *part, *zeros, *before = NULL, *index;
    if (past && can_merge_in_place(lower, g, input, past))
        return merge_in_place(lower, g, past, new, out);
    REE_TRY(ree_lower_new(lower, g->dtype, 4, dims, &pool));
    if (past) {
        REE_TRY(ree_lower_slice(lower, pool, 2, 0, 1, g->past_len, &part));
        REE_TRY(ree_lower_copy_into(lower, past, part));
    }
    REE_TRY(ree_lower_slice(lower, pool, 2, g->past_len, 1, g->length, &part));
    REE_TRY(ree_lower_copy_into(lower, new, part));
    REE_TRY(ree_rule_fill(lower, 4, zero_row, 0, &zeros));
    REE_TRY(ree_lower_cast(lower, zeros, g->dtype, &zeros));
    REE_TRY(ree_lower_slice(lower, pool, 2, g->past_len + g->length, 1, 1, &part));
    REE_TRY(ree_lower_copy_into(lower, zeros, part));

    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, (int64_t[]){g->batch, g->capacity});
    int row = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 1});
    int first = ree_expr_i32(&b, 0);
    if (g->before) {
        REE_TRY(ree_lower_reshape(lower, g->before, 2, column, &before));
        first = ree_expr_tensor(&b, before);
    }
    int nth = ree_expr_op2(&b, REE_MAP_sub_i32, row, first); // index among the new tokens
    int is_new = ree_expr_op2(&b, REE_MAP_lt_i32, nth, ree_expr_i32(&b, (int32_t)g->length));
    int after_past = ree_expr_op2(&b, REE_MAP_add_i32, nth, ree_expr_i32(&b, (int32_t)g->past_len));
    int at = ree_expr_select(&b, REE_I32, is_new, after_past,
                             ree_expr_i32(&b, (int32_t)(g->past_len + g->length)));
    int is_past = ree_expr_op2(&b, REE_MAP_lt_i32, nth, ree_expr_i32(&b, 0));
    at = ree_expr_select(&b, REE_I32, is_past, row, at);
    REE_TRY(ree_lower_map(&b, at, REE_I32, &index));

    struct ree_gather_params p = {.n_components = 1};
    p.data_offset = 0;
    p.component_sizes[0] = (uint32_t)dims[2];
    p.component_strides[0] = (int32_t)pool->strides[2];
    for (uint32_t i = 0; i < 4; i++)
        p.data_strides[i] = i == 2 ? 0 : (int32_t)pool->strides[i];
    p.index_strides[0] = (int32_t)g->capacity;
    p.index_strides[2] = 1;
    dims[2] = g->capacity;
    return ree_data_emit_gather(lower, pool, index, &p, 4, dims, out);
}

static enum ree_status attend(struct ree_lower *lower, struct ree_view *const *in,
                              const struct group_query *g, struct ree_view *const present[2],
                              struct ree_view **out) {
    int64_t window = ree_rule_int(lower, "local_window_size", -1);
    int64_t tapped = ree_rule_int(lower, "qk_output", 0);
    struct ree_view *sink = ree_rule_input(lower, in, SINK), *kv[2];
    struct ree_attention a;
    for (uint32_t i = 0; i < 2; i++)
        REE_TRY(ree_lower_slice(lower, present[i], 2, 0, 1, g->total, &kv[i]));
    ree_attention_init(&a);
    a.q = g->q;
    a.k = kv[0];
    a.v = kv[1];
    a.scale = ree_rule_float(lower, "scale", 0);
    if (a.scale == 0) a.scale = ree_attention_default_scale(g->q->dims[3]);
    a.softcap = ree_rule_float(lower, "softcap", 0);
    a.starts = g->before;
    if (ree_rule_int(lower, "causal", 1))
        a.right = 0;
    else
        a.n_keys = g->keys;
    if (window > 0) a.left = window - 1;
    // With positions on the device, sums leave out no chunk of keys before a window. A prompt is
    // computed in the same way as the runs after it: an infinite value in such a chunk makes a sum
    // NaN (NUMERICS.md, "Attention").
    if (window > 0 && in[PAST_KEY] && !a.starts) REE_TRY(count_before(lower, g, &a.starts));
    if (ree_rule_input(lower, in, BIAS)) REE_TRY(ree_contrib_widen(lower, in[BIAS], &a.bias));
    if (sink) {
        int64_t dims[4] = {1, g->n_heads, 1, 1};
        REE_TRY(ree_rule_require_vector(lower, sink, "head_sink", g->n_heads));
        REE_TRY(ree_contrib_widen(lower, sink, &sink));
        REE_TRY(ree_lower_reshape(lower, sink, 4, dims, &a.sink));
    } else if (ree_rule_int(lower, "smooth_softmax", 0) == 1) {
        REE_TRY(ree_rule_fill(lower, 4, (int64_t[]){1, 1, 1, 1}, 0, &a.sink));
    }
    if (ree_rule_wants(lower, 3)) {
        if (tapped != 1 && tapped != 2)
            return ree_lower_fail(lower, REE_INVALID,
                                  "qk_output is %lld, expected 1 or 2 for the fourth output",
                                  (long long)tapped);
        a.tap = tapped == 1 ? REE_ATTENTION_TAP_MASKED : REE_ATTENTION_TAP_WEIGHTS;
    }
    struct ree_view *y, *scores = NULL;
    REE_TRY(ree_lower_attention(lower, &a, &y, &scores));
    if (scores) REE_TRY(ree_lower_cast(lower, scores, g->dtype, &out[3]));
    REE_TRY(ree_lower_join_heads(lower, y, &y));
    return ree_lower_cast(lower, y, g->dtype, &out[0]);
}

enum ree_status ree_lower_op_ms_group_query_attention(struct ree_lower *lower,
                                                      struct ree_view *const *in,
                                                      struct ree_view **out) {
    struct group_query g;
    struct ree_view *present[2], *required;
    REE_TRY(ree_contrib_required(lower, in, SEQLENS, "seqlens_k", &required));
    REE_TRY(ree_contrib_required(lower, in, TOTAL, "total_sequence_length", &required));
    REE_TRY(read_attributes(lower, in, &g));
    REE_TRY(read_heads(lower, in, &g));
    REE_TRY(read_lengths(lower, in, &g));
    REE_TRY(prepare_heads(lower, in, &g));
    for (uint32_t i = 0; i < 2; i++) {
        REE_TRY(ree_lower_cast(lower, g.kv[i], g.dtype, &present[i]));
        if (g.before || g.capacity != g.length)
            REE_TRY(merge(lower, &g, PAST_KEY + i, in[PAST_KEY + i], present[i], &present[i]));
        if (ree_rule_wants(lower, 1 + i)) out[1 + i] = present[i];
    }
    return attend(lower, in, &g, present, out);
}
