// Bisects two Merkle trees (base/merkle.h) to find the first leaf that differs. Trees are opened
// node by node: the two halves below a node are requested and must hash to the node. The trees may
// have different numbers of leaves; then only the leaves that both have are compared.
#ifndef REE_DISPUTE_TREE_H
#define REE_DISPUTE_TREE_H

#include "base/status.h"
#include "base/merkle.h"

// Returns the number of leaves in the left subtree of a tree of n leaves; n must be at least 2.
uint64_t ree_tree_left(uint64_t n);
// Computes the node above `left` and `right`.
void ree_tree_node(const ree_digest left, const ree_digest right, ree_digest out);

struct ree_tree_known {
    uint64_t first, count;
    ree_digest digest;
};

struct ree_tree {
    uint64_t n;
    // Number of nodes in `known`, at most two per level on each of the few paths taken; capacity of
    // `known`.
    size_t n_known, capacity;
    struct ree_tree_known *known;
    // Callback that gets the tops of the two halves of the `count` leaves from `first` on. The
    // caller of this callback checks them.
    enum ree_status (*open)(void *user, uint64_t first, uint64_t count, ree_digest halves[2],
                            struct ree_error *err);
    // Callback for halves that do not hash to the node above them. ree_tree_first then returns its
    // status.
    enum ree_status (*lied)(void *user, struct ree_error *err);
    void *user;
};

// Initialises a tree of n leaves of which only the top is known. The caller must set the callbacks.
enum ree_status ree_tree_init(struct ree_tree *tree, uint64_t n, const ree_digest top,
                              struct ree_error *err);
void ree_tree_finish(struct ree_tree *tree);
// Compares two trees. *out receives the index of the first leaf that differs or, if none of the
// leaves that both trees have differs, their number. Opens O(log n) nodes of each tree.
enum ree_status ree_tree_first(struct ree_tree *a, struct ree_tree *b, uint64_t *out,
                               struct ree_error *err);

#endif
