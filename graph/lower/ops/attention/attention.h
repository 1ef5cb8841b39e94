// Scaled dot-product attention over views, for all attention operators: scores, mask, softmax and
// values as NUMERICS.md, "Attention", defines them. The rule of an operator converts its inputs to
// struct ree_attention and shapes the result. Splitting heads, joining caches and sharing keys
// between heads are views, or one copy.
#ifndef REE_GRAPH_LOWER_ATTENTION_H
#define REE_GRAPH_LOWER_ATTENTION_H

#include "graph/lower/ops/rules.h"

// An intermediate tensor of attention that the caller requests.
enum ree_attention_tap {
    REE_ATTENTION_TAP_NONE,
    REE_ATTENTION_TAP_SCORES, // scale * (q k)
    REE_ATTENTION_TAP_CAPPED, // scores after the soft cap
    REE_ATTENTION_TAP_MASKED, // scores after mask and bias
    REE_ATTENTION_TAP_WEIGHTS // weights, the result of the softmax
};

// The inputs of attention. Query i of a batch is at position p = start + starts[batch] + i among
// the keys. The query attends to key j if all of these hold:
// - p - left <= j <= p + right, for each bound that is set (causal: right = 0);
// - j < n_keys[batch];
// - allowed[batch, head, i, j] is true;
// - bias[batch, head, i, j] is not -inf.
//
// A tensor that is NULL sets no restriction. Each group of n_heads / n_kv_heads neighbouring query
// heads shares one head of keys and values.
struct ree_attention {
    // Queries, keys and values, with any strides. Keys and values of narrow types are widened
    // exactly.
    struct ree_view *q; // float32 (batch, n_heads, q_len, head_dim)
    struct ree_view *k; // float32, float16 or bfloat16 (batch, n_kv_heads, kv_len, head_dim)
    struct ree_view *v; // type as k; (batch, n_kv_heads, kv_len, v_head_dim)

    float scale;
    float softcap; // bound of the soft cap; 0: no soft cap

    // bool, broadcasts to (batch, n_heads, q_len, kv_len); false: the query must not see the key
    struct ree_view *allowed;
    struct ree_view *bias;   // float32, broadcasts like `allowed`; added to the scores
    struct ree_view *n_keys; // int32 or int64 (batch): number of valid keys
    struct ree_view *starts; // int32 or int64 (batch): position of query 0, minus `start`
    int64_t start;
    // Number of keys before and after its own position that a query sees: 0 or more, or
    // REE_ATTENTION_UNBOUNDED.
    int64_t left, right;

    // float32, broadcasts to (batch, n_heads, q_len, 1): the score of one more key, which comes
    // after all others and has no value. NULL: none.
    struct ree_view *sink;

    enum ree_attention_tap tap;

    // modify_scores is called with the masked scores, modify_weights with the weights; both are
    // float32 (batch, n_heads, q_len, kv_len). *out replaces them and must have the same type and
    // shape. NULL: no modification.
    enum ree_status (*modify_scores)(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out);
    enum ree_status (*modify_weights)(struct ree_lower *lower, struct ree_view *t,
                                      struct ree_view **out);
    // The result for a query that attends to no key. true: NaN, as softmax gives; false: zeros.
    bool nan_if_empty;
};

// Sets the defaults: scale 1, no bounds left and right, all else zero or NULL.
void ree_attention_init(struct ree_attention *a);
bool ree_attention_is_float(enum ree_dtype dtype); // float32, float16 or bfloat16
// Checks the attribute softmax_precision of the node. ree computes the softmax in binary32, which
// is at least as precise as every type that the attribute may name, except double. Double is
// refused.
enum ree_status ree_attention_precision(struct ree_lower *lower);
// Returns 1 / sqrt(head_dim), each step rounded to binary32.
float ree_attention_default_scale(int64_t head_dim);

// Computes attention. *out is float32 (batch, n_heads, q_len, v_head_dim), with any strides.
// *out_tapped is the tensor that a->tap requests, (batch, n_heads, q_len, kv_len); out_tapped may
// be NULL without a tap. Fails if the shapes do not match; messages call the inputs query, key,
// value, mask, bias.
enum ree_status ree_lower_attention(struct ree_lower *lower, const struct ree_attention *a,
                                    struct ree_view **out, struct ree_view **out_tapped);

// Heads.
//
// Views t (batch, len, n_heads * head_dim) as (batch, n_heads, len, head_dim). Fails if the last
// size is not a multiple of n_heads; `what` names t in the message ("query").
enum ree_status ree_lower_split_heads(struct ree_lower *lower, struct ree_view *t, int64_t n_heads,
                                      const char *what, struct ree_view **out);
// Converts (batch, n_heads, len, head_dim) to (batch, len, n_heads * head_dim). Copies unless
// n_heads or len is 1.
enum ree_status ree_lower_join_heads(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out);
// Appends t to `past` along axis 2 of (batch, n_heads, len, head_dim) or (batch, channels, len). If
// `past` is NULL, *out is t. `what` names `past` in messages.
enum ree_status ree_lower_append_keys(struct ree_lower *lower, struct ree_view *past,
                                      struct ree_view *t, const char *what, struct ree_view **out);

// Selects rows of a table (n, size). `index` has any shape and is int32 or int64. A negative index
// counts from the end; an index outside the table makes the run fail. *out is (dims of index,
// size).
enum ree_status ree_lower_rows(struct ree_lower *lower, struct ree_view *table,
                               struct ree_view *index, struct ree_view **out);
// Rotates pairs of elements of x by angles, given as cosines and sines: each pair (x0, x1) becomes
// (cos * x0 - sin * x1, sin * x0 + cos * x1).
// - x is float32 of rank 4.
// - The pairs are in the first n = 2 * (last size of cos) elements of its last dimension:
//   neighbours if `interleaved`, else n / 2 apart. Elements from n on are unchanged.
// - cos and sin broadcast to (first three dims of x, n / 2).
// - *out is dense, with the dims of x.
enum ree_status ree_lower_rotate(struct ree_lower *lower, struct ree_view *x, struct ree_view *cos,
                                 struct ree_view *sin, bool interleaved, struct ree_view **out);

#endif
