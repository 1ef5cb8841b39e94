// Decides which accesses are ordered (state.h), and reports those that are not.
#include "launch.h"

#include <stdio.h>

namespace ree_emulator {

static const char *verb(enum access access) {
    return access == READ ? "reads" : access == WRITE ? "writes" : "does an atomic operation on";
}

static void describe(char *text, size_t size, const struct range *of) {
    switch (of->kind) {
    case RANGE_OPERAND: snprintf(text, size, "operand %d", of->number); break;
    case RANGE_SCRATCH: snprintf(text, size, "scratch memory"); break;
    case RANGE_FAULT: snprintf(text, size, "the fault record"); break;
    case RANGE_CONSTANT: snprintf(text, size, "constant memory '%s'", of->name); break;
    case RANGE_SHARED: snprintf(text, size, "shared array '%s'", of->name); break;
    case RANGE_DYNAMIC: snprintf(text, size, "dynamic shared memory '%s'", of->name); break;
    default: snprintf(text, size, "a null pointer"); break;
    }
}

void bad_address(uintptr_t at, uint64_t n, uint64_t align, const struct range *of,
                 enum access access) {
    char what[100];
    describe(what, sizeof what, of);
    uint64_t offset = at - of->base;
    bool inside = offset < of->size && of->size - offset >= n;
    if (of->kind == RANGE_NOTHING) fail("%s %s", verb(access), what);
    // An index beyond the 64-bit range is an index before the start.
    fail("%s element %lld of %llu bytes (byte %lld) of %s, which has %llu bytes: %s", verb(access),
         (long long)offset / (long long)n, (unsigned long long)n, (long long)offset, what,
         (unsigned long long)of->size,
         inside ? align > 1 ? "the address is misaligned" : "?" : "out of range");
}

[[noreturn]] static void race(uint64_t offset, const struct range *of, enum access access,
                              key_t key, bool was_write) {
    char what[100], other[120];
    describe(what, sizeof what, of);
    uint3 t = thread_index(thread_of(key));
    const struct block_record *block = block_of(key);
    bool several = (key & LEVEL) != SINGLE;
    if (time_of(key) < now.block || (key & LEVEL) == GRID)
        snprintf(other, sizeof other, "thread (%u,%u,%u) of block (%u,%u,%u)%s", t.x, t.y, t.z,
                 block->index.x, block->index.y, block->index.z, several ? ", among others," : "");
    else
        snprintf(other, sizeof other, "thread (%u,%u,%u)%s", t.x, t.y, t.z,
                 several ? ", among others," : "");
    fail("race: %s byte %llu of %s (%llu bytes), which %s has %s; nothing orders the two",
         verb(access), (unsigned long long)offset, what, (unsigned long long)of->size, other,
         key & ATOMIC ? "used atomically"
         : was_write  ? "written"
                      : "read");
}

const struct block_record *block_of(key_t key) {
    size_t low = 0, high = blocks.size(); // finds the last block that started at or before the key
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].start <= key)
            low = middle;
        else
            high = middle;
    }
    return &blocks[low];
}

// Returns whether this thread has acquired what other blocks released: the thread itself, or a
// thread with which it has synchronized since, has done an atomic operation.
static bool has_acquired() {
    for (uint32_t t = 0; t < n_threads; t++) {
        key_t acquired = threads[t].acquired;
        if (acquired == 0) continue;
        if (t == running || acquired < now.barrier ||
            (t / 32 == running / 32 && acquired < now.warp))
            return true;
    }
    return false;
}

// Returns whether an access by thread t with this key is ordered by the warp's synchronization.
static bool ordered_in_warp(uint32_t t, key_t key) {
    if (t == running) return true;
    if (t / 32 != running / 32) return false;
    return key < now.warp || key < more[running].together[t % 32];
}

static bool ordered(key_t key) {
    uint32_t t = thread_of(key);
    if ((key & LEVEL) == GRID) return now.fenced && has_acquired();
    if (key < now.block) {
        if (!now.fenced || !has_acquired()) return false;
        const struct block_record *block = block_of(key);
        if (block->release == ~0u) return false;
        const struct release *release = &releases[block->release];
        if (key < release->all) return true;
        return (key & LEVEL) == SINGLE && key < release->by_thread[t];
    }
    if (key < now.barrier) return true;
    switch (key & LEVEL) {
    case SINGLE: return ordered_in_warp(t, key);
    case WARP:
        if (t / 32 != running / 32) return false;
        if (key < now.warp) return true;
        if (!warps[running / 32].partial) return false;
        for (uint32_t i = t / 32 * 32; i < t / 32 * 32 + 32 && i < n_threads; i++)
            if (!ordered_in_warp(i, key)) return false;
        return true;
    default: return false;
    }
}

// Returns the key for accesses of both the running thread and the threads of the key.
static key_t join(key_t key, key_t start) {
    uint32_t t = thread_of(key);
    key_t mine = now.now;
    if (key < start) return mine;
    if ((key & LEVEL) == GRID) return mine | GRID;
    if (key < now.block) return mine | GRID;
    if (key < now.barrier) return mine;
    if ((key & LEVEL) == BLOCK) return mine | BLOCK;
    if (ordered(key)) return mine;
    return mine | (t / 32 == running / 32 ? WARP : BLOCK);
}

static void note(struct shadow *s, uint64_t offset, const struct range *of, enum access access) {
    key_t w = s->write, r = s->read;
    if (w < of->start) {
        if (of->kind >= RANGE_SHARED && access != WRITE) {
            char what[100];
            describe(what, sizeof what, of);
            fail("%s byte %llu of %s (%llu bytes), which the block has not written", verb(access),
                 (unsigned long long)offset, what, (unsigned long long)of->size);
        }
        w = 0;
    } else if (w & PENDING) {
        char what[100];
        describe(what, sizeof what, of);
        uint3 t = thread_index(thread_of(w));
        fail("%s byte %llu of %s (%llu bytes), where an asynchronous copy of thread (%u,%u,%u) is "
             "under way",
             verb(access), (unsigned long long)offset, what, (unsigned long long)of->size, t.x, t.y,
             t.z);
    } else if (options.races && !(access == ATOMIC_ACCESS && (w & ATOMIC)) && !ordered(w)) {
        race(offset, of, access, w, true);
    }
    if (r < of->start) r = 0;
    if (access == READ) {
        s->read = join(r, of->start);
        return;
    }
    if (r != 0 && options.races && !ordered(r)) race(offset, of, access, r, false);
    s->read = 0;
    s->write = access == WRITE ? now.now : (w & ATOMIC ? join(w, of->start) : now.now) | ATOMIC;
}

static bool is_split(const struct shadow *word, const struct range *of) {
    return word->write >= of->start && (word->write & SPLIT);
}

void note_slow(uint64_t offset, uint64_t n, const struct range *of, enum access access) {
    for (uint64_t at = offset; at < offset + n; at += 4) {
        struct shadow *word = &of->words[at >> 2];
        if (!is_split(word, of)) {
            note(word, at, of, access);
            continue;
        }
        for (uint64_t i = at; i < at + 4; i++)
            note(&of->bytes[i], i, of, access);
        if (access == WRITE) *word = {now.now, 0};
    }
}

void note_bytes(uint64_t offset, uint64_t n, const struct range *of, enum access access) {
    for (uint64_t at = offset; at < offset + n; at++) {
        struct shadow *word = &of->words[at >> 2];
        if (!is_split(word, of)) {
            for (uint64_t i = at & ~(uint64_t)3; i < (at | 3) + 1; i++)
                of->bytes[i] = *word;
            *word = {now.now | SPLIT, 0};
        }
        note(&of->bytes[at], at, of, access);
    }
}

} // namespace ree_emulator
