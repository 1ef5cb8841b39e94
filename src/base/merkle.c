#include "base/merkle.h"

#include <string.h>

#include "base/memory.h"

static const char tree_tag[] = "ree-tree/1";

// Computes node(l, r). The hasher must have hashed only tree_tag, and is in that state again
// afterwards.
static void node(struct ree_hasher *hasher, const ree_digest l, const ree_digest r,
                 ree_digest out) {
    ree_hasher_update(hasher, l, sizeof(ree_digest));
    ree_hasher_update(hasher, r, sizeof(ree_digest));
    ree_hasher_next(hasher, tree_tag, out);
}

// Largest power of two below n; n must be at least 2. A tree of n leaves has ceil(log2(n)) levels,
// so no recursion below is deeper than 64.
static uint64_t left_half(uint64_t n) {
    return (uint64_t)1 << (63 - __builtin_clzll(n - 1));
}

static void top(struct ree_hasher *hasher, const ree_digest *leaves, uint64_t n, ree_digest out) {
    if (n < 2) {
        if (n == 1)
            memcpy(out, leaves[0], sizeof(ree_digest));
        else
            memset(out, 0, sizeof(ree_digest));
        return;
    }
    ree_digest l, r;
    uint64_t k = left_half(n);
    top(hasher, leaves, k, l);
    top(hasher, leaves + k, n - k, r);
    node(hasher, l, r, out);
}

void ree_merkle_root_of_top(uint64_t n, const ree_digest top_digest, ree_digest out) {
    struct ree_hasher *hasher = ree_hasher_create("ree-root/1");
    ree_hasher_update(hasher, &n, sizeof n); // little-endian, as sha256.c requires
    ree_hasher_update(hasher, top_digest, sizeof(ree_digest));
    ree_hasher_digest(hasher, out);
}

void ree_merkle_top(const ree_digest *leaves, uint64_t count, ree_digest out) {
    ree_digest unused;
    struct ree_hasher *hasher = ree_hasher_create(tree_tag);
    top(hasher, leaves, count, out);
    ree_hasher_digest(hasher, unused);
}

void ree_merkle_root(const ree_digest *leaves, uint64_t n, ree_digest out) {
    ree_digest top_digest;
    ree_merkle_top(leaves, n, top_digest);
    ree_merkle_root_of_top(n, top_digest, out);
}

void ree_merkle_add(struct ree_merkle_builder *b, const ree_digest leaf) {
    ree_digest carry, unused;
    uint32_t level = 0;
    memcpy(carry, leaf, sizeof carry);
    if (b->n & 1) {
        struct ree_hasher *hasher = ree_hasher_create(tree_tag);
        for (; b->n >> level & 1; level++)
            node(hasher, b->tops[level], carry, carry);
        ree_hasher_digest(hasher, unused);
    }
    memcpy(b->tops[level], carry, sizeof carry);
    b->n++;
}

// Each subtree is the left sibling of all smaller ones together, so combine from the smallest up.
void ree_merkle_builder_root(const struct ree_merkle_builder *b, ree_digest out) {
    ree_digest right = {0}, unused;
    bool has_right = false;
    struct ree_hasher *hasher = ree_hasher_create(tree_tag);
    for (uint32_t level = 0; level < 64; level++) {
        if (!(b->n >> level & 1)) continue;
        if (has_right)
            node(hasher, b->tops[level], right, right);
        else
            memcpy(right, b->tops[level], sizeof right);
        has_right = true;
    }
    ree_hasher_digest(hasher, unused);
    ree_merkle_root_of_top(b->n, right, out);
}

// Writes the siblings on the path from leaf `index` to the top of n leaves, lowest first, and
// returns their number.
static uint32_t prove(struct ree_hasher *hasher, const ree_digest *leaves, uint64_t n,
                      uint64_t index, ree_digest *proof) {
    if (n == 1) return 0;
    uint64_t k = left_half(n);
    bool is_left = index < k;
    uint32_t length = is_left ? prove(hasher, leaves, k, index, proof)
                              : prove(hasher, leaves + k, n - k, index - k, proof);
    if (is_left)
        top(hasher, leaves + k, n - k, proof[length]);
    else
        top(hasher, leaves, k, proof[length]);
    return length + 1;
}

uint32_t ree_merkle_proof(const ree_digest *leaves, uint64_t n, uint64_t index,
                          ree_digest proof[REE_MERKLE_MAX_PROOF]) {
    ree_digest unused;
    struct ree_hasher *hasher = ree_hasher_create(tree_tag);
    uint32_t length = prove(hasher, leaves, n, index, proof);
    ree_hasher_digest(hasher, unused);
    return length;
}

// A level has the nodes of pairs of neighbours in the level below. If the number there is odd, the
// last one has no sibling and goes up as it is. This is the shape that left_half gives.
bool ree_merkle_tree_init(struct ree_merkle_tree *tree, const ree_digest *leaves, uint64_t n) {
    uint64_t n_inner = 0;
    for (uint64_t level = n; level > 1; n_inner += level)
        level = level / 2 + level % 2;
    *tree = (struct ree_merkle_tree){.n = n, .leaves = leaves};
    tree->inner = ree_alloc_zeroed((size_t)n_inner + 1, sizeof *tree->inner);
    if (!tree->inner) return false;
    ree_digest unused, *to = tree->inner;
    struct ree_hasher *hasher = ree_hasher_create(tree_tag);
    for (const ree_digest *from = leaves; n > 1;) {
        ree_digest *level = to;
        for (uint64_t i = 0; i + 1 < n; i += 2)
            node(hasher, from[i], from[i + 1], *to++);
        if (n % 2) memcpy(*to++, from[n - 1], sizeof *to);
        from = (const ree_digest *)level;
        n = n / 2 + n % 2;
    }
    ree_hasher_digest(hasher, unused);
    return true;
}

void ree_merkle_tree_finish(struct ree_merkle_tree *tree) {
    ree_free(tree->inner);
    *tree = (struct ree_merkle_tree){0};
}

uint32_t ree_merkle_tree_proof(const struct ree_merkle_tree *tree, uint64_t index,
                               ree_digest proof[REE_MERKLE_MAX_PROOF]) {
    uint32_t length = 0;
    const ree_digest *level = tree->leaves, *next = (const ree_digest *)tree->inner;
    for (uint64_t n = tree->n; n > 1; n = n / 2 + n % 2, index /= 2) {
        if ((index ^ 1) < n) memcpy(proof[length++], level[index ^ 1], sizeof(ree_digest));
        level = next;
        next += n / 2 + n % 2;
    }
    return length;
}

// Returns the number of levels above leaf `index` in a tree of n leaves.
static uint32_t depth_of(uint64_t n, uint64_t index) {
    uint32_t depth = 0;
    for (; n > 1; depth++) {
        uint64_t k = left_half(n);
        bool is_left = index < k;
        n = is_left ? k : n - k;
        index = is_left ? index : index - k;
    }
    return depth;
}

// Computes the top that follows from the leaf and the proof; `length` must be depth_of(n, index).
static void climb(struct ree_hasher *hasher, uint64_t n, uint64_t index, const ree_digest leaf,
                  const ree_digest *proof, uint32_t length, ree_digest out) {
    if (n == 1) {
        memcpy(out, leaf, sizeof(ree_digest));
        return;
    }
    uint64_t k = left_half(n);
    ree_digest below;
    if (index < k) {
        climb(hasher, k, index, leaf, proof, length - 1, below);
        node(hasher, below, proof[length - 1], out);
    } else {
        climb(hasher, n - k, index - k, leaf, proof, length - 1, below);
        node(hasher, proof[length - 1], below, out);
    }
}

bool ree_merkle_verify(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                       const ree_digest *proof, uint32_t n_proof) {
    if (index >= n || n_proof != depth_of(n, index)) return false;
    ree_digest top_digest, found, unused;
    struct ree_hasher *hasher = ree_hasher_create(tree_tag);
    climb(hasher, n, index, leaf, proof, n_proof, top_digest);
    ree_hasher_digest(hasher, unused);
    ree_merkle_root_of_top(n, top_digest, found);
    return memcmp(found, root, sizeof found) == 0;
}
