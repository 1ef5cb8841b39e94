// TfIdfVectorizer for integers: counts how often each n-gram of a pool occurs in a row.
//
// For each length of n-grams, a table lists the positions of the items of each candidate: one
// candidate for each start and each distance between items. Candidates are compared with the pool's
// n-grams of that length, and the matches are counted.
#include "graph/lower/ops/data.h"

#include <stdlib.h>
#include <string.h>

struct vectorizer {
    int64_t min_length, max_length, max_skip;
    size_t n_lengths, n_pool, n_grams; // lengths in the pool; its items; its n-grams
    const int64_t *starts;             // by length: index of the first item in the pool
    const int64_t *columns;            // by n-gram: its column in the output
    const int64_t *pool;
    int64_t width; // columns of the output
};

static enum ree_status read_grams(struct ree_lower *lower, struct vectorizer *v) {
    size_t n_columns;
    v->starts = ree_rule_ints(lower, "ngram_counts", &v->n_lengths);
    v->columns = ree_rule_ints(lower, "ngram_indexes", &n_columns);
    for (size_t i = 0; i < v->n_lengths; i++) {
        int64_t end = i + 1 < v->n_lengths ? v->starts[i + 1] : (int64_t)v->n_pool;
        if (v->starts[i] < 0 || end < v->starts[i] || end > (int64_t)v->n_pool ||
            (end - v->starts[i]) % (int64_t)(i + 1))
            return ree_lower_fail(
                lower, REE_INVALID,
                "ngram_counts[%zu] is %lld: items %lld to %lld of a pool of %zu are not %zu-grams",
                i, (long long)v->starts[i], (long long)v->starts[i], (long long)end, v->n_pool,
                i + 1);
        v->n_grams += (size_t)(end - v->starts[i]) / (i + 1);
    }
    if (n_columns != v->n_grams)
        return ree_lower_fail(lower, REE_INVALID, "ngram_indexes has %zu entries, expected %zu",
                              n_columns, v->n_grams);
    for (size_t i = 0; i < n_columns; i++) {
        if (v->columns[i] < 0 || v->columns[i] >= INT64_C(1) << 30)
            return ree_lower_fail(lower, REE_INVALID, "ngram_indexes[%zu] is %lld", i,
                                  (long long)v->columns[i]);
        if (v->columns[i] >= v->width) v->width = v->columns[i] + 1;
    }
    return REE_OK;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Refuses two n-grams with one column: the operator does not say how their counts are combined.
static enum ree_status check_columns(struct ree_lower *lower, const struct vectorizer *v) {
    int64_t *sorted = ree_arena_alloc_array(lower->arena, v->n_grams + 1, sizeof *sorted);
    if (!sorted) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < v->n_grams; i++)
        sorted[i] = v->columns[i];
    qsort(sorted, v->n_grams, sizeof *sorted, by_value);
    for (size_t i = 1; i < v->n_grams; i++)
        if (sorted[i] == sorted[i - 1])
            return ree_lower_fail(lower, REE_UNSUPPORTED,
                                  "ngram_indexes names column %lld twice; expected a column for "
                                  "each n-gram",
                                  (long long)sorted[i]);
    return REE_OK;
}

static enum ree_status read_attributes(struct ree_lower *lower, struct vectorizer *v) {
    const struct ree_node *node = lower->node;
    if (ree_node_attr(node, "pool_strings"))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a pool of strings is not supported");
    *v = (struct vectorizer){.min_length = ree_rule_int(lower, "min_gram_length", 0),
                             .max_length = ree_rule_int(lower, "max_gram_length", 0),
                             .max_skip = ree_rule_int(lower, "max_skip_count", 0)};
    v->pool = ree_rule_ints(lower, "pool_int64s", &v->n_pool);
    if (v->min_length < 1 || v->max_length < v->min_length || v->max_skip < 0)
        return ree_lower_fail(lower, REE_INVALID,
                              "n-grams of %lld to %lld items with up to %lld skipped; expected at "
                              "least one item, and skips of 0 or more",
                              (long long)v->min_length, (long long)v->max_length,
                              (long long)v->max_skip);
    REE_TRY(read_grams(lower, v));
    return check_columns(lower, v);
}

// Computes the positions of the candidates of one length in a row of n items: (candidates, length).
// A distance that does not fit in the row has no candidate. Single items have only one distance.
static enum ree_status positions(struct ree_lower *lower, const struct vectorizer *v, int64_t n,
                                 int64_t length, struct ree_view **out) {
    int64_t count = 0, most = length == 1 ? 1 : (n - 1) / (length - 1), limit = INT64_C(1) << 31;
    if (length > 1 && most > v->max_skip) most = v->max_skip + 1;
    for (int64_t d = 1; d <= most && count < limit; d++)
        count += n - d * (length - 1);
    if (count >= limit / length)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the %lld-grams of rows of %lld items with up to %lld skipped are "
                              "more than 2^31 items",
                              (long long)length, (long long)n, (long long)v->max_skip);
    int32_t *table =
        ree_arena_alloc_array(lower->arena, (size_t)(count * length + 1), sizeof *table);
    if (!table) return ree_lower_no_memory(lower);
    size_t k = 0;
    for (int64_t d = 1; d <= most; d++)
        for (int64_t start = 0; start + d * (length - 1) < n; start++)
            for (int64_t i = 0; i < length; i++)
                table[k++] = (int32_t)(start + i * d);
    return ree_lower_literal(lower, REE_I32, 2, (int64_t[]){count, length}, table, out);
}

// Gathers x (rows, n) at the positions: (rows, candidates, length).
static enum ree_status candidates(struct ree_lower *lower, struct ree_view *x, struct ree_view *at,
                                  struct ree_view **out) {
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)x->dims[1];
    p.component_strides[0] = (int32_t)x->strides[1];
    p.data_strides[0] = (int32_t)x->strides[0];
    p.index_strides[1] = (int32_t)at->dims[1];
    p.index_strides[2] = 1;
    return ree_data_emit_gather(lower, x, at, &p, 3,
                                (int64_t[]){x->dims[0], at->dims[0], at->dims[1]}, out);
}

// Counts the pool's n-grams of one length into `to` (rows, n-grams).
static enum ree_status count_length(struct ree_lower *lower, const struct vectorizer *v,
                                    struct ree_view *x, size_t length, struct ree_view *to) {
    struct ree_view *at, *found, *grams, *equal = NULL, *counts;
    int64_t n_items = (int64_t)length, n_grams = to->dims[1];
    REE_TRY(positions(lower, v, x->dims[1], n_items, &at));
    REE_TRY(candidates(lower, x, at, &found));
    REE_TRY(ree_lower_literal(lower, REE_I64, 2, (int64_t[]){n_grams, n_items},
                              v->pool + v->starts[length - 1], &grams));
    int64_t dims[3] = {x->dims[0], at->dims[0], n_grams};
    for (int64_t i = 0; i < n_items; i++) {
        struct ree_view *item, *wanted;
        REE_TRY(ree_lower_slice(lower, found, 2, i, 1, 1, &item));
        REE_TRY(ree_lower_slice(lower, grams, 1, i, 1, 1, &wanted));
        REE_TRY(ree_lower_reshape(lower, wanted, 3, (int64_t[]){1, 1, n_grams}, &wanted));
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, 3, dims);
        int value = ree_expr_tensor(&b, item);
        value = ree_expr_op2(&b, REE_MAP_eq_i64, value, ree_expr_tensor(&b, wanted));
        if (equal) value = ree_expr_op2(&b, REE_MAP_and_b32, ree_expr_tensor(&b, equal), value);
        REE_TRY(ree_lower_map(&b, value, REE_I32, &equal));
    }
    REE_TRY(ree_lower_reduce(lower, equal, REE_REDUCE_SUM, 1u << 1, false, false, &counts));
    return ree_lower_copy_into(lower, counts, to);
}

// Rearranges counts (rows, n-grams + 1) to the output's columns. A column without an n-gram gets
// the last column of the counts, which is zero.
static enum ree_status arrange(struct ree_lower *lower, const struct vectorizer *v,
                               struct ree_view *counts, struct ree_view **out) {
    int32_t *from = ree_arena_alloc_array(lower->arena, (size_t)v->width + 1, sizeof *from);
    if (!from) return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < v->width; i++)
        from[i] = (int32_t)v->n_grams;
    for (size_t i = 0; i < v->n_grams; i++)
        from[v->columns[i]] = (int32_t)i;
    struct ree_axis_table axes[2] = {{NULL, 0}, {from, v->width}};
    return ree_data_select(lower, counts, axes, out);
}

// Reads the weights of the pool's n-grams, as a row of the output. Each weight is 1 if the node has
// none.
static enum ree_status read_weights(struct ree_lower *lower, const struct vectorizer *v,
                                    struct ree_view **out) {
    size_t n;
    const float *given = ree_rule_floats(lower, "weights", &n);
    if (n && n != v->n_grams)
        return ree_lower_fail(lower, REE_INVALID, "weights has %zu entries, expected %zu", n,
                              v->n_grams);
    float *row = ree_arena_alloc_array(lower->arena, (size_t)v->width + 1, sizeof *row);
    if (!row) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < v->n_grams; i++)
        row[v->columns[i]] = n ? given[i] : 1;
    return ree_lower_literal(lower, REE_F32, 1, &v->width, row, out);
}

// Computes the output from the counts. TF: the count. IDF: the weight if the count is not 0, else
// 0. TFIDF: count * weight.
static enum ree_status weigh(struct ree_lower *lower, const struct vectorizer *v,
                             struct ree_view *counts, struct ree_view **out) {
    const char *mode = ree_rule_string(lower, "mode", "");
    bool tf = !strcmp(mode, "TF"), idf = !strcmp(mode, "IDF");
    if (!tf && !idf && strcmp(mode, "TFIDF"))
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected TF, IDF or TFIDF", mode);
    struct ree_view *weights;
    REE_TRY(read_weights(lower, v, &weights));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, counts->rank, counts->dims);
    int n = ree_expr_tensor(&b, counts), value = ree_expr_op1(&b, REE_MAP_i32_to_f32, n);
    if (idf)
        value = ree_expr_select(&b, REE_F32, n, ree_expr_tensor(&b, weights), ree_expr_f32(&b, 0));
    else if (!tf)
        value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_tensor(&b, weights));
    return ree_lower_map(&b, value, REE_F32, out);
}

enum ree_status ree_lower_op_tfidf_vectorizer(struct ree_lower *lower, struct ree_view *const *in,
                                              struct ree_view **out) {
    struct ree_view *x = in[0], *counts, *zero;
    struct vectorizer v;
    REE_TRY(read_attributes(lower, &v));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 1, 2));
    if (x->dtype != REE_I32 && x->dtype != REE_I64) return ree_rule_unsupported(lower, x->dtype);
    bool vector = x->rank == 1;
    REE_TRY(ree_lower_cast(lower, x, REE_I64, &x));
    if (vector) REE_TRY(ree_lower_reshape(lower, x, 2, (int64_t[]){1, x->dims[0]}, &x));
    int64_t dims[2] = {x->dims[0], (int64_t)v.n_grams + 1};
    REE_TRY(ree_lower_literal(lower, REE_I32, 0, NULL, &(int32_t){0}, &zero));
    REE_TRY(ree_lower_broadcast(lower, zero, 2, dims, &zero));
    REE_TRY(ree_lower_new(lower, REE_I32, 2, dims, &counts));
    REE_TRY(ree_lower_copy_into(lower, zero, counts));
    int64_t first = 0;
    for (size_t length = 1; length <= v.n_lengths; length++) {
        int64_t end = length < v.n_lengths ? v.starts[length] : (int64_t)v.n_pool;
        int64_t n = (end - v.starts[length - 1]) / (int64_t)length;
        bool used = n > 0 && (int64_t)length >= v.min_length && (int64_t)length <= v.max_length &&
                    x->dims[1] >= (int64_t)length;
        struct ree_view *to;
        if (used) REE_TRY(ree_lower_slice(lower, counts, 1, first, 1, n, &to));
        if (used) REE_TRY(count_length(lower, &v, x, length, to));
        first += n;
    }
    REE_TRY(arrange(lower, &v, counts, &counts));
    REE_TRY(weigh(lower, &v, counts, &out[0]));
    return vector ? ree_lower_reshape(lower, out[0], 1, &v.width, &out[0]) : REE_OK;
}
