// Lowers attention to the RepOp of that name. If an intermediate result is requested or modified,
// if a number exceeds the RepOp's range, or if fusion is off, lowers it to matmul, map, softmax and
// matmul, for blocks of queries and the keys that they may attend to. Fusion
// (graph/lower/core/fuse.c) then makes the map an epilogue of the first product.
#include "graph/lower/ops/attention/attention.h"

#include <math.h>
#include <string.h>

void ree_attention_init(struct ree_attention *a) {
    memset(a, 0, sizeof *a);
    a->scale = 1;
    a->left = a->right = REE_ATTENTION_UNBOUNDED;
}

float ree_attention_default_scale(int64_t head_dim) {
    return 1.0f / sqrtf((float)head_dim);
}

bool ree_attention_is_float(enum ree_dtype dtype) {
    return dtype == REE_F32 || dtype == REE_F16 || dtype == REE_BF16;
}

// Shapes

struct shape {
    int64_t batch, n_heads, n_kv_heads, group, q_len, kv_len, head_dim, v_head_dim;
};

static enum ree_status check_input(struct ree_lower *lower, const struct ree_view *t, bool narrow,
                                   const char *what) {
    char text[128];
    bool fits = narrow ? ree_attention_is_float(t->dtype) : t->dtype == REE_F32;
    if (t->rank == 4 && fits) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "the %s is %s, expected %s of rank 4", what,
                          ree_view_text(t, text, sizeof text),
                          narrow ? "float32, float16 or bfloat16" : "float32");
}

static enum ree_status check_shapes(struct ree_lower *lower, const struct ree_attention *a,
                                    struct shape *s) {
    char q[128], k[128], v[128];
    REE_TRY(check_input(lower, a->q, false, "query"));
    REE_TRY(check_input(lower, a->k, true, "key"));
    REE_TRY(check_input(lower, a->v, true, "value"));
    s->batch = a->q->dims[0];
    s->n_heads = a->q->dims[1];
    s->q_len = a->q->dims[2];
    s->head_dim = a->q->dims[3];
    s->n_kv_heads = a->k->dims[1];
    s->kv_len = a->k->dims[2];
    s->v_head_dim = a->v->dims[3];
    ree_view_text(a->q, q, sizeof q);
    ree_view_text(a->k, k, sizeof k);
    ree_view_text(a->v, v, sizeof v);
    if (a->k->dims[0] != s->batch || a->k->dims[3] != s->head_dim)
        return ree_lower_fail(
            lower, REE_INVALID,
            "the key %s does not match the query %s: batch and head sizes must be equal", k, q);
    if (a->v->dims[0] != s->batch || a->v->dims[1] != s->n_kv_heads || a->v->dims[2] != s->kv_len)
        return ree_lower_fail(
            lower, REE_INVALID,
            "the value %s does not match the key %s: batch, heads and length must be equal", v, k);
    if (s->n_kv_heads == 0 || s->n_heads % s->n_kv_heads)
        return ree_lower_fail(lower, REE_INVALID,
                              "the query has %lld heads, expected a multiple of the key's %lld",
                              (long long)s->n_heads, (long long)s->n_kv_heads);
    s->group = s->n_heads / s->n_kv_heads;
    return REE_OK;
}

// Views (batch, heads, x, y) as (batch, n_kv_heads, heads / n_kv_heads, x, y). Splitting is a view.
static enum ree_status by_group(struct ree_lower *lower, struct ree_view *t, int64_t n_kv_heads,
                                struct ree_view **out) {
    int64_t dims[5] = {t->dims[0], n_kv_heads, t->dims[1] / n_kv_heads, t->dims[2], t->dims[3]};
    return ree_lower_reshape(lower, t, 5, dims, out);
}

// Checks that a mask or bias broadcasts to the scores.
static enum ree_status check_mask(struct ree_lower *lower, const struct shape *s,
                                  const struct ree_view *t, const char *what, enum ree_dtype dtype,
                                  int64_t kv_len) {
    const int64_t dims[4] = {s->batch, s->n_heads, s->q_len, kv_len};
    char text[128];
    bool fits = t->dtype == dtype && t->rank <= 4;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == 1 || t->dims[i] == dims[i + 4 - t->rank];
    if (fits) return REE_OK;
    return ree_lower_fail(
        lower, REE_INVALID, "the %s is %s, expected %s that broadcasts to [%lld,%lld,%lld,%lld]",
        what, ree_view_text(t, text, sizeof text), ree_dtype_name(dtype), (long long)dims[0],
        (long long)dims[1], (long long)dims[2], (long long)dims[3]);
}

// Broadcasts a mask or bias to (batch, n_heads, q_len, kv_len) and views it as by_group does.
static enum ree_status mask_view(struct ree_lower *lower, const struct shape *s, struct ree_view *t,
                                 const char *what, enum ree_dtype dtype, int64_t kv_len,
                                 struct ree_view **out) {
    const int64_t dims[4] = {s->batch, s->n_heads, s->q_len, kv_len};
    REE_TRY(check_mask(lower, s, t, what, dtype, kv_len));
    REE_TRY(ree_lower_broadcast(lower, t, 4, dims, &t));
    return by_group(lower, t, s->n_kv_heads, out);
}

#define FIRST_QUERY "the position of the first query"
#define VALID_KEYS "the number of valid keys"

static enum ree_status check_positions(struct ree_lower *lower, const struct shape *s,
                                       const struct ree_view *t, const char *what) {
    char text[128];
    if ((t->dtype == REE_I64 || t->dtype == REE_I32) && t->rank == 1 && t->dims[0] == s->batch)
        return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected %lld integers", what,
                          ree_view_text(t, text, sizeof text), (long long)s->batch);
}

// Converts one number for each sequence of the batch to int32 (batch, 1, 1, 1, 1). Clamps numbers
// beyond all positions to a value that has the same effect and keeps sums in range.
static enum ree_status positions(struct ree_lower *lower, const struct shape *s, struct ree_view *t,
                                 const char *what, struct ree_view **out) {
    REE_TRY(check_positions(lower, s, t, what));
    struct ree_expr_builder b;
    const int64_t limit = REE_ATTENTION_FAR;
    ree_expr_init(&b, lower, 5, (int64_t[5]){s->batch, 1, 1, 1, 1});
    REE_TRY(ree_lower_reshape(lower, t, 5, (int64_t[5]){s->batch, 1, 1, 1, 1}, &t));
    int x = ree_expr_cast(&b, ree_expr_tensor(&b, t), t->dtype, REE_I64);
    x = ree_expr_op2(&b, REE_MAP_max_i64, x, ree_expr_i64(&b, -limit));
    x = ree_expr_op2(&b, REE_MAP_min_i64, x, ree_expr_i64(&b, limit));
    return ree_lower_map(&b, ree_expr_op1(&b, REE_MAP_i64_to_i32, x), REE_I32, out);
}

// From products to masked scores

// The operands of the mask step, as views of (batch, n_kv_heads, group, q_len, kv_len).
struct mask {
    struct ree_view *allowed, *bias, *n_keys, *starts;
    bool bounded_left, bounded_right;
};

static enum ree_status prepare_mask(struct ree_lower *lower, const struct ree_attention *a,
                                    const struct shape *s, struct mask *m) {
    memset(m, 0, sizeof *m);
    if (a->allowed)
        REE_TRY(mask_view(lower, s, a->allowed, "mask", REE_BOOL, s->kv_len, &m->allowed));
    if (a->bias) REE_TRY(mask_view(lower, s, a->bias, "bias", REE_F32, s->kv_len, &m->bias));
    if (a->n_keys) REE_TRY(positions(lower, s, a->n_keys, VALID_KEYS, &m->n_keys));
    // A bound that excludes no key for any query needs no step.
    m->bounded_left = a->left >= 0 && (a->starts || a->left < a->start + s->q_len - 1);
    m->bounded_right = a->right >= 0 && (a->starts || a->right < s->kv_len - 1 - a->start);
    if (a->starts && (m->bounded_left || m->bounded_right))
        REE_TRY(positions(lower, s, a->starts, FIRST_QUERY, &m->starts));
    return REE_OK;
}

static int both(struct ree_expr_builder *b, int x, int y) {
    return x < 0 ? y : ree_expr_op2(b, REE_MAP_and_b32, x, y);
}

static int32_t to_position(int64_t n) {
    const int64_t limit = REE_ATTENTION_FAR;
    return (int32_t)(n < -limit ? -limit : n > limit ? limit : n);
}

// Adds the condition that the query attends to the key, according to positions and mask. Returns
// the value of the condition; -1: it holds for all keys.
static int attends_condition(struct ree_expr_builder *b, const struct ree_attention *a,
                             const struct mask *m) {
    int condition = -1;
    if (m->bounded_left || m->bounded_right) {
        // distance = j - p: position of the key minus position of the query
        int distance =
            ree_expr_iota(b, REE_I32, -to_position(a->start), (int64_t[]){0, 0, 0, -1, 1});
        if (m->starts)
            distance = ree_expr_op2(b, REE_MAP_sub_i32, distance, ree_expr_tensor(b, m->starts));
        if (m->bounded_right) {
            int right = ree_expr_i32(b, to_position(a->right));
            condition = both(b, condition, ree_expr_op2(b, REE_MAP_le_i32, distance, right));
        }
        if (m->bounded_left) {
            int left = ree_expr_i32(b, -to_position(a->left));
            condition = both(b, condition, ree_expr_op2(b, REE_MAP_le_i32, left, distance));
        }
    }
    if (m->n_keys) {
        int j = ree_expr_iota(b, REE_I32, 0, (int64_t[]){0, 0, 0, 0, 1});
        int n = ree_expr_tensor(b, m->n_keys);
        condition = both(b, condition, ree_expr_op2(b, REE_MAP_lt_i32, j, n));
    }
    if (m->allowed) condition = both(b, condition, ree_expr_tensor(b, m->allowed));
    return condition;
}

// Ends the map at the step that a->tap requests, and begins the next map with the result.
static enum ree_status tap(struct ree_lower *lower, struct ree_expr_builder *b, int *value,
                           struct ree_view **out) {
    REE_TRY(ree_lower_map(b, *value, REE_F32, out));
    ree_expr_init(b, lower, (*out)->rank, (*out)->dims);
    *value = ree_expr_tensor(b, *out);
    return REE_OK;
}

// t = product * scale; t = softcap * tanh(t / softcap); t = attends ? t + bias : -inf.
static enum ree_status mask_scores(struct ree_lower *lower, const struct ree_attention *a,
                                   const struct mask *m, struct ree_view *product,
                                   struct ree_view **out, struct ree_view **out_tapped) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, product->rank, product->dims);
    int t = ree_expr_tensor(&b, product);
    if (a->scale != 1) t = ree_expr_op2(&b, REE_MAP_mul_f32, t, ree_expr_f32(&b, a->scale));
    if (a->tap == REE_ATTENTION_TAP_SCORES) REE_TRY(tap(lower, &b, &t, out_tapped));
    if (a->softcap != 0) {
        int cap = ree_expr_f32(&b, a->softcap);
        t = ree_expr_op1(&b, REE_MAP_tanh_f32, ree_expr_op2(&b, REE_MAP_div_f32, t, cap));
        t = ree_expr_op2(&b, REE_MAP_mul_f32, t, cap);
    }
    if (a->tap == REE_ATTENTION_TAP_CAPPED) REE_TRY(tap(lower, &b, &t, out_tapped));
    int condition = attends_condition(&b, a, m);
    int nothing = ree_expr_f32(&b, -INFINITY);
    if (m->bias) {
        int bias = ree_expr_tensor(&b, m->bias);
        int absent = ree_expr_op2(&b, REE_MAP_eq_f32, bias, nothing);
        t = ree_expr_op2(&b, REE_MAP_add_f32, t, bias);
        t = ree_expr_select(&b, REE_F32, absent, nothing, t);
    }
    if (condition >= 0) t = ree_expr_select(&b, REE_F32, condition, t, nothing);
    REE_TRY(ree_lower_map(&b, t, REE_F32, out));
    if (a->tap == REE_ATTENTION_TAP_MASKED) *out_tapped = *out;
    return REE_OK;
}

// Softmax

// Computes the softmax in single steps, which are its definition: for a sink, which the RepOp
// softmax does not support, and with fusion off, to compare that RepOp with the steps.
static enum ree_status softmax_steps(struct ree_lower *lower, const struct ree_attention *a,
                                     struct ree_view *t, struct ree_view *sink,
                                     struct ree_view **out) {
    struct ree_view *max, *shift, *e, *sum, *last;
    struct ree_expr_builder b;
    REE_TRY(ree_lower_reduce(lower, t, REE_REDUCE_MAX, 1u << 4, true, false, &max));
    if (sink) REE_TRY(ree_rule_step2(lower, REE_MAP_max_f32, max, sink, &max));
    shift = max;
    if (!a->nan_if_empty) {
        ree_expr_init(&b, lower, 5, max->dims);
        int m = ree_expr_tensor(&b, max);
        int empty = ree_expr_op2(&b, REE_MAP_eq_f32, m, ree_expr_f32(&b, -INFINITY));
        m = ree_expr_select(&b, REE_F32, empty, ree_expr_f32(&b, 0), m);
        REE_TRY(ree_lower_map(&b, m, REE_F32, &shift));
    }
    REE_TRY(ree_rule_step2(lower, REE_MAP_sub_f32, t, shift, &e));
    REE_TRY(ree_rule_step1(lower, REE_MAP_exp_f32, e, &e));
    REE_TRY(ree_lower_reduce(lower, e, REE_REDUCE_SUM, 1u << 4, true, false, &sum));
    if (sink) {
        REE_TRY(ree_rule_step2(lower, REE_MAP_sub_f32, sink, shift, &last));
        REE_TRY(ree_rule_step1(lower, REE_MAP_exp_f32, last, &last));
        REE_TRY(ree_rule_step2(lower, REE_MAP_add_f32, sum, last, &sum));
    }
    if (!a->nan_if_empty) {
        ree_expr_init(&b, lower, 5, max->dims);
        int m = ree_expr_tensor(&b, max);
        int empty = ree_expr_op2(&b, REE_MAP_eq_f32, m, ree_expr_f32(&b, -INFINITY));
        int z = ree_expr_select(&b, REE_F32, empty, ree_expr_f32(&b, 1), ree_expr_tensor(&b, sum));
        REE_TRY(ree_lower_map(&b, z, REE_F32, &sum));
    }
    return ree_rule_step2(lower, REE_MAP_div_f32, e, sum, out);
}

static enum ree_status softmax(struct ree_lower *lower, const struct ree_attention *a,
                               const struct shape *s, struct ree_view *t, struct ree_view **out) {
    struct ree_view *sink = NULL;
    if (a->sink) REE_TRY(mask_view(lower, s, a->sink, "sink", REE_F32, 1, &sink));
    if (sink || !lower->fuse) return softmax_steps(lower, a, t, sink, out);
    union ree_params params;
    memset(&params.softmax, 0, sizeof params.softmax);
    params.softmax.zero_empty = !a->nan_if_empty;
    params.softmax.outer = (uint32_t)(s->batch * s->n_heads * s->q_len);
    params.softmax.k = (uint32_t)s->kv_len;
    params.softmax.inner = 1;
    REE_TRY(ree_lower_dense(lower, t, &t));
    REE_TRY(ree_lower_new(lower, REE_F32, 5, t->dims, out));
    struct ree_view *operands[2] = {t, *out};
    return ree_lower_emit(lower, REE_REPOP_SOFTMAX, &params, operands, 2, 1);
}

// The whole operation

static enum ree_status without_group(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out) {
    int64_t dims[4] = {t->dims[0], t->dims[1] * t->dims[2], t->dims[3], t->dims[4]};
    return ree_lower_reshape(lower, t, 4, dims, out);
}

static enum ree_status modify(struct ree_lower *lower, const struct shape *s,
                              enum ree_status (*by)(struct ree_lower *, struct ree_view *,
                                                    struct ree_view **),
                              struct ree_view **t) {
    if (!by) return REE_OK;
    REE_TRY(without_group(lower, *t, t));
    REE_TRY(by(lower, *t, t));
    return by_group(lower, *t, s->n_kv_heads, t);
}

static enum ree_status attend(struct ree_lower *lower, const struct ree_attention *a,
                              struct ree_view **out, struct ree_view **out_tapped) {
    struct shape s;
    struct mask m;
    struct ree_view *q, *k, *v, *scores, *weights, *y, *tapped = NULL;
    REE_TRY(check_shapes(lower, a, &s));
    REE_TRY(prepare_mask(lower, a, &s, &m));
    REE_TRY(by_group(lower, a->q, s.n_kv_heads, &q));
    REE_TRY(by_group(lower, a->k, s.n_kv_heads, &k));
    REE_TRY(by_group(lower, a->v, s.n_kv_heads, &v));
    REE_TRY(ree_lower_transpose(lower, k, (uint32_t[]){0, 1, 2, 4, 3}, &k));
    REE_TRY(ree_lower_matmul(lower, q, k, &scores));
    REE_TRY(mask_scores(lower, a, &m, scores, &scores, &tapped));
    REE_TRY(modify(lower, &s, a->modify_scores, &scores));
    REE_TRY(softmax(lower, a, &s, scores, &weights));
    if (a->tap == REE_ATTENTION_TAP_WEIGHTS) tapped = weights;
    REE_TRY(modify(lower, &s, a->modify_weights, &weights));
    REE_TRY(ree_lower_matmul(lower, weights, v, &y));
    REE_TRY(without_group(lower, y, out));
    if (tapped) REE_TRY(without_group(lower, tapped, out_tapped));
    return REE_OK;
}

// Blocks: each has neighbouring queries and the chunks of keys that contain their windows. The keys
// left out are whole chunks, in which all weights would have been +0.

struct block {
    int64_t row, n_rows, key, n_keys;
};

static void keys_of_row(const struct ree_attention *a, int64_t row, int64_t *first, int64_t *end) {
    int64_t position = a->start + row, kv_len = a->k->dims[2];
    *first = 0;
    *end = kv_len;
    if (a->right >= 0 && a->right < kv_len - position) {
        int64_t last = position + a->right;
        *end = last < 0 ? 0 : (last / REE_CHUNK + 1) * REE_CHUNK;
        if (*end > kv_len) *end = kv_len;
    }
    if (a->left >= 0 && a->left < position) *first = (position - a->left) / REE_CHUNK * REE_CHUNK;
    if (*first > *end) *first = *end;
}

// Finds the block that begins at query b->row: all following queries that need the same chunks of
// keys.
static void find_block(const struct ree_attention *a, struct block *b) {
    int64_t end, row_first, row_end, row = b->row;
    keys_of_row(a, row, &b->key, &end);
    do {
        keys_of_row(a, ++row, &row_first, &row_end);
    } while (row < a->q->dims[2] && row_first == b->key && row_end == end);
    b->n_rows = row - b->row;
    b->n_keys = end - b->key;
}

// Selects elements [from, from + n) along axis `axis` of the four axes with which t is aligned at
// the right. Does nothing if t does not have the axis or repeats along it.
static enum ree_status cut(struct ree_lower *lower, uint32_t axis, int64_t from, int64_t n,
                           struct ree_view **t) {
    if (!*t || axis + (*t)->rank < 4) return REE_OK;
    uint32_t own = axis + (*t)->rank - 4;
    return (*t)->dims[own] == 1 ? REE_OK : ree_lower_slice(lower, *t, own, from, 1, n, t);
}

static enum ree_status attend_block(struct ree_lower *lower, const struct ree_attention *a,
                                    const struct block *b, struct ree_view **out) {
    struct ree_attention part = *a;
    part.start = a->start + b->row - b->key;
    REE_TRY(ree_lower_slice(lower, a->q, 2, b->row, 1, b->n_rows, &part.q));
    REE_TRY(ree_lower_slice(lower, a->k, 2, b->key, 1, b->n_keys, &part.k));
    REE_TRY(ree_lower_slice(lower, a->v, 2, b->key, 1, b->n_keys, &part.v));
    struct ree_view **masks[] = {&part.allowed, &part.bias};
    for (uint32_t i = 0; i < 2; i++) {
        REE_TRY(cut(lower, 2, b->row, b->n_rows, masks[i]));
        REE_TRY(cut(lower, 3, b->key, b->n_keys, masks[i]));
    }
    REE_TRY(cut(lower, 2, b->row, b->n_rows, &part.sink));
    return attend(lower, &part, out, NULL);
}

// Makes an output with the query's layout: with the heads of one token adjacent, or the tokens of
// one head.
static enum ree_status new_output(struct ree_lower *lower, const struct ree_attention *a,
                                  const struct shape *s, struct ree_view **out) {
    bool by_token = a->q->strides[1] < a->q->strides[2];
    int64_t dims[4] = {s->batch, s->n_heads, s->q_len, s->v_head_dim};
    dims[by_token ? 1 : 2] = s->q_len;
    dims[by_token ? 2 : 1] = s->n_heads;
    REE_TRY(ree_lower_new(lower, REE_F32, 4, dims, out));
    return by_token ? ree_lower_transpose(lower, *out, (uint32_t[]){0, 2, 1, 3}, out) : REE_OK;
}

static enum ree_status attend_in_blocks(struct ree_lower *lower, const struct ree_attention *a,
                                        const struct shape *s, struct ree_view **out) {
    int64_t q_len = s->q_len;
    struct block b = {0};
    struct ree_view *y, *joined = NULL, *part;
    for (; b.row < q_len; b.row += b.n_rows) {
        find_block(a, &b);
        REE_TRY(attend_block(lower, a, &b, &y));
        *out = y;
        if (b.n_rows == q_len) return REE_OK;
        if (!joined) REE_TRY(new_output(lower, a, s, &joined));
        REE_TRY(ree_lower_slice(lower, joined, 2, b.row, 1, b.n_rows, &part));
        REE_TRY(ree_lower_copy_into(lower, y, part));
    }
    *out = joined;
    return REE_OK;
}

// The RepOp

static bool in_range(int64_t n, int64_t limit) {
    return n >= -limit && n <= limit;
}

// Returns whether fusion is on, no intermediate result is requested or modified, and all numbers
// are in the RepOp's range.
static bool can_fuse(const struct ree_lower *lower, const struct ree_attention *a,
                     const struct shape *s) {
    return lower->fuse && a->tap == REE_ATTENTION_TAP_NONE && !a->modify_scores &&
           !a->modify_weights && in_range(s->q_len, REE_ATTENTION_MAX_LEN) &&
           in_range(s->kv_len, REE_ATTENTION_MAX_LEN) && in_range(a->start, REE_ATTENTION_MAX_LEN);
}

static void set_strides(const struct ree_view *t, uint32_t rank, int32_t *offset,
                        int32_t *strides) {
    *offset = (int32_t)t->offset;
    for (uint32_t i = 0; i < rank; i++)
        strides[i] = t->dims[i] == 1 ? 0 : (int32_t)t->strides[i];
}

static enum ree_status check_operands(struct ree_lower *lower, const struct ree_attention *a,
                                      const struct shape *s) {
    if (a->allowed) REE_TRY(check_mask(lower, s, a->allowed, "mask", REE_BOOL, s->kv_len));
    if (a->bias) REE_TRY(check_mask(lower, s, a->bias, "bias", REE_F32, s->kv_len));
    if (a->n_keys) REE_TRY(check_positions(lower, s, a->n_keys, VALID_KEYS));
    if (a->starts) REE_TRY(check_positions(lower, s, a->starts, FIRST_QUERY));
    if (a->sink) REE_TRY(check_mask(lower, s, a->sink, "sink", REE_F32, 1));
    return REE_OK;
}

// Adds an optional operand, broadcast to the first `rank` axes of (batch, n_heads, q_len, kv_len).
static enum ree_status add_mask(struct ree_lower *lower, const struct shape *s, struct ree_view *t,
                                uint32_t rank, int32_t *offset, int32_t *strides,
                                struct ree_view **operands, uint32_t *n_operands) {
    if (!t) return REE_OK;
    const int64_t dims[4] = {s->batch, s->n_heads, s->q_len, rank < 4 ? 1 : s->kv_len};
    REE_TRY(ree_lower_broadcast(lower, t, 4, dims, &t));
    set_strides(t, rank, offset, strides);
    operands[(*n_operands)++] = t;
    return REE_OK;
}

static void add_positions(struct ree_view *t, uint32_t *dtype, int32_t *offset, int32_t *stride,
                          struct ree_view **operands, uint32_t *n_operands) {
    if (!t) return;
    *dtype = (uint32_t)t->dtype;
    set_strides(t, 1, offset, stride);
    operands[(*n_operands)++] = t;
}

// Writes the strides of keys or values in their pool of pages. Returns false if t is not a copy of
// pages, or not with the dimensions sequences, heads, positions and elements of a head.
static bool pool_strides(const struct ree_view *t, int32_t *out) {
    const struct ree_lower_kv_cache *cache = ree_lower_pages_of(t);
    if (!cache || cache->rank != 4 || cache->axis == cache->batch_axis || t->offset) return false;
    // order[i] is the cache's dimension that is dimension i of t. The order of heads and elements
    // of a head in the cache is not known, so both orders are tried.
    uint32_t order[4] = {cache->batch_axis, 0, cache->axis, 0}, other[2], n = 0;
    int64_t strides[4], stride = 1;
    for (uint32_t i = 4; i-- > 0;) {
        strides[i] = stride;
        stride *= i == cache->axis ? cache->capacity : cache->dims[i];
    }
    for (uint32_t i = 0; i < 4; i++)
        if (i != cache->axis && i != cache->batch_axis) other[n++] = i;
    for (uint32_t swap = 0; swap < 2; swap++) {
        bool fits = true;
        order[1] = other[swap];
        order[3] = other[1 - swap];
        for (uint32_t i = 0; fits && i < 4; i++)
            fits = t->dims[i] == cache->dims[order[i]] &&
                   (t->dims[i] == 1 || t->strides[i] == strides[order[i]]);
        if (!fits) continue;
        out[0] = 0;
        for (uint32_t i = 1; i < 4; i++)
            out[i] = (int32_t)cache->pool->strides[order[i]];
        return true;
    }
    return false;
}

// Lets the dispatch read the pools instead of the copies, if it can read both.
static void use_pages(const struct ree_lower *lower, const struct ree_attention *a,
                      struct ree_attention_params *p, struct ree_view **operands,
                      uint32_t *n_operands) {
    int32_t k_strides[4], v_strides[4];
    if (p->q_len > lower->paged_queries || !pool_strides(a->k, k_strides) ||
        !pool_strides(a->v, v_strides))
        return;
    const struct ree_lower_kv_cache *k = ree_lower_pages_of(a->k), *v = ree_lower_pages_of(a->v);
    const int64_t pool_len = k->pool->dims[k->axis];
    if (k->table != v->table || v->pool->dims[v->axis] != pool_len) return;
    p->page_bits = k->page_bits;
    p->pool_len = (uint32_t)pool_len;
    p->pages_stride = (int32_t)k->table->dims[1];
    p->k_offset = p->v_offset = 0;
    memcpy(p->k_strides, k_strides, sizeof k_strides);
    memcpy(p->v_strides, v_strides, sizeof v_strides);
    operands[1] = k->pool;
    operands[2] = v->pool;
    operands[(*n_operands)++] = k->table;
}

static enum ree_status attend_fused(struct ree_lower *lower, const struct ree_attention *a,
                                    const struct shape *s, struct ree_view **out) {
    union ree_params params;
    struct ree_attention_params *p = &params.attention;
    struct ree_view *operands[REE_MAX_OPERANDS] = {a->q, a->k, a->v};
    uint32_t n = 3;
    int32_t none;
    REE_TRY(check_operands(lower, a, s));
    memset(p, 0, sizeof *p);
    p->batch = (uint32_t)s->batch;
    p->n_heads = (uint32_t)s->n_heads;
    p->n_kv_heads = (uint32_t)s->n_kv_heads;
    p->q_len = (uint32_t)s->q_len;
    p->kv_len = (uint32_t)s->kv_len;
    p->head_dim = (uint32_t)s->head_dim;
    p->v_head_dim = (uint32_t)s->v_head_dim;
    p->k_dtype = (uint32_t)a->k->dtype;
    p->v_dtype = (uint32_t)a->v->dtype;
    set_strides(a->q, 4, &p->q_offset, p->q_strides);
    set_strides(a->k, 4, &p->k_offset, p->k_strides);
    set_strides(a->v, 4, &p->v_offset, p->v_strides);
    p->scale = a->scale;
    p->softcap = a->softcap;
    p->left = to_position(a->left);
    p->right = to_position(a->right);
    p->start = (int32_t)a->start;
    p->zero_empty = !a->nan_if_empty;
    // Without a window, the positions of the queries do not matter.
    bool bounded = a->left >= 0 || a->right >= 0;
    add_positions(bounded ? a->starts : NULL, &p->starts_dtype, &p->starts_offset,
                  &p->starts_stride, operands, &n);
    add_positions(a->n_keys, &p->n_keys_dtype, &p->n_keys_offset, &p->n_keys_stride, operands, &n);
    p->has_allowed = a->allowed != NULL;
    p->has_bias = a->bias != NULL;
    p->has_sink = a->sink != NULL;
    REE_TRY(
        add_mask(lower, s, a->allowed, 4, &p->allowed_offset, p->allowed_strides, operands, &n));
    REE_TRY(add_mask(lower, s, a->bias, 4, &p->bias_offset, p->bias_strides, operands, &n));
    REE_TRY(add_mask(lower, s, a->sink, 3, &p->sink_offset, p->sink_strides, operands, &n));
    use_pages(lower, a, p, operands, &n);
    REE_TRY(new_output(lower, a, s, out));
    set_strides(*out, 3, &none, p->out_strides);
    operands[n++] = *out;
    return ree_lower_emit(lower, REE_REPOP_ATTENTION, &params, operands, n, 1);
}

enum ree_status ree_lower_attention(struct ree_lower *lower, const struct ree_attention *a,
                                    struct ree_view **out, struct ree_view **out_tapped) {
    struct shape s;
    struct mask m;
    struct ree_attention wide = *a;
    REE_TRY(check_shapes(lower, a, &s));
    if (can_fuse(lower, a, &s)) return attend_fused(lower, a, &s, out);
    REE_TRY(ree_lower_cast(lower, a->k, REE_F32, &wide.k));
    REE_TRY(ree_lower_cast(lower, a->v, REE_F32, &wide.v));
    a = &wide;
    REE_TRY(prepare_mask(lower, a, &s, &m));
    bool known = !a->starts && !a->n_keys && !a->modify_scores && !a->modify_weights;
    bool cut = known && s.q_len > 0 && (m.bounded_left || m.bounded_right);
    // A tapped tensor is computed as a whole. The output of that computation is then unused and is
    // pruned.
    if (!cut || a->tap != REE_ATTENTION_TAP_NONE) REE_TRY(attend(lower, a, out, out_tapped));
    if (!cut) return REE_OK;
    wide.tap = REE_ATTENTION_TAP_NONE;
    return attend_in_blocks(lower, a, &s, out);
}
