// State of the emulator and of the running launch that the emulator's source files share, but that
// kernels do not see. Keys are defined in state.h.
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
    uint64_t n_blocks; // maximum number of blocks of a launch to run; 0: all
    enum ree_emulator_jit jit;
    bool own_kernels;
    int driver; // version of the driver, for example 12040 for CUDA 12.4
};
extern struct options options;

enum thread_state { READY, AT_BARRIER, AT_WARP_OPERATION, DONE };

struct async_request {
    uintptr_t to, from; // addresses; from is 0: write zeros
    const struct range *to_range, *from_range;
    uint32_t bytes, group;
};

struct thread {
    enum thread_state state;
    int kind, line; // kind and source line of the barrier or warp operation
    uint32_t mask, source;
    uint64_t value;    // argument of the barrier or warp operation, then its result
    key_t fence;       // keys below it precede the thread's latest fence; 0: none
    key_t acquired;    // key of its latest atomic operation on global memory; 0: none
    uint32_t n_groups; // number of committed groups of asynchronous copies
    uint3 index;
};
// More state of a thread, which few kernels need.
struct thread_more {
    key_t together[32]; // per lane: key of the latest synchronization with it by a partial mask
    std::vector<struct async_request> async;
};

struct warp {
    key_t together; // key of the latest synchronization of all the warp's threads
    bool partial;   // some of the warp's threads have synchronized (thread_more.together)
    bool waits;     // a thread of the warp has reached a warp operation
};

// Accesses of a block that its fences and atomic operations have released: a thread of another
// block is ordered after them once it has done an atomic operation itself.
struct release {
    key_t all;                    // every thread's accesses with keys below `all` are released
    std::vector<key_t> by_thread; // thread t's accesses with keys below by_thread[t] are released
};

struct block_record {
    key_t start;
    uint3 index;
    uint32_t release; // index in `releases`; ~0: it has released nothing
};

extern struct thread threads[1024];
extern struct thread_more more[1024];
extern struct warp warps[32];
extern uint32_t n_threads, running; // of the block: number of threads; index of the running one
extern std::vector<struct block_record> blocks;
extern std::vector<struct release> releases;

// A kernel, and the functions that run its threads.
struct program {
    const char *name;
    size_t args_size;
    uint32_t max_threads;
    void (*begin)();       // at the start of a launch, when its memory is known; may be NULL
    void (*run_block)();   // runs all threads of block blockIdx, or until `failed`
    void (*stop)();        // ends the running thread after a failure; must not return
    uint64_t static_limit; // maximum total bytes of the arrays that place_shared places
};

// Runs a kernel. Returns false on failure, with a line of text in `error`. The caller must hold the
// mutex `launches`.
bool launch(const struct program &program, dim3 grid, dim3 block, uint32_t shared_bytes,
            const void *args, char *error, size_t error_size);
extern std::recursive_mutex launches;
// Reports a failure of the launch like `fail`, but returns: does not end the running thread.
__attribute__((format(printf, 1, 2))) void fail_outside(const char *format, ...);
extern bool failed;
extern bool in_thread;    // a thread is running: messages name it
extern int current_line;  // line of the kernel's PTX for messages; 0: unknown
extern bool block_fenced; // a thread of the block has executed a fence
extern bool block_copies; // a thread of the block has queued an asynchronous copy (async=late)

// The launch's memory. Dynamic shared memory begins at byte REE_EMULATOR_DYNAMIC_AT of `shared`.
extern unsigned char arguments[];
extern struct range operands[], scratch, dynamic;
extern bool operand_usable[]; // operand i is empty, or 4-byte aligned memory in one allocation
extern unsigned char *shared; // shared memory of the running block; NULL before make_shared
bool make_shared();
extern struct shadow *shared_words, *shared_bytes;

// Writes 0 ... n-1 to order[] in the order in which n items take their turn (option `order`).
void permute(uint8_t *order, uint32_t n);
// Records that the threads of a warp in the mask `members` have synchronized. `whole`: they are all
// threads of the warp that are not done.
void bring_together(uint32_t warp, uint32_t members, bool whole);

void advance_time(); // starts the next time, also in the running thread's key (now.now)
inline uint32_t thread_of(key_t key) {
    return (uint32_t)(key & THREAD);
}
inline key_t time_of(key_t key) {
    return key >> TIME_SHIFT << TIME_SHIFT;
}
// Returns the block of the launch in which the access with this key was made.
const struct block_record *block_of(key_t key);
uint3 thread_index(uint32_t thread);

// Device memory (memory.cc).
struct allocation {
    uintptr_t base;
    uint64_t size;
    int device;
    bool is_mapped;
    struct shadow *words, *bytes; // shadow of each word, of each byte; NULL before make_shadows
};
// Returns the allocation of the selected device that contains the range of `size` bytes, or NULL.
struct allocation *find_allocation(uintptr_t at, uint64_t size);
bool make_shadows(struct allocation *a);
void *map_memory(uint64_t size); // returns zeros or NULL; pages take memory only once written
void unmap_memory(void *memory, uint64_t size);

} // namespace ree_emulator

#endif
