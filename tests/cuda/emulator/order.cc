// What orders the accesses of threads: synchronization of warps, fences, atomic operations; and
// asynchronous copies, which are ordered by their waits.
#include "launch.h"

#include "pointer.h"

namespace ree_emulator {

// Orders the threads of `members`. whole: they are all remaining threads of the warp.
void bring_together(uint32_t w, uint32_t members, bool whole) {
    advance_time();
    key_t at = time_of(now.now);
    if (whole) {
        warps[w].together = at;
        return;
    }
    warps[w].partial = true;
    key_t known[32] = {0}; // what one member knows, all members then know
    for (uint32_t i = 0; i < 32; i++)
        if (members >> i & 1)
            for (uint32_t j = 0; j < 32; j++)
                if (more[w * 32 + i].together[j] > known[j])
                    known[j] = more[w * 32 + i].together[j];
    for (uint32_t i = 0; i < 32; i++)
        if (members >> i & 1) known[i] = at;
    for (uint32_t i = 0; i < 32; i++)
        if (members >> i & 1) memcpy(more[w * 32 + i].together, known, sizeof known);
}

// Fences and atomics.

void fence() {
    now.fenced = block_fenced = true;
    advance_time();
    threads[running].fence = time_of(now.now);
}

void note_atomic() {
    struct thread *thread = &threads[running];
    now.fenced = true;
    thread->acquired = time_of(now.now);
    if (!block_fenced) return;
    struct block_record *block = &blocks.back();
    if (block->release == ~0u) {
        block->release = (uint32_t)releases.size();
        releases.push_back({0, std::vector<key_t>(n_threads)});
    }
    struct release *release = &releases[block->release];
    // A fence covers what the thread has seen of other threads: everything up to the latest
    // barrier.
    if (thread->fence > now.barrier) release->all = now.barrier;
    // It also covers what other threads had ordered by their own fences.
    for (uint32_t i = 0; i < n_threads; i++) {
        key_t fence = threads[i].fence;
        if ((i == running || fence < now.barrier) && fence > release->by_thread[i])
            release->by_thread[i] = fence;
    }
}

// Asynchronous copies. No thread may access the destination between the request and its completion.

static void mark(const struct async_request &r, key_t key) {
    for (uint32_t i = 0; i < r.bytes; i += 4)
        r.to_range->words[(r.to + i - r.to_range->base) >> 2].write = key;
}

static void make_copy(const struct async_request &r) {
    if (r.from)
        memcpy((void *)r.to, (const void *)r.from, r.bytes);
    else
        memset((void *)r.to, 0, r.bytes);
    mark(r, now.now);
}

void async_copy(uintptr_t to, const struct range *to_range, uintptr_t from,
                const struct range *from_range, uint32_t bytes, bool valid) {
    if (to_range->kind < RANGE_SHARED || to_range->kind == RANGE_NOTHING)
        fail("an asynchronous copy to something other than shared memory");
    if (from_range->kind >= RANGE_SHARED && valid)
        fail("an asynchronous copy from something other than an operand");
    if (valid) check(from, bytes, bytes, from_range, READ);
    check(to, bytes, bytes, to_range, WRITE);
    struct thread *t = &threads[running];
    struct async_request r = {to, valid ? from : 0, to_range, from_range, bytes, t->n_groups};
    if (!options.late) {
        make_copy(r);
        return;
    }
    memset((void *)to, 0xCD, bytes);
    mark(r, now.now | PENDING);
    more[running].async.push_back(r);
    block_copies = true;
}

void async_commit() {
    threads[running].n_groups++;
}

void async_wait(uint32_t n) {
    std::vector<struct async_request> &requests = more[running].async;
    size_t kept = 0;
    for (auto &r : requests) {
        if (r.group + n < threads[running].n_groups)
            make_copy(r);
        else
            requests[kept++] = r;
    }
    requests.resize(kept);
}

} // namespace ree_emulator
