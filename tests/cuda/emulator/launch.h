// State that the emulator's source files share and kernels do not see.
#ifndef REE_EMULATOR_LAUNCH_H
#define REE_EMULATOR_LAUNCH_H

#include "api.h"
#include "state.h"
#include "vectors.h"

#include <vector>

namespace ree_emulator {

enum order { FORWARD, BACKWARD, RANDOM };
struct options {
    enum order order;
    uint64_t seed;
    bool late, races;
    int n_devices;
    uint64_t n_blocks; // 0: all of a launch
    enum ree_emulator_jit jit;
};
extern struct options options;

enum thread_state { READY, AT_BARRIER, AT_WARP_OPERATION, DONE };

struct async_request {
    uintptr_t to, from; // from = 0: writes zeros
    const struct range *to_range, *from_range;
    uint32_t bytes, group;
};

struct thread {
    enum thread_state state;
    int kind, line; // kind and source line of the barrier or warp operation
    uint32_t mask, source;
    uint64_t value;    // value given to the operation, then its result
    key_t fence;       // keys below it precede the thread's latest fence; 0: none
    key_t acquired;    // key of its latest atomic operation on global memory
    uint32_t n_groups; // groups of asynchronous copies
    uint3 index;
};
// Thread state that few threads need.
struct thread_more {
    key_t together[32]; // key of its latest partial-mask synchronization with each lane
    std::vector<struct async_request> async;
};

struct warp {
    key_t together; // key of the latest synchronization of all its threads
    bool partial;   // thread_more.together has entries
    bool waits;     // a thread of it has reached a warp operation
};

// Keys that other blocks of the launch may treat as ordered after they have done an atomic
// operation themselves.
struct release {
    key_t all;                    // keys below it are released, for every thread
    std::vector<key_t> by_thread; // keys below it are released, for one thread
};

struct block_record {
    key_t start;
    uint3 index;
    uint32_t release; // index in `releases`; ~0: none
};

extern struct thread threads[1024];
extern struct thread_more more[1024];
extern struct warp warps[32];
extern uint32_t n_threads, running; // both within the block
extern std::vector<struct block_record> blocks;
extern std::vector<struct release> releases;

void advance_time(); // also updates the running thread's key
inline uint32_t thread_of(key_t key) {
    return (uint32_t)(key & THREAD);
}
inline key_t time_of(key_t key) {
    return key >> TIME_SHIFT << TIME_SHIFT;
}
const struct block_record *block_of(key_t key); // block of the launch in which an access was made
uint3 thread_index(uint32_t thread);

// memory.cc
struct allocation {
    uintptr_t base;
    uint64_t size;
    int device;
    bool is_mapped;
    struct shadow *words, *bytes; // allocated on first use
};
// Finds memory of the selected device.
struct allocation *find_allocation(uintptr_t at, uint64_t size);
bool make_shadows(struct allocation *a);
void *map_memory(uint64_t size); // returns zeros, committed when touched
void unmap_memory(void *memory, uint64_t size);

} // namespace ree_emulator

#endif
