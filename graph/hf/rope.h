// Rotary position embeddings as a checkpoint's config.json describes them: the frequencies by which
// positions turn into angles, and the factor on cosines and sines.
//
// The numbers are those of the `transformers` library, computed in binary32 in the same order, with
// powers correctly rounded; quantities that it computes in Python are binary64. So they are the
// same bits wherever a checkpoint is exported. README.md beside this file lists the formulas.
#ifndef REE_GRAPH_HF_ROPE_H
#define REE_GRAPH_HF_ROPE_H

#include "base/arena.h"
#include "base/json.h"

struct ree_rope {
    uint32_t n;      // pairs of each head that are turned
    float *inv_freq; // (n)
    float factor;    // on cosine and sine
    int64_t context; // positions it was made for; 0: those of the model
};

// What a rope is read from, besides its own parameters.
struct ree_rope_source {
    const cJSON *config;     // partial_rotary_factor, original_max_position_embeddings
    const cJSON *parameters; // "rope_scaling" or "rope_parameters"; NULL: none
    double theta;            // where the parameters give none
    int64_t head_dim, context;
    bool partial;     // partial_rotary_factor counts
    int64_t original; // positions before scaling, where config.json does not say them; 0: none
};

enum ree_status ree_rope_read(const struct ree_rope_source *source, struct ree_arena *arena,
                              struct ree_rope *out, struct ree_error *err);

#endif
