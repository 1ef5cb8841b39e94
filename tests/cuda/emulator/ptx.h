// An interpreter of PTX, as defined in NVIDIA's "PTX ISA": the kernels that nvcc compiled, and
// those that src/device/cuda/ptx.c writes. The threads of a warp run in lockstep; where they
// diverge, the threads that are furthest behind run first. Warps take turns from barrier to
// barrier.
//
// A NaN produced by an instruction has the hardware's bits, 0x7FFFFFFF, so that a kernel that
// stores it unchanged differs from the CPU. Accesses are checked as in kernels compiled for the
// host (../README.md). A shuffle or vote orders no accesses, unlike a barrier of the warp.
#ifndef REE_EMULATOR_PTX_H
#define REE_EMULATOR_PTX_H

#include <stddef.h>
#include <stdint.h>

struct ree_emulator_ptx;

// Parses one kernel of a module with the functions that it calls; kernel = NULL: the first kernel.
// A function that the module only declares must be one of cuda/functions.cu; the host's is used.
// Returns NULL if there is no such kernel or the text is not supported; `error` then names the
// line.
struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, const char *kernel, char *error,
                                                size_t size);
void ree_emulator_ptx_destroy(struct ree_emulator_ptx *ptx);

// Returns a kernel of the modules *.ptx in the folder that $REE_EMULATOR_PTX names, or NULL if it
// is not set or has no such kernel; `error` is empty if it is not set. Never destroyed.
struct ree_emulator_ptx *ree_emulator_ptx_shipped(const char *kernel, char *error, size_t size);

const char *ree_emulator_ptx_name(const struct ree_emulator_ptx *ptx);
size_t ree_emulator_ptx_args_size(const struct ree_emulator_ptx *ptx);
uint32_t ree_emulator_ptx_max_threads(const struct ree_emulator_ptx *ptx);

// Returns 0, or -1 with a message. args has ree_emulator_ptx_args_size bytes.
int ree_emulator_ptx_run(struct ree_emulator_ptx *ptx, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, const void *args,
                         char *error, size_t size);

#endif
