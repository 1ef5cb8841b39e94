// Kernels that were compiled for the host: the threads of a block are fibres, which take turns from
// barrier to barrier.
#include "api.h"
#include "emulator.h"
#include "fibre.h"
#include "launch.h"

#include <stdio.h>

namespace ree_emulator {

static const struct kernel *kernels, *kernel;

kernel::kernel(const char *name, size_t args_size, uint32_t max_threads, void (*run)(const void *))
    : name(name), args_size(args_size), max_threads(max_threads), run(run), next(kernels) {
    kernels = this;
}

static const struct kernel *find_kernel(const char *name) {
    const struct kernel *k = kernels;
    while (k && strcmp(k->name, name) != 0)
        k = k->next;
    return k;
}

// Barriers and warp operations: a thread records what it waits for, and pauses.

static uint64_t wait_for(enum thread_state state, int kind, int line) {
    struct thread *t = &threads[running];
    t->state = state;
    t->kind = kind;
    t->line = line;
    fibre_pause();
    return t->value;
}

int block_barrier(enum barrier kind, bool predicate, int line) {
    threads[running].value = predicate;
    return (int)wait_for(AT_BARRIER, kind, line);
}

uint64_t warp_operation(enum warp_op op, uint32_t mask, uint64_t value, uint32_t source, int line) {
    struct thread *t = &threads[running];
    if (!(mask >> running % 32 & 1)) fail("a warp operation whose mask is without the thread");
    t->mask = mask;
    t->value = value;
    t->source = source;
    warps[running / 32].waits = true;
    return wait_for(AT_WARP_OPERATION, op, line);
}

uint32_t shuffle_source(enum shuffle kind, uint32_t by, int width) {
    if (width < 1 || width > 32 || (width & (width - 1)))
        fail("a shuffle of width %d, which is not a power of two up to 32", width);
    uint32_t lane = running % 32, w = (uint32_t)width, first = lane & ~(w - 1);
    switch (kind) {
    case SHUFFLE_INDEX: return first | (by & (w - 1));
    case SHUFFLE_UP: return by > lane - first ? lane : lane - by;
    case SHUFFLE_DOWN: return by > first + w - 1 - lane ? lane : lane + by;
    default: return (lane ^ by) > first + w - 1 ? lane : lane ^ by;
    }
}

static uint32_t left_in_warp(uint32_t w) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < 32 && w * 32 + i < n_threads; i++)
        if (threads[w * 32 + i].state != DONE) left |= 1u << i;
    return left;
}

static bool waits_with(const struct thread *a, const struct thread *b) {
    return a->state == b->state && a->kind == b->kind && a->line == b->line &&
           (a->state != AT_WARP_OPERATION || a->mask == b->mask);
}

// Completes the operations that all their threads have reached; returns false if there is none.
static bool complete_warp_operations(uint32_t w) {
    if (!warps[w].waits) return false;
    bool any = false;
    struct thread *lanes = &threads[w * 32];
    uint32_t left = left_in_warp(w);
    for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
        struct thread *first = &lanes[__builtin_ctz(rest)];
        if (first->state != AT_WARP_OPERATION) continue;
        uint32_t members = first->mask & left, ballot = 0;
        uint64_t brought[32] = {0};
        bool all = true;
        for (uint32_t i = 0; i < 32; i++) {
            if (!(members >> i & 1)) continue;
            all = all && waits_with(first, &lanes[i]);
            brought[i] = lanes[i].value;
            ballot |= (uint32_t)(brought[i] != 0) << i;
        }
        if (!all) continue;
        any = true;
        for (uint32_t i = 0; i < 32; i++) {
            if (!(members >> i & 1)) continue;
            struct thread *t = &lanes[i];
            uint32_t source = t->source, match = 0;
            for (uint32_t j = 0; j < 32; j++)
                match |= (uint32_t)((members >> j & 1) && brought[j] == brought[i]) << j;
            if (first->kind == WARP_SHUFFLE && !(members >> source & 1)) {
                fail_outside("the shuffle in line %d: lane %u of warp %u takes from lane %u, which "
                             "does not take part",
                             first->line, i, w, source);
                return false;
            }
            t->value = first->kind == WARP_SHUFFLE  ? brought[source]
                       : first->kind == WARP_BALLOT ? ballot
                                                    : match;
        }
        for (uint32_t i = 0; i < 32; i++)
            if (members >> i & 1) lanes[i].state = READY;
        bring_together(w, members, members == left);
    }
    return any;
}

static const char *place_name(const struct thread *t) {
    static const char *const barriers[] = {"__syncthreads", "__syncthreads_or", "__syncthreads_and",
                                           "__syncthreads_count"};
    static const char *const operations[] = {"__syncwarp", "a vote", "a shuffle", "a match"};
    return t->state == AT_BARRIER ? barriers[t->kind] : operations[t->kind];
}

static void report_deadlock() {
    const struct thread *a = NULL, *b = NULL;
    for (uint32_t i = 0; i < n_threads; i++) { // prefers a thread that waits for its warp
        const struct thread *t = &threads[i];
        if (t->state != DONE && (!a || (a->state == AT_BARRIER && t->state == AT_WARP_OPERATION)))
            a = t;
    }
    uint32_t at = (uint32_t)(a - threads);
    for (uint32_t i = 0; i < n_threads && !b; i++) {
        const struct thread *t = &threads[i];
        if (t->state == DONE || waits_with(a, t)) continue;
        if (a->state == AT_WARP_OPERATION && (i / 32 != at / 32 || !(a->mask >> i % 32 & 1)))
            continue;
        b = t;
    }
    uint3 ta = thread_index(at), tb = thread_index(b ? (uint32_t)(b - threads) : at);
    fail_outside("deadlock: thread (%u,%u,%u) waits at %s in line %d for thread (%u,%u,%u), which "
                 "is at %s in line %d%s",
                 ta.x, ta.y, ta.z, place_name(a), a->line, tb.x, tb.y, tb.z, place_name(b ? b : a),
                 b ? b->line : a->line,
                 b && b->state == AT_WARP_OPERATION && b->kind == a->kind && b->mask != a->mask
                     ? " with another mask"
                     : "");
}

// Blocks.

static void thread_main() {
    for (;;) {
        kernel->run(arguments);
        threads[running].state = DONE;
        fibre_pause();
    }
}

static void run_thread(uint32_t t) {
    running = t;
    now.now = time_of(now.now) | t;
    now.warp = warps[t / 32].together;
    now.partial = warps[t / 32].partial;
    threadIdx = threads[t].index;
    in_thread = true;
    fibre_resume(t);
    in_thread = false;
}

// Runs the warp until each of its threads is done or waits for another warp.
static void run_warp(uint32_t w) {
    uint32_t n = n_threads - w * 32 < 32 ? n_threads - w * 32 : 32;
    do {
        uint8_t order[32];
        permute(order, n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t t = w * 32 + order[i];
            if (threads[t].state == READY) run_thread(t);
            if (failed) return;
        }
    } while (complete_warp_operations(w));
}

// Lets the block continue if all remaining threads are at the same barrier. Returns false if no
// thread remains, or after a failure.
static bool complete_barrier() {
    const struct thread *first = NULL;
    uint32_t n = 0, n_true = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        const struct thread *t = &threads[i];
        if (t->state == DONE) continue;
        if (!first) first = t;
        if (t->state != AT_BARRIER || !waits_with(first, t)) {
            report_deadlock();
            return false;
        }
        n++;
        n_true += t->value != 0;
    }
    if (n == 0) return false;
    uint32_t result = first->kind == BARRIER_OR    ? n_true != 0
                      : first->kind == BARRIER_AND ? n_true == n
                                                   : n_true;
    for (uint32_t i = 0; i < n_threads; i++) {
        if (threads[i].state == DONE) continue;
        threads[i].state = READY;
        threads[i].value = result;
    }
    advance_time();
    now.barrier = time_of(now.now);
    return true;
}

static void run_block() {
    uint32_t n_warps = (n_threads + 31) / 32;
    do {
        uint8_t order[32];
        permute(order, n_warps);
        for (uint32_t i = 0; i < n_warps && !failed; i++)
            run_warp(order[i]);
    } while (!failed && complete_barrier());
}

[[noreturn]] static void stop() {
    for (;;)
        fibre_pause();
}

} // namespace ree_emulator

using namespace ree_emulator;

size_t ree_emulator_kernel_args_size(const char *name) {
    const struct kernel *k = find_kernel(name);
    return k ? k->args_size : 0;
}
uint32_t ree_emulator_kernel_max_threads(const char *name) {
    const struct kernel *k = find_kernel(name);
    return k ? k->max_threads : 0;
}

static const struct {
    const char *name;
    uint32_t bytes;
} static_shared[] = {
#define SHARED(name, bytes) {"ree_" #name, bytes},
#include "static_shared.def"
};

uint32_t ree_emulator_kernel_static_shared(const char *name) {
    for (auto &one : static_shared)
        if (strcmp(one.name, name) == 0) return one.bytes;
    return 0;
}

// The kernels of emulator_test.cc are not listed.
static uint64_t static_limit_of(const char *name) {
    return strncmp(name, "ree_test_", 9) == 0 ? REE_EMULATOR_STATIC_SHARED
                                              : ree_emulator_kernel_static_shared(name);
}

int ree_emulator_launch(const char *name, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                        uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                        const void *args, char *error, size_t error_size) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    kernel = find_kernel(name);
    if (!kernel) {
        snprintf(error, error_size, "there is no kernel %s", name);
        return -1;
    }
    if (!fibres_create((uint32_t)((uint64_t)block_x * block_y * block_z), thread_main)) {
        snprintf(error, error_size, "no memory for threads");
        return -1;
    }
    const struct program program = {kernel->name,
                                    kernel->args_size,
                                    kernel->max_threads,
                                    NULL,
                                    run_block,
                                    stop,
                                    static_limit_of(kernel->name)};
    if (launch(program, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, args,
               error, error_size))
        return 0;
    fibres_restart();
    return -1;
}
