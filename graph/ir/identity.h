// Computes what identifies a model, taken from its graph as read, before any pass. Passes differ
// between versions of ree; the identity of a model must not. NUMERICS.md, section 9, defines what
// the two hashes of a model cover. This file produces the bytes for one hash and the list of
// tensors for the other; session/identity.c computes the hashes.
#ifndef REE_GRAPH_IR_IDENTITY_H
#define REE_GRAPH_IR_IDENTITY_H

#include "graph/ir/ir.h"

// A constant of the model and where its bytes are. Passes may drop the value; the bytes stay valid
// as long as the graph exists.
struct ree_constant {
    const char *name;
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    // contents, in the form of struct ree_value.data; NULL: ree lacks the type
    const void *data;
    size_t nbytes;
};

struct ree_identity {
    // The encoded graph. The digests of tensor attributes are missing: at byte offset holes[i], 32
    // zero bytes are reserved for the digest of attributes[i].
    unsigned char *bytes; // owned
    size_t n_bytes;
    size_t n_bytes_version_1; // without the list of inputs with default values, at the end
    size_t n_holes;
    size_t *holes;
    struct ree_constant *attributes;
    size_t n_weights;
    struct ree_constant *weights; // constants of the graph and its subgraphs, sorted by name
};

// Fills *identity from a graph before any pass. Reads no tensor data. Overwrites value->number of
// every value. The caller releases *identity with ree_identity_finish.
enum ree_status ree_identity_init(struct ree_identity *identity, struct ree_graph *graph,
                                  struct ree_error *err);
void ree_identity_finish(struct ree_identity *identity);

#endif
