// The subset of PTX that src/device/cuda/ptx.c writes: one kernel, run thread by thread, each
// instruction as defined in NVIDIA's "PTX ISA". The functions that it calls are those of the scalar
// source, compiled for the host.
//
// A NaN produced by an instruction has the hardware's bits, 0x7FFFFFFF, so that a kernel that
// stores it unchanged differs from the CPU. An access is an error if it is outside the operands
// that the kernel's header names, or if its address is not a multiple of its size.
#ifndef REE_EMULATOR_PTX_H
#define REE_EMULATOR_PTX_H

#include <stddef.h>
#include <stdint.h>

struct ree_emulator_ptx;

// Returns NULL if `text` is not in this subset; `error` then names the line.
struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, char *error, size_t size);
void ree_emulator_ptx_destroy(struct ree_emulator_ptx *ptx);

const char *ree_emulator_ptx_name(const struct ree_emulator_ptx *ptx);
size_t ree_emulator_ptx_args_size(const struct ree_emulator_ptx *ptx);
uint32_t ree_emulator_ptx_max_threads(const struct ree_emulator_ptx *ptx);

// Returns 0, or -1 with a message. args has ree_emulator_ptx_args_size bytes.
int ree_emulator_ptx_run(const struct ree_emulator_ptx *ptx, uint32_t grid, uint32_t block,
                         const void *args, char *error, size_t size);

#endif
