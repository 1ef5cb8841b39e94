// What identifies a model, taken from its graph as it was read, before any pass: passes belong to a
// version of ree, and a model is the same in all of them. NUMERICS.md, section 9, says what the two
// hashes of a model are over; here are the bytes of one and the tensors of the other, and
// session/identity.c hashes them.
#ifndef REE_GRAPH_IDENTITY_H
#define REE_GRAPH_IDENTITY_H

#include "graph/ir.h"

// A constant of the model, where its bytes lie. Passes may drop the value; what it points to stays
// as long as the graph.
struct ree_constant {
    const char *name;
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    const void *data; // as in struct ree_value; NULL: of a type that ree lacks
    size_t nbytes;
};

struct ree_identity {
    // The encoded graph. Where an attribute is a tensor, its digest is still missing: 32 zero bytes
    // at `holes[i]` for the tensor attributes[i].
    unsigned char *bytes; // malloc
    size_t n_bytes;
    size_t n_holes;
    size_t *holes;
    struct ree_constant *attributes;
    size_t n_weights;
    struct ree_constant *weights; // of the graph and its subgraphs, sorted by name
};

// Costs little: no tensor is looked at. Uses value->number.
enum ree_status ree_identity_init(struct ree_identity *identity, struct ree_graph *graph,
                                  struct ree_error *err);
void ree_identity_finish(struct ree_identity *identity);

#endif
