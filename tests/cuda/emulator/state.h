// What a running launch knows, and the check of every access to memory.
//
// Each 4-byte word of memory has a shadow: who wrote it last and who has read it since. Both are a
// key: the time in the upper 48 bits, below it flags, a level and a thread's number in its block.
// Time goes on at every barrier, fence and start of a block and never back, so that shadows need no
// clearing: what is older than the launch (of shared memory: than the block) did not happen.
//
// Threads of one block order each other by barriers, threads of a warp by warp operations too,
// blocks by a fence and an atomic operation. Two accesses to a byte, one of them a write, between
// which there is no such order are a race, in whatever order they happen to run here.
#ifndef REE_EMULATOR_STATE_H
#define REE_EMULATOR_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ree_emulator {

typedef uint64_t key_t;

constexpr int TIME_SHIFT = 16;
constexpr key_t THREAD = 0x3FF;    // which thread; with a level of WARP or more, the latest
constexpr key_t LEVEL = 3u << 10;  // who the readers, or the users of an atomic, are
constexpr key_t SINGLE = 0u << 10; // one thread
constexpr key_t WARP = 1u << 10;   // several of one warp
constexpr key_t BLOCK = 2u << 10;  // several of one block
constexpr key_t GRID = 3u << 10;   // of several blocks
constexpr key_t ATOMIC = 1u << 12;
constexpr key_t SPLIT = 1u << 13;   // the word's bytes have shadows of their own
constexpr key_t PENDING = 1u << 14; // a copy to here is under way
constexpr key_t FLAGS = ATOMIC | SPLIT | PENDING;

struct shadow {
    key_t write, read;
};

enum range_kind { RANGE_OPERAND, RANGE_SCRATCH, RANGE_SHARED, RANGE_DYNAMIC, RANGE_NOTHING };

// Memory that a kernel may touch: an operand, scratch memory, or an array of shared memory.
struct range {
    uintptr_t base;
    uint64_t size;        // bytes
    key_t start;          // keys below it are of the past
    struct shadow *words; // NULL: not recorded
    struct shadow *bytes; // those of words that are SPLIT
    enum range_kind kind;
    int number;       // of the operand
    const char *name; // of the shared array
};

struct state {
    key_t now;     // the running thread's key
    key_t launch;  // its first
    key_t block;   // the block's first
    key_t barrier; // the first since the block's latest barrier
    key_t warp;    // the first since the running thread's warp last was together
    bool partial;  // a part of the running thread's warp has been together
    bool fenced;   // the launch has had a fence or an atomic operation on global memory
};
extern struct state now;
extern const struct range nothing; // what a null pointer points to

enum access { READ, WRITE, ATOMIC_ACCESS };

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void bad_address(uintptr_t at, uint64_t n, uint64_t align, const struct range *of,
                              enum access access);
// What the inline checks do not decide.
void note_slow(uint64_t offset, uint64_t n, const struct range *of, enum access access);
void note_bytes(uint64_t offset, uint64_t n, const struct range *of, enum access access);

// Whether this thread may go on after what is in the key, itself of this thread or ordered by a
// barrier. False: ask note_slow.
inline bool plainly_ordered(key_t key) {
    if (key & (FLAGS | LEVEL)) return key == 0;
    if (key < now.block) return false;
    return key < now.barrier || ((key ^ now.now) & THREAD) == 0;
}

inline void note_read(uint64_t offset, const struct range *of) {
    struct shadow *word = &of->words[offset >> 2];
    key_t w = word->write, r = word->read;
    if (w < of->start ? of->kind >= RANGE_SHARED : !plainly_ordered(w))
        return note_slow(offset, 4, of, READ);
    if (r < of->start)
        word->read = now.now;
    else if ((r & LEVEL) == GRID)
        return;
    else if (r < now.block || now.partial)
        note_slow(offset, 4, of, READ);
    else if (r < now.barrier || ((r ^ now.now) & (THREAD | LEVEL)) == 0)
        word->read = now.now;
    else if ((r & LEVEL) == BLOCK || ((r ^ now.now) & THREAD & ~(key_t)31) != 0)
        word->read = now.now | BLOCK;
    else
        word->read = now.now | (r < now.warp ? SINGLE : WARP);
}

inline void note_write(uint64_t offset, const struct range *of) {
    struct shadow *word = &of->words[offset >> 2];
    key_t w = word->write, r = word->read;
    if ((w >= of->start && !plainly_ordered(w)) || (r >= of->start && !plainly_ordered(r)))
        return note_slow(offset, 4, of, WRITE);
    word->write = now.now;
    word->read = 0;
}

// Checks n bytes at an address, `align` a power of two, and records the access.
inline void check(uintptr_t at, uint64_t n, uint64_t align, const struct range *of,
                  enum access access) {
    uint64_t offset = at - of->base;
    if (__builtin_expect(offset >= of->size || of->size - offset < n || (at & (align - 1)) != 0, 0))
        bad_address(at, n, align, of, access);
    if (!of->words) return;
    if (access == ATOMIC_ACCESS) return note_slow(offset, n, of, access);
    if ((offset | n) & 3) return note_bytes(offset, n, of, access);
    for (uint64_t i = 0; i < n; i += 4)
        access == READ ? note_read(offset + i, of) : note_write(offset + i, of);
}

template <class V> constexpr uint64_t alignment() {
    return alignof(V) > sizeof(V) || (sizeof(V) & (sizeof(V) - 1)) ? alignof(V) : sizeof(V);
}

template <class V> inline V load(uintptr_t at, const struct range *of) {
    check(at, sizeof(V), alignof(V), of, READ);
    V value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}
template <class V> inline void store(uintptr_t at, const struct range *of, V value) {
    check(at, sizeof(V), alignof(V), of, WRITE);
    memcpy((void *)at, &value, sizeof value);
}

// Other modules' part of the launch.
void fence();
void note_atomic(); // the running thread has done one on global memory

} // namespace ree_emulator

#endif
