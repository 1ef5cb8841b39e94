// Runs of a model that look for something that contradicts the proof of its causality: the same
// tokens cut into runs elsewhere, and other later tokens.
#ifndef REE_TESTS_CAUSALITY_TRIAL_H
#define REE_TESTS_CAUSALITY_TRIAL_H

#include "claims.h"
#include "generate/roles.h"
#include "session/model.h"

#define TRIAL_MAX_TOKENS 10

struct trial {
    struct ree_model *model;
    struct ree_roles roles;
    int32_t vocab; // ids are below it
    bool proved;   // that the model is causal
    struct claims claims;
    struct ree_session *session;
    struct ree_tensor *states; // of the inputs that are states, in their order
    size_t width;              // of a row of logits
    char why[512];             // it is not proved, does not run, or what contradicts
};

// The model in a file or folder, without sessions. The options are those of its passes.
bool trial_load(struct trial *t, const char *path, const struct ree_model_options *options);
// Asks whether the graph, as it is now, is causal. Ends the session.
void trial_ask(struct trial *t, bool mixes_lengths);

enum trial_result {
    TRIAL_AGREES,
    TRIAL_FAILS,       // to be lowered or run
    TRIAL_CONTRADICTS, // a fact, or the answer if that is "causal"
};
// Runs it in a session, which is opened if there is none, on random tokens. The device is the CPU.
enum trial_result trial_run(struct trial *t, struct ree_device *device, const char *label);
void trial_finish(struct trial *t);

#endif
