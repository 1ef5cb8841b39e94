// An interpreter of PTX (NVIDIA's "PTX ISA"). It runs the kernels that nvcc compiled, and those
// that src/device/cuda/ptx.c writes. The threads of a warp run in lockstep; where they diverge, the
// threads that are furthest behind run first. Warps take turns from barrier to barrier.
//
// A float32 NaN that an instruction produces has the hardware's bits, 0x7FFFFFFF, so a kernel that
// stores it unchanged differs from the CPU. Accesses are checked as in kernels compiled for the
// host (../README.md). A barrier of the warp orders accesses; a shuffle or vote does not.
#ifndef REE_EMULATOR_PTX_H
#define REE_EMULATOR_PTX_H

#include <stddef.h>
#include <stdint.h>

struct ree_emulator_ptx;

// Parses the kernel of this name, or the module's first kernel if `kernel` is NULL, and the
// functions that it calls. For a function that the module only declares, which must be one of
// cuda/functions.cu, the version compiled for the host runs. Returns NULL if there is no such
// kernel or the text is not supported; `error` then says why and names the line, if any.
struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, const char *kernel, char *error,
                                                size_t size);
void ree_emulator_ptx_destroy(struct ree_emulator_ptx *ptx);

// Returns a kernel from the modules *.ptx in the folders that $REE_EMULATOR_PTX names, separated by
// colons; it is never destroyed. Returns NULL if the variable is not set (`error` is then empty) or
// on failure.
struct ree_emulator_ptx *ree_emulator_ptx_shipped(const char *kernel, char *error, size_t size);

const char *ree_emulator_ptx_name(const struct ree_emulator_ptx *ptx);
size_t ree_emulator_ptx_args_size(const struct ree_emulator_ptx *ptx);
uint32_t ree_emulator_ptx_max_threads(const struct ree_emulator_ptx *ptx);

// Runs a kernel. Returns 0, or -1 with a message in `error`. args has ree_emulator_ptx_args_size
// bytes; shared_bytes is the size of dynamic shared memory.
int ree_emulator_ptx_run(struct ree_emulator_ptx *ptx, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, const void *args,
                         char *error, size_t size);

#endif
