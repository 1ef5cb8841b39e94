// The emulator as the stand-in driver and the tests see it.
#ifndef REE_EMULATOR_API_H
#define REE_EMULATOR_API_H

#include <stddef.h>
#include <stdint.h>

// Limits of the device that is emulated.
#define REE_EMULATOR_MAX_THREADS 1024
#define REE_EMULATOR_STATIC_SHARED (48u << 10)
#define REE_EMULATOR_MAX_SHARED (160u << 10)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Device memory: filled with 0xCD, at a multiple of 256 bytes. NULL: none left.
void *ree_emulator_alloc(uint64_t size);
int ree_emulator_free(void *memory); // 0: is not the start of an allocation
// Whether all of it lies in one allocation.
int ree_emulator_holds(const void *memory, uint64_t size);

// Runs a kernel; returns 0, or -1 with a line of text. The arguments are a kernel's struct
// ree_<name>_args.
int ree_emulator_launch(const char *name, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                        uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                        const void *args, char *error, size_t error_size);
// sizeof its arguments; 0: there is no such kernel.
size_t ree_emulator_kernel_args_size(const char *name);
uint32_t ree_emulator_kernel_max_threads(const char *name);

// Options, as in the environment variable REE_EMULATOR (read before the first launch):
//
//   order=forward|backward|random:SEED  of threads between barriers, and of blocks
//   async=late|now                      when asynchronous copies are made
//   races=on|off                        whether races are errors
//
// Words are separated by commas. Returns 0, or -1 for what is not an option.
int ree_emulator_options(const char *text);
// The text of the launch that failed last through the driver; "": none has.
const char *ree_emulator_last_error(void);
// A number below n that follows from the order: 0, n-1, or random.
uint32_t ree_emulator_choose(uint32_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
