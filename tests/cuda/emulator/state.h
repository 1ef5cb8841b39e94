// State of a running launch, and the check of every access to memory.
//
// Each 4-byte word of memory has a shadow, which records the latest writer and the readers since.
// Both are keys: the time in the upper 48 bits, then flags, a level, and a thread's number in its
// block. Time increases at every barrier, fence and start of a block and never decreases, so
// shadows need no clearing: accesses older than the launch (for shared memory: than the block) are
// ignored.
//
// Threads of one block are ordered by barriers, threads of a warp also by warp operations, blocks
// by a fence and an atomic operation. Two accesses to a byte, at least one of them a write, are a
// race if no such order exists between them, in whatever order they happen to run here.
#ifndef REE_EMULATOR_STATE_H
#define REE_EMULATOR_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ree_emulator {

typedef uint64_t key_t;

constexpr int TIME_SHIFT = 16;
// Bits of the thread's number in its block. With the level WARP or above: number of the latest
// thread.
constexpr key_t THREAD = 0x3FF;
constexpr key_t LEVEL = 3u << 10;  // mask of a key's level: whose accesses the key records
constexpr key_t SINGLE = 0u << 10; // level: one thread
constexpr key_t WARP = 1u << 10;   // level: several threads of one warp
constexpr key_t BLOCK = 2u << 10;  // level: several threads of one block
constexpr key_t GRID = 3u << 10;   // level: threads of several blocks
constexpr key_t ATOMIC = 1u << 12;
constexpr key_t SPLIT = 1u << 13;   // each byte of the word has its own shadow
constexpr key_t PENDING = 1u << 14; // an asynchronous copy to this word is in progress
constexpr key_t FLAGS = ATOMIC | SPLIT | PENDING;

struct shadow {
    key_t write, read;
};

enum range_kind {
    RANGE_OPERAND,
    RANGE_SCRATCH,
    RANGE_FAULT,    // where kernels report an index out of range
    RANGE_CONSTANT, // tables of a module, and the kernel's argument
    RANGE_SHARED,   // an array in shared memory; smaller kinds are not
    RANGE_DYNAMIC,
    RANGE_NOTHING
};

// Memory that a kernel may access: an operand, scratch memory, or an array of shared memory.
struct range {
    uintptr_t base;
    uint64_t size;        // bytes
    key_t start;          // accesses with keys below it are ignored
    struct shadow *words; // one for each word; NULL: accesses are not recorded
    struct shadow *bytes; // one for each byte, used for words that are SPLIT
    enum range_kind kind;
    int number;       // RANGE_OPERAND: index of the operand
    const char *name; // name of the shared array or table
};

struct state {
    key_t now;     // key of the running thread's accesses now
    key_t launch;  // the launch's first key
    key_t block;   // the block's first key
    key_t barrier; // first key since the block's latest barrier
    key_t warp;    // first key since the latest synchronization of the running thread's whole warp
    bool partial;  // some threads of the running thread's warp have synchronized by a partial mask
    bool fenced;   // the launch has had a fence or an atomic operation on global memory
};
extern struct state now;
extern const struct range nothing; // range of a null pointer

enum access { READ, WRITE, ATOMIC_ACCESS };

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void bad_address(uintptr_t at, uint64_t n, uint64_t align, const struct range *of,
                              enum access access);
// Check and record accesses that the inline functions below do not decide; a race ends the launch
// (fail). note_bytes is for accesses that are not of whole words.
void note_slow(uint64_t offset, uint64_t n, const struct range *of, enum access access);
void note_bytes(uint64_t offset, uint64_t n, const struct range *of, enum access access);

// Returns true if the access with this key is ordered before the running thread's accesses because
// it is the thread's own, or by a barrier of the block. If false, note_slow decides.
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

// Checks an access to n bytes at address `at` in the range `of`, and records it. `align`, a power
// of two, is the required alignment in bytes.
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

// order.cc: `fence` executes a fence of the running thread; `note_atomic` records that this thread
// has done an atomic operation on global memory.
void fence();
void note_atomic();

} // namespace ree_emulator

#endif
