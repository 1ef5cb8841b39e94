// Mutations for libFuzzer that keep the protobuf messages around a change well formed. Otherwise
// nearly every change of size would make the length of an enclosing message wrong, and the fuzzer
// would hardly get past the wire format.
//
// The mutator chooses a field in the tree of messages and changes its contents: with libFuzzer's
// own mutations, or by removing or duplicating whole fields. Then it updates the lengths of the
// enclosing messages. One change in eight is made to the raw bytes, lengths included.
#include "splitmix.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#define MAX_DEPTH 24
#define MAX_FIELDS 256
#define MAX_SIZE 65536

struct field {
    size_t start;         // offset of the tag
    size_t length, begin; // offsets of the length and the contents; begin is 0 without contents
    size_t end;
};

static uint32_t next_random(struct splitmix *rng) {
    return (uint32_t)(splitmix_next(rng) >> 32);
}

static bool read_varint(const uint8_t *data, size_t *at, size_t end, uint64_t *out) {
    *out = 0;
    for (unsigned i = 0; i < 10 && *at < end; i++) {
        uint8_t byte = data[(*at)++];
        *out |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) return true;
    }
    return false;
}

// Finds the first MAX_FIELDS fields of data[begin, end). Returns their number; 0 if this is no
// message.
static size_t split(const uint8_t *data, size_t begin, size_t end, struct field *fields) {
    size_t n = 0;
    for (size_t at = begin; at < end && n < MAX_FIELDS; n++) {
        uint64_t tag, value;
        fields[n] = (struct field){.start = at};
        if (!read_varint(data, &at, end, &tag) || tag >> 3 == 0) return 0;
        switch (tag & 7) {
        case 0:
            if (!read_varint(data, &at, end, &value)) return 0;
            break;
        case 1: at += 8; break;
        case 5: at += 4; break;
        case 2:
            fields[n].length = at;
            if (!read_varint(data, &at, end, &value) || value > end - at) return 0;
            fields[n].begin = at;
            at += value;
            break;
        default: return 0;
        }
        if (at > end) return 0;
        fields[n].end = at;
    }
    return n;
}

// Changes a message's own bytes. Returns its new size, at most `capacity` bytes.
static size_t change(uint8_t *data, size_t size, size_t capacity, struct splitmix *rng) {
    static struct field fields[MAX_FIELDS];
    size_t n = split(data, 0, size, fields);
    uint32_t kind = next_random(rng) % 8;
    if (n == 0 || kind >= 3) return LLVMFuzzerMutate(data, size, capacity);
    struct field one = fields[next_random(rng) % n];
    size_t one_size = one.end - one.start;
    if (kind == 0) { // remove the field
        memmove(data + one.start, data + one.end, size - one.end);
        return size - one_size;
    }
    if (size + one_size > capacity) return size;
    // Duplicate the field: before another field, or at the end.
    uint8_t *copy = malloc(one_size + 1);
    if (!copy) return size;
    memcpy(copy, data + one.start, one_size);
    size_t to = kind == 1 ? size : fields[next_random(rng) % n].start;
    memmove(data + to + one_size, data + to, size - to);
    memcpy(data + to, copy, one_size);
    free(copy);
    return size + one_size;
}

static size_t write_varint(uint8_t *out, size_t value) {
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    static struct field fields[MAX_FIELDS], path[MAX_DEPTH];
    static uint8_t inner[MAX_SIZE], outer[MAX_SIZE];
    struct splitmix rng = {seed};
    if (max_size > MAX_SIZE) max_size = MAX_SIZE;
    // Each enclosing length may need more bytes than before.
    size_t spare = 5 * MAX_DEPTH;
    if (size + spare >= max_size || next_random(&rng) % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t begin = 0, end = size, depth = 0;
    while (depth < MAX_DEPTH) {
        size_t n = split(data, begin, end, fields);
        if (n == 0 || next_random(&rng) % 6 == 0) break;
        struct field one = fields[next_random(&rng) % n];
        if (!one.begin) continue;
        path[depth++] = one;
        begin = one.begin, end = one.end;
    }
    memcpy(inner, data + begin, end - begin);
    size_t n = change(inner, end - begin, max_size - spare - (size - (end - begin)), &rng);
    // From the innermost message outwards: the bytes before the field in the enclosing message, the
    // new length, the new contents, the bytes after the field.
    while (depth-- > 0) {
        size_t from = depth ? path[depth - 1].begin : 0, to = depth ? path[depth - 1].end : size;
        size_t at = path[depth].length - from;
        memcpy(outer, data + from, at);
        at += write_varint(outer + at, n);
        memcpy(outer + at, inner, n);
        memcpy(outer + at + n, data + path[depth].end, to - path[depth].end);
        n += at + (to - path[depth].end);
        memcpy(inner, outer, n);
    }
    memcpy(data, inner, n);
    return n;
}
