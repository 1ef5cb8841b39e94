// Launches: blocks run one after the other; the threads of a block take turns from barrier to
// barrier.
#include "device/cuda/kernel_interface.h"

#include "api.h"
#include "emulator.h"
#include "fibre.h"
#include "launch.h"

#include "../../splitmix.h"

#include <mutex>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace ree_emulator {

struct state now;
const struct range nothing = {0, 0, 0, NULL, NULL, RANGE_NOTHING, 0, ""};
struct options options;
struct thread threads[1024];
struct thread_more more[1024];
struct warp warps[32];
uint32_t n_threads, running;
std::vector<struct block_record> blocks;
std::vector<struct release> releases;
uint64_t launch_number;

static uint64_t time_now;
static bool failed, in_thread;
static char *failure;
static size_t failure_size;

// State of the launch.
static const struct kernel *kernels, *kernel;
alignas(16) static unsigned char arguments[32 << 10];
static struct range operands[REE_MAX_OPERANDS], scratch;
static bool operand_usable[REE_MAX_OPERANDS];

// State of the block. Shared memory holds static arrays first, then the launch's dynamic memory.
static unsigned char *shared;
static struct shadow *shared_words, *shared_bytes;
static uint64_t static_used;
static uint64_t static_limit;
static struct range dynamic;
static bool block_fenced; // a thread has executed a fence
static bool block_copies; // a thread has made an asynchronous copy

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

// Failures. The first failure ends the launch; threads stop where they are.

static void report(const char *format, va_list list) {
    if (failed) return;
    failed = true;
    int n = snprintf(failure, failure_size, "kernel %s, block (%u,%u,%u)", kernel->name, blockIdx.x,
                     blockIdx.y, blockIdx.z);
    size_t at = n < 0 ? 0 : (size_t)n;
    if (in_thread && at < failure_size)
        at += (size_t)snprintf(failure + at, failure_size - at, ", thread (%u,%u,%u)", threadIdx.x,
                               threadIdx.y, threadIdx.z);
    if (at < failure_size) at += (size_t)snprintf(failure + at, failure_size - at, ": ");
    if (at < failure_size) vsnprintf(failure + at, failure_size - at, format, list);
}

void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    report(format, list);
    va_end(list);
    for (;;)
        fibre_pause();
}

__attribute__((format(printf, 1, 2))) static void fail_outside(const char *format, ...) {
    va_list list;
    va_start(list, format);
    report(format, list);
    va_end(list);
}

// Time and order.

void advance_time() {
    time_now++;
    now.now = time_now << TIME_SHIFT | running;
}

static uint64_t next_random() {
    return splitmix_step(&options.seed);
}

static uint32_t choose(uint32_t n) {
    switch (options.order) {
    case FORWARD: return 0;
    case BACKWARD: return n - 1;
    default: return (uint32_t)((next_random() >> 32) * n >> 32);
    }
}

// Sets the order in which n items take their turn.
static void permute(uint8_t *order, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint8_t)(options.order == BACKWARD ? n - 1 - i : i);
    if (options.order != RANDOM) return;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = choose(i);
        uint8_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

uint3 thread_index(uint32_t thread) {
    return {thread % blockDim.x, thread / blockDim.x % blockDim.y,
            thread / blockDim.x / blockDim.y};
}

// Memory.

const struct range *operand_range(const void *header, uint32_t operand) {
    if (header != arguments) fail("the header is not the launch's");
    if (operand >= REE_MAX_OPERANDS) fail("there is no operand %u", operand);
    if (!operand_usable[operand])
        fail("operand %u (address %#llx, %llu bytes) is not 4-byte aligned memory of one "
             "allocation of this device",
             operand, (unsigned long long)operands[operand].base,
             (unsigned long long)operands[operand].size);
    return &operands[operand];
}

const struct range *scratch_range(const void *header) {
    if (header != arguments) fail("the header is not the launch's");
    if (!scratch.size) fail("there is no scratch memory, or it is not one allocation's");
    return &scratch;
}

static bool make_range(struct range *range, uint64_t address, uint64_t size, enum range_kind kind,
                       int number) {
    size = (size + 3) / 4 * 4;
    *range = {(uintptr_t)address, size, now.launch, NULL, NULL, kind, number, NULL};
    if (size == 0) return true;
    struct allocation *a = find_allocation((uintptr_t)address, size);
    if (!a || address % 4 != 0) return false;
    if (!options.races) return true;
    if (!make_shadows(a)) return false;
    range->words = a->words + (address - a->base) / 4;
    range->bytes = a->bytes + (address - a->base);
    return true;
}

static bool make_shared() {
    const uint64_t size = REE_EMULATOR_STATIC_SHARED + REE_EMULATOR_MAX_SHARED;
    if (!shared) shared = (unsigned char *)map_memory(size);
    if (!shared_words) shared_words = (struct shadow *)map_memory(size / 4 * sizeof(struct shadow));
    if (!shared_bytes) shared_bytes = (struct shadow *)map_memory(size * sizeof(struct shadow));
    return shared && shared_words && shared_bytes;
}

const struct range *place_shared(struct shared_array *array) {
    if (array->launch != launch_number) {
        if (static_used + array->size > static_limit ||
            static_used + array->size + dynamic.size > REE_EMULATOR_MAX_SHARED)
            fail("shared array '%s' of %llu bytes: too much shared memory; the kernel's arrays may "
                 "have %llu bytes (static_shared.def)",
                 array->name, (unsigned long long)array->size, (unsigned long long)static_limit);
        array->launch = launch_number;
        array->range = {
            (uintptr_t)shared + static_used, array->size,  0, shared_words + static_used / 4,
            shared_bytes + static_used,      RANGE_SHARED, 0, array->name};
        static_used += (array->size + 15) / 16 * 16;
    }
    array->range.start = now.block;
    return &array->range;
}

const struct range *dynamic_shared(const char *name) {
    dynamic.name = name;
    return &dynamic;
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

// Orders the threads of `members`. whole: they are all remaining threads of the warp.
static void bring_together(uint32_t w, uint32_t members, bool whole) {
    advance_time();
    key_t at = time_now << TIME_SHIFT;
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
    now.now = time_now << TIME_SHIFT | t;
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
    now.barrier = time_now << TIME_SHIFT;
    return true;
}

static void run_block() {
    advance_time();
    now.block = now.barrier = time_now << TIME_SHIFT;
    dynamic.start = now.block;
    block_fenced = false;
    blocks.push_back({now.block, blockIdx, ~0u});
    uint32_t n_warps = (n_threads + 31) / 32;
    for (uint32_t w = 0; w < n_warps; w++)
        warps[w] = {now.block, false, false};
    for (uint32_t i = 0; i < n_threads; i++) {
        struct thread *t = &threads[i];
        t->state = READY;
        t->fence = t->acquired = 0;
        t->n_groups = 0;
    }
    if (block_copies)
        for (struct thread_more &one : more)
            one.async.clear();
    block_copies = false;
    do {
        uint8_t order[32];
        permute(order, n_warps);
        for (uint32_t i = 0; i < n_warps && !failed; i++)
            run_warp(order[i]);
    } while (!failed && complete_barrier());
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void run_grid() {
    const uint64_t all = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    const uint64_t n = options.n_blocks && options.n_blocks < all ? options.n_blocks : all;
    uint64_t step = 1, first = 0;
    if (options.order == BACKWARD) step = n - 1, first = n - 1;
    if (options.order == RANDOM) { // strides that reach every block
        first = choose((uint32_t)(n < ~0u ? n : ~0u));
        step = choose((uint32_t)(n < ~0u ? n : ~0u));
        while (greatest_divisor(step, n) != 1)
            step++;
    }
    uint64_t at = first;
    for (uint64_t i = 0; i < n && !failed; i++) {
        const uint64_t block = at < n / 2 ? at : all - (n - at); // half of them the last ones
        blockIdx = {(uint32_t)(block % gridDim.x), (uint32_t)(block / gridDim.x % gridDim.y),
                    (uint32_t)(block / gridDim.x / gridDim.y)};
        run_block();
        at = (at + step) % n;
    }
}

static void read_options() {
    static bool have_read;
    if (have_read) return;
    have_read = true;
    options = {FORWARD, 1, true, true, 1, 0, REE_EMULATOR_JIT_ON};
    const char *text = getenv("REE_EMULATOR");
    if (text && ree_emulator_options(text) != 0)
        fprintf(stderr, "REE_EMULATOR=%s: not understood\n", text);
}

} // namespace ree_emulator

using namespace ree_emulator;

static std::recursive_mutex launches;

int ree_emulator_options(const char *text) {
    read_options();
    while (*text) {
        size_t n = strcspn(text, ",");
        char word[64];
        if (n >= sizeof word) return -1;
        memcpy(word, text, n);
        word[n] = 0;
        unsigned long long seed, n_blocks;
        if (strcmp(word, "order=forward") == 0)
            options.order = FORWARD;
        else if (strcmp(word, "order=backward") == 0)
            options.order = BACKWARD;
        else if (sscanf(word, "order=random:%llu", &seed) == 1)
            options.order = RANDOM, options.seed = seed * 2 + 1;
        else if (strcmp(word, "async=late") == 0 || strcmp(word, "async=now") == 0)
            options.late = word[6] == 'l';
        else if (strcmp(word, "races=on") == 0 || strcmp(word, "races=off") == 0)
            options.races = word[7] == 'n';
        else if (strcmp(word, "devices=1") == 0 || strcmp(word, "devices=2") == 0)
            options.n_devices = word[8] - '0';
        else if (strcmp(word, "jit=on") == 0)
            options.jit = REE_EMULATOR_JIT_ON;
        else if (strcmp(word, "jit=plain") == 0)
            options.jit = REE_EMULATOR_JIT_PLAIN;
        else if (strcmp(word, "jit=broken") == 0)
            options.jit = REE_EMULATOR_JIT_BROKEN;
        else if (strcmp(word, "jit=off") == 0)
            options.jit = REE_EMULATOR_JIT_OFF;
        else if (sscanf(word, "blocks=%llu", &n_blocks) == 1 && n_blocks > 1)
            options.n_blocks = n_blocks;
        else if (n != 0)
            return -1;
        text += n + (text[n] == ',');
    }
    return 0;
}

uint32_t ree_emulator_choose(uint32_t n) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    read_options();
    return choose(n);
}

int ree_emulator_n_devices(void) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    read_options();
    return options.n_devices;
}

enum ree_emulator_jit ree_emulator_jit(void) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    read_options();
    return options.jit;
}

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
    read_options();
    kernel = find_kernel(name);
    uint64_t n = (uint64_t)block_x * block_y * block_z;
    if (!kernel) {
        snprintf(error, error_size, "there is no kernel %s", name);
        return -1;
    }
    if (n == 0 || block_x > 1024 || block_y > 1024 || block_z > 64 || n > kernel->max_threads ||
        grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7FFFFFFF || grid_y > 0xFFFF ||
        grid_z > 0xFFFF || shared_bytes > REE_EMULATOR_MAX_SHARED ||
        kernel->args_size > sizeof arguments) {
        snprintf(
            error, error_size,
            "kernel %s cannot be launched with %u x %u x %u blocks of %u x %u x %u threads and "
            "%u bytes of shared memory (it is for %u threads)",
            name, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
            kernel->max_threads);
        return -1;
    }
    n_threads = (uint32_t)n;
    if (!make_shared() || !fibres_create(n_threads, thread_main)) {
        snprintf(error, error_size, "no memory for threads");
        return -1;
    }
    failed = false;
    failure = error;
    failure_size = error_size;
    blockDim = {block_x, block_y, block_z};
    gridDim = {grid_x, grid_y, grid_z};
    blockIdx = {0, 0, 0};
    launch_number++;
    running = 0;
    advance_time();
    now.launch = time_now << TIME_SHIFT;
    now.fenced = false;
    blocks.clear();
    releases.clear();
    for (uint32_t i = 0; i < n_threads; i++)
        threads[i].index = thread_index(i);
    memcpy(arguments, args, kernel->args_size);
    const struct ree_cuda_header *h = (const struct ree_cuda_header *)arguments;
    for (uint32_t i = 0; i < REE_MAX_OPERANDS; i++)
        operand_usable[i] =
            make_range(&operands[i], h->operands[i], h->sizes[i], RANGE_OPERAND, (int)i);
    if (!make_range(&scratch, h->scratch, h->scratch_size, RANGE_SCRATCH, 0)) scratch.size = 0;
    static_used = 0;
    static_limit = static_limit_of(name);
    dynamic = {(uintptr_t)shared + REE_EMULATOR_STATIC_SHARED,
               shared_bytes,
               0,
               shared_words + REE_EMULATOR_STATIC_SHARED / 4,
               shared_bytes ? ree_emulator::shared_bytes + REE_EMULATOR_STATIC_SHARED : NULL,
               RANGE_DYNAMIC,
               0,
               ""};
    run_grid();
    if (!failed) return 0;
    fibres_restart();
    return -1;
}
