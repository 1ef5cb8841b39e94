// Launches of kernels, whatever runs their threads: checks, memory, time, the order of blocks.
#include "device/cuda/kernel_interface.h"

#include "api.h"
#include "launch.h"
#include "pointer.h"
#include "threads.h"

#include "../../splitmix.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace ree_emulator {

std::recursive_mutex launches;
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
bool failed, in_thread;
bool block_fenced, block_copies;
int current_line;

static uint64_t time_now;
static char *failure;
static size_t failure_size;

// State of the launch.
static const struct program *program;
alignas(16) unsigned char arguments[32 << 10];
struct range operands[REE_MAX_OPERANDS], scratch;
bool operand_usable[REE_MAX_OPERANDS];

// Shared memory holds static arrays first, then the launch's dynamic memory.
unsigned char *shared;
struct shadow *shared_words, *shared_bytes;
static uint64_t static_used;
struct range dynamic;

// Failures. The first failure ends the launch; threads stop where they are.

static void report(const char *format, va_list list) {
    if (failed) return;
    failed = true;
    int n = snprintf(failure, failure_size, "kernel %s, block (%u,%u,%u)", program->name,
                     blockIdx.x, blockIdx.y, blockIdx.z);
    size_t at = n < 0 ? 0 : (size_t)n;
    if (in_thread && at < failure_size)
        at += (size_t)snprintf(failure + at, failure_size - at, ", thread (%u,%u,%u)",
                               threads[running].index.x, threads[running].index.y,
                               threads[running].index.z);
    if (current_line > 0 && at < failure_size)
        at += (size_t)snprintf(failure + at, failure_size - at, ", line %d", current_line);
    if (at < failure_size) at += (size_t)snprintf(failure + at, failure_size - at, ": ");
    if (at < failure_size) vsnprintf(failure + at, failure_size - at, format, list);
}

void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    report(format, list);
    va_end(list);
    program->stop();
    abort();
}

void fail_outside(const char *format, ...) {
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
void permute(uint8_t *order, uint32_t n) {
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

bool make_shared() {
    const uint64_t size = REE_EMULATOR_DYNAMIC_AT + REE_EMULATOR_MAX_SHARED;
    if (!shared) shared = (unsigned char *)map_memory(size);
    if (!shared_words) shared_words = (struct shadow *)map_memory(size / 4 * sizeof(struct shadow));
    if (!shared_bytes) shared_bytes = (struct shadow *)map_memory(size * sizeof(struct shadow));
    return shared && shared_words && shared_bytes;
}

const struct range *place_shared(struct shared_array *array) {
    if (array->launch != launch_number) {
        if (static_used + array->size > program->static_limit ||
            static_used + array->size + dynamic.size > REE_EMULATOR_MAX_SHARED)
            fail("shared array '%s' of %llu bytes: too much shared memory; the kernel's arrays may "
                 "have %llu bytes (static_shared.def)",
                 array->name, (unsigned long long)array->size,
                 (unsigned long long)program->static_limit);
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

static void begin_block() {
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
        begin_block();
        program->run_block();
        at = (at + step) % n;
    }
}

static void read_options() {
    static bool have_read;
    if (have_read) return;
    have_read = true;
    options = {FORWARD, 1, true, true, 1, 0, REE_EMULATOR_JIT_ON, true, 12040};
    const char *text = getenv("REE_EMULATOR");
    if (text && ree_emulator_options(text) != 0) {
        fprintf(stderr, "REE_EMULATOR=%s: not understood\n", text);
        abort();
    }
}

bool launch(const struct program &what, dim3 grid, dim3 block, uint32_t shared_bytes,
            const void *args, char *error, size_t error_size) {
    read_options();
    program = &what;
    uint64_t n = (uint64_t)block.x * block.y * block.z;
    if (n == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 || n > program->max_threads ||
        grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7FFFFFFF || grid.y > 0xFFFF ||
        grid.z > 0xFFFF || shared_bytes > REE_EMULATOR_MAX_SHARED ||
        program->args_size > sizeof arguments) {
        snprintf(
            error, error_size,
            "kernel %s cannot be launched with %u x %u x %u blocks of %u x %u x %u threads and "
            "%u bytes of shared memory (it is for %u threads)",
            program->name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes,
            program->max_threads);
        return false;
    }
    n_threads = (uint32_t)n;
    if (!make_shared()) {
        snprintf(error, error_size, "no memory for threads");
        return false;
    }
    failed = false;
    failure = error;
    failure_size = error_size;
    blockDim = block;
    gridDim = grid;
    blockIdx = {0, 0, 0};
    launch_number++;
    running = 0;
    current_line = 0;
    advance_time();
    now.launch = time_now << TIME_SHIFT;
    now.fenced = false;
    blocks.clear();
    releases.clear();
    for (uint32_t i = 0; i < n_threads; i++)
        threads[i].index = thread_index(i);
    memcpy(arguments, args, program->args_size);
    const struct ree_cuda_header *h = (const struct ree_cuda_header *)arguments;
    for (uint32_t i = 0; i < REE_MAX_OPERANDS; i++)
        operand_usable[i] =
            make_range(&operands[i], h->operands[i], h->sizes[i], RANGE_OPERAND, (int)i);
    if (!make_range(&scratch, h->scratch, h->scratch_size, RANGE_SCRATCH, 0)) scratch.size = 0;
    static_used = 0;
    dynamic = {(uintptr_t)shared + REE_EMULATOR_DYNAMIC_AT,
               shared_bytes,
               0,
               shared_words + REE_EMULATOR_DYNAMIC_AT / 4,
               shared_bytes ? ree_emulator::shared_bytes + REE_EMULATOR_DYNAMIC_AT : NULL,
               RANGE_DYNAMIC,
               0,
               ""};
    if (program->begin) program->begin();
    run_grid();
    return !failed;
}

} // namespace ree_emulator

using namespace ree_emulator;

int ree_emulator_options(const char *text) {
    read_options();
    while (*text) {
        size_t n = strcspn(text, ",");
        char word[64];
        if (n >= sizeof word) return -1;
        memcpy(word, text, n);
        word[n] = 0;
        unsigned long long seed, n_blocks;
        int driver;
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
        else if (sscanf(word, "blocks=%llu", &n_blocks) == 1 && n_blocks != 1)
            options.n_blocks = n_blocks;
        else if (strcmp(word, "kernels=own") == 0 || strcmp(word, "kernels=image") == 0)
            options.own_kernels = word[8] == 'o';
        else if (sscanf(word, "driver=%d", &driver) == 1 && driver > 0)
            options.driver = driver;
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

int ree_emulator_has_kernels(void) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    read_options();
    return options.own_kernels;
}

int ree_emulator_driver_version(void) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    read_options();
    return options.driver;
}
