// Merkle trees over digests: one root for a list of digests, and short proofs that a digest is at a
// given position in the list. The shape is that of RFC 6962, section 2.1: the left subtree has the
// largest power of two of leaves that is smaller than the number of leaves. The hashed bytes are
// specific to ree:
//
//     node(l, r)  = SHA-256("ree-tree/1\0" | l | r)
//     top(d)      = d for one leaf; 32 zero bytes for none; else node(top(left), top(right))
//     root        = SHA-256("ree-root/1\0" | u64 LE number of leaves | top)
//
// Each leaf is a digest that was made with a tag of its own, so an inner node cannot be mistaken
// for a leaf. NUMERICS.md, "Hashes".
#ifndef REE_BASE_MERKLE_H
#define REE_BASE_MERKLE_H

#include "base/sha256.h"

// Maximum number of digests in a proof: one for each level of a tree of 2^64 leaves.
#define REE_MERKLE_MAX_PROOF 64

typedef unsigned char ree_digest[REE_SHA256_SIZE];

void ree_merkle_root(const ree_digest *leaves, uint64_t n, ree_digest out);
void ree_merkle_root_of_top(uint64_t n, const ree_digest top, ree_digest out);
// Computes the root of leaves that are added one at a time, without storing the leaves. Initialise
// the builder with zeros.
struct ree_merkle_builder {
    uint64_t n; // number of leaves added so far
    // tops[k]: top of a complete subtree of 2^k leaves; valid if bit k of n is set
    ree_digest tops[64];
};
void ree_merkle_add(struct ree_merkle_builder *builder, const ree_digest leaf);
void ree_merkle_builder_root(const struct ree_merkle_builder *builder, ree_digest out);
// Writes to proof[] the siblings on the path from leaves[index] to the top, lowest first, and
// returns their number. `index` must be below n.
uint32_t ree_merkle_proof(const ree_digest *leaves, uint64_t n, uint64_t index,
                          ree_digest proof[REE_MERKLE_MAX_PROOF]);
// A tree that keeps its inner nodes, for many proofs about the same leaves. ree_merkle_proof hashes
// all leaves for each proof; this tree hashes them once.
struct ree_merkle_tree {
    uint64_t n;               // number of leaves
    const ree_digest *leaves; // the caller's
    ree_digest *inner;        // the levels above the leaves, the lowest first
};
// The leaves must outlive the tree. Returns false if memory is exhausted.
bool ree_merkle_tree_init(struct ree_merkle_tree *tree, const ree_digest *leaves, uint64_t n);
void ree_merkle_tree_finish(struct ree_merkle_tree *tree); // accepts a zeroed tree; zeroes it
// The same as ree_merkle_proof.
uint32_t ree_merkle_tree_proof(const struct ree_merkle_tree *tree, uint64_t index,
                               ree_digest proof[REE_MERKLE_MAX_PROOF]);
// Returns whether `leaf` is leaf number `index` of the `n` leaves under `root`. Returns false also
// if n_proof is not the depth of that leaf.
bool ree_merkle_verify(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                       const ree_digest *proof, uint32_t n_proof);
// Computes top() of leaves[0 ... count - 1], the value that two parties of a dispute compare while
// they bisect.
void ree_merkle_top(const ree_digest *leaves, uint64_t count, ree_digest out);

#endif
