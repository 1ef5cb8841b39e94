// A trie over byte strings. It finds the strings of a set that start at a position of a text.
#ifndef REE_TEXT_TRIE_H
#define REE_TEXT_TRIE_H

#include "text/vocab.h"

struct ree_trie_node {
    uint32_t children;   // index of the first child; the children are adjacent, sorted by byte
    uint16_t n_children; // 0 to 256
    uint8_t byte;        // byte that leads from the parent to this node
    int32_t value;       // value of the string that ends at this node; -1: none
};

struct ree_trie {
    struct ree_trie_node *nodes; // [n_nodes]; nodes[0] is the root
    uint32_t n_nodes;
    uint32_t first[256]; // indices of the root's children, by byte; 0: none
};

// A string of the set and its value. The strings must be distinct and not empty. ree_trie_init
// sorts the entries in place.
struct ree_trie_entry {
    struct ree_str string;
    int32_t value; // must not be negative
};
enum ree_status ree_trie_init(struct ree_trie *trie, struct ree_trie_entry *entries, size_t n,
                              struct ree_error *err);
void ree_trie_finish(struct ree_trie *trie);

// Returns the index of the child of node `at` for `byte`, or 0 if there is none. Node 0 is the
// root.
static inline uint32_t ree_trie_step(const struct ree_trie *trie, uint32_t at, unsigned char byte) {
    if (at == 0) return trie->first[byte];
    const struct ree_trie_node *node = &trie->nodes[at];
    uint32_t low = node->children, n = node->n_children;
    while (n > 8) {
        uint32_t half = n / 2;
        if (trie->nodes[low + half].byte <= byte) {
            low += half;
            n -= half;
        } else {
            n = half;
        }
    }
    for (uint32_t i = low; i < low + n; i++)
        if (trie->nodes[i].byte == byte) return i;
    return 0;
}

// Finds the longest string of the set with which the text of n bytes starts. Returns its value and
// sets *out_size to its length in bytes, or returns -1 if there is none. *out_steps is the number
// of bytes that were compared.
int32_t ree_trie_longest(const struct ree_trie *trie, const char *text, size_t n, size_t *out_size,
                         size_t *out_steps);

#endif
