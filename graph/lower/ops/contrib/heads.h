// Shared by Attention, MultiHeadAttention and related operators of com.microsoft: masks in the
// forms that ONNX Runtime accepts, and attention over q, k and v with conversion of the result. The
// arithmetic is in graph/lower/ops/attention.
#ifndef REE_GRAPH_LOWER_OPS_CONTRIB_HEADS_H
#define REE_GRAPH_LOWER_OPS_CONTRIB_HEADS_H

#include "graph/lower/ops/attention/attention.h"
#include "graph/lower/ops/contrib/standard.h"

// The lengths, the number of heads and the attributes of one node. The keys are past_len old ones,
// then kv_len new ones.
struct ree_heads {
    int64_t batch, n_heads, q_len, past_len, kv_len;
    bool causal;
    float filter; // added to the score of a key that the mask excludes
    float scale;  // factor of the scores; 0: 1 / sqrt(head_dim)
};
// Reads the attributes num_heads, mask_filter_value, scale and unidirectional. Leaves the lengths
// 0.
enum ree_status ree_heads_init(struct ree_lower *lower, struct ree_heads *h);

// Makes the bias that is added to the scores: float32, broadcasts to (batch, n_heads, q_len,
// total), total = past_len + kv_len.
// - For a key after the query (if h->causal), the bias is the lowest float32.
// - For a key that the mask excludes, it is h->filter.
// - attention_bias, if not NULL, is added.
//
// *out is NULL if there is nothing to add. The mask is int32 and has one of these shapes; NULL
// excludes nothing:
//
//   (batch, total) or (batch, q_len, total): excludes keys whose entry is not positive
//   (batch): excludes keys from this index on
//   (2 * batch): as (batch); the second half gives the index of the first included key
//   (batch, 1) or (1, 1): excludes nothing
enum ree_status ree_heads_bias(struct ree_lower *lower, const struct ree_heads *h,
                               struct ree_view *mask, struct ree_view *attention_bias,
                               struct ree_view **out);

// Computes attention over q, k and v of shape (batch, heads, length, head_dim). k and v include the
// cache and have its dtype. *out is (batch, q_len, heads * v_head_dim) of type dtype. *out_scores
// receives the scores after mask and bias, in the same type; out_scores may be NULL.
enum ree_status ree_heads_attend(struct ree_lower *lower, const struct ree_heads *h,
                                 struct ree_view *q, struct ree_view *k, struct ree_view *v,
                                 struct ree_view *bias, enum ree_dtype dtype, struct ree_view **out,
                                 struct ree_view **out_scores);

#endif
