// Merkle trees over digests: a root that stands for a list, and short proofs that a digest is at a
// place in it. The shape is that of RFC 6962, section 2.1 (the left half has the largest power of
// two of leaves that is smaller than their number); the bytes are ours:
//
//     node(l, r)  = SHA-256("ree-tree/1\0" | l | r)
//     top(d)      = d of one leaf; 32 zero bytes of none; node(top(left), top(right))
//     root        = SHA-256("ree-root/1\0" | u64 LE number of leaves | top)
//
// Leaves are digests that carry a tag of their own, so a node cannot pass for a leaf. NUMERICS.md,
// "Hashes".
#ifndef REE_RECEIPT_MERKLE_H
#define REE_RECEIPT_MERKLE_H

#include "base/sha256.h"

// The most digests that a proof has: one for each level of a tree of 2^64 leaves.
#define REE_MERKLE_MAX_PROOF 64

typedef unsigned char ree_digest[REE_SHA256_SIZE];

void ree_merkle_root(const ree_digest *leaves, uint64_t n, ree_digest out);
void ree_merkle_root_of_top(uint64_t n, const ree_digest top, ree_digest out);
// The root of leaves that are given one after the other, without a list of them. Initialise with
// zeros.
struct ree_merkle_builder {
    uint64_t n;          // leaves so far
    ree_digest tops[64]; // of the complete subtrees of n's binary digits: tops[k] is of 2^k leaves
};
void ree_merkle_add(struct ree_merkle_builder *builder, const ree_digest leaf);
void ree_merkle_builder_root(const struct ree_merkle_builder *builder, ree_digest out);
// The siblings of leaves[index] from the bottom up; returns how many. index < n.
uint32_t ree_merkle_proof(const ree_digest *leaves, uint64_t n, uint64_t index,
                          ree_digest proof[REE_MERKLE_MAX_PROOF]);
// Whether `leaf` is leaf `index` of `n` under `root`. False, too, for a proof of another length
// than such a tree has.
bool ree_merkle_verify(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                       const ree_digest *proof, uint32_t n_proof);
// top() of leaves[first ... first + count - 1]: what two parties compare while they bisect.
void ree_merkle_top(const ree_digest *leaves, uint64_t count, ree_digest out);

#endif
