// Runs a language model and searches for contradictions to the proof of its causality. Earlier
// tokens must give the same values if the tokens are divided into other runs, or if later tokens
// change.
#ifndef REE_TESTS_CAUSALITY_TRIAL_H
#define REE_TESTS_CAUSALITY_TRIAL_H

#include "claims.h"
#include "generate/roles.h"
#include "session/model.h"

#define TRIAL_MAX_TOKENS 10

struct trial {
    struct ree_model *model;
    struct ree_roles roles;
    int32_t vocab; // number of token ids
    bool proved;   // the proof says that the model is causal
    struct claims claims;
    struct ree_session *session;
    struct ree_tensor *kv_caches; // past keys and values, in the order of the kv cache inputs
    size_t width;                 // floats in a row of logits
    char why[512];                // why loading or the proof failed, or the contradiction
};

// Loads the model from a file or folder; creates no session. `options` configure its graph passes.
// Returns false on failure, with the reason in t->why. Release with trial_finish in any case.
bool trial_load(struct trial *t, const char *path, const struct ree_model_options *options);
// Runs the proof on the model's graph as it is now and sets t->proved and t->claims. Destroys the
// session. `mixes_lengths`: sequences in a batch may have different lengths.
void trial_ask(struct trial *t, bool mixes_lengths);

enum trial_result {
    TRIAL_AGREES,      // no contradiction was found
    TRIAL_FAILS,       // the model cannot be lowered or run
    TRIAL_CONTRADICTS, // a run contradicts a fact, or that the model is causal
};
// Runs the model on random tokens: in one run, divided into several, and with other later tokens.
// Compares the values with the facts and with each other. Creates a session if there is none. The
// device must be the CPU. Messages on stderr begin with `label`.
enum trial_result trial_run(struct trial *t, struct ree_device *device, const char *label);
void trial_finish(struct trial *t);

#endif
