// Rotary embeddings for the operators of com.microsoft.
#ifndef REE_GRAPH_LOWER_OPS_CONTRIB_ROTARY_H
#define REE_GRAPH_LOWER_OPS_CONTRIB_ROTARY_H

#include "graph/lower/ops/contrib/standard.h"

// Applies the standard operator RotaryEmbedding to x, float32 (batch, n_heads, length, head_dim),
// at `positions`, int64 (batch, length). cos_cache and sin_cache have one row per position.
enum ree_status ree_contrib_rotate(struct ree_lower *lower, struct ree_view *x,
                                   struct ree_view *positions, struct ree_view *cos_cache,
                                   struct ree_view *sin_cache, bool interleaved,
                                   struct ree_view **out);

#endif
