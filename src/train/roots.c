// Hashes of states and of steps: NUMERICS.md, "Trainings".
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "train/training.h"

static void put(unsigned char *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static void state_leaf(const struct ree_tensor *state, ree_digest out) {
    unsigned char size[4];
    uint64_t n = strlen(state->name);
    put(size, n, 4);
    ree_tensor_digest(state, out);
    struct ree_hasher *hasher = ree_hasher_create("ree-state/1");
    ree_hasher_update(hasher, size, sizeof size);
    ree_hasher_update(hasher, state->name, n);
    ree_hasher_update(hasher, out, sizeof(ree_digest));
    ree_hasher_digest(hasher, out);
}

enum ree_status ree_states_root(const struct ree_tensor *states, size_t n, ree_digest out,
                                struct ree_error *err) {
    ree_digest *leaves = ree_alloc((n + 1) * sizeof *leaves);
    if (!leaves) return ree_no_memory(err);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < n; i++) {
        REE_FLOAT_ENV_WORKER();
        state_leaf(&states[i], leaves[i]);
    }
    ree_merkle_root((const ree_digest *)leaves, n, out);
    ree_free(leaves);
    return REE_OK;
}

void ree_chain_begin(uint64_t step, const ree_digest states, ree_digest out) {
    unsigned char number[8];
    put(number, step, 8);
    struct ree_hasher *hasher = ree_hasher_create("ree-training/1");
    ree_hasher_update(hasher, number, sizeof number);
    ree_hasher_update(hasher, states, sizeof(ree_digest));
    ree_hasher_digest(hasher, out);
}

void ree_chain_add(ree_digest inout, const struct ree_tensor *loss, const ree_digest states) {
    ree_digest digest;
    ree_tensor_digest(loss, digest);
    struct ree_hasher *hasher = ree_hasher_create("ree-training-step/1");
    ree_hasher_update(hasher, inout, sizeof(ree_digest));
    ree_hasher_update(hasher, digest, sizeof digest);
    ree_hasher_update(hasher, states, sizeof(ree_digest));
    ree_hasher_digest(hasher, inout);
}
