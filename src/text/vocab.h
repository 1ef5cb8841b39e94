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

// One step of the 64-bit hash ree_hash_bytes, which takes a string eight bytes at a time:
// multiplies to 128 bits and xors the halves. Nothing that is printed or stored depends on the
// hash.
static inline uint64_t ree_hash_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t ree_hash_bytes(const char *data, size_t size) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ size, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        hash = ree_hash_fold(hash ^ word, 0xA0761D6478BD642Fu);
    }
    word = 0;
    if (size >= 4) {
        uint32_t low, high; // first and last 4 of the 4 to 7 remaining bytes; they may overlap
        memcpy(&low, data, 4);
        memcpy(&high, data + size - 4, 4);
        word = (uint64_t)high << 32 | low;
    } else if (size > 0) {
        word = (uint64_t)(unsigned char)data[0] | (uint64_t)(unsigned char)data[size / 2] << 8 |
               (uint64_t)(unsigned char)data[size - 1] << 16;
    }
    return ree_hash_fold(hash ^ word, 0xE7037ED1A0B428DBu);
}

#endif
