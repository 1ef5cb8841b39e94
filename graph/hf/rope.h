// Rotary position embeddings as a checkpoint's config.json describes them: the frequencies that
// turn positions into angles, and the factor on cosines and sines.
//
// The numbers are those of the `transformers` library: computed in binary32 in the same order, with
// correctly rounded powers; quantities that the library computes in Python are binary64. So the
// bits are the same on every machine that exports the checkpoint. README.md in this folder lists
// the formulas.
#ifndef REE_GRAPH_HF_ROPE_H
#define REE_GRAPH_HF_ROPE_H

#include "base/arena.h"
#include "base/json.h"

struct ree_rope {
    uint32_t n;      // pairs of each head that are rotated
    float *inv_freq; // (n)
    float factor;    // of cosine and sine
    int64_t context; // positions it was made for; 0: the model's context
};

// The inputs from which a rope is read, in addition to its own parameters.
struct ree_rope_source {
    const cJSON *config;     // partial_rotary_factor, original_max_position_embeddings
    const cJSON *parameters; // "rope_scaling" or "rope_parameters"; NULL: none
    double theta;            // used if the parameters have no rope_theta
    int64_t head_dim, context;
    bool partial;     // use partial_rotary_factor
    int64_t original; // positions before scaling, used if config.json has none; 0: none
};

enum ree_status ree_rope_read(const struct ree_rope_source *source, struct ree_arena *arena,
                              struct ree_rope *out, struct ree_error *err);

#endif
