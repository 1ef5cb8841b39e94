// What the parts of the emulator share, and kernels do not see.
#ifndef REE_EMULATOR_LAUNCH_H
#define REE_EMULATOR_LAUNCH_H

#include "state.h"
#include "vectors.h"

#include <vector>

namespace ree_emulator {

enum order { FORWARD, BACKWARD, RANDOM };
struct options {
    enum order order;
    uint64_t seed;
    bool late, races;
};
extern struct options options;

enum thread_state { READY, AT_BARRIER, AT_WARP_OPERATION, DONE };

struct async_request {
    uintptr_t to, from; // from: 0 for zeros
    const struct range *to_range, *from_range;
    uint32_t bytes, group;
};

struct thread {
    enum thread_state state;
    int kind, line; // of the barrier or warp operation
    uint32_t mask, source;
    uint64_t value;    // brought to it, and got from it
    key_t fence;       // keys before it are behind a fence; 0: none
    key_t acquired;    // of its latest atomic operation on global memory
    uint32_t n_groups; // of asynchronous copies
    uint3 index;
};
// What few threads have.
struct thread_more {
    key_t together[32]; // when it was last together with each of its warp, by a partial mask
    std::vector<struct async_request> async;
};

struct warp {
    key_t together; // all of its threads
    bool partial;   // thread_more.together has something
    bool waits;     // a thread of it has been at a warp operation
};

// What other blocks of the launch may take as ordered, once they have done an atomic operation
// themselves.
struct release {
    key_t all;                    // keys before it, of every thread
    std::vector<key_t> by_thread; // keys before it, of one
};

struct block_record {
    key_t start;
    uint3 index;
    uint32_t release; // number; ~0: none
};

extern struct thread threads[1024];
extern struct thread_more more[1024];
extern struct warp warps[32];
extern uint32_t n_threads, running; // of the block
extern std::vector<struct block_record> blocks;
extern std::vector<struct release> releases;

void advance_time(); // the running thread's key too
inline uint32_t thread_of(key_t key) {
    return (uint32_t)(key & THREAD);
}
inline key_t time_of(key_t key) {
    return key >> TIME_SHIFT << TIME_SHIFT;
}
const struct block_record *block_of(key_t key); // which block of the launch an access was in
uint3 thread_index(uint32_t thread);

// memory.cc
struct allocation {
    uintptr_t base;
    uint64_t size;
    struct shadow *words, *bytes; // made when first needed
};
struct allocation *find_allocation(uintptr_t at, uint64_t size);
bool make_shadows(struct allocation *a);
void *map_memory(uint64_t size); // zeros, given when touched
void unmap_memory(void *memory, uint64_t size);

} // namespace ree_emulator

#endif
