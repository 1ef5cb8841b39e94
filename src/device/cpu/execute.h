// Runs one dispatch on the CPU.
#ifndef REE_DEVICE_CPU_EXECUTE_H
#define REE_DEVICE_CPU_EXECUTE_H

#include "device/cpu/cpu_internal.h"

// Runs `dispatch` with the given context. operands[dispatch->n_operands] are pointers to host
// memory. The calling thread must be in ree's floating-point environment.
enum ree_status ree_cpu_run_dispatch(const struct ree_cpu_context *ctx,
                                     const struct ree_dispatch *dispatch, void *const *operands,
                                     struct ree_error *err);

#endif
