// Shared by Attention, MultiHeadAttention and related operators: masks in the forms that ONNX
// Runtime accepts, caches, and the conversion from heads to the output. graph/lower/attention has
// the arithmetic.
#ifndef REE_GRAPH_LOWER_OPS_CONTRIB_HEADS_H
#define REE_GRAPH_LOWER_OPS_CONTRIB_HEADS_H

#include "graph/lower/ops/attention/attention.h"
#include "graph/lower/ops/contrib/standard.h"

// The lengths and head counts of one node. The keys are past_len old ones, then kv_len new ones.
struct ree_heads {
    int64_t batch, n_heads, q_len, past_len, kv_len;
    bool causal;
    float filter; // added to the score of a key that the mask excludes
    float scale;  // 0: 1 / sqrt(head_dim)
};
// Reads num_heads, mask_filter_value, scale and unidirectional. Leaves the lengths 0.
enum ree_status ree_heads_init(struct ree_lower *lower, struct ree_heads *h);

// Makes the bias that is added to the scores: float32, broadcasts to (batch, n_heads, q_len,
// total).
// - For a key after the query (causal), the bias is the lowest float32.
// - For a key that the mask excludes, it is `filter`.
// - attention_bias, if present, is added.
//
// *out is NULL if there is nothing to add. The mask is int32 and has one of these shapes:
//
//   (batch, total) or (batch, q_len, total): excludes keys whose entry is not positive
//   (batch): excludes keys from this index on
//   (2 * batch): as above; the second half gives the first included key
//   (batch, 1) or (1, 1): excludes nothing
enum ree_status ree_heads_bias(struct ree_lower *lower, const struct ree_heads *h,
                               struct ree_view *mask, struct ree_view *attention_bias,
                               struct ree_view **out);

// Attention over q, k and v of shape (batch, heads, length, head_dim). k and v include the cache
// and have the cache's dtype. *out is (batch, q_len, heads * v_head_dim) of type dtype. *out_scores
// receives the scores with everything added, in the same type; out_scores may be NULL.
enum ree_status ree_heads_attend(struct ree_lower *lower, const struct ree_heads *h,
                                 struct ree_view *q, struct ree_view *k, struct ree_view *v,
                                 struct ree_view *bias, enum ree_dtype dtype, struct ree_view **out,
                                 struct ree_view **out_scores);

#endif
