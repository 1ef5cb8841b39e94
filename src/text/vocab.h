// A vocabulary of a tokenizer: maps token ids to pieces (byte strings) and pieces to ids.
#ifndef REE_TEXT_VOCAB_H
#define REE_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/status.h"

#include <string.h>

// All ids are below this. It limits the memory that a file can make us allocate, at 16 bytes per
// id.
#define REE_VOCAB_MAX (1u << 22)

struct ree_str {
    const char *data; // `size` bytes, then a NUL; the bytes may contain NULs
    size_t size;
};

struct ree_vocab_slot {
    uint32_t id; // id of the piece + 1; 0: free slot
    uint32_t hash;
};

struct ree_vocab {
    struct ree_str *pieces; // [n], by id; data is NULL if no piece has the id
    uint32_t n;             // 1 + the largest id
    uint32_t count;         // number of pieces
    uint32_t capacity;      // capacity of `pieces`
    struct ree_vocab_slot *slots;
    uint32_t mask; // number of slots - 1; the number is a power of two
};

void ree_vocab_finish(struct ree_vocab *vocab);
// Adds a piece. The caller keeps ownership of its text. Fails with REE_INVALID if the id is taken
// or out of range, or if the piece already has an id.
enum ree_status ree_vocab_add(struct ree_vocab *vocab, struct ree_str piece, int64_t id,
                              struct ree_error *err);
// Returns the id of the piece with these bytes, or -1 if there is none.
int32_t ree_vocab_find(const struct ree_vocab *vocab, const char *data, size_t size);

static inline const struct ree_str *ree_vocab_piece(const struct ree_vocab *vocab, int32_t id) {
    return id >= 0 && (uint32_t)id < vocab->n && vocab->pieces[id].data ? &vocab->pieces[id] : NULL;
}

#endif
