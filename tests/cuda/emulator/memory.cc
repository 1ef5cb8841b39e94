// Device memory, which is host memory with a shadow (state.h).
#include "api.h"
#include "launch.h"

#include <map>
#include <stdlib.h>
#include <sys/mman.h>

namespace ree_emulator {

static std::map<uintptr_t, struct allocation> allocations;
static int selected_device;

void *map_memory(uint64_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
void unmap_memory(void *memory, uint64_t size) {
    if (memory) munmap(memory, size);
}

static uint64_t words_size(uint64_t size) {
    return (size + 3) / 4 * sizeof(struct shadow);
}
static uint64_t bytes_size(uint64_t size) {
    return (size + 3) / 4 * 4 * sizeof(struct shadow);
}

struct allocation *find_allocation(uintptr_t at, uint64_t size) {
    auto after = allocations.upper_bound(at);
    if (after == allocations.begin()) return NULL;
    struct allocation *a = &std::prev(after)->second;
    uint64_t offset = at - a->base;
    if (a->device != selected_device) return NULL;
    return offset <= a->size && a->size - offset >= size && offset < a->size ? a : NULL;
}

bool make_shadows(struct allocation *a) {
    if (!a->words) a->words = (struct shadow *)map_memory(words_size(a->size));
    if (!a->bytes) a->bytes = (struct shadow *)map_memory(bytes_size(a->size));
    return a->words && a->bytes;
}

} // namespace ree_emulator

using namespace ree_emulator;

#define LARGE ((uint64_t)256 << 20) // bytes

void ree_emulator_set_device(int device) {
    selected_device = device;
}

void *ree_emulator_alloc(uint64_t size) {
    if (size == 0 || size > (uint64_t)1 << 46) return NULL;
    uint64_t padded = (size + 255) / 256 * 256;
    // Large memory is zero, so that only what a test touches occupies memory.
    const bool maps = size > LARGE;
    void *memory = maps ? map_memory(padded) : aligned_alloc(256, padded);
    if (!memory) return NULL;
    if (!maps) memset(memory, 0xCD, padded);
    // The bytes between the requested size and the next multiple of 4 belong to the allocation.
    allocations[(uintptr_t)memory] = {
        (uintptr_t)memory, (size + 3) / 4 * 4, selected_device, maps, NULL, NULL};
    return memory;
}

int ree_emulator_free(void *memory) {
    auto found = allocations.find((uintptr_t)memory);
    if (found == allocations.end()) return 0;
    struct allocation *a = &found->second;
    unmap_memory(a->words, words_size(a->size));
    unmap_memory(a->bytes, bytes_size(a->size));
    const bool is_mapped = a->is_mapped;
    const uint64_t size = a->size;
    allocations.erase(found);
    if (is_mapped)
        unmap_memory(memory, (size + 255) / 256 * 256);
    else
        free(memory);
    return 1;
}

int ree_emulator_holds(const void *memory, uint64_t size) {
    return find_allocation((uintptr_t)memory, size) != NULL;
}
