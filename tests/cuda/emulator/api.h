// The interface of the CUDA emulator, which runs kernels on the CPU, for the stand-in driver and
// the tests.
#ifndef REE_EMULATOR_API_H
#define REE_EMULATOR_API_H

#include <stddef.h>
#include <stdint.h>

// Limits of the emulated device.
#define REE_EMULATOR_MAX_DEVICES 2
#define REE_EMULATOR_MAX_THREADS 1024
#define REE_EMULATOR_STATIC_SHARED (48u << 10) // bytes; limit of a kernel's own shared arrays
#define REE_EMULATOR_MAX_SHARED (160u << 10)   // bytes; limit of static plus dynamic memory
// Byte offset at which dynamic shared memory begins in the emulator's shared memory.
#define REE_EMULATOR_DYNAMIC_AT (64u << 10)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Selects the device whose memory the functions below and launches use. Initially device 0.
void ree_emulator_set_device(int device);

// Allocates `size` bytes of device memory, aligned to 256 bytes and filled with 0xCD, or with zeros
// if it is larger than 256 MiB. Returns NULL if memory is exhausted.
void *ree_emulator_alloc(uint64_t size);
// Returns 1, or 0 if `memory` is not the start of an allocation.
int ree_emulator_free(void *memory);
// Returns whether one allocation of the device contains the whole range.
int ree_emulator_holds(const void *memory, uint64_t size);

// Runs a kernel. Returns 0, or -1 with a line of text in `error`. args is the kernel's struct
// ree_<name>_args; shared_bytes is the size of its dynamic shared memory.
int ree_emulator_launch(const char *name, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                        uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                        const void *args, char *error, size_t error_size);
// Returns the size of the kernel's arguments in bytes, or 0 if no such kernel exists.
size_t ree_emulator_kernel_args_size(const char *name);
uint32_t ree_emulator_kernel_max_threads(const char *name);
// Returns the size in bytes of the kernel's own shared arrays, which static_shared.def states.
uint32_t ree_emulator_kernel_static_shared(const char *name);

// Sets options, as in the environment variable REE_EMULATOR (read before the first launch):
//
//   order=forward|backward|random:SEED  order of threads between barriers, of blocks,
//                                       and of nodes of a graph
//   async=late|now                      when asynchronous copies are made
//   races=on|off                        whether races are errors
//   devices=1|2                         number of devices
//   jit=on|plain|broken|off             PTX can be compiled; only if it calls no functions; never;
//                                       there is no compiler
//   blocks=N                            run only the first and the last N/2 blocks of a launch;
//                                       0: all
//   kernels=own|image                   which kernels run: the emulator's, or those of the images,
//                                       which must be PTX
//   driver=N                            version of the driver, for example 12040 for CUDA 12.4
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
int ree_emulator_has_kernels(void); // returns whether the option kernels=own is set
int ree_emulator_driver_version(void);
// Sets a text that precedes the kernel's name in the statistics of later launches of PTX
// ($REE_EMULATOR_STATISTICS), so that they are counted separately. "": no text.
void ree_emulator_statistics_label(const char *text);
// Returns the stand-in driver's message about the latest failed launch or PTX that it could not
// parse, or "".
const char *ree_emulator_last_error(void);
// Returns a number below n that depends on the order option: 0, n-1, or random.
uint32_t ree_emulator_choose(uint32_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
