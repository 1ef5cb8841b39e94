#include "text/vocab.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>

void ree_vocab_finish(struct ree_vocab *vocab) {
    ree_free(vocab->pieces);
    ree_free(vocab->slots);
    memset(vocab, 0, sizeof *vocab);
}

static void insert(struct ree_vocab_slot *slots, uint32_t mask, uint32_t id, uint32_t hash) {
    uint32_t at = hash & mask;
    while (slots[at].id)
        at = (at + 1) & mask;
    slots[at] = (struct ree_vocab_slot){id + 1, hash};
}

// Grows the hash table so that at most half of its slots are in use. Returns false if memory is
// exhausted.
static bool grow_slots(struct ree_vocab *vocab) {
    if (vocab->slots && (uint64_t)vocab->count * 2 < vocab->mask) return true;
    ree_hash_init();
    uint32_t n = vocab->slots ? (vocab->mask + 1) * 2 : 1024;
    struct ree_vocab_slot *slots = ree_alloc_zeroed(n, sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; vocab->slots && i <= vocab->mask; i++)
        if (vocab->slots[i].id) insert(slots, n - 1, vocab->slots[i].id - 1, vocab->slots[i].hash);
    ree_free(vocab->slots);
    vocab->slots = slots;
    vocab->mask = n - 1;
    return true;
}

static bool grow_pieces(struct ree_vocab *vocab, uint32_t id) {
    if (id < vocab->capacity) return true;
    uint32_t capacity = vocab->capacity ? vocab->capacity * 2 : 1024;
    while (capacity <= id)
        capacity *= 2;
    struct ree_str *pieces = ree_realloc(vocab->pieces, capacity * sizeof *pieces);
    if (!pieces) return false;
    memset(pieces + vocab->capacity, 0, (capacity - vocab->capacity) * sizeof *pieces);
    vocab->pieces = pieces;
    vocab->capacity = capacity;
    return true;
}

enum ree_status ree_vocab_add(struct ree_vocab *vocab, struct ree_str piece, int64_t id,
                              struct ree_error *err) {
    if (id < 0 || id >= REE_VOCAB_MAX)
        return ree_fail(err, REE_INVALID, "token '%.80s' has id %lld; ids are 0 to %u", piece.data,
                        (long long)id, REE_VOCAB_MAX - 1);
    int32_t known = ree_vocab_find(vocab, piece.data, piece.size);
    if (known >= 0)
        return ree_fail(err, REE_INVALID, "token '%.80s' has two ids, %d and %lld", piece.data,
                        known, (long long)id);
    const struct ree_str *other = ree_vocab_piece(vocab, (int32_t)id);
    if (other)
        return ree_fail(err, REE_INVALID, "id %lld belongs to two tokens, '%.80s' and '%.80s'",
                        (long long)id, other->data, piece.data);
    if (!grow_slots(vocab) || !grow_pieces(vocab, (uint32_t)id))
        return ree_fail(err, REE_NO_MEMORY, "no memory for the vocabulary");
    vocab->pieces[id] = piece;
    vocab->count++;
    if ((uint32_t)id >= vocab->n) vocab->n = (uint32_t)id + 1;
    insert(vocab->slots, vocab->mask, (uint32_t)id,
           (uint32_t)ree_hash_bytes(piece.data, piece.size));
    return REE_OK;
}

int32_t ree_vocab_find(const struct ree_vocab *vocab, const char *data, size_t size) {
    if (!vocab->slots) return -1;
    uint32_t hash = (uint32_t)ree_hash_bytes(data, size);
    for (uint32_t at = hash & vocab->mask; vocab->slots[at].id; at = (at + 1) & vocab->mask) {
        if (vocab->slots[at].hash != hash) continue;
        const struct ree_str *piece = &vocab->pieces[vocab->slots[at].id - 1];
        if (piece->size == size && memcmp(piece->data, data, size) == 0)
            return (int32_t)(vocab->slots[at].id - 1);
    }
    return -1;
}
