// Lets a C++ compiler for the host compile the kernels in cuda/: defines what cuda/kernel.h
// requires if the compiler is not nvcc. A kernel's threads run one after the other, each on its own
// stack. Every access to an operand or to shared memory is checked:
// - its range and alignment,
// - that it is ordered with accesses of other threads,
// - that shared memory has been written before it is read.
//
// Not checked: local arrays (compile with -fsanitize=bounds for those) and memory accessed through
// plain pointers.
#ifndef REE_EMULATOR_H
#define REE_EMULATOR_H

#include "builtins.h"
#include "pointer.h"
#include "threads.h"

#define REE_DEVICE __attribute__((unused)) static inline
#define REE_DEVICE_MEMBER inline
#define REE_DEVICE_CALL __attribute__((unused)) static
#define REE_CONSTANT static const
#define REE_UNROLL
#define REE_NO_UNROLL

namespace ree_emulator {
struct kernel {
    const char *name;
    size_t args_size;
    uint32_t max_threads;
    void (*run)(const void *args);
    const struct kernel *next;

    kernel(const char *name, size_t args_size, uint32_t max_threads, void (*run)(const void *));
};
} // namespace ree_emulator

#define REE_KERNEL_BLOCKS(name, params, threads, blocks)                                           \
    struct ree_##name##_args {                                                                     \
        struct ree_cuda_header h;                                                                  \
        params p;                                                                                  \
    };                                                                                             \
    static void ree_##name##_body(const struct ree_cuda_header &h, const params &p);               \
    static_assert(threads % 32 == 0 && threads <= 1024 && blocks >= 1);                            \
    static const ree_emulator::kernel ree_##name##_kernel(                                         \
        "ree_" #name, sizeof(struct ree_##name##_args), threads, [](const void *memory) {          \
            auto *args = (const struct ree_##name##_args *)memory;                                 \
            ree_##name##_body(args->h, args->p);                                                   \
        });                                                                                        \
    static void ree_##name##_body([[maybe_unused]] const struct ree_cuda_header &h,                \
                                  [[maybe_unused]] const params &p)

#endif
