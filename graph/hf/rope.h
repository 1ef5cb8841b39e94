// Rotary position embeddings as a checkpoint's config.json describes them: the frequencies that
// turn positions into angles, and the factor on cosines and sines.
//
// The numbers follow the `transformers` library. What the library computes in tensors is computed
// in binary32, in the same order, with correctly rounded powers; what it computes in Python is
// computed in binary64. The bits are the same on every machine. README.md in this folder lists the
// formulas.
#ifndef REE_GRAPH_HF_ROPE_H
#define REE_GRAPH_HF_ROPE_H

#include "base/arena.h"
#include "base/json.h"

struct ree_rope {
    uint32_t n;      // number of pairs of elements of a head that are rotated
    float *inv_freq; // (n) angle of pair i at position p: p * inv_freq[i]
    float factor;    // multiplies cosines and sines
    int64_t context; // maximum number of positions; 0: the rope sets no maximum
};

// The parameters of a rope, and what else its frequencies depend on.
struct ree_rope_source {
    // section of config.json that describes the decoder; may have partial_rotary_factor and
    // original_max_position_embeddings
    const cJSON *config;
    const cJSON *parameters; // "rope_scaling" or "rope_parameters"; NULL: none
    double theta;            // base of the frequencies, if the parameters have no rope_theta
    int64_t head_dim, context;
    bool partial; // the architecture uses partial_rotary_factor
    // default of original_max_position_embeddings, the context length before scaling; 0: none
    int64_t original;
};

enum ree_status ree_rope_read(const struct ree_rope_source *source, struct ree_arena *arena,
                              struct ree_rope *out, struct ree_error *err);

#endif
