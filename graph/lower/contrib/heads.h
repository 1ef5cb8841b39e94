// What Attention, MultiHeadAttention and their kin share: masks in ONNX Runtime's many forms,
// caches, and the way from heads to the output. The arithmetic is that of graph/lower/attention.
#ifndef REE_GRAPH_LOWER_CONTRIB_HEADS_H
#define REE_GRAPH_LOWER_CONTRIB_HEADS_H

#include "graph/lower/attention/attention.h"
#include "graph/lower/contrib/standard.h"

// The lengths and head counts of one node. Keys are past_len old ones and then kv_len new ones.
struct ree_heads {
    int64_t batch, n_heads, q_len, past_len, kv_len;
    bool causal;
    float filter; // added to the score of a key that the mask leaves out
    float scale;  // 0: 1 / sqrt(head_dim)
};
// Reads num_heads, mask_filter_value, scale and unidirectional. Lengths stay 0.
enum ree_status ree_heads_init(struct ree_lower *lower, struct ree_heads *h);

// What is added to the scores, float32 that broadcasts to (batch, n_heads, q_len, total): for a key
// behind the query (causal) the lowest float32, for one that the mask leaves out `filter`, plus
// attention_bias where there is one. *out is NULL where nothing is. The mask, int32, is one of
//   (batch, total) and (batch, q_len, total): left out where it is not positive,
//   (batch): left out from that key on,
//   (2 * batch): the same, and left out before the key that the second half says,
//   (batch, 1) and (1, 1): nothing is left out.
enum ree_status ree_heads_bias(struct ree_lower *lower, const struct ree_heads *h,
                               struct ree_tval *mask, struct ree_tval *attention_bias,
                               struct ree_tval **out);

// Attention over q, k and v of (batch, heads, length, head_dim); k and v are whole, cache included,
// and of the cache's type.
// *out is (batch, q_len, heads * v_head_dim) of type dtype. The scores with everything added, of
// the same type, go to *out_scores unless it is NULL.
enum ree_status ree_heads_attend(struct ree_lower *lower, const struct ree_heads *h,
                                 struct ree_tval *q, struct ree_tval *k, struct ree_tval *v,
                                 struct ree_tval *bias, enum ree_dtype dtype, struct ree_tval **out,
                                 struct ree_tval **out_scores);

#endif
