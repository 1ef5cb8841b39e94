// Bisecting two Merkle trees (receipt/merkle.h) for their first leaf that differs. A tree is opened
// node by node: what is below a node is asked for, and has to hash to the node. The trees may be of
// different lengths; then the leaves that both have are compared.
#ifndef REE_AUDIT_TREE_H
#define REE_AUDIT_TREE_H

#include "base/status.h"
#include "receipt/merkle.h"

// Leaves in the left half of n, which is at least 2.
uint64_t ree_tree_left(uint64_t n);
// The node above two.
void ree_tree_node(const ree_digest left, const ree_digest right, ree_digest out);

struct ree_tree_known {
    uint64_t first, count;
    ree_digest digest;
};

struct ree_tree {
    uint64_t n;
    // What has been opened: at most two nodes a level on each of the few ways taken.
    size_t n_known, capacity;
    struct ree_tree_known *known;
    // Tops of the two halves of `count` leaves from `first` on, not yet checked.
    enum ree_status (*open)(void *user, uint64_t first, uint64_t count, ree_digest halves[2],
                            struct ree_error *err);
    // Called where they do not hash to the node above; its result is that of ree_tree_first.
    enum ree_status (*lied)(void *user, struct ree_error *err);
    void *user;
};

enum ree_status ree_tree_init(struct ree_tree *tree, uint64_t n, const ree_digest top,
                              struct ree_error *err);
void ree_tree_finish(struct ree_tree *tree);
// *out: the first leaf that differs among those that both have; their number where none does.
// Opens O(log n) nodes of each.
enum ree_status ree_tree_first(struct ree_tree *a, struct ree_tree *b, uint64_t *out,
                               struct ree_error *err);

#endif
