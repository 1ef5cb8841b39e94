// The memory plan: where each intermediate tensor lies in one arena, so that tensors that are never
// alive together share bytes. Depends on the program alone, so it is the same on every machine.
#ifndef REE_SESSION_PLAN_H
#define REE_SESSION_PLAN_H

#include "base/arena.h"
#include "repops/repop.h"

// A GPU wants operands apart by its alignment, which is 256 bytes at most.
#define REE_PLAN_ALIGN 256

struct ree_plan_tensor {
    uint32_t id; // of the caller
    uint64_t nbytes;
    uint32_t first, last; // dispatches between which it is alive, inclusive
    uint64_t offset;      // result: bytes, a multiple of 256
};

// Assigns offsets and returns the arena's size. Greedy by size: the largest first, each at the
// lowest place that is free of those alive at the same time. More than 16384 tensors are placed in
// the order of time instead, in n log n steps and somewhat more bytes.
enum ree_status ree_plan_memory(struct ree_plan_tensor *tensors, size_t n,
                                struct ree_arena *scratch, uint64_t *out_size,
                                struct ree_error *err);

#endif
