// What config.json says of a decoder: one description for all architectures, from which
// causal.c makes the graph.
#ifndef REE_GRAPH_HF_CONFIG_H
#define REE_GRAPH_HF_CONFIG_H

#include "graph/hf/checkpoint.h"
#include "graph/hf/rope.h"

enum ree_norm_kind {
    REE_NORM_RMS,          // x / rms(x) * w
    REE_NORM_RMS_PLUS_ONE, // x / rms(x) * (1 + w)
    REE_NORM_LAYER,        // mean and variance, with a bias
};
// Where a block has norms: before it, after it (olmo2), or both (gemma3).
enum ree_norm_place { REE_NORM_BEFORE, REE_NORM_AFTER, REE_NORM_AROUND };
// Norms of queries and keys: none, each head's, or all heads' together.
enum ree_qk_norm { REE_QK_NONE, REE_QK_HEAD, REE_QK_WHOLE };
enum ree_hidden_act { REE_ACT_SILU, REE_ACT_GELU, REE_ACT_GELU_TANH, REE_ACT_RELU };
// Which layers see only a window of keys: none, all where config.json gives one, or as listed.
enum ree_sliding { REE_SLIDING_NONE, REE_SLIDING_ALL, REE_SLIDING_LISTED };

// What an architecture fixes, and the values that its config.json may leave out: those that the
// configuration class of `transformers` has for a key that is not there.
struct ree_family {
    const char *model_type;
    const char *text_config; // the key of the part that describes the decoder; NULL: all of it
    enum ree_norm_kind norm;
    enum ree_norm_place norm_place;
    enum ree_qk_norm qk_norm;
    enum ree_sliding sliding;
    bool is_gpt2;     // its names, learned positions, weights stored (in, out), a plain MLP
    bool fused;       // one matrix for queries, keys and values, one for gate and up
    bool bias_on_qkv; // without asking attention_bias; the output has none
    bool tied;        // unless config.json says otherwise
    double norm_eps, theta;
    // 0: none; of kv_heads, as many as heads. The original context is phi3's alone.
    int64_t context, kv_heads, window, original_context;
};

#define REE_NO_ROPE 255

struct ree_causal_config {
    const struct ree_family *family;
    int64_t vocab, hidden, intermediate, n_layers, n_heads, n_kv_heads, head_dim;
    int64_t context; // positions
    float norm_eps;
    float *scales;                          // (n_layers) on attention scores
    float attention_softcap, final_softcap; // 0: none
    bool scale_embeddings;                  // by sqrt(hidden)
    bool tied, qkv_bias, out_bias, mlp_bias;
    enum ree_hidden_act act;
    int64_t *windows; // (n_layers) keys that a query sees, itself included; 0: all before it
    uint8_t *ropes;   // (n_layers) index of its rope, or REE_NO_ROPE
    struct ree_rope rope[2];
    uint32_t n_ropes;
    int64_t bos; // -1: none
    size_t n_eos;
    int64_t *eos;
};

// Memory of *out is the checkpoint's arena. Messages begin with the file's name.
enum ree_status ree_causal_config_read(struct ree_checkpoint *checkpoint,
                                       struct ree_causal_config *out, struct ree_error *err);

// NULL after the last.
const struct ree_family *ree_family_at(size_t i);

#endif
