#include "train/roots.h"

#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "trace/model_header.h"

static void put(unsigned char *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

// Replaces the digest of a state's tensor by its leaf.
static void make_leaf(const char *name, ree_digest inout) {
    unsigned char size[4];
    uint64_t n = strlen(name);
    put(size, n, 4);
    struct ree_hasher *hasher = ree_hasher_create("ree-state/1");
    ree_hasher_update(hasher, size, sizeof size);
    ree_hasher_update(hasher, name, n);
    ree_hasher_update(hasher, inout, sizeof(ree_digest));
    ree_hasher_digest(hasher, inout);
}

enum ree_status ree_states_root(const struct ree_tensor *states, size_t n, ree_digest out,
                                struct ree_error *err) {
    ree_digest *leaves = ree_alloc((n + 1) * sizeof *leaves);
    if (!leaves) return ree_no_memory(err);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < n; i++) {
        REE_FLOAT_ENV_WORKER();
        ree_trace_tensor_digest(&states[i], leaves[i]);
        make_leaf(states[i].name, leaves[i]);
    }
    ree_merkle_root((const ree_digest *)leaves, n, out);
    ree_free(leaves);
    return REE_OK;
}

enum ree_status ree_digests_root(const char *const *names, const ree_digest *digests, size_t n,
                                 ree_digest out, struct ree_error *err) {
    ree_digest *leaves = ree_alloc((n + 1) * sizeof *leaves);
    if (!leaves) return ree_no_memory(err);
    memcpy(leaves, digests, n * sizeof *leaves);
    for (size_t i = 0; i < n; i++)
        make_leaf(names[i], leaves[i]);
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

void ree_chain_next(ree_digest inout, const ree_digest loss, const ree_digest states) {
    struct ree_hasher *hasher = ree_hasher_create("ree-training-step/1");
    ree_hasher_update(hasher, inout, sizeof(ree_digest));
    ree_hasher_update(hasher, loss, sizeof(ree_digest));
    ree_hasher_update(hasher, states, sizeof(ree_digest));
    ree_hasher_digest(hasher, inout);
}
