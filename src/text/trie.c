#include "text/trie.h"

#include <stdlib.h>
#include "base/memory.h"

void ree_trie_finish(struct ree_trie *trie) {
    ree_free(trie->nodes);
    memset(trie, 0, sizeof *trie);
}

static int by_bytes(const void *a, const void *b) {
    const struct ree_str *x = &((const struct ree_trie_entry *)a)->string;
    const struct ree_str *y = &((const struct ree_trie_entry *)b)->string;
    size_t n = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->data, y->data, n);
    if (order != 0) return order;
    return (x->size > y->size) - (x->size < y->size);
}

// The entries under a node: a range of the sorted entries with the same first `depth` bytes.
struct range {
    uint32_t node;
    size_t from, to, depth;
};

// Breadth first, so that the children of a node are adjacent. Every node but the root is a prefix
// of an entry, so there are at most as many as the entries have bytes.
static void build(struct ree_trie *trie, const struct ree_trie_entry *entries, size_t n,
                  struct range *queue) {
    size_t head = 0, tail = 0;
    queue[tail++] = (struct range){0, 0, n, 0};
    while (head < tail) {
        struct range r = queue[head++];
        struct ree_trie_node *node = &trie->nodes[r.node];
        while (r.from < r.to && entries[r.from].string.size == r.depth)
            node->value = entries[r.from++].value;
        node->children = trie->n_nodes;
        while (r.from < r.to) {
            uint8_t byte = (uint8_t)entries[r.from].string.data[r.depth];
            size_t end = r.from + 1;
            while (end < r.to && (uint8_t)entries[end].string.data[r.depth] == byte)
                end++;
            uint32_t child = trie->n_nodes++;
            trie->nodes[child] = (struct ree_trie_node){.byte = byte, .value = -1};
            node->n_children++;
            if (r.node == 0) trie->first[byte] = child;
            queue[tail++] = (struct range){child, r.from, end, r.depth + 1};
            r.from = end;
        }
    }
}

enum ree_status ree_trie_init(struct ree_trie *trie, struct ree_trie_entry *entries, size_t n,
                              struct ree_error *err) {
    memset(trie, 0, sizeof *trie);
    uint64_t most = 1;
    for (size_t i = 0; i < n; i++)
        most += entries[i].string.size;
    if (most > UINT32_MAX / 2)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the tokens have %llu bytes in total; the maximum is 2 GiB",
                        (unsigned long long)most);
    if (n) qsort(entries, n, sizeof *entries, by_bytes);
    struct range *queue = ree_alloc_zeroed(most, sizeof *queue);
    trie->nodes = ree_alloc_zeroed(most, sizeof *trie->nodes);
    if (!queue || !trie->nodes) {
        ree_free(queue);
        ree_trie_finish(trie);
        return ree_fail(err, REE_NO_MEMORY, "no memory for the tokens");
    }
    trie->nodes[0].value = -1;
    trie->n_nodes = 1;
    build(trie, entries, n, queue);
    ree_free(queue);
    struct ree_trie_node *fitting = ree_realloc(trie->nodes, trie->n_nodes * sizeof *fitting);
    if (fitting) trie->nodes = fitting;
    return REE_OK;
}

int32_t ree_trie_longest(const struct ree_trie *trie, const char *text, size_t n, size_t *out_size,
                         size_t *out_steps) {
    int32_t found = -1;
    uint32_t at = 0;
    size_t i = 0;
    for (; i < n; i++) {
        at = ree_trie_step(trie, at, (unsigned char)text[i]);
        if (!at) break;
        if (trie->nodes[at].value >= 0) {
            found = trie->nodes[at].value;
            *out_size = i + 1;
        }
    }
    *out_steps = i;
    return found;
}
