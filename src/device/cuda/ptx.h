// JIT-generated kernels: writes a map's expression as the text of a PTX kernel, which the driver
// compiles. NUMERICS.md sections 1 and 4; PTX ISA 7.1 for compute capability 7.5.
//
// The interpreter of cuda/expr.h decodes each instruction again for every four elements. The
// generated kernel has real instructions, and its values are in registers. It depends only on the
// expression's structure. Sizes, strides, constants and addresses are arguments, the same ones that
// the interpreter receives (struct ree_cuda_header, struct ree_cuda_map_params), so other shapes
// reuse the kernel.
#ifndef REE_DEVICE_CUDA_PTX_H
#define REE_DEVICE_CUDA_PTX_H

#include "base/strbuf.h"
#include "device/cuda/kernel_interface.h"

#define REE_CUDA_PTX_THREADS 128 // threads per block
#define REE_CUDA_PTX_WIDTH 4     // adjacent elements per thread
#define REE_CUDA_PTX_KERNEL "ree_map_written"
#define REE_CUDA_PTX_FUNCTION "ree_fn_" // prefix of an operation's name: cuda/functions.cu

// Positions of an operand's elements for the four lanes of a thread.
enum ree_cuda_ptx_lanes {
    REE_CUDA_LANES_APART, // each lane computes its own coordinates
    REE_CUDA_LANES_SAME,
    REE_CUDA_LANES_STEPS, // one stride apart
    REE_CUDA_LANES_NEXT,  // adjacent
    REE_CUDA_LANES_VECTOR // adjacent and aligned to four elements (at most 16 bytes)
};

// Everything that the kernel's text depends on. Keys that are equal byte for byte share one kernel.
struct ree_cuda_ptx_key {
    uint8_t n_operands, n_tensors, n_instrs, out_dtype;
    uint8_t rank;      // number of coordinates that strided operands require; 0: none
    uint8_t is_vector; // four results are stored at once
    uint8_t unused[2];
    struct {
        uint8_t kind, dtype, access, lanes; // enum ree_cuda_access, enum ree_cuda_ptx_lanes
    } operands[REE_EXPR_MAX_OPERANDS];
    struct {
        uint16_t op;
        uint8_t args[3]; // value numbers: operands, then instructions
        uint8_t unused;
    } instrs[REE_EXPR_MAX_INSTRS];
};

// Computes the key of a map. `prepared` is the result of ree_cuda_expr_prepare for its expression.
void ree_cuda_ptx_key(const struct ree_dispatch *dispatch, const struct ree_cuda_expr *prepared,
                      struct ree_cuda_ptx_key *out);

// Appends the kernel. Sets needs[op] if the kernel calls the function of that operation.
void ree_cuda_ptx_write(const struct ree_cuda_ptx_key *key, struct ree_strbuf *out,
                        bool needs[REE_N_MAP_OPS]);

// Appends the whole module: header, called functions, kernel. functions: the PTX of
// cuda/functions.cu, NUL-terminated; "" declares the functions as external instead.
void ree_cuda_ptx_module(const struct ree_cuda_ptx_key *key, const char *functions,
                         struct ree_strbuf *out);

#endif
