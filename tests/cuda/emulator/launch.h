// State that the emulator's source files share and kernels do not see.
#ifndef REE_EMULATOR_LAUNCH_H
#define REE_EMULATOR_LAUNCH_H

#include "api.h"
#include "state.h"
#include "vectors.h"

#include <mutex>
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
    bool own_kernels;
    int driver; // 12040: for CUDA 12.4
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

// A kernel, and what runs its threads.
struct program {
    const char *name;
    size_t args_size;
    uint32_t max_threads;
    void (*begin)();       // at the start of a launch, when its memory is known; may be NULL
    void (*run_block)();   // runs all threads of block blockIdx, or until `failed`
    void (*stop)();        // ends the running thread after a failure; must not return
    uint64_t static_limit; // bytes of its own shared arrays, which place_shared places
};

// Runs a kernel; returns false with a line of text in `error`. The caller holds `launches`.
bool launch(const struct program &program, dim3 grid, dim3 block, uint32_t shared_bytes,
            const void *args, char *error, size_t error_size);
extern std::recursive_mutex launches;
// Fails without ending the running thread.
__attribute__((format(printf, 1, 2))) void fail_outside(const char *format, ...);
extern bool failed;
extern bool in_thread;    // a thread runs: failures name it
extern int current_line;  // of the kernel's text, for failures; 0: unknown
extern bool block_fenced; // a thread of the block has executed a fence
extern bool block_copies; // a thread of the block has made an asynchronous copy

// The launch's memory. Dynamic shared memory begins at byte REE_EMULATOR_DYNAMIC_AT of `shared`.
extern unsigned char arguments[];
extern struct range operands[], scratch, dynamic;
extern bool operand_usable[]; // it is memory of one allocation
extern unsigned char *shared; // after make_shared
bool make_shared();
extern struct shadow *shared_words, *shared_bytes;

// Sets the order in which n items take their turn.
void permute(uint8_t *order, uint32_t n);
// Orders the threads of `members`. whole: they are all remaining threads of the warp.
void bring_together(uint32_t warp, uint32_t members, bool whole);

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
