// The description of a decoder that config.json gives, in one form for all architectures. causal.h
// writes the graph from it.
#ifndef REE_GRAPH_HF_CONFIG_H
#define REE_GRAPH_HF_CONFIG_H

#include "graph/hf/checkpoint.h"
#include "graph/hf/rope.h"

enum ree_norm_kind {
    REE_NORM_RMS,          // x / rms(x) * w
    REE_NORM_RMS_PLUS_ONE, // x / rms(x) * (1 + w)
    REE_NORM_LAYER,        // (x - mean) / deviation * w + b
};
// Where the norms of attention and of the MLP are: before it, after it (olmo2), or both (gemma3).
enum ree_norm_place { REE_NORM_BEFORE, REE_NORM_AFTER, REE_NORM_AROUND };
// Norms of queries and keys: none, one per head, or one over all heads together.
enum ree_qk_norm { REE_QK_NONE, REE_QK_HEAD, REE_QK_WHOLE };
enum ree_hidden_act { REE_ACT_SILU, REE_ACT_GELU, REE_ACT_GELU_TANH, REE_ACT_RELU };
// Which layers see only a window of keys: none; all layers, if config.json gives a window; or the
// layers that config.json lists.
enum ree_sliding { REE_SLIDING_NONE, REE_SLIDING_ALL, REE_SLIDING_LISTED };

// Properties that an architecture fixes, and defaults for values that config.json may omit. The
// defaults come from the configuration class of the architecture in `transformers`.
struct ree_family {
    const char *model_type;
    const char *text_config; // key of the section that describes the decoder; NULL: the whole file
    enum ree_norm_kind norm;
    enum ree_norm_place norm_place;
    enum ree_qk_norm qk_norm;
    enum ree_sliding sliding;
    bool is_gpt2; // GPT-2's names, learned positions, weights stored (in, out), a plain MLP
    bool fused;   // one matrix for q, k and v, and one for gate and up
    // q, k and v have a bias even without attention_bias; the output projection has none
    bool bias_on_qkv;
    bool tied; // default of tie_word_embeddings
    double norm_eps, theta;
    // Defaults of the context length in tokens, the number of key and value heads (0: as many as
    // heads), the window in keys (0: none), and the context length before scaling (only phi3; 0:
    // none).
    int64_t context, kv_heads, window, original_context;
};

#define REE_NO_ROPE 255

struct ree_causal_config {
    const struct ree_family *family;
    int64_t vocab, hidden, intermediate, n_layers, n_heads, n_kv_heads, head_dim;
    int64_t context; // maximum number of positions
    float norm_eps;
    float *scales; // (n_layers) factor of the attention scores
    // bounds of the soft caps of attention scores and of logits; 0: no soft cap
    float attention_softcap, final_softcap;
    bool scale_embeddings; // multiply embeddings by sqrt(hidden)
    bool tied, qkv_bias, out_bias, mlp_bias;
    enum ree_hidden_act act;
    int64_t *windows; // (n_layers) keys that a query sees, including its own; 0: no window
    uint8_t *ropes;   // (n_layers) index into rope[], or REE_NO_ROPE
    struct ree_rope rope[2];
    uint32_t n_ropes;
    int64_t bos; // token that begins a text; -1: none
    size_t n_eos;
    int64_t *eos;
};

// Reads the checkpoint's config.json and generation_config.json. The memory of *out is allocated in
// the checkpoint's arena. Error messages begin with "config.json".
enum ree_status ree_causal_config_read(struct ree_checkpoint *checkpoint,
                                       struct ree_causal_config *out, struct ree_error *err);

// Returns supported architecture number i, from 0; NULL after the last.
const struct ree_family *ree_family_at(size_t i);

#endif
