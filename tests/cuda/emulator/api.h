// The emulator's interface for the stand-in driver and the tests.
#ifndef REE_EMULATOR_API_H
#define REE_EMULATOR_API_H

#include <stddef.h>
#include <stdint.h>

// Limits of the emulated device.
#define REE_EMULATOR_MAX_DEVICES 2
#define REE_EMULATOR_MAX_THREADS 1024
#define REE_EMULATOR_STATIC_SHARED (48u << 10) // limit of a kernel's own shared arrays
#define REE_EMULATOR_MAX_SHARED (160u << 10)   // of these and the launch's dynamic memory together
// Where dynamic shared memory begins in the emulator's shared memory.
#define REE_EMULATOR_DYNAMIC_AT (64u << 10)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Selects the device of the calls below: of its memory, and for launches. 0 at the beginning.
void ree_emulator_set_device(int device);

// Allocates device memory, filled with 0xCD (more than 256 MiB: with zeros), aligned to 256 bytes.
// Returns NULL if memory is short.
void *ree_emulator_alloc(uint64_t size);
int ree_emulator_free(void *memory); // returns 0 if memory is not the start of an allocation
// Returns whether one allocation of the device contains the whole range.
int ree_emulator_holds(const void *memory, uint64_t size);

// Runs a kernel. Returns 0, or -1 with a line of text in `error`. args is a kernel's struct
// ree_<name>_args.
int ree_emulator_launch(const char *name, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                        uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                        const void *args, char *error, size_t error_size);
// Returns the size of the kernel's arguments in bytes, or 0 if no such kernel exists.
size_t ree_emulator_kernel_args_size(const char *name);
uint32_t ree_emulator_kernel_max_threads(const char *name);
// Returns the bytes of the kernel's own shared arrays, by static_shared.def.
uint32_t ree_emulator_kernel_static_shared(const char *name);

// Sets options, as in the environment variable REE_EMULATOR (read before the first launch):
//
//   order=forward|backward|random:SEED  of threads between barriers, and of blocks
//   async=late|now                      when asynchronous copies are made
//   races=on|off                        whether races are errors
//   devices=1|2                         number of devices
//   jit=on|plain|broken|off             whether PTX can be compiled: always, without calls of
//                                       functions, never, or there is no compiler
//   blocks=N                            run only the first and the last N/2 blocks of a launch;
//                                       0: all
//   kernels=own|image                   which kernels run: the emulator's, or those of the images,
//                                       which must be PTX
//   driver=N                            version of the driver; 12040: for CUDA 12.4
//
// Options are separated by commas. Returns 0, or -1 if `text` has an invalid option.
int ree_emulator_options(const char *text);
int ree_emulator_n_devices(void);
enum ree_emulator_jit {
    REE_EMULATOR_JIT_ON,
    REE_EMULATOR_JIT_PLAIN,
    REE_EMULATOR_JIT_BROKEN,
    REE_EMULATOR_JIT_OFF
};
enum ree_emulator_jit ree_emulator_jit(void);
int ree_emulator_has_kernels(void); // returns whether kernels=own
int ree_emulator_driver_version(void);
// Statistics of PTX ($REE_EMULATOR_STATISTICS) of later launches are kept apart under this text;
// "": under the kernels' names only.
void ree_emulator_statistics_label(const char *text);
// Returns the text of the driver's most recent failed launch, or "" if none failed.
const char *ree_emulator_last_error(void);
// Returns a number below n that depends on the order option: 0, n-1, or random.
uint32_t ree_emulator_choose(uint32_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
