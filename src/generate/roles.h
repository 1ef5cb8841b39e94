// The roles of a causal language model's inputs and outputs, independent of the exporter's names.
#ifndef REE_GENERATE_ROLES_H
#define REE_GENERATE_ROLES_H

#include "generate/source.h"
#include "session/kv_cache.h"

enum ree_role {
    REE_ROLE_TOKENS,         // ids [batch, sequence]
    REE_ROLE_ATTENTION_MASK, // 1 for each past and each new token [batch, total]
    REE_ROLE_POSITIONS,      // positions of the new tokens [batch, sequence] or [sequence]
    REE_ROLE_TOKEN_TYPES,    // zeros [batch, sequence]
    REE_ROLE_USE_CACHE,      // bool of merged decoders: whether there are past tokens
    REE_ROLE_PAST_LENGTH,    // number of past tokens
    REE_ROLE_TOTAL_LENGTH,   // number of past and new tokens
    REE_ROLE_ROWS,           // rows of the requested logits: see ree_model_select_rows
    REE_ROLE_KV_CACHE,       // a kv cache
};

struct ree_roles {
    size_t n_inputs;
    enum ree_role *of_input;
    size_t tokens, positions; // inputs; REE_NO_INPUT: none
    size_t logits;            // output
    size_t n_kv_caches;
    struct ree_kv_cache_spec *kv_caches;
    bool fixed_batch; // the model accepts only one sequence at a time
    bool by_folder;   // the roles were found only with names from its folder
};

// Finds the roles. Fails with a message that names what was not recognised. Also fails if the
// folder's names contradict the ports' own names, because no hash of the model covers the folder's
// files.
enum ree_status ree_roles_find(const struct ree_model *model, const struct ree_port_names *names,
                               struct ree_roles *out, struct ree_error *err);
// Fails with REE_UNSUPPORTED unless the model's hashes determine the roles of its ports. Otherwise
// two folders could make one model give two answers, each with a correct receipt.
enum ree_status ree_roles_check_bound(const struct ree_roles *roles, struct ree_error *err);
void ree_roles_finish(struct ree_roles *roles);

#define REE_ROWS_INPUT "logits_rows"

#endif
