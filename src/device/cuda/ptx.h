// Code written for one expression: a map's dispatch as the text of a PTX kernel, which the driver
// compiles. NUMERICS.md sections 1 and 4; PTX ISA 7.1 for compute capability 7.5.
//
// Where the interpreter of cuda/expr.h decodes each instruction again for every four elements, the
// kernel has them as instructions, and values in registers. It depends on the expression's
// structure alone: sizes, strides, constants and addresses come with the arguments, which are the
// interpreter's (struct ree_cuda_header, struct ree_cuda_map_params), so that another shape finds
// the kernel made.
#ifndef REE_DEVICE_CUDA_PTX_H
#define REE_DEVICE_CUDA_PTX_H

#include "base/strbuf.h"
#include "device/cuda/args.h"

#define REE_CUDA_PTX_THREADS 128 // of a block
#define REE_CUDA_PTX_WIDTH 4     // neighbouring elements of a thread
#define REE_CUDA_PTX_KERNEL "ree_map_written"
#define REE_CUDA_PTX_FUNCTION "ree_fn_" // before an operation's name: cuda/functions.cu

// Where the four elements of a thread lie when it has one place for them.
enum ree_cuda_ptx_lanes {
    REE_CUDA_LANES_APART, // each has coordinates of its own
    REE_CUDA_LANES_SAME,
    REE_CUDA_LANES_STEPS, // a stride apart
    REE_CUDA_LANES_NEXT,  // side by side
    REE_CUDA_LANES_VECTOR // side by side, at a multiple of the size of four (at most 16 bytes)
};

// All that the text depends on; two that are equal byte for byte have one kernel.
struct ree_cuda_ptx_key {
    uint8_t n_operands, n_tensors, n_instrs, out_dtype;
    uint8_t rank;      // of the coordinates that strided operands need; 0: none
    uint8_t is_vector; // four results are stored at once
    uint8_t unused[2];
    struct {
        uint8_t kind, dtype, access, lanes; // enum ree_cuda_access, enum ree_cuda_ptx_lanes
    } operands[REE_EXPR_MAX_OPERANDS];
    struct {
        uint16_t op;
        uint8_t args[3]; // values: operands, then instructions
        uint8_t unused;
    } instrs[REE_EXPR_MAX_INSTRS];
};

// The key of a map; `prepared` is what ree_cuda_expr_prepare makes of its expression.
void ree_cuda_ptx_key(const struct ree_dispatch *dispatch, const struct ree_cuda_expr *prepared,
                      struct ree_cuda_ptx_key *out);

// Appends the kernel. needs[op]: set where it calls the function of that operation.
void ree_cuda_ptx_write(const struct ree_cuda_ptx_key *key, struct ree_strbuf *out,
                        bool needs[REE_N_MAP_OPS]);

// The whole module: header, the functions that are called, kernel. functions: the PTX of
// cuda/functions.cu, NUL-terminated; "" declares them as somebody else's instead.
void ree_cuda_ptx_module(const struct ree_cuda_ptx_key *key, const char *functions,
                         struct ree_strbuf *out);

#endif
