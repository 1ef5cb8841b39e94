// What the inputs and outputs of a causal language model are for, whatever its exporter calls them.
#ifndef REE_GENERATE_ROLES_H
#define REE_GENERATE_ROLES_H

#include "generate/source.h"
#include "session/state.h"

enum ree_role {
    REE_ROLE_TOKENS,         // ids [batch, sequence]
    REE_ROLE_ATTENTION_MASK, // 1 for each token so far and each new one [batch, total]
    REE_ROLE_POSITIONS,      // of the new tokens [batch, sequence], or [sequence]
    REE_ROLE_TOKEN_TYPES,    // zeros [batch, sequence]
    REE_ROLE_USE_CACHE,      // whether there is a past: a bool, of merged decoders
    REE_ROLE_PAST_LENGTH,    // tokens so far: a number
    REE_ROLE_TOTAL_LENGTH,   // tokens so far and new ones: a number
    REE_ROLE_ROWS,           // which logits are wanted: see ree_model_select_rows
    REE_ROLE_STATE,          // a cache
};

struct ree_roles {
    size_t n_inputs;
    enum ree_role *of_input;
    size_t tokens, positions; // inputs; REE_NO_INPUT: none
    size_t logits;            // output
    size_t n_states;
    struct ree_state_spec *states;
    bool fixed_batch; // the model takes one sequence at a time
    bool by_folder;   // names in its folder were needed to find them
};

// Fails with what was not understood, and where the folder's names say otherwise than the names of
// the ports: files of the folder are in no hash of the model.
enum ree_status ree_roles_find(const struct ree_model *model, const struct ree_port_names *names,
                               struct ree_roles *out, struct ree_error *err);
// Whether the hashes of a model say all about what its ports are for. REE_UNSUPPORTED if they do
// not: two folders could have one model give two answers, both with a receipt that is right.
enum ree_status ree_roles_check_bound(const struct ree_roles *roles, struct ree_error *err);
void ree_roles_finish(struct ree_roles *roles);

#define REE_ROWS_INPUT "logits_rows"

#endif
