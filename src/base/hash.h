// A 64-bit hash for tables in memory. Its key is random in each process, so nobody can prepare keys
// that collide. Nothing that is printed or stored may depend on it.
#ifndef REE_BASE_HASH_H
#define REE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Read only after ree_hash_init.
extern uint64_t ree_hash_key[2];

// Draws the key; later calls have no effect. Call it before the first hash of a table is computed.
void ree_hash_init(void);

// One step: multiplies to 128 bits and xors the halves.
static inline uint64_t ree_hash_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t ree_hash_u64(uint64_t value) {
    return ree_hash_fold(value ^ ree_hash_key[0], ree_hash_key[1]);
}

// Takes the bytes eight at a time.
static inline uint64_t ree_hash_bytes(const char *data, size_t size) {
    uint64_t hash = ree_hash_key[0] ^ size, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        hash = ree_hash_fold(hash ^ word, ree_hash_key[1]);
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
    return ree_hash_fold(hash ^ word, ree_hash_key[1] ^ ree_hash_key[0] << 1);
}

#endif
