// A trie over byte strings: which of a set of strings start at a place of a text.
#ifndef REE_TEXT_TRIE_H
#define REE_TEXT_TRIE_H

#include "text/vocab.h"

struct ree_trie_node {
    uint32_t children;   // index of the first; the others follow it, in the order of their bytes
    uint16_t n_children; // 0 to 256
    uint8_t byte;        // that leads here
    int32_t value;       // of the string that ends here; -1: none does
};

struct ree_trie {
    struct ree_trie_node *nodes; // [0] is the root
    uint32_t n_nodes;
    uint32_t first[256]; // children of the root by their byte; 0: none
};

// `strings` are distinct and not empty; values[i] belongs to strings[i]. Both arrays get sorted.
struct ree_trie_entry {
    struct ree_str string;
    int32_t value; // not negative
};
enum ree_status ree_trie_init(struct ree_trie *trie, struct ree_trie_entry *entries, size_t n,
                              struct ree_error *err);
void ree_trie_finish(struct ree_trie *trie);

// One step down, from node `at` (0: the root): the child for `byte`, or 0 where there is none.
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

// The longest string at the beginning of the text; its value, or -1.
int32_t ree_trie_longest(const struct ree_trie *trie, const char *text, size_t n, size_t *out_size);

#endif
