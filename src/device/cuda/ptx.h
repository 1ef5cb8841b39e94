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
#define REE_CUDA_PTX_FUNCTION "ree_fn_" // name prefix of the functions in cuda/functions.cu

// Where an operand has the elements for a thread's four lanes. A lane is one of the four adjacent
// results that a thread computes.
enum ree_cuda_ptx_lanes {
    REE_CUDA_LANES_APART, // each lane computes its own coordinates
    REE_CUDA_LANES_SAME,
    REE_CUDA_LANES_STEPS, // the elements of neighbouring lanes are one stride apart
    REE_CUDA_LANES_NEXT,  // the four elements are adjacent
    REE_CUDA_LANES_VECTOR // adjacent and aligned to their size (to at most 16 bytes)
};

// Everything that the kernel's text depends on. Keys that are equal byte for byte share one kernel.
struct ree_cuda_ptx_key {
    uint8_t n_operands, n_tensors, n_instrs, out_dtype;
    uint8_t rank;      // the expression's rank if an operand is strided, otherwise 0
    uint8_t is_vector; // 1: the output is aligned, so a thread's four results are stored as vectors
    uint8_t unused[2];
    struct {
        // kind, dtype and access as in struct ree_cuda_expr_operand. lanes: enum
        // ree_cuda_ptx_lanes.
        uint8_t kind, dtype, access, lanes;
    } operands[REE_EXPR_MAX_OPERANDS];
    struct {
        uint16_t op;
        // Numbers of the values that are the arguments. Value v is operand v if v < n_operands,
        // otherwise the result of instrs[v - n_operands].
        uint8_t args[3];
        uint8_t unused;
    } instrs[REE_EXPR_MAX_INSTRS];
};

// Computes the key of a map. `prepared` is the result of ree_cuda_expr_prepare for its expression.
void ree_cuda_ptx_key(const struct ree_dispatch *dispatch, const struct ree_cuda_expr *prepared,
                      struct ree_cuda_ptx_key *out);

// Appends the PTX of the kernel to *out. Sets needs[op] if the kernel calls the function of
// cuda/functions.cu for the operation `op`.
void ree_cuda_ptx_write(const struct ree_cuda_ptx_key *key, struct ree_strbuf *out,
                        bool needs[REE_N_MAP_OPS]);

// Appends the PTX of a whole module to *out: header, called functions, kernel. functions: the PTX
// of cuda/functions.cu; if it is "", the called functions are declared as external instead.
void ree_cuda_ptx_module(const struct ree_cuda_ptx_key *key, const char *functions,
                         struct ree_strbuf *out);

#endif
