// The two hashes of a model, of its graph and of its weights; NUMERICS.md, section 9. ree/model.h
// has the public functions.
#ifndef REE_SESSION_IDENTITY_H
#define REE_SESSION_IDENTITY_H

#include "graph/ir/identity.h"
#include "base/merkle.h"

// Weights are hashed in chunks of this many bytes, so that one large tensor keeps all cores busy.
#define REE_WEIGHT_CHUNK ((size_t)1 << 20)

// ree_identity_graph computes the hash of the graph, ree_identity_weights the root hash of its
// weights. They fail with REE_UNSUPPORTED if an attribute or a weight has a type that ree lacks.
// ree_identity_graph_version_1 is the hash of the graph in receipts and traces of version 1, which
// does not say which inputs have default values.
enum ree_status ree_identity_graph(const struct ree_identity *identity, ree_digest out,
                                   struct ree_error *err);
enum ree_status ree_identity_graph_version_1(const struct ree_identity *identity, ree_digest out,
                                             struct ree_error *err);
enum ree_status ree_identity_weights(const struct ree_identity *identity,
                                     const struct ree_progress *progress, ree_digest out,
                                     struct ree_error *err);
// Computes the leaves of the weights' Merkle tree: leaves[i] is the hash of constants[i], for i <
// n.
enum ree_status ree_identity_leaves(const struct ree_constant *constants, size_t n,
                                    const struct ree_progress *progress, ree_digest *leaves,
                                    struct ree_error *err);

// The hashes of a model, each as 64 hexadecimal digits and a NUL.
struct ree_model_hashes {
    char graph[65], weights[65];
    char graph_version_1[65]; // ree_identity_graph_version_1
};
// Computes the hashes of the model; reads all weights.
enum ree_status ree_model_hashes_make(const struct ree_model *model,
                                      const struct ree_progress *progress,
                                      struct ree_model_hashes *out, struct ree_error *err);

#endif
