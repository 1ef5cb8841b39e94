// PTX as far as src/device/cuda/ptx.c writes it: one kernel, run thread by thread, each instruction
// as NVIDIA's "PTX ISA" defines it. Functions that it calls are those of the scalar source,
// compiled for the host.
//
// A NaN that an instruction makes has the bits that hardware gives, 0x7FFFFFFF, so that a kernel
// which stores one as it is differs from the CPU. An access outside the operands that the kernel's
// header names, or at an address that is not a multiple of its size, is an error.
#ifndef REE_EMULATOR_PTX_H
#define REE_EMULATOR_PTX_H

#include <stddef.h>
#include <stdint.h>

struct ree_emulator_ptx;

// NULL for what is no such PTX; `error` says the line.
struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, char *error, size_t size);
void ree_emulator_ptx_destroy(struct ree_emulator_ptx *ptx);

const char *ree_emulator_ptx_name(const struct ree_emulator_ptx *ptx);
size_t ree_emulator_ptx_args_size(const struct ree_emulator_ptx *ptx);
uint32_t ree_emulator_ptx_max_threads(const struct ree_emulator_ptx *ptx);

// 0, or -1 with a message. args: as ree_emulator_ptx_args_size.
int ree_emulator_ptx_run(const struct ree_emulator_ptx *ptx, uint32_t grid, uint32_t block,
                         const void *args, char *error, size_t size);

#endif
