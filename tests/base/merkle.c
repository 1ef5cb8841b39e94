// Trees compared with a literal implementation of the definition in merkle.h; proofs: each correct
// proof verifies, and no other does.
#include "base/merkle.h"

#include "test.h"

#include <string.h>

#define MAX_LEAVES 40

static ree_digest leaves[MAX_LEAVES];

static void hash(const char *tag, const void *a, size_t na, const void *b, size_t nb,
                 ree_digest out) {
    struct ree_hasher *hasher = ree_hasher_create(tag);
    ree_hasher_update(hasher, a, na);
    ree_hasher_update(hasher, b, nb);
    ree_hasher_digest(hasher, out);
}

static void naive_top(uint64_t first, uint64_t n, ree_digest out) {
    memset(out, 0, 32);
    if (n == 1) memcpy(out, leaves[first], 32);
    if (n < 2) return;
    uint64_t k = 1;
    while (2 * k < n)
        k *= 2;
    ree_digest l, r;
    naive_top(first, k, l);
    naive_top(first + k, n - k, r);
    hash("ree-tree/1", l, 32, r, 32, out);
}

static void check_tree(uint64_t n, ree_digest root) {
    ree_digest top, expected;
    naive_top(0, n, top);
    hash("ree-root/1", &n, 8, top, 32, expected);
    ree_merkle_root(leaves, n, root);
    CHECK_MSG(memcmp(root, expected, 32) == 0, "root of %u", (unsigned)n);
    struct ree_merkle_builder builder = {0};
    for (uint64_t i = 0; i < n; i++)
        ree_merkle_add(&builder, leaves[i]);
    ree_merkle_builder_root(&builder, expected);
    CHECK_MSG(memcmp(root, expected, 32) == 0, "root of %u, one by one", (unsigned)n);
    for (uint64_t first = 0; first < n; first += 3) {
        naive_top(first, n - first, expected);
        ree_merkle_top(leaves + first, n - first, top);
        CHECK_MSG(memcmp(top, expected, 32) == 0, "top of %u to %u", (unsigned)first, (unsigned)n);
    }
}

static void check_proof(const ree_digest root, uint64_t n, uint64_t index) {
    ree_digest proof[REE_MERKLE_MAX_PROOF + 1];
    memset(proof, 0, sizeof proof);
    uint32_t length = ree_merkle_proof(leaves, n, index, proof);
    CHECK(ree_merkle_verify(root, n, index, leaves[index], proof, length));

    struct ree_merkle_tree tree;
    ree_digest kept[REE_MERKLE_MAX_PROOF];
    REQUIRE(ree_merkle_tree_init(&tree, (const ree_digest *)leaves, n));
    CHECK(ree_merkle_tree_proof(&tree, index, kept) == length);
    CHECK(memcmp(kept, proof, length * sizeof *kept) == 0);
    ree_merkle_tree_finish(&tree);

    for (uint64_t i = 0; i < MAX_LEAVES + 2; i++)
        CHECK(i == index || !ree_merkle_verify(root, n, i, leaves[index], proof, length));
    for (uint64_t i = 0; i < n; i++)
        CHECK(i == index || !ree_merkle_verify(root, n, index, leaves[i], proof, length));
    // Other numbers of leaves, including those whose proofs have the same length.
    for (uint64_t m = 0; m < MAX_LEAVES + 26; m++)
        CHECK(m == n || !ree_merkle_verify(root, m, index, leaves[index], proof, length));
    for (uint32_t other = 0; other <= length + 1; other++)
        CHECK(other == length || !ree_merkle_verify(root, n, index, leaves[index], proof, other));
    for (uint32_t i = 0; i < length; i++) {
        for (int bit = 0; bit < 256; bit += 37) {
            proof[i][bit / 8] ^= (unsigned char)(1 << bit % 8);
            CHECK(!ree_merkle_verify(root, n, index, leaves[index], proof, length));
            proof[i][bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        if (i == 0) continue;
        ree_digest swapped[REE_MERKLE_MAX_PROOF];
        memcpy(swapped, proof, sizeof swapped);
        memcpy(swapped[i], proof[i - 1], 32);
        memcpy(swapped[i - 1], proof[i], 32);
        CHECK(
            !ree_merkle_verify(root, n, index, leaves[index], (const ree_digest *)swapped, length));
    }
    for (int i = 0; i < 32; i++) {
        ree_digest changed;
        memcpy(changed, root, 32);
        changed[i] ^= 1;
        CHECK(!ree_merkle_verify(changed, n, index, leaves[index], proof, length));
        memcpy(changed, leaves[index], 32);
        changed[i] ^= 0x80;
        CHECK(!ree_merkle_verify(root, n, index, changed, proof, length));
    }
}

// An inner node must not pass for a leaf: the two halves of 4 leaves are not a tree of 2 leaves
// with the same root.
static void check_levels(void) {
    ree_digest halves[2], root4, root2;
    ree_merkle_top(leaves, 2, halves[0]);
    ree_merkle_top(leaves + 2, 2, halves[1]);
    ree_merkle_root(leaves, 4, root4);
    ree_merkle_root((const ree_digest *)halves, 2, root2);
    CHECK(memcmp(root4, root2, 32) != 0);
}

// Numbers of leaves that no tree here has, but that untrusted files may state.
static void check_huge(void) {
    static const ree_digest proof[REE_MERKLE_MAX_PROOF + 2];
    static const uint64_t sizes[] = {1ull << 32, (1ull << 63) - 1, 1ull << 63, (1ull << 63) + 1,
                                     UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t length = 0; length < REE_MERKLE_MAX_PROOF + 2; length++) {
            CHECK(!ree_merkle_verify(proof[0], sizes[i], sizes[i] - 1, proof[0], proof, length));
            CHECK(!ree_merkle_verify(proof[0], sizes[i], 0, proof[0], proof, length));
            CHECK(!ree_merkle_verify(proof[0], sizes[i], sizes[i], proof[0], proof, length));
        }
}

int main(void) {
    ree_digest roots[MAX_LEAVES + 1];
    for (uint64_t i = 0; i < MAX_LEAVES; i++)
        hash("leaf", &i, 8, NULL, 0, leaves[i]);
    for (uint64_t n = 0; n <= MAX_LEAVES; n++) {
        check_tree(n, roots[n]);
        for (uint64_t m = 0; m < n; m++)
            CHECK(memcmp(roots[m], roots[n], 32) != 0);
        for (uint64_t i = 0; i < n; i++)
            check_proof(roots[n], n, i);
    }
    check_levels();
    check_huge();
    return test_finish();
}
