// Runs a model and searches for contradictions to the proof of its causality: the same tokens
// divided into other runs, and other later tokens.
#ifndef REE_TESTS_CAUSALITY_TRIAL_H
#define REE_TESTS_CAUSALITY_TRIAL_H

#include "claims.h"
#include "generate/roles.h"
#include "session/model.h"

#define TRIAL_MAX_TOKENS 10

struct trial {
    struct ree_model *model;
    struct ree_roles roles;
    int32_t vocab; // token ids are less than vocab
    bool proved;   // the model is proved causal
    struct claims claims;
    struct ree_session *session;
    struct ree_tensor *kv_caches; // one for each state input, in the inputs' order
    size_t width;                 // floats in a row of logits
    char why[512];                // why it is not proved or does not run, or the contradiction
};

// Loads the model from a file or folder, without a session. `options` configure its graph passes.
bool trial_load(struct trial *t, const char *path, const struct ree_model_options *options);
// Runs the proof on the graph as it is now. Destroys the session.
void trial_ask(struct trial *t, bool mixes_lengths);

enum trial_result {
    TRIAL_AGREES,
    TRIAL_FAILS,       // it cannot be lowered or run
    TRIAL_CONTRADICTS, // a run contradicts a fact, or the answer "causal"
};
// Runs the model on random tokens; opens a session if there is none. The device must be the CPU.
enum trial_result trial_run(struct trial *t, struct ree_device *device, const char *label);
void trial_finish(struct trial *t);

#endif
