// The memory plan: the offset of each intermediate tensor in one arena. Tensors whose lifetimes do
// not overlap may share bytes. The plan depends only on the program, so it is the same on every
// machine.
#ifndef REE_SESSION_MEMORY_PLAN_H
#define REE_SESSION_MEMORY_PLAN_H

#include "base/arena.h"
#include "repops/repop.h"

// Offsets are multiples of this number of bytes. GPUs require aligned operands, but none requires
// more than 256 bytes.
#define REE_MEMORY_PLAN_ALIGN 256

struct ree_memory_plan_tensor {
    uint32_t id; // identifies the tensor; unique, chosen by the caller
    uint64_t nbytes;
    uint32_t first, last; // the tensor lives from dispatch `first` to dispatch `last`, inclusive
    uint64_t offset;      // result: offset in the arena in bytes
};

// Sets the offsets of n tensors, and *out_size to the arena's size in bytes. Allocates temporary
// data in `scratch`. Greedy by size: places the largest tensor first, each at the lowest offset
// that is free during its lifetime. More than 16384 tensors are placed in the order of `first`
// instead, in O(n log n); the arena is then somewhat larger.
enum ree_status ree_memory_plan(struct ree_memory_plan_tensor *tensors, size_t n,
                                struct ree_arena *scratch, uint64_t *out_size,
                                struct ree_error *err);

#endif
