// Finds the roles of a causal language model's inputs and outputs (token ids, attention mask, kv
// caches, logits), whichever names the exporter gave them.
#ifndef REE_GENERATE_ROLES_H
#define REE_GENERATE_ROLES_H

#include "generate/source.h"
#include "session/kv_cache.h"

enum ree_role {
    REE_ROLE_TOKENS,         // ids of the new tokens [batch, sequence]
    REE_ROLE_ATTENTION_MASK, // 1 for each past and each new token [batch, total]
    REE_ROLE_POSITIONS,      // positions of the new tokens [batch, sequence] or [sequence]
    REE_ROLE_TOKEN_TYPES,    // zeros [batch, sequence]
    REE_ROLE_USE_CACHE,      // bool of merged decoders: whether there are past tokens
    REE_ROLE_PAST_LENGTH,    // number of past tokens
    REE_ROLE_TOTAL_LENGTH,   // number of past and new tokens
    REE_ROLE_ROWS,           // indices of the new tokens whose logits are requested
    REE_ROLE_KV_CACHE,       // past keys or values
};

struct ree_roles {
    size_t n_inputs;
    enum ree_role *of_input;  // (n_inputs): the role of each input
    size_t tokens, positions; // indices of the inputs with these roles; REE_NO_INPUT: none
    size_t logits;            // index of the output with the logits
    size_t n_kv_caches;
    struct ree_kv_cache_spec *kv_caches;
    bool fixed_batch; // the model accepts only one sequence at a time
    // An input of positions has no batch dimension: all sequences of a batch have the same.
    bool shared_positions;
    bool by_folder;   // the roles could be found only with the names in genai_config.json
};

// Finds the roles of all inputs and of the logits. `names` are the port names that the folder's
// configuration states; where it states none, the ports' usual names and shapes decide. Fails with
// REE_UNSUPPORTED, and names the port, if a role is not recognised. Fails with REE_INVALID if the
// folder's names contradict the ports' own names, because no hash of the model covers the folder's
// files. Release *out with ree_roles_finish.
enum ree_status ree_roles_find(const struct ree_model *model, const struct ree_port_names *names,
                               struct ree_roles *out, struct ree_error *err);
// Fails with REE_UNSUPPORTED if by_folder is set: then the model's hashes do not determine the
// roles of its ports, and two folders could make one model give two answers, each with a correct
// receipt.
enum ree_status ree_roles_check_bound(const struct ree_roles *roles, struct ree_error *err);
void ree_roles_finish(struct ree_roles *roles);

#define REE_ROWS_INPUT "logits_rows"

#endif
