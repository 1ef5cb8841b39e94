#include "dispute/tree.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

uint64_t ree_tree_left(uint64_t n) {
    return (uint64_t)1 << (63 - __builtin_clzll(n - 1));
}

void ree_tree_node(const ree_digest left, const ree_digest right, ree_digest out) {
    ree_digest both[2];
    memcpy(both[0], left, sizeof(ree_digest));
    memcpy(both[1], right, sizeof(ree_digest));
    ree_merkle_top((const ree_digest *)both, 2, out);
}

static enum ree_status add(struct ree_tree *tree, uint64_t first, uint64_t count,
                           const ree_digest digest, struct ree_error *err) {
    if (tree->n_known == tree->capacity) {
        size_t capacity = tree->capacity ? tree->capacity * 2 : 64;
        struct ree_tree_known *grown = ree_realloc(tree->known, capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        tree->known = grown;
        tree->capacity = capacity;
    }
    struct ree_tree_known *known = &tree->known[tree->n_known++];
    known->first = first;
    known->count = count;
    memcpy(known->digest, digest, sizeof known->digest);
    return REE_OK;
}

enum ree_status ree_tree_init(struct ree_tree *tree, uint64_t n, const ree_digest top,
                              struct ree_error *err) {
    tree->n = n;
    tree->known = NULL;
    tree->n_known = tree->capacity = 0;
    return add(tree, 0, n, top, err);
}

void ree_tree_finish(struct ree_tree *tree) {
    ree_free(tree->known);
    tree->known = NULL;
}

static const struct ree_tree_known *find(const struct ree_tree *tree, uint64_t first,
                                         uint64_t count) {
    for (size_t i = tree->n_known; i-- > 0;)
        if (tree->known[i].first == first && tree->known[i].count == count) return &tree->known[i];
    return NULL;
}

// Replaces the range by its half that contains `index`.
static void step_down(uint64_t index, uint64_t *first, uint64_t *count) {
    uint64_t left = ree_tree_left(*count);
    if (index < *first + left) {
        *count = left;
    } else {
        *first += left;
        *count -= left;
    }
}

// Returns whether the range of leaves is a node of a tree of n leaves.
static bool is_node(uint64_t n, uint64_t first, uint64_t count) {
    uint64_t at = 0, size = n;
    while (size > count)
        step_down(first, &at, &size);
    return at == first && size == count;
}

static enum ree_status open_node(struct ree_tree *tree, uint64_t first, uint64_t count,
                                 struct ree_error *err) {
    ree_digest halves[2], above, expected;
    memcpy(expected, find(tree, first, count)->digest, sizeof expected);
    REE_TRY(tree->open(tree->user, first, count, halves, err));
    ree_tree_node(halves[0], halves[1], above);
    if (memcmp(above, expected, sizeof above) != 0) return tree->lied(tree->user, err);
    uint64_t left = ree_tree_left(count);
    REE_TRY(add(tree, first, left, halves[0], err));
    return add(tree, first + left, count - left, halves[1], err);
}

// Computes the top of a range of leaves from nodes of the tree. If the range is not a node of the
// tree itself, it is computed from its two halves. This happens if the other tree has fewer leaves
// and the range is a node of that tree. The recursion ends at complete subtrees, which both trees
// have.
static enum ree_status range_top(struct ree_tree *tree, uint64_t first, uint64_t count,
                                 ree_digest out, struct ree_error *err) {
    if (!is_node(tree->n, first, count)) {
        ree_digest halves[2];
        uint64_t left = ree_tree_left(count);
        REE_TRY(range_top(tree, first, left, halves[0], err));
        REE_TRY(range_top(tree, first + left, count - left, halves[1], err));
        ree_tree_node(halves[0], halves[1], out);
        return REE_OK;
    }
    uint64_t at = 0, size = tree->n;
    while (size > count) {
        uint64_t above = at, above_size = size;
        step_down(first, &at, &size);
        if (!find(tree, at, size)) REE_TRY(open_node(tree, above, above_size, err));
    }
    memcpy(out, find(tree, first, count)->digest, sizeof(ree_digest));
    return REE_OK;
}

static enum ree_status agree(struct ree_tree *a, struct ree_tree *b, uint64_t first, uint64_t count,
                             bool *out, struct ree_error *err) {
    ree_digest x, y;
    REE_TRY(range_top(a, first, count, x, err));
    REE_TRY(range_top(b, first, count, y, err));
    *out = memcmp(x, y, sizeof x) == 0;
    return REE_OK;
}

enum ree_status ree_tree_first(struct ree_tree *a, struct ree_tree *b, uint64_t *out,
                               struct ree_error *err) {
    uint64_t first = 0, count = a->n < b->n ? a->n : b->n;
    bool same = true;
    *out = count;
    if (count) REE_TRY(agree(a, b, first, count, &same, err));
    if (same) return REE_OK;
    while (count > 1) {
        uint64_t left = ree_tree_left(count);
        REE_TRY(agree(a, b, first, left, &same, err));
        // If the left halves are equal, the right halves differ, because the tops do.
        if (same) first += left;
        count = same ? count - left : left;
    }
    *out = first;
    return REE_OK;
}
